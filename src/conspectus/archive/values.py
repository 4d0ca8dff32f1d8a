"""Write messages and records for a store, and read them back."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conspectus.core.records import FORMAT as RECORD_FORMAT
from conspectus.core.records import Chain, Record
from conspectus.errors import ArchiveError, MessageError
from conspectus.messages import Call, Entry, Source, decode, encode, read_messages
from conspectus.messages.codec import to_json


@dataclass(frozen=True, slots=True)
class Archived:
    """One original, read back; `id` is a derived one if it had none.

    Attributes:
        key: identity and version.
        cite: its name in summaries.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        archived_at: when the archive took it, in UTC, as ISO 8601.
        message: the original, equal to what was put.
        text: its readable text, tool calls included.
        lossless: whether the original was kept whole; False if secrets were taken out, or a part,
            such as an object of a program, is only described.
        calls, answers: the tool calls that it makes, and ids of those whose results it holds.
    """

    key: str
    id: str
    cite: str
    role: str
    name: str | None
    date: str | None
    archived_at: str
    message: Source
    text: str
    lossless: bool
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()


def manifest(chain: Chain) -> tuple[str, ...]:
    """Return the keys of all originals of a chain, in the order of the conversation.

    A message that stayed in view while later ones left keeps its position. Messages that are only
    clipped so far come last, unless their position is known: they are still in view.
    """
    placed = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    covered = {key for record in chain for key in record.covers}
    clipped = [mark.key for record in chain for mark in record.clips]
    held = covered.union(clipped)
    return tuple(dict.fromkeys([*(key for key in placed if key in held), *clipped]))


def packed(data: Any) -> bytes:
    """Return JSON data as bytes, compressed."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), wbits=-15)


def unpacked(body: bytes) -> Any:
    """Return the data that `packed` wrote; raise `ValueError` if it is damaged."""
    try:
        return json.loads(zlib.decompress(body, wbits=-15).decode("utf-8", "surrogatepass"))
    except (zlib.error, RecursionError) as error:
        raise ValueError(f"it is damaged: {error}") from error


def body_of(entry: Entry) -> bytes:
    """Return one message as a store keeps it; id, text and speaker follow from the message."""
    form, message, lossless = to_json(entry.source)
    whole = lossless and not entry.redacted and _comes_back(entry)
    return packed([form, entry.given_id, int(time.time()), whole, message])


def equals(body: bytes | None, entry: Entry) -> bool:
    """Return whether a stored message equals this one."""
    try:
        form, given_id, _, _, message = unpacked(body or b"")
    except (ValueError, TypeError):
        return False
    text = json.dumps(message, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    mine = (entry.encoded.form, entry.given_id, entry.encoded.text)
    return (form, given_id, text) == mine


def entry_of(key: str, body: bytes) -> tuple[Entry, int, bool]:
    """Return a stored message as it was read, when it was archived, and whether it is whole.

    Raises:
        ArchiveError: it is damaged.
    """
    try:
        form, given_id, at, lossless, data = unpacked(body)
        [entry] = read_messages([decode(form, json.dumps(data), given_id)])
        entry.key, entry.id = key, key if entry.given_id is None else entry.id
        return entry, int(at), bool(lossless)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MessageError) as error:
        raise ArchiveError(
            f"The archived message {key[:8]} is damaged ({error}); restore the archive from a "
            "backup."
        ) from error


def archived(key: str, body: bytes) -> Archived:
    """Return a stored message; a damaged one is an `ArchiveError`."""
    entry, at, lossless = entry_of(key, body)
    return Archived(
        key=key,
        id=entry.id,
        cite=entry.cite,
        role=entry.role,
        name=entry.name,
        date=entry.date,
        archived_at=datetime.fromtimestamp(at, UTC).isoformat(),
        message=entry.source,
        text=entry.reading,
        lossless=lossless,
        calls=entry.calls,
        answers=entry.answers,
    )


def row_of(key: str, body: bytes) -> dict[str, Any]:
    """Return one message as a row of an export: plain JSON data."""
    one = archived(key, body)
    form, given_id, _, _, message = unpacked(body)
    if given_id is not None and form == "langchain":
        message = {**message, "data": {**message["data"], "id": given_id}}
    elif given_id is not None:
        message = {"id": given_id, **message}
    names = ("key", "id", "cite", "role", "name", "date", "archived_at", "lossless")
    return {**{name: getattr(one, name) for name in names}, "form": form, "message": message}


def record_in(name: str, body: bytes | None) -> Record | None:
    """Return the record in a stored value; None if it is missing, damaged, or has another id.

    Raises:
        ArchiveError: a newer version has written it.
    """
    try:
        data = unpacked(body or b"")
        if isinstance(version := data["v"], int) and version > RECORD_FORMAT:
            raise newer(version)
        record = Record.from_json(data)
        return record if record.id == name else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _comes_back(entry: Entry) -> bool:
    """Return whether the message, written and read, is equal to itself."""
    try:
        again = decode(entry.encoded.form, entry.encoded.text, entry.given_id)
    except MessageError:
        return False
    source = dict(entry.source) if isinstance(entry.source, Mapping) else entry.source
    if again == source:
        return True
    # NaN differs from itself, so a message with one is compared by its text.
    odd: list[str] = []
    json.loads(entry.encoded.text, parse_constant=odd.append)
    same_type = type(again) is type(source)
    return same_type and "NaN" in odd and encode(again).text == entry.encoded.text


def newer(version: int) -> ArchiveError:
    """Return the error for what a newer version has written."""
    return ArchiveError(
        f"the archive holds data of format {version}, and this version of Conspectus knows an "
        "earlier one; upgrade conspectus to read it"
    )
