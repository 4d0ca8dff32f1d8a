"""Tell the user's own messages from results of tools under the user's role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conspectus.messages import read_messages
from conspectus.messages.summary import is_summary_message


def is_users(message: Any) -> bool:
    """Return whether a user wrote it; Anthropic's results of tools only have the user's role.

    Example:
        >>> is_users({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]})
        False
    """
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    if is_summary_message(message):
        return False
    [entry] = read_messages([message])
    return bool(entry.own) or (bool(entry.media) and not entry.answers)


def newest_user(messages: Sequence[Any]) -> int | None:
    """Return the index of the newest message of the user; None if there is none."""
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if is_users(messages[place])), None)


def brings_results(message: Any) -> bool:
    """Return whether a message holds results of tools."""
    [entry] = read_messages([message])
    return bool(entry.answers)
