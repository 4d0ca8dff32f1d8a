"""Who is told of a compaction: the user's own listener, and the graph's custom stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conspectus.compactor.work import OnEvent

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
