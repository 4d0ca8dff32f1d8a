"""The middleware of a configuration, and the models that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from conspectus._langchain import is_runnable, named
from conspectus.config.reading import ConfigSource, Location, Variables
from conspectus.config.schema import SummarizationConfig, loaded
from conspectus.core.policy import EMBEDDED, names_embedded
from conspectus.engine.settings import FileSettings
from conspectus.errors import ArchiveError, ConfigError, InputError, PolicyError
from conspectus.model.calls import profile_window
from conspectus.model.chat_model import chat_model_named
from conspectus.model.windows import input_limit_in_profile
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
    when_thinking_disabled""".split()
"""Keys in an entry of `models` that are no parameters of its class."""


def create_summarization_middleware(
    config: SummarizationConfig,
    *,
    model_registry: ModelRegistry | None = None,
    model: ChatModel | str | None = None,
    **settings: Any,
) -> SummarizationMiddleware | None:
    """Make the middleware of a configuration; None if it is not enabled.

    Build a `ContextGuard` from it, and put this guard last in the `middleware` of the agent, as
    `create_middleware` does.

    Args:
        config: from `load_config`.
        model_registry: chat models by the names in the file: a mapping, whose values may be
            `provider:model` strings, or a function. Default: `models` in the file; a name that is
            not there is a `provider:model` string.
        model: the agent's own model, or its name. The messages are kept inside the window of this
            model. It writes the summaries if `model_name` is null, or if the model of `model_name`
            fails. Default: the model of `model_name`, else the first of `models` in the file.
        settings: settings of `SummarizationMiddleware` that a file cannot have, such as
            `before_summarization`, `tenant` and `on_event`, or settings that replace those of the
            file, such as `archive`.

    Raises:
        ConfigError: there is no model that can write, or the file has a fraction and no window is
            known.
        ArchiveError: the archive of the configuration cannot be opened.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": 6000})
        >>> own = FakeListChatModel(responses=["hello"])
        >>> create_summarization_middleware(config, model=own).trigger
        [{'tokens': 6000}]
    """
    if not isinstance(config, SummarizationConfig):
        raise PolicyError(f"config must be what load_config gives, not {config!r}")
    if not config.enabled:
        return None
    from conspectus.langchain import SummarizationMiddleware

    arguments = {**settings_of(config), **models_of(config, model_registry, model)}
    arguments |= {name: value for name, value in settings.items() if value is not None}
    try:
        return SummarizationMiddleware(**arguments)
    except (ArchiveError, InputError) as error:  # the error of the archive
        raise type(error)(config.source.problem(("archive",), str(error))) from error


def create_middleware(
    config: SummarizationConfig,
    *between: AgentMiddleware[Any, Any, Any],
    on_stuck: Literal["raise", "send"] = "raise",
    **settings: Any,
) -> list[AgentMiddleware[Any, Any, Any]]:
    """Make the list for `create_agent`: summarisation, other middleware, the guard.

    Args:
        config: the configuration, from `load_config`. If it is not enabled, the list has only the
            other middleware.
        between: the other middleware, in order.
        on_stuck: the `on_stuck` of the guard.
        settings: as for `create_summarization_middleware`.

    Raises:
        ConfigError, ArchiveError: as for `create_summarization_middleware`.
        PolicyError: an argument after `config` is no middleware.

    Example:
        >>> create_middleware(SummarizationConfig())
        []
    """
    from langchain.agents.middleware.types import AgentMiddleware

    from conspectus.langchain import ContextGuard

    objects: tuple[object, ...] = between
    for middleware in objects:
        if not isinstance(middleware, AgentMiddleware):
            text = "was taken as one of your own middleware, and is none; pass the agent's model as"
            raise PolicyError(f"{type(middleware).__name__} {text} model=")
    summarization = create_summarization_middleware(config, **settings)
    if summarization is None:
        return list(between)
    return [summarization, *between, ContextGuard(summarization, on_stuck=on_stuck)]


def settings_of(config: SummarizationConfig) -> dict[str, Any]:
    """Return all settings of the middleware but its models, in the form of Python."""
    from langchain_core.messages.utils import count_tokens_approximately

    settings = {field.name: getattr(config, field.name) for field in fields(FileSettings)}
    return {
        **settings,
        "keep": config.keep.pair,
        "skills": config.skills,
        "pin": loaded(config.pin),
        "rules": loaded(config.rules),
        "redact": loaded(config.redact),
        "token_counter": loaded(config.token_counter) or count_tokens_approximately,
    }


class AnsweringModel(NamedTuple):
    """The model that answers the user, whose window is managed."""

    model: Any
    name: str = ""  # in the registry or the file; empty if a caller gave the model itself


def models_of(
    config: SummarizationConfig, registry: ModelRegistry | None, model: ChatModel | str | None
) -> dict[str, Any]:
    """Return the model that answers, its window, and the models that write, in turn."""
    own = _own_model(config, registry, model)
    writers = _writers(config, registry, None if own is None else own.model)
    answering = AnsweringModel(writers[0], config.model_name or "") if own is None else own
    window = profile_window(answering.model)
    if window is None and not answering.name:
        window = _window_of_entries(config, answering.model)
    return {
        "model": answering.model,
        "summarizer": None if writers[0] is answering.model else writers[0],
        "fallbacks": writers[1:],
        "window": window_for(config, answering.name, window),
    }


def _own_model(
    config: SummarizationConfig, registry: ModelRegistry | None, model: ChatModel | str | None
) -> AnsweringModel | None:
    """Return the agent's own model; None if the model of `model_name` also answers.

    Raises:
        ConfigError: it cannot be built, or neither the file nor the caller names one.
    """
    if model is None and not config.model_name:
        model = config.source.default_model
    if isinstance(model, str):
        return AnsweringModel(model_named(config, registry, model), model)
    if model is not None:
        return AnsweringModel(model)
    if config.model_name:
        return None
    text = "model_name is null, which is the agent's own model: pass it as model=, or name one"
    raise config.source.error(("model_name",), text)


def _writers(
    config: SummarizationConfig, registry: ModelRegistry | None, own_model: Any
) -> list[Any]:
    """Return the models that write, in turn; the agent's own model replaces those that fail.

    Raises:
        ConfigError: a model cannot be built, and the agent's own model is not known.
    """
    writers: list[Any] = []
    for index, name in enumerate((config.model_name, *config.fallback_models)):
        location: Location = ("fallback_models", index - 1) if index else ("model_name",)
        try:
            writers.append(model_named(config, registry, name) if name else own_model)
        except ConfigError as error:
            problem = config.source.problem(location, str(error))
            if own_model is None:
                raise ConfigError((problem,)) from error
            log("model_left_out", "%s; until then the agent's own model stands in", problem)
    # The agent's own model works, because the agent uses it. The embedded summariser never fails.
    if own_model is not None and own_model not in writers and EMBEDDED not in writers:
        writers.append(own_model)
    return writers


def _window_of_entries(config: SummarizationConfig, model: Any) -> int | None:
    """Return the smallest window that `models` declares for a model with this name."""
    name = named(model)
    if not name:
        return None
    windows = [
        declared_window(entry)
        for key, entry in config.source.models.items()
        if name in (key, entry.get("model"))
    ]
    return min(filter(None, windows), default=None)


def model_named(config: SummarizationConfig, registry: ModelRegistry | None, name: str) -> Any:
    """Return a model by its name: of the registry, of `models` in the file, or of LangChain.

    Raises:
        ConfigError: there is no such model, or it cannot be built.
    """
    source = config.source
    listed = registry if isinstance(registry, Mapping) else {}
    if names_embedded(name) and name not in listed:
        return EMBEDDED
    try:
        model: Any = listed.get(name, name)
        if callable(registry):
            model = registry(name)
        elif name not in listed and name in source.models:
            model = _build_model(source.models[name], source)
        elif name not in listed and registry is not None:
            known_names = ", ".join([*listed, *source.models]) or "none"
            raise LookupError(f"no such name; known are {known_names}")
        model = chat_model_named(model) if isinstance(model, str) else model
        if not is_runnable(model):
            raise TypeError(f"{type(model).__name__} is no chat model")
    except Exception as error:
        text = f"the model '{name}' cannot be had ({type(error).__name__}: {error!s:.200})"
        fix = "define it in the registry or under 'models', or check its package and its key"
        raise ConfigError((source.hidden(f"{text}; {fix}"),)) from error
    return model


def _build_model(entry: Mapping[str, Any], source: ConfigSource) -> Any:
    """Build the chat model of an entry of `models`, as DeerFlow does, without thinking."""
    variables = Variables(source.secrets)
    filled = variables.fill(dict(entry))
    for text in variables.missing.values():
        raise LookupError(text)
    if ":" not in str(filled.get("use")):
        raise LookupError("it needs 'use: package.module:Class', with a colon")
    keys = {**filled, **(filled.get("when_thinking_disabled") or {})}
    parameters = {
        key: value for key, value in keys.items() if value is not None and key not in ABOUT
    }
    return loaded(filled["use"])(**parameters)


def window_for(config: SummarizationConfig, name: str, profile: int | None = None) -> int | None:
    """Return the window of a model: of the file, of its entry in `models`, or of its profile.

    Raises:
        ConfigError: it is unknown, and the file has a fraction of it.
    """
    entry = config.source.models.get(name, {})
    window = config.window or declared_window(entry) or profile
    if window is None and name:
        provider = re.split("[:.]", str(entry.get("use", "")))[0].removeprefix("langchain_")
        window = input_limit_in_profile(str(entry.get("model", name)), provider)
    if window is None and config.enabled and config.policy().needs_window:
        text = "a fraction means nothing, as the window of the answering model is unknown; write "
        text += "'window: <its input limit in tokens>', or use tokens or messages"
        key = "keep" if config.keep.type == "fraction" else "trigger"
        raise config.source.error((key,), text)
    return window


def declared_window(entry: Mapping[str, Any]) -> int | None:
    """Return the window that an entry of `models` declares, in tokens."""
    limit = entry.get("context_window") or entry.get("max_input_tokens")
    return limit if isinstance(limit, int) and limit > 0 else None
