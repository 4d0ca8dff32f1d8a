"""Histories that clients leave to the server: what stands behind a response's id.

A client that sends `previous_response_id` sends no history. The endpoint keeps the items of each
response that may be named so, and sends the history whole, so that it can be compacted and any
upstream can answer it.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._drive import Flow
from conspectus.archive import Archive, Scope

KNOWN = 16
"""Histories that are remembered, beside the archive."""

ENDS = ("response.completed", "response.incomplete")
"""Events of a stream that hold the whole response."""


@dataclass(frozen=True, slots=True)
class Held:
    """A history that the endpoint holds.

    Attributes:
        thread: of the history.
        items: input and output so far.
    """

    thread: str
    items: tuple[Any, ...]


ENDED = ("completed", "incomplete", None)
"""Statuses of a response that is whole; one in the background has another."""


class Turns:
    """What was asked and answered, by the id of the response.

    Args:
        archive: where it is kept, in the namespace of its thread.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: OrderedDict[tuple[str, str], Held] = OrderedDict()
        self._lock = threading.Lock()

    def history_flow(self, tenant: str, response: str) -> Flow[Held | None]:
        """The history up to a response and with it; None where nobody has seen it here.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        slips = yield from self._archive.slips_flow([_named(response)], tenant)
        thread = slips.get(_named(response), {}).get("thread")
        if not isinstance(thread, str):
            return None
        scope, parts, name = Scope(tenant, thread), list[Sequence[Any]](), response
        passed: set[str] = set()
        while True:
            if name in passed:  # an upstream has given one id twice: nobody knows the history
                return None
            passed.add(name)
            with self._lock:
                held = self._known.get((tenant, name))
            if held is not None:
                parts.append(held.items)
                break
            found = (yield from self._archive.slips_flow([name], scope)).get(name)
            if found is None:  # it has expired, or was forgotten: what is left is not the history
                return None
            parts.append(found["items"])
            if not (name := found["parent"]):
                break
        made = Held(thread, tuple(item for part in reversed(parts) for item in part))
        self._remember(tenant, response, made)
        return made

    def keep_flow(
        self, scope: Scope, response: str, parent: str, before: Sequence[Any], new: Sequence[Any]
    ) -> Flow[None]:
        """Keep a response.

        Args:
            scope: whose history it is.
            response: its id.
            parent: id of the response before it; empty for none.
            before: the items up to that.
            new: those that were sent since, and the answer's.
        """
        slip = {"parent": parent, "items": list(new)}
        yield from self._archive.put_slips_flow({response: slip}, scope)
        yield from self._archive.put_slips_flow(
            {_named(response): {"thread": scope.thread}}, scope.tenant
        )
        self._remember(scope.tenant, response, Held(scope.thread, (*before, *new)))

    def _remember(self, tenant: str, response: str, held: Held) -> None:
        with self._lock:
            self._known[tenant, response] = held
            self._known.move_to_end((tenant, response))
            while len(self._known) > KNOWN:
                self._known.popitem(last=False)


def _named(response: str) -> str:
    return f"response {response}"


class Watch:
    """Reads an answer as it goes by, and says when its end is near.

    The end is held back until the response is kept: a client that has it may go on at once.

    Args:
        streamed: it comes as events.
    """

    def __init__(self, streamed: bool) -> None:
        self._streamed, self._raw = streamed, bytearray()
        self.near = False

    def see(self, piece: bytes) -> None:
        """Take in a piece."""
        start = max(0, len(self._raw) - 64)
        self._raw += piece
        if not self._streamed:
            self.near = True  # of a whole body nothing can be used before its end
        elif not self.near:
            seen = bytes(self._raw[start:])
            self.near = any(f'"{end}"'.encode() in seen for end in ENDS)

    def response(self) -> tuple[str, list[Any]] | None:
        """Id and output of the response; None where it is none, or not whole."""
        try:
            found = self._last_event() if self._streamed else json.loads(self._raw)
            if found.get("status") not in ENDED:
                return None
            name, output = found["id"], found["output"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return (name, output) if isinstance(name, str) and isinstance(output, list) else None

    def _last_event(self) -> Any:
        for line in reversed(bytes(self._raw).split(b"\n")):
            if line.startswith(b"data:") and any(end.encode() in line for end in ENDS):
                event = json.loads(line[5:])
                if event.get("type") in ENDS:
                    return event["response"]
        raise KeyError("no response has ended")
