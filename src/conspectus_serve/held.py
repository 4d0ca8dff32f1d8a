"""Keep the histories that clients leave to the server, and read answers as they go by.

A client that sends `previous_response_id` sends no history. The endpoint keeps the items of
each response that may be named so, and sends the whole history, so that it can be compacted and
any upstream can answer it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus_serve.answers import events_in
from conspectus_serve.protocols import CHAT, MESSAGES, Protocol
from conspectus_serve.upstream import END

KNOWN = 16  # histories that are remembered, beside the archive
ENDED = ("completed", "incomplete", None)  # statuses of a response; in the background it has others
HEAD, TAIL = 8_192, 16_384  # bytes at both ends of an answer in which usage is looked for

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)
_COMPLETE = re.compile(rb'"response\.(?:completed|incomplete)"')


class Held:
    """Keep questions and answers by the id of the response, in the namespace of their thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known = Newest[tuple[str, str], tuple[str, list[Any]]](KNOWN)

    def history(self, tenant: str, response: str) -> tuple[str, list[Any]] | None:
        """Return the thread and the history up to a response, with it; None if it is unknown."""
        slip = self._archive.notes(tenant, "response", [response]).get(response, {})
        thread, items, name = slip.get("thread"), list[Any](), response
        if not isinstance(thread, str):
            return None
        passed = set[str]()
        while name not in passed:  # else the upstream gave one id twice: the history is unknown
            passed.add(name)
            if (known := self._known.get((tenant, name))) is not None:
                whole = thread, [*known[1], *items]
                break
            row = self._archive.notes(Scope(tenant, thread), "response", [name]).get(name)
            if row is None:  # expired or forgotten: the rest is not the whole history
                return None
            items, name = [*row["items"], *items], row["parent"]
            if not name:
                whole = thread, items
                break
        else:
            return None
        self._known.put((tenant, response), whole)
        return whole

    def keep(
        self, scope: Scope, response: str, parent: str, before: Sequence[Any], new: Sequence[Any]
    ) -> None:
        """Keep a response after its parent: items before it, and new ones. Raises ArchiveError."""
        row = {response: {"parent": parent, "items": list(new)}}
        self._archive.note(scope, "response", row)
        self._archive.note(scope.tenant, "response", {response: {"thread": scope.thread}})
        self._known.put((scope.tenant, response), (scope.thread, [*before, *new]))


class Passing:
    """Read an answer's pieces as they go by.

    Attributes:
        ended: a stream holds its last event.
        complete: its end has begun, from which on a client may name the response.
    """

    def __init__(self, protocol: Protocol, streamed: bool) -> None:
        self._protocol, self._streamed, self._raw = protocol, streamed, bytearray()
        self._ending = -1  # the place of the last event
        self.ended, self.complete = False, not streamed

    def see(self, piece: bytes) -> None:
        """Add a piece."""
        start = max(0, len(self._raw) - 64)
        self._raw += piece
        if not self._streamed:
            return
        self.complete = self.complete or _COMPLETE.search(self._raw, start) is not None
        if self._ending < 0 and (match := self._protocol.ends.search(self._raw, start)):
            self._ending = match.start() + 1
        if self._ending >= 0:
            chat, event = self._protocol is CHAT, END.search(self._raw, self._ending)
            self.ended = b"\n" in self._raw[self._ending :] if chat else event is not None

    def reported(self) -> int | None:
        """Return the input tokens that the upstream reports; None if it reports none."""
        text = self._raw[:HEAD] + b" " + self._raw[HEAD:][-TAIL:]
        counts = {match[1]: int(match[2]) for match in _COUNTS.finditer(text)}
        if self._protocol is not MESSAGES:
            return counts.get(b"prompt_tokens") or counts.get(b"input_tokens")
        return sum(n for name, n in counts.items() if name != b"prompt_tokens") or None

    def response(self) -> tuple[str, list[Any]] | None:
        """Return the id and output of a response of Responses; None if it is not complete."""
        try:
            *_, last = events_in(bytes(self._raw), streamed=self._streamed)
            body = last["response"] if self._streamed else last
            name, output = body["id"], body["output"]
            ended = body.get("status") in ENDED
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        named = ended and isinstance(name, str) and isinstance(output, list)
        return (name, output) if named else None
