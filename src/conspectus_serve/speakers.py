"""Who says a message of a request: a user, or a tool under his name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conspectus.messages import read_messages
from conspectus.messages.summary import is_summary_message


def is_users(message: Any) -> bool:
    """Whether a user has said it; results of tools, in Anthropic's form, only bear his name.

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
    """The place of the newest message that a user has said; None where there is none."""
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if is_users(messages[place])), None)


def brings_results(message: Any) -> bool:
    """Whether it brings results of tools."""
    [entry] = read_messages([message])
    return bool(entry.answers)
