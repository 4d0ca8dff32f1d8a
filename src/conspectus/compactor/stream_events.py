"""Who is told of a compaction: the user's own listener, and the graph's custom stream; and who is
not: those who read a run's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.config import get_config

from conspectus.compactor.work import OnEvent
from conspectus.messages import is_summary_message

KIND = "conspectus.compaction"
"""`type` of our custom stream events."""


def told(on_event: OnEvent | None, runtime: object) -> OnEvent:
    """A listener that tells both."""
    write = getattr(runtime, "stream_writer", None)

    def tell(event: str, data: Mapping[str, Any]) -> None:
        if write is not None:
            write({"type": KIND, "event": event, **data})
        if on_event is not None:
            on_event(event, data)

    return tell


def unstreamed(messages: Sequence[BaseMessage]) -> None:
    """Keep summary messages out of `stream_mode="messages"` and of a run's messages.

    What a node puts into the state is streamed unless it was there before. A summary is state, and
    nobody's turn to speak. The streams have no other way to be told so than their own set of ids
    that have been there; without it, or outside a graph, nothing happens.
    """
    try:
        callbacks = get_config().get("callbacks")
    except RuntimeError:  # called by hand, outside a graph
        return
    ids = {message.id for message in messages if message.id and is_summary_message(message)}
    for handler in getattr(callbacks, "handlers", ()):
        seen = getattr(handler, "seen", None)
        if isinstance(seen, set):
            seen |= ids
