"""Split, read and write server-sent events."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


async def events_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield each event with the empty line behind it, and last an unfinished rest."""
    rest = b""
    async for piece in pieces:
        searched = max(0, len(rest) - 3)
        rest += piece
        while (end := END.search(rest, searched)) is not None:
            yield rest[: end.end()]
            rest, searched = rest[end.end() :], 0
    if rest:
        yield rest


def data_of(event: bytes) -> Any:
    """Return the JSON in an event; None if it holds none.

    Example:
        >>> data_of(b'event: ping' + bytes([10]) + b'data: {"type": "ping"}' + bytes([10, 10]))
        {'type': 'ping'}
    """
    lines = [one[5:].strip() for one in event.splitlines() if one.startswith(b"data:")]
    try:
        return json.loads(b"\n".join(lines))
    except (ValueError, RecursionError):
        return None


def written(data: Mapping[str, Any], *, named: bool = True) -> bytes:
    """Write JSON as an event, with its type as the event's name if `named`."""
    head = f"event: {data['type']}\n" if named else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
