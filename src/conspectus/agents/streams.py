"""Who is told of a compaction: the user's own listener, and the graph's custom stream; and who is
not: those who read a run's messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from conspectus.compactor.tools import OnEvent

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


def hide_from_streams(messages: Iterable[BaseMessage]) -> None:
    """Keep messages that a step writes out of `stream_mode="messages"` and of a run's messages.

    LangGraph shows there every message that a node returns and that it has not seen. A summary is
    nothing that anybody said, and what is removed is said by no message: both would stand in a chat
    as if they were. Its handlers know what they have seen by id, which is all that is used here;
    where they are another kind, nothing is hidden. Updates and values show the state as it is.
    """
    from langgraph.config import get_config

    try:
        callbacks = get_config().get("callbacks")
    except RuntimeError:  # called by hand, outside a graph
        return
    ids = {message.id for message in messages}
    for handler in getattr(callbacks, "handlers", None) or ():
        seen = getattr(handler, "seen", None)
        if isinstance(seen, set) and hasattr(handler, "stream"):
            seen.update(ids)
