"""The class that replaces DeerFlow's own, with its parameters and what its callers read.

DeerFlow's factory builds the middleware of the lead agent, of subagents and of the command
`/compact`. It chooses models and hooks. This class takes them, and reads DeerFlow's configuration
object. It imports modules of DeerFlow only when it needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from conspectus._langchain import named
from conspectus.bridge import arun
from conspectus.config.building import models_of, settings_of
from conspectus.config.reading import ConfigSource
from conspectus.config.schema import OBSOLETE_PREFIX, SizeSetting, SummarizationConfig
from conspectus.engine.settings import KEEP
from conspectus.errors import ConfigError, SummaryError
from conspectus.langchain import ContextGuard, SummarizationMiddleware
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.state import RequestedCompaction
from conspectus.messages.alternation import joins_by_setting
from conspectus.observe import log

DEERFLOWS = "deerflow.agents.middlewares.summarization_middleware"
"""The module of DeerFlow in which this class replaces another."""


def config_of(app_config: Any) -> SummarizationConfig:
    """Return the configuration of DeerFlow, with our own keys as far as DeerFlow keeps them.

    Without a trigger, it compacts only on demand.

    Raises:
        ConfigError: a key or a value of its section `summarization` is invalid.
    """
    keys = _plain(getattr(app_config, "summarization", None))
    section = {key: value for key, value in keys.items() if not key.startswith(OBSOLETE_PREFIX)}
    section["enabled"] = bool(section.get("trigger"))
    models = [_plain(model) for model in getattr(app_config, "models", None) or ()]
    skills = _plain(getattr(app_config, "skills", None))
    source = ConfigSource(sections={"models": models, "skills": skills})
    try:
        config = SummarizationConfig.model_validate(section)
    except ValidationError as error:
        mistakes = source.mistakes(error, SummarizationConfig, SizeSetting)
        raise ConfigError(source.problems(mistakes)) from error
    return config.with_source(source)


def _plain(part: Any) -> dict[str, Any]:
    """Return what was set in a part of DeerFlow's configuration."""
    if hasattr(part, "model_dump"):
        return dict(part.model_dump(exclude_unset=True))
    return dict(part) if isinstance(part, Mapping) else {}


def user_of_deerflow(runtime: Any) -> str | None:
    """Return DeerFlow's user of a run, who is the tenant of the archive."""
    users = sys.modules.get("deerflow.runtime.user_context")
    return None if users is None else str(users.resolve_runtime_user_id(runtime))


@dataclass(frozen=True, slots=True)
class ContextCompaction:
    """The result of a compaction that DeerFlow's command `/compact` reads.

    The summary is the first of the preserved messages. `summary_text` is empty, so that the summary
    is not shown twice. `state` has our private channels.
    """

    messages_to_summarize: tuple[BaseMessage, ...]
    preserved_messages: tuple[BaseMessage, ...]
    total_tokens: int
    summary_text: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)


class DeerFlowSummarizationMiddleware(SummarizationMiddleware[Any, Any]):
    """Our middleware with the parameters of DeerFlow's class of this name.

    Args:
        model: the chat model that DeerFlow's factory has built; its name is `anchor_model_name`.
        trigger, keep, summary_prompt: as in DeerFlow.
        trim_tokens_to_summarize: not used; the value in the section is used.
        before_summarization: hooks, such as DeerFlow's `memory_flush_hook`.
        app_config: the configuration that DeerFlow was given.
        configured_model_name: the model that writes; None for the run's own.
        run_model_name: the model of the run, whose window is managed.
        anchor_model_name: the name of `model`.
        extensions: not used.
        settings: settings of `SummarizationMiddleware` that replace those of the section.

    Raises:
        ConfigError: the section is invalid.
        ArchiveError: its archive cannot be opened.
    """

    def __init__(
        self,
        model: Any,
        *,
        trigger: Any = None,
        keep: Any = KEEP,
        trim_tokens_to_summarize: int | None = None,
        summary_prompt: str | None = None,
        before_summarization: Sequence[Any] | None = None,
        app_config: Any = None,
        configured_model_name: str | None = None,
        run_model_name: str | None = None,
        anchor_model_name: str | None = None,
        extensions: Any = None,
        **settings: Any,
    ) -> None:
        config = config_of(app_config)
        config = config.model_copy(update={"model_name": configured_model_name})
        answering = run_model_name or config.source.default_model or anchor_model_name

        def registry(name: str) -> Any:
            if name == (anchor_model_name or answering):
                return model
            return _create_chat_model(name, app_config)

        arguments = settings_of(config) | _models_of(config, registry, answering, model)
        arguments |= {
            "trigger": trigger,
            "keep": keep,
            "summary_prompt": summary_prompt,
            "before_summarization": list(before_summarization or ()) or None,
            "tenant": user_of_deerflow,
        }
        if joins_by_setting(config.alternate_roles, named(arguments["model"])) is None:
            # DeerFlow's own middleware puts user messages in a row into each request.
            arguments["alternate_roles"] = "off"
        super().__init__(**(arguments | settings))

    @property
    def guards(self) -> tuple[ContextGuard[Any, Any], ...]:
        """The middleware that must be last in the agent: the guard of this one."""
        return (ContextGuard(self),)

    async def acompact_state(
        self,
        state: Any,
        runtime: Any,
        *,
        force: bool = False,
        raise_on_failure: bool = False,
    ) -> ContextCompaction | None:
        """Compact a state outside of a run, for `/compact`.

        Args:
            state: the state, with the messages of the thread.
            runtime: a runtime whose context has the `thread_id`.
            force: compact although the trigger is not reached.
            raise_on_failure: raise DeerFlow's `SummaryGenerationError` if no summary could be made.

        Returns:
            The messages that stay and those that were evicted; None if none can be evicted.
        """
        setup = self._setup
        if raise_on_failure:
            strict = replace(setup.engine.settings, on_failure="raise")
            setup = setup.with_engine(replace(setup.engine, settings=strict))
        step = AgentStep.of(setup, state, _run_of(runtime))
        if not force and self._is_quiet(step):
            return None
        total_tokens = step.size_of(state["messages"]).tokens
        try:
            requested = RequestedCompaction() if force else None
            update = await arun(self._take_step(step, requested))
        except SummaryError as error:
            if not raise_on_failure:
                raise
            raise import_module(DEERFLOWS).SummaryGenerationError(str(error)) from error
        if update is None or "messages" not in update:
            return None
        history: list[BaseMessage] = state["messages"]
        kept = tuple(update["messages"][1:])  # after the removal of all
        if _contents(kept) == _contents(history):
            return None  # only the record of these messages was found again
        kept_ids = {message.id for message in kept}
        return ContextCompaction(
            messages_to_summarize=tuple(m for m in history if m.id not in kept_ids),
            preserved_messages=kept,
            total_tokens=total_tokens,
            state={name: part for name, part in update.items() if name != "messages"},
        )


def _models_of(
    config: SummarizationConfig, registry: Any, answering: str | None, model: Any
) -> dict[str, Any]:
    """Return models and window as our configuration gives them.

    If that fails, return the model that DeerFlow has built. `answering` names the model of the run.
    """
    try:
        return models_of(config, registry, answering or model)
    except ConfigError as error:
        text = "%s; the model that DeerFlow has built stands in"
        log("model_left_out", text, "; ".join(error.problems))
    return {"model": model, "window": config.window}


def _create_chat_model(name: str, app_config: Any) -> Any:
    """Build a chat model by DeerFlow's function, as its factory does."""
    create = import_module(DEERFLOWS).create_chat_model
    return create(name=name, thinking_enabled=False, app_config=app_config, attach_tracing=False)


def _contents(messages: Sequence[BaseMessage]) -> list[tuple[str | None, Any]]:
    """Return ids and contents of messages, to see whether a compaction has changed them."""
    return [(message.id, message.content) for message in messages]


def _run_of(runtime: Any) -> Any:
    """Return a runtime that names the thread where our middleware looks for it."""
    context = getattr(runtime, "context", None) or {}
    info = SimpleNamespace(thread_id=context.get("thread_id"), checkpoint_ns="")
    return SimpleNamespace(
        context=context,
        execution_info=info,
        store=getattr(runtime, "store", None),
        stream_writer=None,
    )
