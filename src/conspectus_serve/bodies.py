"""Read the bodies of requests. The part that a body shares with an earlier one is read once.

Clients send their history again and again. So the bytes up to the end of a history are remembered.
If another body begins with them, only its remaining part is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus_serve.fingerprints import FingerprintedHistory
from conspectus_serve.numbers import JsonReader
from conspectus_serve.protocols import HttpError

REMEMBERED_BODIES = 256
REMEMBERED_BYTES = 8_000_000
"""Bytes of all remembered bodies together."""

LEAST_BYTES = 4_000
"""The fewest bytes of a remembered body: a shorter one is read quickly."""

_SPACE_BYTES = b" \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class ParsedHistory:
    """The history in a body, and its place there."""

    messages: list[Any]
    prefix: bytes  # the body up to the end of the history's last message
    start: int  # where the first message begins, in bytes


@dataclass(frozen=True, slots=True)
class RememberedBody:
    """A body up to the end of its history."""

    number: int
    tenant: str
    field: str  # the field with the history
    history: ParsedHistory
    has_odd_numbers: bool
    fingerprinted: FingerprintedHistory | None  # of the history, or of its first part
    was_quiet: bool  # nothing was due for it

    @property
    def size(self) -> int:
        return len(self.history.prefix)


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """A body as it was read."""

    fields: dict[str, Any]
    history: ParsedHistory | None  # None if the field is missing, or is no list
    has_odd_numbers: bool  # it has numbers that Python would write in another way
    continued: RememberedBody | None = None  # the earlier body whose history this one continues


class Bodies:
    """Reads bodies, and remembers the newest."""

    def __init__(self) -> None:
        self._newest = BoundedCache[int, RememberedBody](
            REMEMBERED_BODIES, REMEMBERED_BYTES, attrgetter("size")
        )
        self._numbers = count()

    def remembered(self, tenant: str, raw: bytes, field: str) -> RememberedBody | None:
        """Return the newest body whose history, in a `field`, this one may continue."""
        if len(raw) < LEAST_BYTES:
            return None
        for body in reversed(self._newest.values()):
            if (body.tenant, body.field) == (tenant, field) and raw.startswith(body.history.prefix):
                return body
        return None

    def read(self, tenant: str, raw: bytes, field: str) -> ParsedBody:
        """Read a body whose history is in a `field`.

        Raises:
            HttpError: the body is no JSON object.
        """
        earlier = self.remembered(tenant, raw, field)
        try:
            body = _read_rest(earlier, raw, field) if earlier is not None else None
            body = body or _read_whole(raw, field)
        except (ValueError, RecursionError) as error:  # their texts may have a part of the body
            reason = f"the body is no JSON in UTF-8 ({type(error).__name__}); check it"
            raise HttpError(400, reason) from None
        if not isinstance(body.fields, dict):
            raise HttpError(400, "the body is no JSON object; send {...}")
        return body

    def remember(
        self,
        tenant: str,
        field: str,
        body: ParsedBody,
        fingerprinted: FingerprintedHistory | None,
        *,
        was_quiet: bool,
    ) -> None:
        """Remember a body that was read; it replaces the body that it continues."""
        history = body.history
        if history is None or not history.messages or len(history.prefix) < LEAST_BYTES:
            return
        number = next(self._numbers)
        self._newest.put(
            number,
            RememberedBody(
                number, tenant, field, history, body.has_odd_numbers, fingerprinted, was_quiet
            ),
        )
        if body.continued is not None:
            self._newest.drop(body.continued.number)


def _read_rest(earlier: RememberedBody, raw: bytes, field: str) -> ParsedBody | None:
    """Read the end of a body that continues an earlier one; None if it does not continue it."""
    history = earlier.history
    ending = raw[len(history.prefix) :].lstrip(_SPACE_BYTES)
    if ending.startswith(b","):
        ending = ending[1:].lstrip(_SPACE_BYTES)
        if ending.startswith(b"]"):  # with a comma before it, this is no JSON
            return None
    elif not ending.startswith(b"]"):
        return None
    # Read as if the history began with its new messages.
    body = _read_whole(raw[: history.start] + ending, field)
    if body.history is None or body.history.start != history.start:
        return None
    messages = history.messages + body.history.messages
    prefix = history.prefix
    bytes_of_new_messages = len(body.history.prefix) - history.start
    if bytes_of_new_messages:
        prefix = raw[: len(raw) - len(ending) + bytes_of_new_messages]
    body.fields[field] = messages
    return ParsedBody(
        body.fields,
        ParsedHistory(messages, prefix, history.start),
        has_odd_numbers=body.has_odd_numbers or earlier.has_odd_numbers,
        continued=earlier,
    )


def _read_whole(raw: bytes, field: str) -> ParsedBody:
    """Read a body, and find its history in it. Raises ValueError or RecursionError."""
    text = raw.decode("utf-8")
    reader = JsonReader()
    fields: dict[str, Any] = {}
    history: ParsedHistory | None = None
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
                history = _history_at(raw, text, start, end, fields[name])
            at = _after_space(text, end)
        if text[at] != "}" or _after_space(text, at + 1) != len(text):
            raise ValueError
    except (ValueError, IndexError):  # no such field; or no JSON, and `decode` raises
        return ParsedBody(reader.decode(text), None, reader.has_odd_numbers)
    return ParsedBody(fields, history, reader.has_odd_numbers)


def _history_at(raw: bytes, text: str, start: int, end: int, value: Any) -> ParsedHistory | None:
    """Return the history between two places of a text; None if another value is there."""
    if not isinstance(value, list):
        return None
    closing_bracket = text[end - 1 :].encode()
    prefix = raw[: len(raw) - len(closing_bracket)].rstrip(_SPACE_BYTES)
    return ParsedHistory(value, prefix, len(text[: start + 1].encode()))


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
