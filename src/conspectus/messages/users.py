"""Whose request is under way: which messages a user wrote, and which of them is the newest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import ref

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import is_message
from conspectus.messages.blocks import is_answer
from conspectus.messages.framing import is_summary_message
from conspectus.messages.hosts import is_host_message
from conspectus.messages.message import Message, Source

REMEMBERED_MESSAGES = 1_024  # last messages of histories, with what was found before each


def is_users(message: Source | Message) -> bool:
    """Tell whether a user wrote a message: no host, no summary, no result of a tool.

    Example:
        >>> is_users({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]})
        False
    """
    return is_in_users_role(message) and not is_host_message(message)


def is_in_users_role(message: Source | Message) -> bool:
    """Tell whether a message stands in the user's role, and is no summary and no mere result."""
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
    # A user who only brings results of tools has said nothing.
    blocks = content if isinstance(content, list) else []
    return not blocks or not all(
        isinstance(block, Mapping) and is_answer(block) for block in blocks
    )


def newest_user_message(messages: Sequence[Source | Message]) -> int | None:
    """Return the place of the user's newest message, of such as were read, too.

    Where hosts wrote all that stands in the user's role, it is the newest of these; None without
    one.
    """
    place = _find_newest(messages, is_users, _newest_users)
    return newest_in_users_role(messages) if place is None else place


def newest_in_users_role(messages: Sequence[Source | Message]) -> int | None:
    """Return the place of the newest message in the user's role, whoever wrote it; or None."""
    return _find_newest(messages, is_in_users_role, _newest_in_users_role)


class _Search(NamedTuple):
    """What a search for the newest message of some kind has found up to one message."""

    message: ref[Any]
    """The message at which the search began, going back."""

    distance: int | None
    """How far before it the found one stands; None if there was none."""

    searched: int
    """How many messages there were, that one included."""


_newest_users: BoundedCache[int, _Search] = BoundedCache(REMEMBERED_MESSAGES)
"""Searches for messages that a user wrote, by the identity of the message at which they began."""

_newest_in_users_role: BoundedCache[int, _Search] = BoundedCache(REMEMBERED_MESSAGES)
"""Searches for messages in the user's role, likewise."""


def _find_newest(
    messages: Sequence[Source | Message],
    is_wanted: Callable[[Source | Message], bool],
    searches: BoundedCache[int, _Search],
) -> int | None:
    """Return the position of the newest message that is wanted; None without one.

    What was found is remembered with the last message, so that a history that grows by the work of
    an agent is not searched back to its beginning at each step.
    """
    newest: int | None = None
    for position in range(len(messages) - 1, -1, -1):
        search = searches.get(id(messages[position]))
        if search is None or search.message() is not messages[position]:
            if is_wanted(messages[position]):
                newest = position
                break
        elif search.distance is None:
            if search.searched > position:  # all messages before it were searched
                break
        elif search.distance <= position and is_wanted(messages[position - search.distance]):
            newest = position - search.distance
            break
    if messages and is_message(messages[-1]):
        last = len(messages) - 1
        distance = None if newest is None else last - newest
        searches.put(id(messages[-1]), _Search(ref(messages[-1]), distance, len(messages)))
    return newest
