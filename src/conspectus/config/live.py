"""Middleware that follows its configuration file: an edit counts at the next turn."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain.agents.middleware.types import AgentMiddleware, ModelCallResult

from conspectus.archive import Archive
from conspectus.config.building import ChatModel, ModelRegistry, archive_opened, settings_of
from conspectus.config.loading import config_of
from conspectus.config.reading import SECTION, read_text
from conspectus.config.schema import SummarizationConfig
from conspectus.engine.engine import OnEvent
from conspectus.engine.hooks import BeforeSummarization, hooks_of
from conspectus.engine.settings import AnyArchive
from conspectus.errors import ConfigError, PolicyError
from conspectus.langchain import ContextGuard, SummarizationMiddleware
from conspectus.langchain.guard import OnStuck, Request
from conspectus.langchain.requests import Send
from conspectus.langchain.state import Tenant, read_head
from conspectus.observe import log

FIXED = ("archive", "history", "recall")
"""Keys that need a newly built agent: its archive, its state and its tools depend on them."""


class ConfiguredSummarization(SummarizationMiddleware):
    """`SummarizationMiddleware` that follows the file of its configuration.

    See `create_summarization_middleware`.
    """

    def __init__(
        self,
        config: SummarizationConfig,
        subagent: str | None,
        models: tuple[ModelRegistry | None, ChatModel | str | None],
        archive: AnyArchive | None,
        others: dict[str, Any],
    ) -> None:
        self.config = config if subagent is None else config.for_subagent(subagent)
        self._subagent, self._models, self._others = subagent, models, others
        file, self._text = config.source.file, config.source.text
        self._file = None if file is None else file.absolute()
        self._given, self._said, self._lock = archive, "", threading.Lock()
        settings = settings_of(self.config, *models) | others
        self._for_it = archive_opened(self.config, archive)
        super().__init__(**settings, archive=self._for_it)

    @property
    def enabled(self) -> bool:
        """Whether summarisation is on."""
        return self.config.enabled

    def _own_archive(self) -> Archive | None:
        return None if self._for_it is self._given else self._for_it

    def guard(self, *, on_stuck: OnStuck = "raise") -> ConfiguredGuard:
        """Make the `ContextGuard` of this agent, to be put last in its middleware.

        Args:
            on_stuck: if nothing makes a request fit: `"raise"` a `StuckError`, or `"send"` it.
        """
        return ConfiguredGuard(self, on_stuck=on_stuck)

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Look once a turn whether the file has changed."""
        self.refresh()

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """Do the same as `before_agent` on an event loop."""
        await asyncio.to_thread(self.refresh)

    def refresh(self) -> bool:
        """Follow an edited file now; each turn does so as it begins.

        An invalid file is logged, once, and the settings in force stay.

        Returns:
            Whether the settings in force changed.
        """
        if self._file is None or not self._lock.acquire(blocking=False):
            return False  # made in Python, or another thread is at it
        try:
            text = read_text(self._file)
            changed = text != self._text
            if changed:
                self._follow(text)
            self._said = ""
            return changed
        except Exception as error:
            if str(error) != self._said:
                log("configuration_refused", "the configuration in force is kept: %s", error)
            self._said = str(error)
            return False
        finally:
            self._lock.release()

    def _follow(self, text: bytes) -> None:
        whole, old = config_of(cast("Any", self._file), text), self.config
        if not whole.source.found:
            # An editor may have emptied it for a moment; `enabled: false` switches off on purpose.
            raise ConfigError((f"{self._file}: has no section '{SECTION}' any more",))
        new = whole if self._subagent is None else whole.for_subagent(self._subagent)
        stays = [key for key in FIXED if getattr(new, key) != getattr(old, key) and new.enabled]
        if new.enabled:
            new = new.model_copy(update={key: getattr(old, key) for key in stays})
        else:  # a section that switches off may lack models and counters, or name broken ones
            new = old.model_copy(update={"enabled": False})
        settings = settings_of(new, *self._models) | self._others
        if not new.enabled:
            settings["trigger"] = None
        self.go_on_as(SummarizationMiddleware(**settings, archive=self._for_it))
        self.config, self._text = new, text
        for key in stays:
            said = f"'{key}' counts when the agent is built anew; it stays as it was"
            log("configuration_fixed", "%s", new.source.problem((key,), said))
        said = "the settings of %s are in force"
        log("configuration_in_force", said, self._file, level=logging.INFO)


class ConfiguredGuard(ContextGuard):
    """`ContextGuard` of an agent whose summarisation an edit may switch off."""

    def __init__(self, switch: ConfiguredSummarization, *, on_stuck: OnStuck = "raise") -> None:
        super().__init__(switch, on_stuck=on_stuck, name="ContextGuard")
        self._switch = switch

    async def _guarded(self, request: Request, send: Send) -> ModelCallResult[Any]:
        if not self._switch.enabled:
            held = read_head(request.state, request.runtime, request.state["messages"])
            if not held.pending:
                return cast("ModelCallResult[Any]", await send(request))
        return await super()._guarded(request, send)


def create_summarization_middleware(
    config: SummarizationConfig,
    *,
    model_registry: ModelRegistry | None = None,
    model: ChatModel | str | None = None,
    subagent: str | None = None,
    before_summarization: BeforeSummarization | Sequence[BeforeSummarization] | None = None,
    tenant: Tenant = None,
    on_event: OnEvent | None = None,
    archive: AnyArchive | None = None,
    name: str = "SummarizationMiddleware",
) -> ConfiguredSummarization | None:
    """Make the middleware of a configuration; None if it is not enabled.

    Put its `guard()` last in the `middleware` of the agent, as `create_middleware` does. Edits of
    the file count from the next turn on; an invalid file is logged, and the settings in force stay.

    Args:
        config: from `load_config`.
        model_registry: chat models by the names in the file: a mapping, whose values may be
            `provider:model` strings, or a function. Default: `models` in the file; a name that is
            not there is a `provider:model` string.
        model: the agent's own model, or its name: its window is managed, and it writes where
            `model_name` is null or fails. Default: the model of `model_name`.
        subagent: the name of the subagent that this is for; its own settings override the file's.
        before_summarization: see `SummarizationMiddleware`, as for `tenant` and `on_event`.
        archive: the archive in place of the file's.
        name: of the middleware.

    Raises:
        ConfigError: a counter or a function that it names cannot be loaded, there is no model to
            write, or a fraction has no window that is known.
        ArchiveError: its archive cannot be opened.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": 6000})
        >>> own = FakeListChatModel(responses=["hello"])
        >>> create_summarization_middleware(config, model=own).trigger
        [('tokens', 6000)]
    """
    if not isinstance(config, SummarizationConfig):
        raise PolicyError(f"config must be what load_config gives, not {config!r}")
    if not isinstance(model_registry, Mapping | None) and not callable(model_registry):
        raise PolicyError(
            "model_registry must be a mapping from names to chat models, or a function of a name, "
            f"not {model_registry!r}"
        )
    others: dict[str, Any] = {"tenant": tenant, "on_event": on_event, "name": name}
    others["before_summarization"] = hooks_of(before_summarization)
    own = config if subagent is None else config.for_subagent(subagent)
    if not own.enabled:
        return None
    return ConfiguredSummarization(config, subagent, (model_registry, model), archive, others)


def create_middleware(
    config: SummarizationConfig,
    *between: AgentMiddleware[Any, Any, Any],
    on_stuck: OnStuck = "raise",
    **settings: Any,
) -> list[AgentMiddleware[Any, Any, Any]]:
    """Make the list for `create_agent`: summarisation, other middleware, the guard.

    Args:
        config: from `load_config`; if it is not enabled, only the others are in the list.
        between: the other middleware, in order.
        on_stuck: of the guard.
        settings: as for `create_summarization_middleware`.

    Raises:
        ConfigError, ArchiveError: as there.

    Example:
        >>> create_middleware(SummarizationConfig())
        []
    """
    summarization = create_summarization_middleware(config, **settings)
    if summarization is None:
        return list(between)
    return [summarization, *between, summarization.guard(on_stuck=on_stuck)]
