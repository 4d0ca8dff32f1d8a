"""Choose the defaults for a model, and import the extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NotRequired, TypedDict

from conspectus.core.policy import ContextSize
from conspectus.engine.settings import window_of
from conspectus.errors import install_command
from conspectus.langchain.settings import reserved_for_answer
from conspectus.model.calls import profile_window


class SummarizationDefaults(TypedDict):
    """Settings for `SummarizationMiddleware`, as keyword arguments of the same names.

    `window` is there where it was given and not read, `reserved_tokens` where the model's settings
    limit its answer.
    """

    trigger: ContextSize
    keep: ContextSize
    window: NotRequired[int]
    reserved_tokens: NotRequired[int]
    truncate_args_settings: Mapping[str, ContextSize]


_SHARES: Mapping[str, ContextSize] = {"trigger": ("fraction", 0.85), "keep": ("fraction", 0.10)}

KNOWN: SummarizationDefaults = {
    "trigger": _SHARES["trigger"],
    "keep": _SHARES["keep"],
    "truncate_args_settings": _SHARES,
}
"""Shares of a known window, as in Deep Agents."""

UNKNOWN: SummarizationDefaults = {
    "trigger": ("tokens", 170_000),
    "keep": ("messages", 6),
    "truncate_args_settings": {"trigger": ("messages", 20), "keep": ("messages", 20)},
}
"""Sizes without a known window, as in Deep Agents."""


def summarization_defaults(model: object, *, window: int | None = None) -> SummarizationDefaults:
    """Return when to summarise for a model, and how much to keep.

    With a known input limit: trigger at 85 % of it, keep 10 % of it, and reserve the tokens of an
    answer, at most half of the window. Without: trigger at 170,000 tokens, keep 6 messages. Large
    arguments are shortened from the same trigger on, before the same 10 %; without a known limit
    from 20 messages on, before the newest 20. `window` is the limit in tokens, where the model's
    profile has none or a wrong one.

    Raises:
        PolicyError: the window is no whole number of tokens.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=[], profile={"max_input_tokens": 200_000})
        >>> defaults = summarization_defaults(model)
        >>> defaults["trigger"], defaults["truncate_args_settings"]["keep"]
        (('fraction', 0.85), ('fraction', 0.1))
        >>> summarization_defaults(model, window=32_000)["window"]
        32000
    """
    window_of(window, 0)
    known = window if window is not None else profile_window(model)
    settings = SummarizationDefaults(**(UNKNOWN if known is None else KNOWN))
    if window is not None:
        settings["window"] = window
    if known is not None and (reserved := reserved_for_answer((model,), known)):
        settings["reserved_tokens"] = reserved
    return settings


@contextmanager
def deepagents() -> Iterator[None]:
    """Import Deep Agents; if it is missing, raise `ImportError` with the way to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deepagents":
            raise
        raise ImportError(
            f"Deep Agents is not installed; install it with: {install_command('deepagents')}"
        ) from error
