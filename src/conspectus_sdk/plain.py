"""What a client changes in a message from request to request, taken out of it."""

from __future__ import annotations

from typing import Any

from conspectus.messages.cache_marks import without_cache_marks

FAKE_ID = "__fake_id__"
"""The id of all items that the Agents SDK makes of another protocol's answers."""


def plain(message: Any) -> Any:
    """Return a message without marks for a cache and without a made-up id.

    It is the message itself where that has none.

    Example:
        >>> plain({"type": "message", "id": "__fake_id__", "role": "assistant", "content": "b"})
        {'type': 'message', 'role': 'assistant', 'content': 'b'}
    """
    made = without_cache_marks(message)
    if isinstance(made, dict) and made.get("id") == FAKE_ID:
        return {key: value for key, value in made.items() if key != "id"}
    return made
