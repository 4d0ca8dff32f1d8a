"""Turn a configuration into arguments of the middleware, and build the models that it names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from conspectus._langchain import is_runnable
from conspectus.archive import Archive
from conspectus.config.reading import Location, Source
from conspectus.config.schema import SummarizationConfig
from conspectus.core.policy import EMBEDDED, names_embedded
from conspectus.engine.settings import AnyArchive, open_archive
from conspectus.errors import ConfigError, ConspectusError, PolicyError, did_you_mean
from conspectus.model.calls import profile_window
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.notes.skills import Skills
from conspectus.observe import log
from conspectus.redaction import redactor_of
from conspectus.tokens import TokenMeter

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

ChatModel: TypeAlias = "BaseChatModel | Runnable[Any, Any]"
ModelRegistry: TypeAlias = "Mapping[str, ChatModel | str] | Callable[[str], ChatModel]"
"""Chat models by name: a mapping, whose values may be `provider:model` strings, or a function."""

SAME = (
    "summary_prompt max_summary_tokens notes summarizer_timeout on_failure background "
    "recall recall_tokens history reserved_tokens stale_results summary_request "
    "trim_tokens_to_summarize"
).split()
"""Keys that the middleware has by the same names."""

ABOUT = (
    "name use display_name description context_window max_input_tokens pricing thinking "
    "supports_thinking supports_reasoning_effort supports_vision when_thinking_enabled "
    "when_thinking_disabled"
).split()
"""Keys of an entry of `models` that are no parameters of its class."""


def settings_of(
    config: SummarizationConfig, registry: ModelRegistry | None, given: ChatModel | str | None
) -> dict[str, Any]:
    """Make the arguments of `SummarizationMiddleware` that the file decides, but the archive.

    Raises:
        ConfigError: something that the file names cannot be had.
    """
    own = model_of(config, registry, given) if isinstance(given, str) else given
    wanted: list[tuple[str, Location]] = []
    if config.model_name:
        wanted.append((config.model_name, ("model_name",)))
    elif own is None:
        text = "model_name is null, which is the agent's own model: pass it as model=, or name one"
        raise config.source.error(("model_name",), text)
    wanted += [(one, ("fallback_models", i)) for i, one in enumerate(config.fallback_models)]
    writers = [] if config.model_name else [own]
    for name, where in wanted:
        try:
            writers.append(model_of(config, registry, name, where))
        except ConfigError as error:
            if own is None:
                raise
            log("model_left_out", "%s; until then the agent's own model stands in", error)
    if own is not None and own not in writers and EMBEDDED not in writers:
        writers.append(own)  # the agent runs on it, so it answers; the embedded one never fails
    answers = writers[0] if own is None else own
    named = given if isinstance(given, str) else config.model_name or ""
    declared = config.source.models.get(named, {}) if answers is not given else {}
    window = config.window or declared_window(declared) or profile_window(answers)
    check_window(config, window)
    return {
        "model": None if answers == EMBEDDED else answers,
        "summarizer": summarizer_of(config, writers[0]),
        "fallbacks": [summarizer_of(config, one) for one in writers[1:]],
        "token_counter": counter_of(config, answers),
        "pin": pin_of(config),
        "redact": redact_of(config),
        "skills": skills_of(config),
        "window": window,
        **sizes_of(config, window),
        **{name: getattr(config, name) for name in SAME},
    }


def model_of(
    config: SummarizationConfig,
    registry: ModelRegistry | None,
    name: str,
    where: Location = ("model_name",),
) -> Any:
    """Return a model by its name: of the registry, of `models` in the file, or of LangChain."""
    known = config.source.models
    listed = registry if isinstance(registry, Mapping) else {}
    if names_embedded(name) and name not in listed:
        return EMBEDDED
    try:
        found: Any = name
        if name in listed:
            found = listed[name]
        elif callable(registry):
            found = registry(name)
        elif name in known:
            found = built(known[name], config.source)
        elif registry is not None:
            raise LookupError(f"no such name;{did_you_mean(name, [*listed, *known])}")
        if isinstance(found, str):
            from langchain.chat_models import init_chat_model

            found = init_chat_model(found)
        if not is_runnable(found):
            raise TypeError(f"{type(found).__name__} is no chat model")
    except Exception as error:
        text = f"the model '{name}' cannot be had ({type(error).__name__}: {error!s:.200})"
        fix = "define it in the registry or under 'models', or check its package and its key"
        raise config.source.error(where, f"{text}; {fix}") from error
    return found


def built(entry: Mapping[str, Any], source: Source) -> Any:
    """Build the chat model of an entry of `models`, as DeerFlow does, without thinking."""
    own = Source(secrets=source.secrets)
    settings = {key: one for key, one in own.filled(dict(entry)).items() if one is not None}
    if own.missing:
        raise LookupError(next(iter(own.missing.values())))
    made = imported(str(settings["use"]))
    settings |= settings.get("when_thinking_disabled", {})
    if "api_base" in settings and "api_base" not in getattr(made, "model_fields", {}):
        settings["base_url"] = settings.pop("api_base")
    return made(**{key: value for key, value in settings.items() if key not in ABOUT})


def imported(name: str) -> Any:
    """Import what `package.module:name` names; a dot may stand for the colon."""
    module, _, name = name.rpartition(":") if ":" in name else name.rpartition(".")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def declared_window(entry: Mapping[str, Any]) -> int | None:
    """Return the window that an entry of `models` declares, in tokens."""
    limit = entry.get("context_window") or entry.get("max_input_tokens")
    return limit if isinstance(limit, int) and limit > 0 else None


def check_window(config: SummarizationConfig, window: int | None) -> None:
    """Refuse shares of a window that nobody knows."""
    shares = ["trigger"] if any("fraction" in one for one in config.conditions) else []
    shares += ["keep"] if config.keep.type == "fraction" else []
    if window is None and config.enabled and shares:
        text = "a fraction means nothing, as the window of the answering model is unknown; write "
        fix = "'window: <its input limit in tokens>', or use tokens or messages"
        raise config.source.error((shares[0],), text + fix)


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


def archive_of(config: SummarizationConfig) -> str | None:
    """Return the address of the archive, relative to the configuration's folder."""
    where, file = config.archive, config.source.file
    scheme, mark, rest = (where or "memory:").partition("://")
    if file is None or where in (None, "memory:", ":memory:") or (mark and scheme != "sqlite"):
        return where
    return f"sqlite:///{file.absolute().parent / (rest[1:] if mark else scheme)}"


def skills_of(config: SummarizationConfig) -> Skills | None:
    """Return the calls that read skill files; None for none."""
    names = tuple(config.skill_file_read_tool_names)
    return Skills(names, config.skills_folder) if names else None


def archive_opened(config: SummarizationConfig, given: AnyArchive | None) -> Archive | None:
    """Open the archive that is given, or else the file's; an error names its line."""
    try:
        return open_archive(archive_of(config) if given is None else given)
    except ConspectusError as error:
        raise type(error)(config.source.problem(("archive",), str(error))) from error


def counter_of(config: SummarizationConfig, model: Any = None) -> Any:
    """Return the token counter in the middleware's form."""
    spec, file = config.token_counter, config.source.file
    if spec is None:
        from langchain_core.messages.utils import count_tokens_approximately

        return count_tokens_approximately
    library, _, name = spec.partition(":")
    if library not in ("tiktoken", "tokenizers"):
        return _function(config, "token_counter", spec)
    if library == "tokenizers" and file is not None and (file.parent / name).is_file():
        spec = f"tokenizers:{file.parent / name}"
    try:
        return TokenMeter(spec, model=model).messages
    except PolicyError as error:
        raise config.source.error(("token_counter",), str(error)) from error


def pin_of(config: SummarizationConfig) -> Any:
    """Return the marker or the function that marks messages that stay."""
    return _function(config, "pin", config.pin) if config.pin and ":" in config.pin else config.pin


def redact_of(config: SummarizationConfig) -> Any:
    """Return the redactor in the middleware's form, after a trial."""
    named = isinstance(config.redact, str) and config.redact != "secrets"
    found: Any = _function(config, "redact", str(config.redact)) if named else config.redact
    try:
        made = found() if isinstance(found, type) else found
        redactor_of(made)
    except Exception as error:
        text = f"'{config.redact}' cannot redact: {error!s:.200}"
        raise config.source.error(("redact",), text) from error
    return made


def _function(config: SummarizationConfig, key: str, name: str) -> Any:
    try:
        found = imported(name)
        if not callable(found):
            raise TypeError("it cannot be called")
    except Exception as error:
        about = SummarizationConfig.model_fields[key].description
        text = f"{key}: '{name}' cannot be imported ({type(error).__name__}: {error!s:.200})"
        fix = "check the name, and that its package is installed or on PYTHONPATH"
        raise config.source.error((key,), f"{text}; {fix} ({about})") from error
    return found
