"""Read the bodies of requests; what a body has in common with an earlier one is read once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus_serve.numbers import Reader
from conspectus_serve.protocols import Refusal
from conspectus_serve.trails import Trail

KNOWN, LARGEST = 256, 8_000_000  # bodies that are remembered, and bytes of all
LEAST = 4_000  # bytes of one that is remembered: a shorter one is soon read

_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(slots=True, eq=False)
class Body:
    """The body of a request, read; what is remembered of it goes up to the end of its history."""

    fields: Any
    history: list[Any] | None = None
    raw: bytes = b""  # up to there
    start: int = 0  # bytes of that before the history's first message
    owner: tuple[str, str] = ("", "")  # its tenant, and the field of its history
    trail: Trail | None = None  # of that history, or of its beginning
    quiet: bool = False  # nothing was due
    odd: bool = False  # it has numbers that Python would write in another way
    size: int = 0  # bytes of `raw`


class Bodies:
    """Read bodies, and remember the newest ones: clients send their history again and again."""

    def __init__(self) -> None:
        self._newest = BoundedCache[int, Body](KNOWN, LARGEST, attrgetter("size"))

    def known(self, tenant: str, raw: bytes, field: str) -> Body | None:
        """Return a known body from whose history, in a `field`, this one may go on."""
        if len(raw) < LEAST:
            return None
        bodies = (one for one in reversed(self._newest.values()) if one.owner == (tenant, field))
        return next((one for one in bodies if raw.startswith(one.raw)), None)

    def read(self, tenant: str, raw: bytes, field: str) -> Body:
        """Read a body whose history is in a `field`. Raises Refusal."""
        known = self.known(tenant, raw, field)
        try:
            body = (_continued(known, raw, field) if known else None) or _whole(raw, field)
        except (ValueError, RecursionError) as error:  # their words may hold a part of it
            why = f"the body is no JSON in UTF-8 ({type(error).__name__}); check it"
            raise Refusal(400, why) from None
        if not isinstance(body.fields, dict):
            raise Refusal(400, "the body is no JSON object; send {...}")
        if body.history and len(body.raw) >= LEAST:
            body.owner, body.size = (tenant, field), len(body.raw)
            self._newest.put(id(body), body)
            if known is not None:
                self._newest.drop(id(known))
        return body


def _continued(known: Body, raw: bytes, field: str) -> Body | None:
    """Read the end of a body that goes on from a known one; None if it does not."""
    rest = raw[len(known.raw) :].lstrip(b" \t\n\r")
    if rest.startswith(b","):
        rest = rest[1:].lstrip(b" \t\n\r")
        if rest.startswith(b"]"):  # which is no JSON
            return None
    elif not rest.startswith(b"]"):
        return None
    body = _whole(raw[: known.start] + rest, field)
    if body.start != known.start or body.history is None or known.history is None:
        return None
    new = len(body.raw) - body.start
    body.raw = raw[: len(raw) - len(rest) + new] if new else known.raw
    body.fields[field] = body.history = known.history + body.history
    body.trail, body.quiet = known.trail, known.quiet
    body.odd |= known.odd
    return body


def _whole(raw: bytes, field: str) -> Body:
    """Read a body, and find its history in it. Raises ValueError or RecursionError."""
    text, fields, body, reader = raw.decode("utf-8"), dict[str, Any](), Body({}), Reader()
    try:
        at = _after_space(text, 0)
        while text[at] == ("," if fields else "{"):
            name, at = reader.raw_decode(text, _after_space(text, at + 1))
            at = _after_space(text, at)
            if text[at] != ":" or not isinstance(name, str):
                raise ValueError
            start = _after_space(text, at + 1)
            fields[name], end = reader.raw_decode(text, start)
            if name == field:
                body, history = Body({}), fields[name]
            if name == field and isinstance(history, list):
                begin = raw[: len(raw) - len(text[end - 1 :].encode())].rstrip(b" \t\n\r")
                body = Body({}, history, begin, len(text[: start + 1].encode()))
            at = _after_space(text, end)
        if text[at] != "}" or _after_space(text, at + 1) != len(text):
            raise ValueError
    except (ValueError, IndexError):  # it has no field, or is no JSON
        body = Body(reader.decode(text))
    else:
        body.fields = fields
    body.odd = reader.odd
    return body


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
