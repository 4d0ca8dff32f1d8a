"""Find the window of a model that a file names, without a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from conspectus._core.choices import names_embedded
from conspectus.config.schema import SummarizationConfig

PROVIDERS = frozenset(
    "anthropic deepseek fireworks google_genai groq mistralai openai together xai".split()
)
"""Providers whose models are made without a network, so that their profiles can be read."""

_DATE = re.compile(r"[-@](?:\d{4}-\d\d-\d\d|\d{8})$")
"""The date of a model's snapshot behind its name."""


def limit_of(model: str, limits: Mapping[str, int]) -> int | None:
    """Find the input limit of a model by names or patterns; None without one.

    The name itself comes first, then the name without a provider in front, then patterns (`*`
    matches anything) and the name without a date behind, the longest first.

    Example:
        >>> limits = {"gpt-4o": 3_000, "claude-*": 200_000}
        >>> limit_of("openai/gpt-4o-2024-08-06", limits), limit_of("gpt-4o-mini", limits)
        (3000, None)
    """
    if model in limits:
        return limits[model]
    names = list(_bare(model))
    undated = {_DATE.sub("", name) for name in names}
    found = [
        one for one in limits if one in undated or any(fnmatchcase(name, one) for name in names)
    ]
    return limits[max(found, key=lambda one: (one in names, len(one)))] if found else None


def _bare(model: str) -> Iterator[str]:
    """Yield a name, and its rest after each provider in front."""
    while model:
        yield model
        model = "".join(re.split("[/:]", model, maxsplit=1)[1:])


def find_window(config: SummarizationConfig) -> tuple[int | None, str]:
    """Find the answering model's input limit, in tokens, and its source in words.

    A file may not name that model: then it is the one that writes the summaries, or the first of
    `models`. The limit is None if it is unknown.
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
    limit = profile_of(provider, model)
    if limit is None:
        return None, f"unknown: {shown} has no profile here; set 'window' to its input limit"
    return limit, f"by the profile of {shown}; another model that answers has its own"


def profile_of(provider: str, model: str) -> int | None:
    """Return a model's input limit by its LangChain profile; None without one."""
    if not provider and ":" in model:
        provider, _, model = model.partition(":")
    try:
        provider = provider or _guessed(model)
        if provider not in PROVIDERS:
            return None
        from langchain.chat_models import init_chat_model

        from conspectus.agents.models import profile_window

        settings: dict[str, Any] = {"model_provider": provider, "api_key": "none"}
        return profile_window(init_chat_model(model, **settings))
    except Exception:  # its package is not installed, or it wants more than a key
        return None


def _guessed(model: str) -> str:
    """Guess the provider from a model's name, as LangChain does."""
    starts = {
        "openai": ("gpt-", "o1", "o3", "o4", "chatgpt"),
        "anthropic": ("claude",),
        "google_genai": ("gemini",),
        "deepseek": ("deepseek",),
        "mistralai": ("mistral",),
        "xai": ("grok",),
    }
    return next((name for name, begin in starts.items() if model.startswith(begin)), "")
