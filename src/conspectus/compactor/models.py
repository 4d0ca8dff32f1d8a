"""What a model tells of itself: its name, its window."""

from __future__ import annotations

from collections.abc import Mapping


def model_name(model: object) -> str:
    """How a model is told from others; empty for none."""
    if model is None:
        return ""
    for attribute in ("model_name", "model", "model_id", "deployment_name"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return f"{type(model).__name__}:{found}"
    return f"{type(model).__name__}:"


def profile_window(model: object) -> int | None:
    """The input limit in a model's profile, in tokens; None where it has none that makes sense."""
    profile = getattr(model, "profile", None)
    limit = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    known = isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
    return limit if known else None
