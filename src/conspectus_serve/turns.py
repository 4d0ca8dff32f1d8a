"""Keep the histories that clients leave to the server.

A client that sends `previous_response_id` sends no history. The endpoint keeps the items of
each response that may be named so, and sends the whole history, so that it can be compacted and
any upstream can answer it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope

KNOWN = 16
"""Histories that are remembered, beside the archive."""

ENDS = ("response.completed", "response.incomplete")
"""Events of a stream that hold the whole response."""


@dataclass(frozen=True, slots=True)
class HeldHistory:
    """A history that the endpoint holds: input and output so far."""

    thread: str
    items: tuple[Any, ...]


ENDED = ("completed", "incomplete", None)
"""Statuses of a complete response; one in the background has another."""


class Turns:
    """Keep questions and answers by the id of the response, in the namespace of their thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known = Newest[tuple[str, str], HeldHistory](KNOWN)

    async def history_flow(self, tenant: str, response: str) -> HeldHistory | None:
        """Return the history up to a response, with it; None if it is not known here.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        archive = self._archive
        notes = await archive.flow(archive.notes, tenant, "response", [response])
        thread = notes.get(response, {}).get("thread")
        if not isinstance(thread, str):
            return None
        scope, parts, name = Scope(tenant, thread), list[Sequence[Any]](), response
        passed: set[str] = set()
        while True:
            if name in passed:  # the upstream gave one id twice: the history is unknown
                return None
            passed.add(name)
            if (held := self._known.get((tenant, name))) is not None:
                parts.append(held.items)
                break
            found = (await archive.flow(archive.notes, scope, "response", [name])).get(name)
            if found is None:  # expired or forgotten: the rest is not the whole history
                return None
            parts.append(found["items"])
            if not (name := found["parent"]):
                break
        made = HeldHistory(thread, tuple(item for part in reversed(parts) for item in part))
        self._known.put((tenant, response), made)
        return made

    async def keep_flow(
        self, scope: Scope, response: str, parent: str, before: Sequence[Any], new: Sequence[Any]
    ) -> None:
        """Keep a response.

        Args:
            scope: of the history.
            response: its id.
            parent: id of the response before it; empty for none.
            before: the items up to that.
            new: the items since, with the answer's.
        """
        slip = {"parent": parent, "items": list(new)}
        named = {response: {"thread": scope.thread}}
        note = self._archive.note
        await self._archive.flow(note, scope, "response", {response: slip})
        await self._archive.flow(note, scope.tenant, "response", named)
        self._known.put((scope.tenant, response), HeldHistory(scope.thread, (*before, *new)))


class Watch:
    """Read an answer as it goes by, and notice its end.

    The end is held back until the response is kept: a client that has it may continue at once.
    """

    def __init__(self, streamed: bool) -> None:
        self._streamed, self._raw = streamed, bytearray()
        self.near = False

    def see(self, piece: bytes) -> None:
        """Add a piece."""
        start = max(0, len(self._raw) - 64)
        self._raw += piece
        if not self._streamed:
            self.near = True  # a whole body is of no use before its end
        elif not self.near:
            seen = bytes(self._raw[start:])
            self.near = any(f'"{end}"'.encode() in seen for end in ENDS)

    def response(self) -> tuple[str, list[Any]] | None:
        """Return the id and output of the response; None if it is not complete."""
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
