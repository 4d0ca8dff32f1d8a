"""The window of a model that a file names, where it can be told without asking anybody."""

from __future__ import annotations

from typing import Any

from conspectus._core.choices import names_embedded
from conspectus.compactor.models import profile_window
from conspectus.config.schema import SummarizationConfig

PROVIDERS = frozenset(
    "anthropic deepseek fireworks google_genai groq mistralai openai together xai".split()
)
"""Providers whose models are made without a network, so that their profiles can be read."""


def find_window(config: SummarizationConfig) -> tuple[int | None, str]:
    """The input limit that shares of the window are taken of, and how it is known.

    It is that of the model that answers. A file does not always say which one that is: then it is
    the one that writes the summaries, or the first of the file's `models`.

    Args:
        config: as `load_config` gives it.

    Returns:
        Tokens, or None where nobody knows; and the reason in words.
    """
    if config.window is not None:
        return config.window, "as 'window' says"
    read = config.read
    writes = None if names_embedded(config.model_name) else config.model_name
    named = writes or (next(iter(read.kinds or read.models), None) if read else None)
    if named is None:
        return None, (
            "unknown here: that of the agent's own model counts, as its profile says; set 'window' "
            "where it has none"
        )
    shown = config.shown(("model_name",)) if writes else named
    if read is not None and named in read.models:
        return read.models[named], f"as 'models' says of {shown}"
    provider, model = (read.kinds if read is not None else {}).get(named, ("", named))
    limit = _profile(provider, model)
    if limit is None:
        return None, f"unknown: {shown} has no profile here; set 'window' to its input limit"
    return limit, f"by the profile of {shown}; another model that answers has its own"


def _profile(provider: str, model: str) -> int | None:
    if not provider and ":" in model:
        provider, _, model = model.partition(":")
    try:
        provider = provider or _guessed(model)
        if provider not in PROVIDERS:
            return None
        from langchain.chat_models import init_chat_model

        settings: dict[str, Any] = {"model_provider": provider, "api_key": "none"}
        return profile_window(init_chat_model(model, **settings))
    except Exception:  # its package is not installed, or it wants more than a key
        return None


def _guessed(model: str) -> str:
    """The provider of a model that is named without one, as LangChain guesses it."""
    starts = {
        "openai": ("gpt-", "o1", "o3", "o4", "chatgpt"),
        "anthropic": ("claude",),
        "google_genai": ("gemini",),
        "deepseek": ("deepseek",),
        "mistralai": ("mistral",),
        "xai": ("grok",),
    }
    return next((name for name, begin in starts.items() if model.startswith(begin)), "")
