"""Marks for a provider's cache, taken out of messages."""

from __future__ import annotations

from typing import Any

CACHE = "cache_control"  # Anthropic's name for a mark


def without_cache_marks(message: Any) -> Any:
    """Take marks for a cache out of a message; a sole text becomes plain.

    Clients move such marks with every request, and turn a text into a block to hold one. A message
    without changes comes back itself.

    Example:
        >>> block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
        >>> without_cache_marks({"role": "user", "content": [block]})
        {'role': 'user', 'content': 'hi'}
    """
    made = _unmarked(message)
    content = made.get("content") if isinstance(made, dict) else None
    only = content[0] if isinstance(content, list) and len(content) == 1 else None
    if isinstance(only, dict) and only.keys() == {"type", "text"} and only["type"] == "text":
        return {**made, "content": only["text"]}
    return made


def _unmarked(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    made = {key: value for key, value in part.items() if key != CACHE} if CACHE in part else part
    if isinstance(inner := part.get("content"), list):
        blocks = [_unmarked(block) for block in inner]
        if any(new is not old for new, old in zip(blocks, inner, strict=True)):
            return {**made, "content": blocks}
    return made
