"""Write a message for the archive, read it back, and order it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conspectus._core.records import Chain
from conspectus.archive.wire import dumps
from conspectus.errors import ArchiveError, MessageError
from conspectus.messages import Call, Entry, Source, decode, encode, read_messages
from conspectus.messages.codec import to_json


@dataclass(frozen=True, slots=True)
class Archived:
    """One original, read back.

    Attributes:
        key: identity and version.
        id: its id; a derived one if it had none.
        cite: its name in summaries.
        role: of the speaker.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        archived_at: when the archive took it, in UTC, as ISO 8601.
        message: the original, equal to what was put.
        text: its readable text, tool calls included.
        lossless: whether the original was kept whole; False if secrets were taken out, or a part,
            such as an object of a program, is only described.
        calls: tool calls that it makes.
        answers: ids of the calls whose results it holds.
        speaks: whether it holds text besides results of tools.
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
    speaks: bool = True


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


def to_data(entry: Entry) -> dict[str, Any]:
    """Return one message as plain data, without its reading text, which follows from it."""
    form, message, lossless = to_json(entry.source)
    return {
        "form": form,
        "message": message,
        "id": entry.given_id,
        "derived": entry.id,
        "cite": entry.cite,
        "role": entry.role,
        "name": entry.name,
        "date": entry.date,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "lossless": lossless and not entry.redacted and _comes_back(entry),
    }


def same(data: Mapping[str, Any] | None, entry: Entry) -> bool:
    """Return whether a stored value equals this message."""
    if data is None or data.get("form") != entry.encoded.form or data.get("id") != entry.given_id:
        return False
    return json.dumps(data.get("message"), sort_keys=True, separators=(",", ":")) == (
        entry.encoded.text
    )


def from_data(key: str, data: Mapping[str, Any] | None) -> Archived:
    """Return the message that `to_data` wrote; a damaged one is an `ArchiveError`."""
    try:
        if data is None:
            raise ValueError("its value is no JSON")
        message = decode(data["form"], dumps(data["message"]), data["id"])
        [entry] = read_messages([message])
        return Archived(
            key=key,
            id=data["derived"],
            cite=data["cite"],
            role=data["role"],
            name=data["name"],
            date=data["date"],
            archived_at=data["at"],
            message=message,
            text=entry.reading,
            lossless=data["lossless"],
            calls=entry.calls,
            answers=entry.answers,
            speaks=bool(entry.own.strip()),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArchiveError(
            f"The archived message {key[:8]} is damaged ({error}); restore the archive from a "
            "backup."
        ) from error


def to_row(key: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return one message as a row of an export: plain JSON data."""
    parts = {part: data.get(part) for part in ("cite", "role", "name", "date", "lossless", "form")}
    return {
        "key": key,
        "id": data.get("derived"),
        **parts,
        "archived_at": data.get("at"),
        "message": _with_id(data),
    }


def _with_id(data: Mapping[str, Any]) -> Any:
    message, given = data.get("message"), data.get("id")
    if given is None or not isinstance(message, Mapping):
        return message
    if data.get("form") == "langchain":
        return {**message, "data": {**message["data"], "id": given}}
    return {"id": given, **message}


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
