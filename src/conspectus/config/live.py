"""Middleware that follows its configuration file: an edit counts at the next turn."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, cast

from langchain.agents.middleware.types import AgentMiddleware, ModelCallResult

from conspectus.agents.identity import Tenant
from conspectus.agents.state import read_head
from conspectus.archive import Archive
from conspectus.bridge import arun, io, run
from conspectus.compactor.engine import OnEvent
from conspectus.compactor.hooks import BeforeSummarization
from conspectus.compactor.settings import AnyArchive
from conspectus.config.building import Builder, ChatModel, ModelRegistry
from conspectus.config.loading import config_of
from conspectus.config.reading import read_text
from conspectus.config.schema import SUBAGENT_KEYS, SubagentSettings, SummarizationConfig
from conspectus.config.source import SECTION
from conspectus.errors import ConfigError, PolicyError
from conspectus.guard import ContextGuard
from conspectus.guard.api import OnStuck, Request, Send
from conspectus.middleware import SummarizationMiddleware
from conspectus.observe import log

NAME = "SummarizationMiddleware"

FIXED = ("archive", "history", "recall")
"""Keys that need a newly built agent: its archive, its state and its tools depend on them."""


class ConfiguredSummarization(SummarizationMiddleware):
    """`SummarizationMiddleware` that follows the file of its configuration.

    See `create_summarization_middleware`.
    """

    def __init__(self, config: SummarizationConfig, builder: Builder) -> None:
        with builder.settings(config) as settings:
            super().__init__(**settings)
        self._config, self._builder = config, builder
        self._for_it: Archive | None = settings["archive"]
        file = config.source.file
        self._file = file.absolute() if file is not None else None
        self._text, self._said = config.source.text, ""
        self._lock = threading.Lock()

    @property
    def config(self) -> SummarizationConfig:
        """The settings in force, overridden by those of the subagent."""
        return self._builder.own(self._config)

    @property
    def enabled(self) -> bool:
        """Whether summarisation is on."""
        return self.config.enabled

    @property
    def archive(self) -> Archive | None:
        """The archive in use; None for the graph's own store, or for none."""
        return self._for_it

    def guard(self, *, on_stuck: OnStuck = "raise") -> ConfiguredGuard:
        """Make the `ContextGuard` of this agent, to be put last in its middleware.

        Args:
            on_stuck: if nothing makes a request fit: `"raise"` a `StuckError`, or `"send"` it.
        """
        return ConfiguredGuard(self, on_stuck=on_stuck)

    def _own_archive(self) -> Archive | None:
        return None if self._for_it is self._builder.archive else self._for_it

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Look once a turn whether the file has changed."""
        return run(self._look())

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `before_agent` on an event loop."""
        return await arun(self._look())

    async def _look(self) -> None:
        if self._file is not None:
            await io(self.refresh)

    def refresh(self) -> bool:
        """Follow an edited file now; each turn does so as it begins.

        An invalid file is logged, once, and the settings in force stay.

        Returns:
            Whether the settings in force changed.
        """
        if not self._lock.acquire(blocking=False):
            return False  # another thread is at it
        try:
            return self._refreshed()
        except Exception as error:
            said = str(error)
            if said != self._said:
                log("configuration_refused", "the configuration in force is kept: %s", said)
            self._said = said
            return False
        finally:
            self._lock.release()

    def _refreshed(self) -> bool:
        file = self._file
        if file is None:
            return False
        text = read_text(file)
        if text == self._text:
            self._said = ""
            return False
        config = config_of(file, text)
        if not config.source.found:
            # An editor may have emptied it for a moment; `enabled: false` switches off on purpose.
            raise ConfigError((f"{file}: has no section '{SECTION}' any more",))
        config, stays = self._with_fixed(config)
        with self._builder.settings(config, self._for_it) as settings:
            other = SummarizationMiddleware(**settings)
        self.go_on_as(other)
        self._config, self._text, self._for_it = config, text, settings["archive"]
        self._said = ""
        for said in stays:
            log("configuration_fixed", "%s", said)
        log("configuration_in_force", "the settings of %s are in force", file, level=logging.INFO)
        return True

    def _with_fixed(self, config: SummarizationConfig) -> tuple[SummarizationConfig, list[str]]:
        """Keep settings that cannot change under a running agent, and list them.

        A configuration that only switches off keeps everything else in force.
        """
        new, old = self._builder.own(config), self.config
        stays = [key for key in FIXED if getattr(new, key) != getattr(old, key)]
        said = [
            new.source.problem(
                (key,), f"'{key}' counts when the agent is built anew; it stays as it was"
            )
            for key in stays
        ]
        kept: dict[str, Any] = {key: getattr(old, key) for key in stays}
        if not new.enabled:
            # A section that switches off may lack models and counters, or name broken ones.
            kept = {key: getattr(old, key) for key in SUBAGENT_KEYS if key != "enabled"}
            kept["archive"], said = old.archive, []
        name = self._builder.subagent
        if name is None:
            return config.model_copy(update=kept), said
        archive = {"archive": kept.pop("archive")} if "archive" in kept else {}
        own = config.subagents.get(name) or SubagentSettings.model_validate({})
        subagents = {**config.subagents, name: own.model_copy(update=kept)}
        return config.model_copy(update={**archive, "subagents": subagents}), said


class ConfiguredGuard(ContextGuard):
    """`ContextGuard` of an agent whose summarisation an edit may switch off."""

    def __init__(
        self, summarization: ConfiguredSummarization, *, on_stuck: OnStuck = "raise"
    ) -> None:
        super().__init__(summarization, on_stuck=on_stuck, name="ContextGuard")
        self._switch = summarization

    async def _guarded(self, request: Request, send: Send) -> ModelCallResult[Any]:
        if not self._switch.enabled:
            held = read_head(request.state, request.runtime, request.state["messages"])
            if not held.pending:
                return cast("ModelCallResult[Any]", (await send(request)))
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
    name: str = NAME,
) -> ConfiguredSummarization | None:
    """Make the middleware of a configuration; None if it is not enabled.

    Put it into the `middleware` of an agent with its `guard()` last: `[summarization, *others,
    summarization.guard()]`; `create_middleware` makes that list. Edits of the configuration's file
    count from the next turn on, and no thread is lost; an invalid file is logged, and the settings
    in force stay.

    Args:
        config: from `load_config`.
        model_registry: chat models by the names in the file: a mapping, whose values may be
            `provider:model` strings, or a function of a name. Default: names are `provider:model`
            strings themselves.
        model: the agent's own model, or its name in the registry: its window is managed, it writes
            the summaries if `model_name` is null, and it is the last fallback. Default: the model
            of `model_name`.
        subagent: the name of the subagent that this is for; its own settings override the file's.
        before_summarization: see `SummarizationMiddleware`, as for `tenant` and `on_event`.
        archive: the archive in place of the file's.
        name: of the middleware.

    Raises:
        ConfigError: a model, a counter or a function that it names cannot be loaded; or the trigger
            has only fractions of an unknown window.
        ArchiveError: its archive cannot be opened.

    Example:
        >>> from conspectus_lab.testing.scripted_models import ScriptedChatModel
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": 6000})
        >>> own = ScriptedChatModel(answers=["hello"])
        >>> create_summarization_middleware(config, model=own).trigger
        [('tokens', 6000)]
    """
    if not isinstance(config, SummarizationConfig):
        raise PolicyError(f"config must be what load_config gives, not {config!r}")
    builder = Builder(
        model_registry, model, subagent, before_summarization, tenant, on_event, name, archive
    )
    if not builder.own(config).enabled:
        return None
    return ConfiguredSummarization(config, builder)


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
