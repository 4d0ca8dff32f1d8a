"""Find the user's request: which messages a user wrote, and which of them is the newest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages.blocks import is_answer
from conspectus.messages.framing import is_summary_message
from conspectus.messages.hosts import is_host_message
from conspectus.messages.message import Message, Source

_OF_AGENTS = frozenset({"ai", "AIMessageChunk", "tool"})  # LangChain's types


def is_by_user(message: Source | Message) -> bool:
    """Tell whether a user wrote a message: no host, no summary, no result of a tool.

    Example:
        >>> is_by_user({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]})
        False
    """
    return is_in_users_role(message) and not is_host_message(message)


def is_in_users_role(message: Source | Message) -> bool:
    """Tell whether a message has the user's role, and is neither a summary nor only a result."""
    if isinstance(message, Message):
        return message.role == "user" and not is_summary_message(message.source)
    if is_message(message):
        content: Any = message.content
        in_role = message.type in ("human", "HumanMessageChunk")
    else:
        content = message.get("content")
        in_role = message.get("role") == "user" and bool(content)
    if not in_role or is_summary_message(message):
        return False
    # A message with nothing but results of tools has no words of a user.
    blocks = content if isinstance(content, list) else []
    return not blocks or not all(
        isinstance(block, Mapping) and is_answer(block) for block in blocks
    )


def newest_user_message(messages: Sequence[Source | Message]) -> int | None:
    """Return the place of the user's newest message.

    If hosts wrote all messages in the user's role, it is the newest of these. None if there is no
    message in that role. The messages may be as callers have them, or as they were read.
    """
    place = _find_newest(messages, is_by_user)
    return newest_in_users_role(messages) if place is None else place


def newest_in_users_role(messages: Sequence[Source | Message]) -> int | None:
    """Return the place of the newest message in the user's role, whoever wrote it; or None."""
    return _find_newest(messages, is_in_users_role)


def _find_newest(
    messages: Sequence[Source | Message], is_wanted: Callable[[Source | Message], bool]
) -> int | None:
    """Return the place of the newest message that passes a test; None if there is none."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        # An agent may have worked long since its user wrote, so its messages are skipped fast.
        if getattr(message, "type", "") not in _OF_AGENTS and is_wanted(message):
            return position
    return None
