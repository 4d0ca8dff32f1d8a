"""Find the input limit of a model by its name, without a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from conspectus.config.schema import SummarizationConfig
from conspectus.core.policy import names_embedded

PROVIDERS = frozenset(
    "anthropic deepseek fireworks google_genai groq mistralai openai together xai".split()
)
"""Providers whose models are made without a network, so that their profiles can be read."""

_DATE = re.compile(r"[-@](?:\d{4}-\d\d-\d\d|\d{8})$")  # Of a snapshot, behind a model's name


def limit_of(model: str, limits: Mapping[str, int]) -> int | None:
    """Find the input limit of a model by names or patterns; None without one.

    The name itself comes first, then the name without a provider in front, then patterns (`*`
    matches anything) and the name without a date behind, the longest first.

    Example:
        >>> limits = {"gpt-4o": 3_000, "claude-*": 200_000}
        >>> limit_of("openai/gpt-4o-2024-08-06", limits), limit_of("gpt-4o-mini", limits)
        (3000, None)
    """
    names = [model]  # and its rest after each provider in front
    while (rest := re.split("[/:]", names[-1], maxsplit=1)[1:]) and rest[0]:
        names += rest
    undated = {_DATE.sub("", name) for name in names}
    fits = [
        one for one in limits if one in undated or any(fnmatchcase(name, one) for name in names)
    ]
    best = model if model in limits else max(fits, key=lambda o: (o in names, len(o)), default=None)
    return None if best is None else limits[best]


def find_window(config: SummarizationConfig) -> tuple[int | None, str]:
    """Find the answering model's input limit, in tokens or None, and its source in words.

    A file may not name that model: then it is the one that writes the summaries, or the first of
    `models`.
    """
    from conspectus.config.building import declared_window

    if config.window is not None:
        return config.window, "as 'window' says"
    models = config.source.models
    writes = None if names_embedded(config.model_name) else config.model_name
    named = writes or next(iter(reversed(models)), None)
    if named is None:
        return None, "unknown here: the profile of the agent's own model counts; else set 'window'"
    shown, entry = config.source.hidden(named), models.get(named, {})
    if (declared := declared_window(entry)) is not None:
        return declared, f"as 'models' says of {shown}"
    provider = re.split("[:.]", str(entry.get("use", "")))[0].removeprefix("langchain_")
    limit = profile_of(provider, str(entry.get("model", named)))
    if limit is None:
        return None, f"unknown: {shown} has no profile here; set 'window' to its input limit"
    return limit, f"by the profile of {shown}; another model that answers has its own"


def profile_of(provider: str, model: str) -> int | None:
    """Return a model's input limit by its LangChain profile; None without one."""
    if not provider and ":" in model:
        provider, _, model = model.partition(":")
    if model.startswith("gemini"):
        provider = provider or "google_genai"  # LangChain guesses one that asks the network
    if provider and provider not in PROVIDERS:
        return None
    try:
        from langchain.chat_models import init_chat_model

        from conspectus.model.calls import profile_window

        return profile_window(
            init_chat_model(model, model_provider=provider or None, api_key="none")
        )
    except Exception:  # its package is not installed, or it wants more than a key
        return None
