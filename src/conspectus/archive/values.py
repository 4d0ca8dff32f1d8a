"""What the archive holds of one message, how it is written, and the order in which it is read."""

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
        id: its id; a derived one where it had none.
        cite: how summaries name it.
        role: who speaks.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        archived_at: when the archive took it, in UTC, as ISO 8601.
        message: the original, equal to what was put.
        text: what a reader would see of it, tool calls included.
        lossless: whether the original could be kept whole; False where secrets were taken out of
            it, or a part of it, such as an artifact that is some object of a program, is only
            described.
        calls: tool calls that it makes.
        answers: ids of the calls whose results it holds.
        speaks: somebody says something in it himself, beside results of tools.
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
    """Keys of all originals that a chain answers for, in the order of the conversation.

    A message that stayed in view while others behind it left stands where it stood. Messages that
    are only shown short so far come last, unless their place is known: they are still in view.
    """
    placed = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    covered = {key for record in chain for key in record.covers}
    clipped = [mark.key for record in chain for mark in record.clips]
    held = covered.union(clipped)
    return tuple(dict.fromkeys([*(key for key in placed if key in held), *clipped]))


def to_data(entry: Entry) -> dict[str, Any]:
    """One message as plain data; its reading text is left out, as it follows from the message."""
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
    """Whether a stored value gives back this very message."""
    if data is None or data.get("form") != entry.encoded.form or data.get("id") != entry.given_id:
        return False
    return json.dumps(data.get("message"), sort_keys=True, separators=(",", ":")) == (
        entry.encoded.text
    )


def from_data(key: str, data: Mapping[str, Any] | None) -> Archived:
    """The message that `to_data` wrote.

    Raises:
        ArchiveError: the value is damaged.
    """
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
    """One message as a row of an export: plain JSON data."""
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
    """Whether the message, written and read, is equal to itself."""
    try:
        again = decode(entry.encoded.form, entry.encoded.text, entry.given_id)
    except MessageError:
        return False
    source = dict(entry.source) if isinstance(entry.source, Mapping) else entry.source
    if again == source:
        return True
    # NaN is unlike itself, so a message that holds one is held against its text.
    odd: list[str] = []
    json.loads(entry.encoded.text, parse_constant=odd.append)
    same_type = type(again) is type(source)
    return same_type and "NaN" in odd and encode(again).text == entry.encoded.text
