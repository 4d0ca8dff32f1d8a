"""Show recalled originals in a request, and take them out of it again.

Neither changes the history. Code that handles a request takes recalled originals out first, and
puts them back at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from conspectus.messages.blocks import brings_results
from conspectus.messages.users import newest_user_message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

LEAST_RECALL = 64  # fewer tokens than this hardly show one message
RECALLED = "recalled"  # `lc_source` of a message that shows recalled text


def recalled_message(text: str, turn: str) -> BaseMessage:
    """Make the message that shows a recalled text; it is the same at each call of a turn."""
    from langchain_core.messages import HumanMessage

    return HumanMessage(
        content=text,
        id=f"recalled-{turn[:24]}",
        additional_kwargs={
            "lc_source": RECALLED,
            "hide_from_ui": True,
            "conspectus": {"turn": turn},
        },
    )


def with_recalled(
    messages: Sequence[BaseMessage], recalled: BaseMessage | None
) -> list[BaseMessage]:
    """Put recalled originals directly before the newest user message.

    Messages before that place are the same at each call of a turn, so caches keep them. If the user
    message also has results of tools, the originals follow it, because a result must follow its
    call.
    """
    position = newest_user_message(messages) if recalled is not None else None
    if recalled is None or position is None:
        return list(messages)
    if brings_results(messages[position]):  # nothing may be between a call and its result
        position += 1
    return [*messages[:position], recalled, *messages[position:]]


def without_recalled(
    messages: Sequence[BaseMessage], history: Collection[BaseMessage]
) -> tuple[list[BaseMessage], BaseMessage | None]:
    """Take recalled originals out of a request; return both.

    Messages of the history never count as recalled ones: a mark cannot make a user's words
    disappear.
    """
    marked = [
        message for message in messages if message.additional_kwargs.get("lc_source") == RECALLED
    ]
    ids = {message.id for message in history} if marked else set()
    recalled = [message for message in marked if message.id not in ids]
    if not recalled:
        return list(messages), None
    identities = set(map(id, recalled))
    remaining = [message for message in messages if id(message) not in identities]
    return remaining, recalled[-1]
