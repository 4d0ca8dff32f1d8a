"""The middleware of a configuration, and the models that it names."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from conspectus._langchain import is_runnable
from conspectus.config.reading import Location, Source
from conspectus.config.schema import (
    VOCABULARIES,
    SummarizationConfig,
    contradictions,
    imported,
    redactor,
)
from conspectus.core.policy import EMBEDDED, names_embedded
from conspectus.errors import ConfigError, ConspectusError, PolicyError, did_you_mean
from conspectus.model.calls import profile_window
from conspectus.model.chat_model import ChatModelSummarizer, chat_model_named
from conspectus.model.windows import profile_of
from conspectus.observe import log

if TYPE_CHECKING:
    from langchain.agents.middleware.types import AgentMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from conspectus.langchain import SummarizationMiddleware

ChatModel: TypeAlias = "BaseChatModel | Runnable[Any, Any]"
ModelRegistry: TypeAlias = "Mapping[str, ChatModel | str] | Callable[[str], ChatModel]"
"""Chat models by name: a mapping, whose values may be `provider:model` strings, or a function."""

ABOUT = """name use display_name description context_window max_input_tokens pricing thinking
    supports_thinking supports_reasoning_effort supports_vision when_thinking_enabled
    when_thinking_disabled""".split()  # in an entry of `models`, no parameters of its class


def create_summarization_middleware(
    config: SummarizationConfig,
    *,
    model_registry: ModelRegistry | None = None,
    model: ChatModel | str | None = None,
    **settings: Any,
) -> SummarizationMiddleware | None:
    """Make the middleware of a configuration; None if it is not enabled.

    Put a `ContextGuard` of it last in the `middleware` of the agent, as `create_middleware` does.

    Args:
        config: from `load_config`.
        model_registry: chat models by the names in the file: a mapping, whose values may be
            `provider:model` strings, or a function. Default: `models` in the file; a name that is
            not there is a `provider:model` string.
        model: the agent's own model, or its name: its window is managed, and it writes where
            `model_name` is null or fails. Default: the model of `model_name`.
        settings: of `SummarizationMiddleware` that no file holds, such as `before_summarization`,
            `tenant` and `on_event`, or that take the place of the file's, such as `archive`.

    Raises:
        ConfigError: there is no model to write, or a fraction has no window that is known.
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
    from conspectus.langchain import SummarizationMiddleware

    if not config.enabled:
        return None
    given = {key: value for key, value in settings.items() if value is not None}
    try:
        return SummarizationMiddleware(**{**_settings_of(config, model_registry, model), **given})
    except ConfigError:
        raise
    except ConspectusError as error:
        where = ("archive",) if config.archive and not isinstance(error, PolicyError) else ()
        raise type(error)(config.source.problem(where, str(error))) from error


def create_middleware(
    config: SummarizationConfig,
    *between: AgentMiddleware[Any, Any, Any],
    on_stuck: Literal["raise", "send"] = "raise",
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
        PolicyError: what is given after `config` is no middleware.

    Example:
        >>> create_middleware(SummarizationConfig())
        []
    """
    from langchain.agents.middleware.types import AgentMiddleware

    from conspectus.langchain import ContextGuard

    others: tuple[object, ...] = between
    for one in others:
        if not isinstance(one, AgentMiddleware):
            taken = f"{type(one).__name__} was taken as one of your own middleware, and is none"
            raise PolicyError(f"{taken}; pass the agent's model as model=")
    summarization = create_summarization_middleware(config, **settings)
    if summarization is None:
        why = "summarisation is switched off: the section has no enabled: true"
        log("switched_off", why, level=logging.INFO)
        return list(between)
    return [summarization, *between, ContextGuard(summarization, on_stuck=on_stuck)]


def _settings_of(
    config: SummarizationConfig, registry: ModelRegistry | None, model: ChatModel | str | None
) -> dict[str, Any]:
    """Make the arguments of `SummarizationMiddleware` that the file decides."""
    own = model_of(config, registry, model, None) if isinstance(model, str) else model
    if own is None and not config.model_name:
        text = "model_name is null, which is the agent's own model: pass it as model=, or name one"
        raise config.source.error(("model_name",), text)
    writers: list[Any] = []
    for i, name in enumerate((config.model_name, *config.fallback_models)):
        where: Location = ("fallback_models", i - 1) if i else ("model_name",)
        try:
            writers.append(model_of(config, registry, name, where) if name else own)
        except ConfigError as error:
            if own is None:
                raise
            log("model_left_out", "%s; until then the agent's own model stands in", error)
    if own is not None and own not in writers and EMBEDDED not in writers:
        writers.append(own)  # the agent runs on it, so it answers; the embedded one never fails
    answers = writers[0] if own is None else own
    named = model if isinstance(model, str) else config.model_name or ""
    window = named_window(config, named if answers is not model else "", profile_window(answers))
    check_window(config, window)
    from conspectus.langchain import SummarizationMiddleware

    parameters = signature(SummarizationMiddleware).parameters
    return {
        **{name: getattr(config, name) for name in parameters if hasattr(config, name)},
        **sizes_of(config, window),
        "model": None if answers == EMBEDDED else answers,
        "summarizer": summarizer_of(config, writers[0]),
        "fallbacks": [summarizer_of(config, writer) for writer in writers[1:]],
        "token_counter": counter_of(config),
        "pin": pin_of(config),
        "redact": redactor(config.redact),
        "window": window,
    }


def model_of(
    config: SummarizationConfig,
    registry: ModelRegistry | None,
    name: str,
    where: Location | None = ("model_name",),  # None for a name that was passed as `model=`
) -> Any:
    """Return a model by its name: of the registry, of `models` in the file, or of LangChain."""
    defined, listed = config.source.models, registry if isinstance(registry, Mapping) else {}
    known = [*listed, *defined]
    if names_embedded(name) and name not in listed:
        return EMBEDDED
    try:
        model: Any = listed.get(name, name)
        if callable(registry):
            model = registry(name)
        elif name not in listed and name in defined:
            model = _built(defined[name], config.source)
        elif name not in listed and registry is not None:
            raise LookupError(f"no such name; known are {', '.join(known) or 'none'}")
        model = chat_model_named(model) if isinstance(model, str) else model
        if not is_runnable(model):
            raise TypeError(f"{type(model).__name__} is no chat model")
    except Exception as error:
        text = f"the model '{name}' cannot be had ({type(error).__name__}: {error!s:.200})"
        fix = " define it in the registry or under 'models', or check its package and its key"
        text = f"{text};{(name not in known and did_you_mean(name, known)) or fix}"
        if where is None:
            raise ConfigError((f"model={name!r}: {config.source.hidden(text)}",)) from error
        raise config.source.error(where, text) from error
    return model


def _built(entry: Mapping[str, Any], source: Source) -> Any:
    """Build the chat model of an entry of `models`, as DeerFlow does, without thinking."""
    entry_source = Source(secrets=source.secrets)
    filled = entry_source.filled(dict(entry))
    for missing in entry_source.missing.values():
        raise LookupError(missing)
    kind = imported(str(filled["use"]))
    settings = {**filled, **(filled.get("when_thinking_disabled") or {})}
    if "api_base" in settings and "api_base" not in getattr(kind, "model_fields", {}):
        settings["base_url"] = settings.pop("api_base")
    given = {key: one for key, one in settings.items() if one is not None and key not in ABOUT}
    return kind(**given)


def check_window(config: SummarizationConfig, window: int | None) -> None:
    """Raise a `ConfigError` for what contradicts itself with this window of the answering model."""
    for where, text in contradictions(config, window, answers=True):
        raise config.source.error(where, text)


def named_window(config: SummarizationConfig, name: str, profile: int | None = None) -> int | None:
    """Return the window of a model: of the file, of its entry in `models`, or of its profile."""
    entry = config.source.models.get(name, {})
    provider = re.split("[:.]", str(entry.get("use", "")))[0].removeprefix("langchain_")
    known = config.window or declared_window(entry) or profile
    return known or (profile_of(str(entry.get("model", name)), provider) if name else None)


def declared_window(entry: Mapping[str, Any]) -> int | None:
    """Return the window that an entry of `models` declares, in tokens."""
    limit = entry.get("context_window") or entry.get("max_input_tokens")
    return limit if isinstance(limit, int) and limit > 0 else None


def sizes_of(config: SummarizationConfig, window: int | None) -> dict[str, Any]:
    """Return trigger and keep of the middleware, without shares of an unknown window."""
    share = window is None and config.keep.type == "fraction"
    known = [one for one in config.conditions if window is not None or "fraction" not in one]
    return {
        "trigger": [next(iter(one.items())) if len(one) == 1 else one for one in known] or None,
        "keep": ("messages", 20) if share else config.keep.pair,
    }


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


def counter_of(config: SummarizationConfig) -> Any:
    """Return the token counter in the middleware's form."""
    if config.token_counter is None:
        from langchain_core.messages.utils import count_tokens_approximately

        return count_tokens_approximately
    named = config.token_counter.startswith(VOCABULARIES)
    return config.token_counter if named else imported(config.token_counter)


def pin_of(config: SummarizationConfig) -> Any:
    """Return the marker or the function that marks messages that stay."""
    return imported(config.pin) if config.pin and ":" in config.pin else config.pin
