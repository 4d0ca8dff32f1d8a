"""What an archive keeps: whose it is, messages and records as bytes, and how they are read back."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from conspectus.core.records import FORMAT as RECORD_FORMAT
from conspectus.core.records import Chain, Record
from conspectus.errors import ArchiveError, InputError, MessageError
from conspectus.messages import Call, Message, Source, read_message
from conspectus.messages.message import decode

Kind = Literal["messages", "records", "drafts", "notes", "head"]
"""Kinds of values, each by name, which LangGraph stores have as a label; a note is one of a program
around the archive."""


_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
DICTIONARY = b"""\
{"additional_kwargs":{},"artifact":null,"invalid_tool_calls":[],"name":null,"response_metadata":{},\
"status":"success","tool_calls":[{"args":{"path":"}}],"usage_metadata":{"input_tokens":\
"output_tokens":"total_tokens":"cost":{"calls":"models":{"covers":["parent":"segment":{"summary":"\
"call_id":"cached_tokens":"tool_calls":[{"function":{"arguments":"{\\"path\\":\\"\\"}","name":"},\
"id":"call_","type":"function"}]}"timestamp":"name":"session_time":"[{"text":","type":"text"}],\
"type":"tool"}"type":"human"}"type":"ai"},["langchain","],true,{"data":{"content":"",\
["dict","null,"role":"assistant","role":"tool","tool_call_id":"call_","role":"user"}]"""
"""What the compressor knows of every value beforehand. Another text needs another `FORMAT`."""


def label_hash(label: str) -> str:
    """Return 32 hexadecimal characters for any label, lone surrogates included."""
    if not isinstance(label, str):
        raise InputError(
            f"a tenant, thread or session is named by text, not by {type(label).__name__}; pass "
            "str(...) of it"
        )
    raw = label.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:" % len(raw) + raw).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Scope:
    """One agent's own history: its tenant, the thread, and the session inside that.

    No crafted name reaches another history's values; one that is no text is an `InputError`.
    """

    tenant: str
    thread: str
    session: str = "main"
    # of tenant, thread and session: what stores keep in place of the names
    hashes: tuple[str, str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        hashes = tuple(map(label_hash, (self.tenant, self.thread, self.session)))
        object.__setattr__(self, "hashes", hashes)


class Item(NamedTuple):
    """A value to keep, packed; of an original also what a search knows of it, and its words."""

    key: str
    body: bytes
    passages: tuple[str, ...] = ()
    name: str = ""
    about: str = ""


Listed = tuple[str, int, int, int, str, str]
"""A message that may be searched: its key, its first passage's number, the number of its passages,
of their words, the id that its caller gave it, and `about`; see `original_of`. A plain tuple, as
the garbage collector passes those by."""

Items = Mapping[Kind, Sequence[Item]]

DAMAGED = "damaged"
"""In place of the role of an original that cannot be read."""


@dataclass(frozen=True, slots=True)
class Archived:
    """One original, read back: `message` is equal to what was put, `text` what can be read of it.

    `id` is a derived one if it had none, `cite` its name in summaries, `date` as the caller wrote
    it, `archived_at` in UTC. `lossless` is False if secrets were taken out, or a part is only
    described. One that cannot be read has the role `damaged`, and a text that says what to do.
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
    clipped = [mark.key for record in chain for mark in record.clips]
    if not clipped and not any(record.order for record in chain):
        return tuple(placed)
    held = {key for record in chain for key in record.covers}.union(clipped)
    return tuple(dict.fromkeys([*(key for key in placed if key in held), *clipped]))


def packed(data: Any) -> bytes:
    """Return JSON data as bytes, compressed."""
    raw = _WRITER.encode(data).encode("utf-8", "surrogatepass")
    deflate = zlib.compressobj(4, zlib.DEFLATED, -15, 8, 0, DICTIONARY)
    return deflate.compress(raw) + deflate.flush()


def unpacked(body: bytes) -> Any:
    """Return the data that `packed` wrote; raise `ValueError` if it is damaged."""
    try:
        inflate = zlib.decompressobj(-15, DICTIONARY)
        raw = inflate.decompress(body)
        if not inflate.eof:
            raise ValueError("it is broken off")
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except (zlib.error, RecursionError) as error:
        raise ValueError(str(error)) from error


def key_bytes(key: str) -> bytes:
    """Return a key as bytes, a hexadecimal one in half its length."""
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        raw = b""
    if raw.hex() == key and raw[:1] > b"\0":
        return raw
    return b"\0" + key.encode("utf-8", "surrogatepass")


def key_text(raw: bytes) -> str:
    """Return the key that `key_bytes` has written."""
    return raw[1:].decode("utf-8", "surrogatepass") if raw[:1] == b"\0" else raw.hex()


def body_of(entry: Message) -> bytes:
    """Return one message as a store keeps it; id, text and speaker follow from the message."""
    form, message, lossless = entry.encoded
    # A class of somebody's own comes back as the one of LangChain that it extends.
    known = form == "dict" or type(entry.source).__module__.startswith("langchain_core.")
    whole = lossless and known and not entry.redacted
    return packed([form, entry.given_id, int(time.time()), whole, message])


def equals(body: bytes, entry: Message) -> bool:
    """Return whether a stored message equals this one."""
    try:
        form, given_id, _, _, message = unpacked(body)
    except (ValueError, TypeError):
        return False
    mine, data, _ = entry.encoded
    if (form, given_id) != (mine, entry.given_id):
        return False
    return message == data or _WRITER.encode(message) == _WRITER.encode(data)  # NaN is unlike NaN


def entry_of(key: str, body: bytes) -> tuple[Message, int, bool]:
    """Return a stored message as read, when it was archived, and whether it is whole.

    Raises:
        ArchiveError: it is damaged.
    """
    try:
        form, given_id, at, lossless, data = unpacked(body)
        entry = read_message(decode(form, json.dumps(data), given_id))
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
    names = ("id", "cite", "role", "name", "date", "calls", "answers")
    return Archived(
        key=key,
        archived_at=datetime.fromtimestamp(at, UTC).isoformat(),
        message=entry.source,
        text=entry.reading,
        lossless=lossless,
        **{name: getattr(entry, name) for name in names},
    )


def readable(key: str, body: bytes) -> Archived:
    """Return a stored message, or what is to be said of a damaged one."""
    try:
        return archived(key, body)
    except ArchiveError as error:
        return Archived(key, key, key[:8], DAMAGED, None, None, "", {}, str(error), False)


def row_of(key: str, body: bytes) -> dict[str, Any]:
    """Return one message as a row of an export: plain JSON data; see `Archive.export`."""
    one = readable(key, body)
    names = ("key", "id", "cite", "role", "name", "date", "archived_at", "lossless")
    row = {name: getattr(one, name) for name in names}
    if one.role == DAMAGED:
        return row | {"form": None, "message": None, DAMAGED: one.text}
    form, given_id, _, _, message = unpacked(body)
    if given_id is not None and form == "langchain":
        message = {**message, "data": {**message["data"], "id": given_id}}
    elif given_id is not None:
        message = {"id": given_id, **message}
    return row | {"form": form, "message": message}


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


def newer(version: int) -> ArchiveError:
    """Return the error for what a newer version has written."""
    return ArchiveError(
        f"the archive holds data of format {version}, and this version of Conspectus knows an "
        "earlier one; upgrade conspectus to read it"
    )
