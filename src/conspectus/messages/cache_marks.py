"""Marks for a provider's cache, taken out of messages."""

from __future__ import annotations

from typing import Any

CACHE = "cache_control"
"""Anthropic's name of them."""


def without_cache_marks(message: Any) -> Any:
    """Take marks for a cache out of a message; a sole text becomes plain.

    Clients move such marks with every request, and turn a text into a block to hold one.

    Example:
        >>> mark = {"type": "ephemeral"}
        >>> block = {"type": "text", "text": "hi", "cache_control": mark}
        >>> without_cache_marks({"role": "user", "content": [block]})
        {'role': 'user', 'content': 'hi'}
    """
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    made = message
    if CACHE in message:
        made = {key: value for key, value in message.items() if key != CACHE}
    if isinstance(content, list):
        blocks = [_block(block) for block in content]
        only = blocks[0] if len(blocks) == 1 else None
        if isinstance(only, dict) and only.keys() == {"type", "text"} and only["type"] == "text":
            return {**made, "content": only["text"]}
        if any(new is not old for new, old in zip(blocks, content, strict=True)):
            return {**made, "content": blocks}
    return made


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    inner = block.get("content")
    made = block
    if CACHE in block:
        made = {key: value for key, value in block.items() if key != CACHE}
    if isinstance(inner, list):
        parts = [_block(part) for part in inner]
        if any(new is not old for new, old in zip(parts, inner, strict=True)):
            return {**made, "content": parts}
    return made
