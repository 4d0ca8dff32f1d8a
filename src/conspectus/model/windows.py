"""The input limit of a model by its name, without its library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

PROVIDERS = tuple(
    "anthropic openai google_genai mistralai groq deepseek xai fireworks together".split()
)
"""Providers whose package for LangChain, `langchain_` and this name, lists its models."""

_DATE = re.compile(r"[-@](?:\d{4}-\d\d-\d\d|\d{8})$")  # of a snapshot, after a model's name


def input_limit_named(model: str, limits: Mapping[str, int]) -> int | None:
    """Find the input limit of a model by names or patterns; None if there is none.

    The name itself is tried first, then the name without its provider. Then come patterns (`*`
    matches anything) and the name without its date, the longest first.

    Example:
        >>> limits = {"gpt-4o": 3_000, "claude-*": 200_000}
        >>> input_limit_named("openai/gpt-4o-2024-08-06", limits)
        3000
    """
    names = [model, *(model[end.end() :] for end in re.finditer("[/:]", model))]
    undated = {_DATE.sub("", name) for name in names}
    if model in limits:
        return limits[model]
    fitting = [
        pattern
        for pattern in limits
        if pattern in undated or any(fnmatchcase(name, pattern) for name in names)
    ]
    if not fitting:
        return None
    best = max(fitting, key=lambda pattern: (pattern in names, len(pattern)))
    return limits[best]


def input_limit_in_profile(model: str, provider: str = "") -> int | None:
    """Return the input limit in LangChain's profile of a model, in tokens; None without one.

    The provider may come before the name, as in `openai:gpt-4o` or `openai/gpt-4o`.
    """
    prefix, _, suffix = model.replace("/", ":", 1).partition(":")
    if not provider and prefix in PROVIDERS:
        provider = prefix
        model = suffix
    for name in [provider] if provider else PROVIDERS:
        limit = _profiles(name).get(model, {}).get("max_input_tokens")
        if isinstance(limit, int) and limit > 0:
            return limit
    return None


@lru_cache
def _profiles(provider: str) -> Mapping[str, Mapping[str, Any]]:
    with suppress(Exception):  # not installed, or another version has them elsewhere
        origin = find_spec(f"langchain_{provider}").origin  # type: ignore[union-attr]
        profiles: Mapping[str, Mapping[str, Any]]
        profiles = run_path(str(Path(str(origin)).with_name("data") / "_profiles.py"))["_PROFILES"]
        return profiles
    return {}
