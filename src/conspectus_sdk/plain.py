"""What a client changes in a message from request to request, taken out of it."""

from __future__ import annotations

from typing import Any

CACHE = "cache_control"
"""Anthropic's mark for its cache, which clients move to the newest message."""

FAKE_ID = "__fake_id__"
"""The id of all items that the Agents SDK makes of another protocol's answers."""


def plain(message: Any) -> Any:
    """A message without marks for a cache and without a made-up id; itself where it has none.

    A text that was made a block to hold a mark is a text again.

    Example:
        >>> mark = {"type": "ephemeral"}
        >>> block = {"type": "text", "text": "a", "cache_control": mark}
        >>> plain({"role": "user", "content": [block]})
        {'role': 'user', 'content': 'a'}
        >>> plain({"type": "message", "id": "__fake_id__", "role": "assistant", "content": "b"})
        {'type': 'message', 'role': 'assistant', 'content': 'b'}
    """
    if not isinstance(message, dict):
        return message
    made = _unmarked(message)
    if made.get("id") == FAKE_ID:
        made = {key: value for key, value in made.items() if key != "id"}
    content = made.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        only = content[0]
        if only.keys() == {"type", "text"} and only["type"] == "text":
            made = {**made, "content": only["text"]}
    return made


def _unmarked(value: Any) -> Any:
    """A message or block without marks, and those in its content."""
    if not isinstance(value, dict):
        return value
    made = value
    if CACHE in value:
        made = {key: one for key, one in value.items() if key != CACHE}
    inner = value.get("content")
    if isinstance(inner, list):
        parts = [_unmarked(part) for part in inner]
        if any(new is not old for new, old in zip(parts, inner, strict=True)):
            made = {**made, "content": parts}
    return made
