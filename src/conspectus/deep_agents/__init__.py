"""Deep Agents with whole histories; needs the extra `deepagents`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conspectus._imports import lazily
from conspectus.engine.settings import window_of
from conspectus.errors import install_command
from conspectus.model.calls import profile_window
from conspectus.model.windows import reserved_for_answer

if TYPE_CHECKING:
    from conspectus.deep_agents.middleware import summarization_middleware
    from conspectus.deep_agents.wiring import create_deep_agent

__all__ = ["create_deep_agent", "summarization_defaults", "summarization_middleware"]

_get = lazily(
    __name__,
    {
        "create_deep_agent": "conspectus.deep_agents.wiring",
        "summarization_middleware": "conspectus.deep_agents.middleware",
    },
)


def __getattr__(name: str) -> Any:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deepagents":
            raise
        command = install_command("deepagents")
        raise ImportError(f"Deep Agents is not installed; install it with: {command}") from error


def summarization_defaults(model: object, *, window: int | None = None) -> dict[str, Any]:
    """Return when to summarise for a model, and how much to keep: arguments of the middleware.

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
    if known is None:
        arguments = {"trigger": ("messages", 20), "keep": ("messages", 20)}
        sizes = {"trigger": ("tokens", 170_000), "keep": ("messages", 6)}
        return {**sizes, "truncate_args_settings": arguments}
    shares = {"trigger": ("fraction", 0.85), "keep": ("fraction", 0.10)}
    settings: dict[str, Any] = {**shares, "truncate_args_settings": shares}
    if window is not None:
        settings["window"] = window
    if reserved := reserved_for_answer((model,), known):
        settings["reserved_tokens"] = reserved
    return settings
