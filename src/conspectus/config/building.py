"""Check a configuration, and turn it into arguments of the middleware."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from conspectus._core.choices import EMBEDDED, names_embedded
from conspectus._core.sizes import ContextSize
from conspectus.agents.identity import Tenant
from conspectus.agents.models import profile_window
from conspectus.archive import Archive
from conspectus.compactor.engine import OnEvent
from conspectus.compactor.hooks import BeforeSummarization, hooks_of
from conspectus.compactor.settings import AnyArchive, open_archive
from conspectus.config.checks import clause_of
from conspectus.config.named import counter_of, pin_of, redact_of
from conspectus.config.schema import SummarizationConfig
from conspectus.config.source import Path_
from conspectus.config.values import AllOf, Size
from conspectus.config.words import meant
from conspectus.errors import ConspectusError, PolicyError
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.notes.skills import Skills
from conspectus.observe import log

ChatModel = BaseChatModel | Runnable[Any, Any]
ModelRegistry = Mapping[str, ChatModel | str] | Callable[[str], ChatModel]
"""Chat models by name: a mapping, whose values may be `provider:model` strings, or a function."""

KEEP: ContextSize = ("messages", 20)  # The messages kept if `keep` is a share of an unknown window


@dataclass(frozen=True, slots=True)
class Builder:
    """The settings outside of the file: see `create_summarization_middleware`."""

    registry: ModelRegistry | None
    model: ChatModel | str | None
    subagent: str | None
    before_summarization: BeforeSummarization | Sequence[BeforeSummarization] | None
    tenant: Tenant
    on_event: OnEvent | None
    name: str
    archive: AnyArchive | None

    def __post_init__(self) -> None:
        registry = self.registry
        if registry is not None and not isinstance(registry, Mapping) and not callable(registry):
            raise PolicyError(
                "model_registry must be a mapping from names to chat models, or a function of a "
                f"name, not {registry!r}"
            )
        if self.model is not None and not isinstance(self.model, (str, Runnable)):
            raise PolicyError(f"model must be a chat model or the name of one, not {self.model!r}")
        hooks_of(self.before_summarization)

    def own(self, config: SummarizationConfig) -> SummarizationConfig:
        """Return the settings of the agent that is built."""
        return config if self.subagent is None else config.for_subagent(self.subagent)

    @contextlib.contextmanager
    def settings(
        self, whole: SummarizationConfig, in_use: Archive | None = None
    ) -> Iterator[dict[str, Any]]:
        """Make the arguments of `SummarizationMiddleware`, with the archive they need.

        An archive that is in use already stays; one that is opened is closed if the block fails.
        """
        config = self.own(whole)
        models = _Models(self, config)
        answers, writes, fallbacks = models.all()
        settings: dict[str, Any] = {
            "model": answers,
            "token_counter": counter_of(config, answers),
            "pin": pin_of(config),
            "redact": redact_of(config),
            "before_summarization": hooks_of(self.before_summarization),
            "skills": skills_of(config),
            "window": config.window or models.declared(),
            "tenant": self.tenant,
            "on_event": self.on_event,
            "name": self.name,
            "background": config.ahead,
            "stale_results": config.stale,
            **{name: getattr(config, name) for name in SAME},
        }
        window = settings["window"] or profile_window(answers)
        settings |= sizes_of(config, window) if config.enabled else {"trigger": None, "keep": KEEP}
        settings["summarizer"] = summarizer_of(config, writes)
        settings["fallbacks"] = [summarizer_of(config, one) for one in fallbacks]
        archive = in_use
        if archive is None and config.enabled:
            given = self.archive if self.archive is not None else archive_of(whole)
            try:
                archive = open_archive(given)
            except ConspectusError as error:
                raise type(error)(whole.source.problem(("archive",), str(error))) from error
        try:
            yield settings | {"archive": archive}
        except BaseException:
            if archive is not None and archive not in (in_use, self.archive):
                archive.close()
            raise


def summarizer_of(config: SummarizationConfig, model: Any) -> Any:
    """Return the summariser of a chat model, or of the name of one, with the file's settings."""
    if model == EMBEDDED:
        return EMBEDDED
    return ChatModelSummarizer(
        model,
        prompt=config.summary_prompt,
        trim_tokens_to_summarize=config.trim_tokens_to_summarize,
        timeout=config.summarizer_timeout,
    )


SAME = (
    "summary_prompt max_summary_tokens notes summarizer_timeout on_failure "
    "recall recall_tokens history reserved_tokens file_tokens least_gain summary_request "
    "trim_tokens_to_summarize"
).split()
"""Keys that the middleware has by the same names."""


class _Models:
    """The models that a configuration names."""

    def __init__(self, builder: Builder, config: SummarizationConfig) -> None:
        self._builder, self._config = builder, config
        self._known: dict[str, Any] = {}

    def all(self) -> tuple[Any, Any, list[Any]]:
        """Return the model that answers, the one that summarises, and its fallbacks."""
        config, given = self._config, self._builder.model
        own = self._named(given, ("model_name",)) if isinstance(given, str) else given
        named = self._named(config.model_name, ("model_name",)) if config.model_name else None
        if own is None and named is None:
            raise config.source.error(
                ("model_name",),
                "model_name is null, which is the agent's own model: pass it as model=, or name "
                "one",
            )
        writes = named if named is not None else own
        after = [
            self._named(name, ("fallback_models", i))
            for i, name in enumerate(config.fallback_models)
        ]
        if own is not None and all(one not in (own, EMBEDDED) for one in (writes, *after)):
            after.append(own)  # the agent runs on it, so it answers; the embedded one never fails
        answers = own if own is not None else named
        return None if answers == EMBEDDED else answers, writes, after

    def declared(self) -> int | None:
        """Return the window that the file declares for the model that answers."""
        given = self._builder.model
        name = given if isinstance(given, str) else self._config.model_name
        read = self._config.read
        if read is None or name is None or (given is not None and not isinstance(given, str)):
            return None
        return read.models.get(name)

    def _named(self, name: str, where: Path_) -> Any:
        if name not in self._known:
            self._known[name] = self._found(name, where)
        return self._known[name]

    def _found(self, name: str, where: Path_) -> Any:
        registry = self._builder.registry
        source = self._config.source
        if names_embedded(name) and not (isinstance(registry, Mapping) and name in registry):
            return EMBEDDED
        if isinstance(registry, Mapping) and name not in registry:
            known = meant(name, registry) if registry else "it is empty"
            raise source.error(where, f"the registry has no model '{name}'; {known}")
        try:
            found: Any = name
            if isinstance(registry, Mapping):
                found = registry[name]
            elif registry is not None:
                found = registry(name)
            if isinstance(found, str):
                from langchain.chat_models import init_chat_model

                found = init_chat_model(found)
        except Exception as error:
            raise source.error(
                where,
                f"the model '{name}' cannot be had ({type(error).__name__}: {error!s:.200}); check "
                "its name, its package and its key",
            ) from error
        if not isinstance(found, Runnable):
            given = type(found).__name__
            raise source.error(
                where, f"the registry gave {given} for '{name}', which is no chat model"
            )
        return found


def sizes_of(config: SummarizationConfig, window: int | None) -> dict[str, Any]:
    """Return trigger and keep, without shares of an unknown window, with a warning."""
    clauses: list[Size | AllOf] = config.clauses
    keep = config.keep.pair
    if window is None:
        absolute = [one for one in clauses if clause_of(one).fraction is None]
        why = (
            "the window of the answering model is unknown; write 'window: <its input limit in "
            "tokens>'"
        )
        if not absolute:
            raise config.source.error(
                ("trigger",), f"a fraction means nothing: {why}, or use tokens or messages"
            )
        left_out = []
        if len(absolute) < len(clauses):
            left_out.append(config.source.problem(("trigger",), f"a fraction is left out: {why}"))
        if keep[0] == "fraction":
            left_out.append(config.source.problem(("keep",), f"20 messages are kept: {why}"))
            keep = KEEP
        for text in left_out:
            log("fraction_left_out", "%s", text)
        clauses = absolute
    trigger = [one.sizes if isinstance(one, AllOf) else one.pair for one in clauses]
    return {"trigger": trigger, "keep": keep}


def archive_of(config: SummarizationConfig) -> str | None:
    """Return the address of the archive, relative to the configuration's folder."""
    where, file = config.archive, config.source.file
    if where is None or file is None or where in ("memory:", ":memory:"):
        return where
    scheme, mark, rest = where.partition("://")
    if mark and scheme != "sqlite":
        return where
    path = Path(rest[1:] if mark else where)
    return f"sqlite:///{file.absolute().parent / path}"


def skills_of(config: SummarizationConfig) -> Skills | None:
    """Return the calls that read skill files; None for none."""
    names = tuple(config.skill_file_read_tool_names)
    return Skills(names, config.skills_folder) if names else None
