"""Read the bodies of requests; what a body has in common with an earlier one is read once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import count
from typing import Any

from conspectus._newest import Newest
from conspectus_serve.protocols import Refusal
from conspectus_serve.threads import Trail

KNOWN, CHARACTERS = 256, 16_000_000  # bodies that are remembered, and characters of all
LEAST = 4_000  # characters of a history that is remembered: a shorter one is soon read

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(slots=True, eq=False)
class Body:
    """The body of a request, read."""

    fields: dict[str, Any]
    owner: tuple[str, str] = ("", "")  # tenant and the field of the history
    text: str = ""  # up to the end of the history; empty if it is not to be remembered
    start: int = 0  # of the history's first message in that
    number: int = 0
    history: list[Any] | None = None
    trail: Trail | None = None  # of that history, or of the beginning that is known


class Bodies:
    """Read bodies, and remember the newest ones: clients send their history again and again."""

    def __init__(self) -> None:
        self._newest = Newest[int, Body](KNOWN, CHARACTERS, lambda body: len(body.text))
        self._numbers = count(1)

    def read(self, tenant: str, raw: bytes, field: str) -> Body:
        """Return a body whose history is in a `field`. Raises Refusal."""
        try:
            text = raw.decode("utf-8")
            owner = (tenant, field)
            body = self._continued(owner, text) or _whole(owner, text)
        except (ValueError, RecursionError) as error:  # their words may hold a part of it
            why = f"the body is no JSON in UTF-8 ({type(error).__name__}); check it"
            raise Refusal(400, why) from None
        if not isinstance(body.fields, dict):
            raise Refusal(400, "the body is no JSON object; send {...}")
        if body.history and len(body.text) >= LEAST:
            body.number = next(self._numbers)
            self._newest.put(body.number, body)
        return body

    def _continued(self, owner: tuple[str, str], text: str) -> Body | None:
        """Read a body that goes on from a known one, of which only the end is read."""
        for known in reversed(self._newest.values()):
            if known.owner == owner and text.startswith(known.text):
                break
        else:
            return None
        at = _after_space(text, len(known.text))
        if text[at : at + 1] == ",":
            at = _after_space(text, at + 1)
            if text[at : at + 1] == "]":  # which is no JSON
                return None
        elif text[at : at + 1] != "]":
            return None
        body = _whole(owner, text[: known.start] + text[at:])
        if body.start != known.start or body.history is None or known.history is None:
            return None
        body.fields[owner[1]] = body.history = [*known.history, *body.history]
        end = len(body.text) - known.start  # characters of what is new
        body.text = text[: at + end].rstrip() if end else known.text
        body.trail = known.trail
        self._newest.drop(known.number)
        return body


def _whole(owner: tuple[str, str], text: str) -> Body:
    """Read a body, and find its history in it. Raises ValueError or RecursionError."""
    fields, body = dict[str, Any](), Body({}, owner)
    try:
        at = _after_space(text, 0)
        while text[at] in ("," if fields else "{"):
            name, at = _DECODER.raw_decode(text, _after_space(text, at + 1))
            at = _after_space(text, at)
            if text[at] != ":" or not isinstance(name, str):
                raise ValueError
            start = _after_space(text, at + 1)
            fields[name], end = _DECODER.raw_decode(text, start)
            if name == owner[1]:
                history = fields[name] if isinstance(fields[name], list) else None
                body = Body(fields, owner, text[: end - 1].rstrip(), start + 1, history=history)
            at = _after_space(text, end)
        if text[at] != "}" or _after_space(text, at + 1) != len(text):
            raise ValueError
    except (ValueError, IndexError):  # nothing is in it, or it is none
        return Body(json.loads(text))
    body.fields = fields
    return body


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
