"""Read answers, whole or streamed, as they go by: errors, usage, and where they end."""

from __future__ import annotations

import json
import re
from typing import Any

from conspectus_serve.protocols import CHAT, MESSAGES, Protocol

ENDED = ("completed", "incomplete", None)  # statuses of a response; in the background it has others
HEAD, TAIL = 8_192, 16_384  # bytes at both ends of an answer in which usage is looked for

EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)
_COMPLETE = re.compile(rb'"response\.(?:completed|incomplete)"')


class RefusedByUpstream(Exception):
    """A refusal of the upstream, in the form that the engine reads."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status_code = status


def error_in(text: bytes) -> RefusedByUpstream | None:
    """Return the error in an event or in a body, if it holds one and nothing else."""
    if b'"error"' not in text and b"response.failed" not in text:
        return None
    lines = [one[5:] for one in text.splitlines() if one.startswith(b"data:")]
    try:
        body = json.loads(b"\n".join(lines) or text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("choices"):
        return None
    response = body.get("response")
    error = body.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if not error and body.get("type") not in ("error", "response.failed"):
        return None
    return RefusedByUpstream(json.dumps(error or body), None)


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
            chat, event = self._protocol is CHAT, EVENT_END.search(self._raw, self._ending)
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
            raw = bytes(self._raw)
            if self._streamed:
                lines = (one[5:] for one in raw.splitlines() if one.startswith(b"data:"))
                *_, raw = (one for one in lines if one.strip() != b"[DONE]")
            body = json.loads(raw)["response"] if self._streamed else json.loads(raw)
            name, output, status = body["id"], body["output"], body.get("status")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        named = status in ENDED and isinstance(name, str) and isinstance(output, list)
        return (name, output) if named else None
