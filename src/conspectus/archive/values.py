"""Write messages and records for a store, and read them back."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conspectus._core.records import FORMAT as RECORD_FORMAT
from conspectus._core.records import Chain, Record
from conspectus.archive.backend import Original
from conspectus.archive.passages import passages, words
from conspectus.errors import ArchiveError, MessageError
from conspectus.messages import Call, Entry, Source, decode, encode, read_messages
from conspectus.messages.codec import to_json
from conspectus.messages.recalled import says_again

PLAIN, DEFLATED = b"\x01", b"\x02"  # First byte of a body; a greater one is of a newer version
FORMS = (LANGCHAIN, DICT) = ("langchain", "dict")
LAST = 400  # Characters at the end of a message that are searched for its question mark

_SPEAKER = re.compile(r"\s*(?:\[[^\]\n]{1,60}\]\s*)?(?P<name>[^\W\d_][^\n:：\[\]]{0,40}?)\s?[:：]")
"""The speaker's name in a transcript, if the message has none: `[date] Name: ...`."""

_ASKS = re.compile(r"[?？][\s\"'”’)»」』]*(?:\[[^\]]*\]\s*)?\Z")
"""The end of a question, perhaps with a bracket behind it, such as a picture's description."""


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


def packed(data: Any) -> bytes:
    """Return JSON data as bytes, compressed where that is shorter."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    raw = text.encode("utf-8", "surrogatepass")
    made = zlib.compressobj(wbits=-15)
    short = made.compress(raw) + made.flush()
    return DEFLATED + short if len(short) < len(raw) else PLAIN + raw


def unpacked(body: bytes) -> Any:
    """Return the data that `packed` wrote.

    Raises:
        ValueError: it is damaged.
        ArchiveError: a newer version has written it.
    """
    form, raw = body[:1], body[1:]
    if form > DEFLATED:
        raise newer(form[0])
    try:
        text = zlib.decompress(raw, wbits=-15) if form == DEFLATED else raw
        return json.loads(text.decode("utf-8", "surrogatepass"))
    except (zlib.error, RecursionError) as error:
        raise ValueError(f"it is damaged: {error}") from error


def body_of(entry: Entry) -> bytes:
    """Return one message as a store keeps it; id, text and speaker follow from the message."""
    form, message, lossless = to_json(entry.source)
    whole = lossless and not entry.redacted and _comes_back(entry)
    given = [] if entry.given_id is None else [entry.given_id]
    return packed([2 * (form == DICT) + whole, int(time.time()), message, *given])


def _parts(body: bytes) -> tuple[str, str | None, int, bool, Any]:
    """Return form, given id, time, whether it is whole, and the message itself."""
    flags, at, message, *given = unpacked(body)
    return FORMS[flags >> 1], given[0] if given else None, at, bool(flags & 1), message


def equals(body: bytes | None, entry: Entry) -> bool:
    """Return whether a stored message equals this one."""
    try:
        form, given, _, _, message = _parts(body or b"")
    except (ValueError, TypeError, IndexError):
        return False
    text = json.dumps(message, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return (form, given, text) == (entry.encoded.form, entry.given_id, entry.encoded.text)


def archived(key: str, body: bytes) -> Archived:
    """Return a stored message; a damaged one is an `ArchiveError`."""
    try:
        form, given, at, lossless, data = _parts(body)
        message = decode(form, json.dumps(data), given)
        [entry] = read_messages([message])
        entry.key, entry.id = key, key if entry.given_id is None else entry.id
        return Archived(
            key=key,
            id=entry.id,
            cite=entry.cite,
            role=entry.role,
            name=entry.name,
            date=entry.date,
            archived_at=datetime.fromtimestamp(at, UTC).isoformat(),
            message=message,
            text=entry.reading,
            lossless=lossless,
            calls=entry.calls,
            answers=entry.answers,
            speaks=bool(entry.own.strip()),
        )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MessageError) as error:
        raise ArchiveError(
            f"The archived message {key[:8]} is damaged ({error}); restore the archive from a "
            "backup."
        ) from error


def row_of(key: str, body: bytes) -> dict[str, Any]:
    """Return one message as a row of an export: plain JSON data."""
    one = archived(key, body)
    form, given, _, _, message = _parts(body)
    if given is not None:
        data = {**message["data"], "id": given} if form == "langchain" else {}
        message = {**message, "data": data} if data else {"id": given, **message}
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


def spans(text: str, calls: Sequence[Call]) -> list[tuple[int, int, str]]:
    """Return begin and end of each passage of a message, and the id of the call that it shows.

    Each of several calls has passages of its own.
    """
    if len(calls) < 2:
        return [(*span, calls[0].id if calls else "") for span in passages(text)]
    at = len(text) - sum(len(call.reading) + 1 for call in calls)
    found = [(*span, "") for span in passages(text[:at])] if at > 0 else []
    for call in calls:
        found += [(*span, call.id) for span in passages(call.reading, at + 1)]
        at += 1 + len(call.reading)
    return found


def original_of(entry: Entry | Archived, body: bytes) -> Original:
    """Return a message as a store keeps and searches it.

    What a search must know beside its words is one short line, divided by tabs: the act (`s` says,
    `c` calls tools, `r` results alone, `x` repeats what was recalled, and is not searched; `S` ends
    in a question) and the role; the id; the speaker; and the ids of the calls that it answers, or
    of those that it makes, with the first passage of each (`0:call_7`).
    """
    if isinstance(entry, Entry):
        text, speaks = entry.reading, bool(entry.own.strip())
    else:
        text, speaks = entry.text, entry.speaks
    act, links = "s", list(entry.answers)
    parts = spans(text, entry.calls)
    if any(call.id not in entry.answers for call in entry.calls):
        act, first = "c", dict[str, int]()
        for at, (_, _, call) in enumerate(parts):
            first.setdefault(call, at)
        links = [f"{at}:{call}" for call, at in first.items() if call]
    elif entry.answers and not speaks:
        act = "x" if entry.role == "tool" and says_again(text) else "r"
    elif _ASKS.search(text[-LAST:]):
        act = "S"
    said = None if entry.name or act not in "sS" else _SPEAKER.match(text)
    speaker = entry.name or (said.group("name") if said else "")
    given = "" if entry.id == entry.key else entry.id
    fields = [act + entry.role[0], *map(one_line, (given, speaker, *links))]
    # A message is found by its speaker and date too, if its text does not name them.
    more = [part for part in (entry.name, entry.date) if part and part not in text]
    shown = [text[begin:end] for begin, end, _ in parts]
    if act == "x":
        shown, more = [""], []
    found = tuple(words("\n".join([*more, one])) for one in shown)
    return Original(entry.key, body, "\t".join(fields).rstrip("\t"), found)


def one_line(text: str | None) -> str:
    """Return a name without what would end its field, or what a store refuses."""
    bare = (text or "").translate({0: "?", 9: " "})
    return bare.encode("utf-8", "replace").decode()


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
    return ArchiveError(
        f"the archive holds data of format {version}, and this version of Conspectus knows an "
        "earlier one; upgrade conspectus to read it"
    )
