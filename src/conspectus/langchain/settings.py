"""Read the settings that LangChain's users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable

from conspectus.core.policy import names_embedded
from conspectus.core.sizes import TRIGGER_FORM, TriggerClause
from conspectus.engine.settings import AnySummarizer, warn_caller
from conspectus.errors import PolicyError
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.model.base import Summarizer
from conspectus.model.chat_model import chat_model_named

Model = BaseChatModel | Runnable[Any, Any]

KEEP = ("messages", 20)
"""The default of `keep`."""


DEPRECATED = {"max_tokens_before_summary": "trigger", "messages_to_keep": "keep"}
"""LangChain's old names of parameters, and the new ones."""


def deprecated(own: object, given: Mapping[str, Any], trigger: Any, keep: Any) -> tuple[Any, Any]:
    """Read trigger and keep, also by their old names; `own` is the middleware."""
    unknown = sorted(set(given) - set(DEPRECATED))
    if unknown:
        raise TypeError(
            f"SummarizationMiddleware has no parameter {', '.join(map(repr, unknown))}; "
            "help(SummarizationMiddleware) lists them"
        )
    for name, form in (
        ("max_tokens_before_summary", "trigger=('tokens', value)"),
        ("messages_to_keep", "keep=('messages', value)"),
    ):
        if name in given:
            warn_caller(f"{name} is deprecated. Use {form} instead.", DeprecationWarning, own)
    most = given.get("max_tokens_before_summary")
    if trigger is None and most is not None:
        trigger = ("tokens", most)
    if "messages_to_keep" in given and keep == KEEP:
        keep = ("messages", given["messages_to_keep"])
    return trigger, keep


def copied(trigger: Any) -> Any:
    """Copy a trigger, against later changes of the caller's own."""
    if isinstance(trigger, list):
        return [_copied(part, "item ") for part in trigger]
    return _copied(trigger, "") if trigger is not None else None


def _copied(part: Any, what: str) -> Any:
    if isinstance(part, Mapping):
        return dict(part)
    if isinstance(part, (tuple, TriggerClause)):
        return part
    raise TypeError(f"Unsupported trigger {what}type: {type(part)}. {TRIGGER_FORM}.")


def read_summarizer(given: AnySummarizer | None) -> Any:
    """Return `summarizer` as it is read back; None for a chat model."""
    if given is None or isinstance(given, (str, BaseChatModel)):
        return None
    if isinstance(given, Summarizer) or not (isinstance(given, Runnable) or callable(given)):
        return given
    return coerce_to_runnable(given)


def read_recall(recall: object, tokens: object) -> None:
    if recall not in ("off", "tool", "auto"):
        raise PolicyError(f'recall must be "off", "tool" or "auto", not {recall!r}')
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < LEAST_RECALL:
        raise PolicyError(
            f"recall_tokens must be a whole number of at least {LEAST_RECALL} tokens, not "
            f"{tokens!r}; recall='off' switches it off"
        )


def built_model(model: str | Model | None) -> Model | None:
    if names_embedded(model):
        return None
    if isinstance(model, str):
        return chat_model_named(model)
    if model is not None and not isinstance(model, Runnable):
        raise PolicyError(
            "model must be a LangChain chat model, a 'provider:model' string or None, not "
            f"{model!r}"
        )
    return model
