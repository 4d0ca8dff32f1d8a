"""Make the parts of an engine out of what a caller has set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conspectus._langchain import is_chat_model, is_message, is_runnable, is_store
from conspectus._turns import others_may_compute
from conspectus.archive import Archive
from conspectus.core.items import Window
from conspectus.core.policy import EMBEDDED, check_whole_number, names_embedded
from conspectus.engine.settings import AnyArchive, AnyRules, AnySummarizer, Pin, Settings
from conspectus.errors import PolicyError
from conspectus.model.base import EmbeddedSummarizer, Summarizer
from conspectus.notes.rules import RuleFinder
from conspectus.observe import log
from conspectus.rules import statements_in
from conspectus.tokens import TokenCounter, TokenMeter

NOT_IN_TEXT = (
    "rules= returned %s sentences that are not in the text of the message, so they are left out; "
    "return parts of the text, letter for letter; the first is: %r"
)


def summarizers_of(settings: Settings) -> dict[str, Summarizer]:
    """Return the summarisers to try in turn, each with a name of its own.

    Only the embedded summariser is named `embedded`.
    """
    # A stand-in for the model answers prompts; it is no function of messages.
    is_model = settings.summarizer is None
    first = settings.model if is_model else settings.summarizer
    summarizers = [_summarizer_of(first, settings, answers_prompts=is_model)]
    for fallback in settings.fallbacks:
        summarizers.append(_summarizer_of(fallback, settings, answers_prompts=False))
    writers: dict[str, Summarizer] = {}
    for summarizer in summarizers:
        name = summarizer.name
        is_embedded = isinstance(summarizer, EmbeddedSummarizer)
        while not is_embedded and name in (EMBEDDED, *writers):
            name += "'"
        writers[name] = summarizer
    return writers


def _summarizer_of(writer: Any, settings: Settings, *, answers_prompts: bool) -> Summarizer:
    """Return the summariser of a setting; a Runnable that `answers_prompts` is a chat model.

    So is a chat model with options bound to it, with retries or with fallbacks.
    """
    if writer is None or names_embedded(writer):
        return EmbeddedSummarizer()
    check_is_instance(writer)
    inner = writer
    while is_runnable(inner) and not is_chat_model(inner):
        inner = getattr(inner, "bound", None) or getattr(inner, "runnable", None)
    limits: Any = {
        "trim_tokens_to_summarize": settings.trim_tokens_to_summarize,
        "timeout": settings.summarizer_timeout,
    }
    is_prompted = answers_prompts and is_runnable(writer)
    if isinstance(writer, str) or is_chat_model(inner) or is_prompted:
        from conspectus.model.chat_model import ChatModelSummarizer

        return ChatModelSummarizer(writer, prompt=settings.summary_prompt, **limits)
    if isinstance(writer, Summarizer):
        return writer
    if is_runnable(writer) or callable(writer):
        from conspectus.model.callables import CallableSummarizer

        return CallableSummarizer(writer, **limits)
    raise PolicyError(
        f"{writer!r} cannot summarise: give a chat model, a 'provider:model' string, 'embedded', a "
        "callable or Runnable that takes messages and returns text, or an object with name, "
        "identity, summarize and asummarize"
    )


def check_is_instance(model: object) -> None:
    """Raise `PolicyError` for a class in the place of its instance."""
    if isinstance(model, type):
        name = model.__name__
        raise PolicyError(f"{name} is a class: give an instance of it, as in {name}(...)")


def predicate(pin: Pin) -> Callable[[Any], bool] | None:
    """Return the function of a `pin=`; one that fails raises `PolicyError`."""
    if isinstance(pin, str):
        return lambda m: bool((m.additional_kwargs if is_message(m) else m).get(pin))
    if pin is None:
        return None

    def pinned(message: Any) -> bool:
        try:
            with others_may_compute():
                return bool(pin(message))
        except Exception as error:
            raise PolicyError(
                f"pin= failed for a message ({type(error).__name__}: {error}); it must take each "
                "message of the history, of any kind"
            ) from error

    return pinned


def rule_finder(rules: AnyRules) -> RuleFinder:
    """Return the function that finds rules in a text, for a `rules=`.

    One of the caller's that fails, or returns no texts, raises `PolicyError`.
    """
    if rules is None or not callable(rules):
        return statements_in

    is_reported = False

    def found(text: str) -> Sequence[str]:
        nonlocal is_reported
        try:
            with others_may_compute():
                statements = list(rules(text))
        except Exception as error:
            raise PolicyError(
                f"rules= failed for a text ({type(error).__name__}: {error}); it must take the "
                "text of each message and return a list of sentences"
            ) from error
        if not all(isinstance(statement, str) for statement in statements):
            raise PolicyError(
                "rules= must return sentences as texts; let it return a list of parts of the text"
            )
        not_in_text = [statement for statement in statements if statement not in text]
        if not_in_text and not is_reported:  # it may do so for each message
            is_reported = True
            log("rules_not_in_text", NOT_IN_TEXT, len(not_in_text), not_in_text[0])
        return statements

    return found


def model_of(model: AnySummarizer | None, summarizer: AnySummarizer | None) -> Any:
    """Return the model that a caller gave, built if it is a name.

    Where another one writes, a name whose model cannot be built stays a name: it still says which
    tokens to estimate.

    Raises:
        PolicyError: it writes and cannot be built, or is no model and another one writes.
    """
    check_is_instance(model)
    if isinstance(model, str) and not names_embedded(model):
        from conspectus.model.chat_model import chat_model_named

        try:
            return chat_model_named(model)
        except PolicyError:
            if summarizer is None:
                raise
            return model
    if summarizer is not None and model is not None and not is_runnable(model):
        raise PolicyError(
            "model must be a chat model or a 'provider:model' string where summarizer= writes, not "
            f"{model!r}"
        )
    return model


def meter_of(counter: TokenCounter | str | None, tokenizer: str | None, model: Any) -> TokenMeter:
    """Make the meter of a counter, of a tokenizer, or of the model."""
    if tokenizer is not None and (not isinstance(tokenizer, str) or not tokenizer):
        raise PolicyError(
            "tokenizer must be the name of a model, such as 'gpt-4o', or a vocabulary, such as "
            f"'tiktoken:o200k_base', not {tokenizer!r}; a function goes into token_counter="
        )
    if tokenizer is not None and counter is not None:
        raise PolicyError("give tokenizer= or token_counter=, not both: each says what counts")
    if isinstance(counter, str) and ":" not in counter:
        raise PolicyError(
            f"{counter!r} cannot be a token_counter; write tiktoken:o200k_base, "
            f"tokenizers:path/to/tokenizer.json, or tokenizer={counter!r} for an estimate"
        )
    if tokenizer is not None and tokenizer.partition(":")[0] in ("tiktoken", "tokenizers"):
        counter = tokenizer
    elif tokenizer is not None:
        model = tokenizer
    named = is_runnable(model) or (isinstance(model, str) and not names_embedded(model))
    return TokenMeter(counter, model=model if named else None)


def window_of(window: int | None, reserved: int) -> Window | None:
    """Check and read `window` and `reserved_tokens`."""
    check_whole_number(reserved, "reserved_tokens", 0)
    if window is None:
        return None
    check_whole_number(window, "window")
    if reserved >= window:
        raise PolicyError(
            f"reserved_tokens ({reserved:,}) leaves nothing of the window ({window:,}); lower it"
        )
    return Window(window, reserved)


def open_archive(setting: AnyArchive | None) -> Archive | None:
    """Open the archive of a setting; one that is open already is returned as it is."""
    if setting is None or isinstance(setting, Archive):
        return setting
    if is_store(setting):
        return Archive(setting)
    if not isinstance(setting, (str, Path)):
        raise PolicyError(
            f"archive must be a path, an address, a LangGraph store or an Archive, not {setting!r}"
        )
    return Archive.open(setting)
