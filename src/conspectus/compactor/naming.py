"""Ids for messages that came without one: the same whenever their channel is read again.

LangGraph's plain channel of messages gives random ids and keeps them. A delta channel is put
together anew from what was written to it, so there an id must follow from the message, or the
records of a history would not fit it after a checkpoint.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from langchain_core.messages import BaseMessage

DERIVED = "unnamed-"
"""What an id that follows from a message begins with."""

_id = attrgetter("id")


def name_messages(messages: Sequence[BaseMessage], before: Iterable[BaseMessage] = ()) -> None:
    """Give each message an id that has none: told from its content, and how often that came.

    Args:
        messages: of one channel, in their order.
        before: what stands there already.
    """
    if None not in map(_id, messages):
        return
    taken = {message.id for message in (*before, *messages)}
    counts: Counter[str] = Counter()
    for message in messages:
        if message.id is not None:
            continue
        name = f"{DERIVED}{_digest(message)}"
        while (found := f"{name}-{counts[name]}") in taken:
            counts[name] += 1
        message.id = found
        taken.add(found)


def _digest(message: BaseMessage) -> str:
    calls = getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None)
    said = repr((message.type, message.name, message.content, calls))
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:24]
