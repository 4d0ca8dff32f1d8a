"""When to summarise and what to keep, where nobody says so: from the profile of the model."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from conspectus._core.policy import ContextSize
from conspectus.compactor.engine import window_of
from conspectus.compactor.models import profile_window
from conspectus.guard.measuring import reserved_for_answer

TRIGGER: ContextSize = ("fraction", 0.85)
KEEP: ContextSize = ("fraction", 0.10)
"""Shares of the window, where it is known; what Deep Agents uses."""

UNKNOWN_TRIGGER: ContextSize = ("tokens", 170_000)
UNKNOWN_KEEP: ContextSize = ("messages", 6)
"""Where it is not; what Deep Agents uses."""


class SummarizationDefaults(TypedDict):
    """Settings for `SummarizationMiddleware`, as keyword arguments.

    Attributes:
        trigger: when to summarise.
        keep: how much of the newest history stays.
        window: input limit of the model in tokens, where it was given and not read.
        reserved_tokens: tokens that the model may answer with, where its settings say so.
    """

    trigger: ContextSize
    keep: ContextSize
    window: NotRequired[int]
    reserved_tokens: NotRequired[int]


def summarization_defaults(model: object, *, window: int | None = None) -> SummarizationDefaults:
    """When to summarise for a model, and what to keep.

    Args:
        model: a chat model.
        window: its input limit in tokens, where its profile has none or a wrong one.

    Returns:
        With a known limit: trigger at 85 % of it, keep 10 % of it, and the tokens of an answer
        reserved, at most half of the window. Without: trigger at 170,000 tokens, keep 6 messages.

    Raises:
        PolicyError: the window is no whole number of tokens.

    Example:
        >>> from conspectus.testing.scripted_models import ScriptedChatModel
        >>> model = ScriptedChatModel(answers=[], profile={"max_input_tokens": 200_000})
        >>> summarization_defaults(model)
        {'trigger': ('fraction', 0.85), 'keep': ('fraction', 0.1)}
        >>> summarization_defaults(model, window=32_000)["window"]
        32000
    """
    window_of(window, 0)
    known = window if window is not None else profile_window(model)
    if known is None:
        return {"trigger": UNKNOWN_TRIGGER, "keep": UNKNOWN_KEEP}
    settings: SummarizationDefaults = {"trigger": TRIGGER, "keep": KEEP}
    if window is not None:
        settings["window"] = window
    reserved = reserved_for_answer((model,), known)
    if reserved:
        settings["reserved_tokens"] = reserved
    return settings
