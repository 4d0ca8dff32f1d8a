"""Remove the parts of a message that a client changes from request to request."""

from __future__ import annotations

from typing import Any

from conspectus.messages.cache_marks import without_cache_marks

FAKE_ID = "__fake_id__"
"""The id of all items that the Agents SDK makes of another protocol's answers."""


def plain(message: Any) -> Any:
    """Return a message without cache marks and made-up ids; itself if it has none.

    Example:
        >>> plain({"type": "message", "id": "__fake_id__", "role": "assistant", "content": "b"})
        {'type': 'message', 'role': 'assistant', 'content': 'b'}
    """
    made = without_cache_marks(message)
    if isinstance(made, dict) and made.get("id") == FAKE_ID:
        return {key: value for key, value in made.items() if key != "id"}
    return made
