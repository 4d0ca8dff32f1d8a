"""The values of an archive: whose they are, their form as bytes, and how they are read back."""

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

ValueKind = Literal["messages", "records", "drafts", "remarks"]
"""What a value is: an original message, the record of a compaction, a draft of a summary, or a
remark of the engine or of a program around it."""

DEFLATE_LEVEL = 4
"""Of 9 levels of compression. Messages are written in each step, so speed counts, too."""

RAW_DEFLATE = -15
"""The largest window of zlib, without a header and a checksum."""

DEFLATE_MEMORY = 8
"""The default of zlib."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
DICTIONARY = b"""\
{"additional_kwargs":{},"artifact":null,"invalid_tool_calls":[],"name":null,"response_metadata":{},\
"status":"success","tool_calls":[{"args":{"path":"}}],"usage_metadata":{"input_tokens":\
"output_tokens":"total_tokens":"cost":{"calls":"models":{"covers":["parent":"notes":{"summary":"\
"call_id":"cached_tokens":"tool_calls":[{"function":{"arguments":"{\\"path\\":\\"\\"}","name":"},\
"id":"call_","type":"function"}]}"timestamp":"name":"session_time":"[{"text":","type":"text"}],\
"type":"tool"}"type":"human"}"type":"ai"},["langchain","],true,{"data":{"content":"",\
["dict","null,"role":"assistant","role":"tool","tool_call_id":"call_","role":"user"}]"""
"""Text that is common in values, which the compressor knows in advance. A change makes old values
unreadable, so it needs a new `FORMAT`."""


def name_hash(name: str) -> str:
    """Return 32 hexadecimal characters for a name; in practice no two names have the same.

    Raises:
        InputError: it is not text.
    """
    if not isinstance(name, str):
        raise InputError(
            f"a tenant, thread or session is named by text, not by {type(name).__name__}; pass "
            "str(...) of it"
        )
    raw = name.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:" % len(raw) + raw).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Scope:
    """The name of one history: its tenant, its thread, and the session in the thread.

    No name, even if it was made for that purpose, gives access to the values of another history.

    Attributes:
        tenant: the owner of the conversation.
        thread: the conversation.
        session: one agent's own history in the conversation.
        hashes: hashes of tenant, thread and session. Stores use them instead of the names.

    Raises:
        InputError: a name is not text.
    """

    tenant: str
    thread: str
    session: str = "main"
    hashes: tuple[str, str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        hashes = tuple(map(name_hash, (self.tenant, self.thread, self.session)))
        object.__setattr__(self, "hashes", hashes)


class StoredItem(NamedTuple):
    """A value to store. The last three fields are for the search, and only originals have them."""

    key: str
    """The name of the value within its scope and kind: a hash, or the name of a remark."""

    body: bytes
    """The value, compressed; see `packed`."""

    passages: tuple[str, ...] = ()
    """The words of each passage of the text, for an index of words."""

    name: str = ""
    """The id that the caller gave the message; empty if it gave none."""

    about: str = ""
    """What a search needs to know about the message in addition to its words; see `About`."""


SearchRow = tuple[str, int, int, int, str, str]
"""An original that may be searched: its key, the number of its first passage, how many passages and
how many words it has, and the `name` and `about` of its `StoredItem`. It is a plain tuple, as
searches make many, and the garbage collector does not visit tuples of text and numbers."""

ItemsByKind = Mapping[ValueKind, Sequence[StoredItem]]

DAMAGED = "damaged"
"""The role of an original that cannot be read."""


@dataclass(frozen=True, slots=True)
class Archived:
    """One original, read back from the archive.

    Attributes:
        key: the hash under which it is stored.
        id: the id that the caller gave it; without one, an id that is made from its content.
        cite: the id that summaries cite.
        role: `user`, `assistant`, `tool` or `system`; `damaged` if it cannot be read.
        name: the speaker, if the message names one.
        date: when the message was written, in the caller's form.
        archived_at: when it was archived: ISO 8601, in UTC.
        message: the message, equal to the one that was archived.
        text: the text of the message; if it is damaged, what to do.
        lossless: False if secrets were removed, or if a part is only described.
        calls: the tool calls that it makes.
        answers: the ids of the tool calls that it answers.
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


class UncoveredOriginal(NamedTuple):
    """An original that no record covers, as its history knows it."""

    in_reach: bool  # recall finds it; if not, it belongs to a branch that the history has left
    about: Any  # what a program around the archive wants to know of it, as JSON data


def manifest(chain: Chain) -> tuple[str, ...]:
    """Return the keys of all originals of a chain, in the order of the conversation.

    A message that stayed in view while later ones left keeps its position. Messages that are only
    clipped so far come last, unless their position is known: they are still in view.
    """
    ordered = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    clipped = [clip.key for record in chain for clip in record.clips]
    if not clipped and not any(record.order for record in chain):
        return tuple(ordered)
    # `order` also names messages that stayed in view and were not archived.
    archived = {key for record in chain for key in record.covers}
    archived.update(clipped)
    originals = [key for key in ordered if key in archived]
    return tuple(dict.fromkeys([*originals, *clipped]))


def packed(data: Any) -> bytes:
    """Return JSON data as compressed bytes."""
    raw = _JSON.encode(data).encode("utf-8", "surrogatepass")
    compressor = zlib.compressobj(
        DEFLATE_LEVEL,
        zlib.DEFLATED,
        RAW_DEFLATE,
        DEFLATE_MEMORY,
        zlib.Z_DEFAULT_STRATEGY,
        DICTIONARY,
    )
    return compressor.compress(raw) + compressor.flush()


def unpacked(body: bytes) -> Any:
    """Return the data that `packed` wrote.

    Raises:
        ValueError: the bytes are damaged.
    """
    try:
        decompressor = zlib.decompressobj(RAW_DEFLATE, DICTIONARY)
        raw = decompressor.decompress(body)
        if not decompressor.eof:
            raise ValueError("it is broken off")
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except (zlib.error, RecursionError) as error:
        raise ValueError(str(error)) from error


def key_bytes(key: str) -> bytes:
    """Return a key as bytes; a hexadecimal key takes half its length.

    Before any other key comes a zero byte, with which no hexadecimal key begins.
    """
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        raw = b""
    if raw.hex() == key and raw[:1] > b"\0":
        return raw
    return b"\0" + key.encode("utf-8", "surrogatepass")


def key_text(raw: bytes) -> str:
    """Return the key that `key_bytes` has written."""
    if raw[:1] == b"\0":
        return raw[1:].decode("utf-8", "surrogatepass")
    return raw.hex()


class DecodedOriginal(NamedTuple):
    """A stored message as it was read back."""

    message: Message
    archived_at: int
    """Seconds since the epoch."""

    lossless: bool
    """False if secrets were removed, or a part is only described."""


def encode_original(message: Message) -> bytes:
    """Return a message as a store keeps it; id, text and speaker follow from its content."""
    form, content, is_json = message.encoded
    # A caller's own class is read back as the class of LangChain that it extends.
    module = type(message.source).__module__
    keeps_class = form == "dict" or module.startswith("langchain_core.")
    lossless = is_json and keeps_class and not message.redacted
    return packed([form, message.given_id, int(time.time()), lossless, content])


def is_stored_form(body: bytes, message: Message) -> bool:
    """Tell whether stored bytes hold this very message."""
    try:
        stored_form, stored_id, _, _, stored_content = unpacked(body)
    except (ValueError, TypeError):
        return False
    form, content, _ = message.encoded
    if (stored_form, stored_id) != (form, message.given_id):
        return False
    # As text for NaN, which is not equal to itself.
    return stored_content == content or _JSON.encode(stored_content) == _JSON.encode(content)


def decode_original(key: str, body: bytes) -> DecodedOriginal:
    """Return a stored message, read as `read_message` reads it.

    Raises:
        ArchiveError: it is damaged.
    """
    try:
        form, given_id, archived_at, lossless, content = unpacked(body)
        message = read_message(decode(form, json.dumps(content), given_id))
        message.key = key
        if message.given_id is None:
            message.id = key
        return DecodedOriginal(message, int(archived_at), bool(lossless))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MessageError) as error:
        raise ArchiveError(
            f"The archived message {key[:8]} is damaged ({error}); restore the archive from a "
            "backup."
        ) from error


def read_original(key: str, body: bytes) -> Archived:
    """Return a stored message as its readers get it.

    Raises:
        ArchiveError: it is damaged.
    """
    message, archived_at, lossless = decode_original(key, body)
    return Archived(
        key=key,
        id=message.id,
        cite=message.cite,
        role=message.role,
        name=message.name,
        date=message.date,
        archived_at=datetime.fromtimestamp(archived_at, UTC).isoformat(),
        message=message.source,
        text=message.reading,
        lossless=lossless,
        calls=message.calls,
        answers=message.answers,
    )


def read_or_describe(key: str, body: bytes) -> Archived:
    """Return a stored message; a damaged one has the role `damaged` and says what to do."""
    try:
        return read_original(key, body)
    except ArchiveError as error:
        return Archived(
            key=key,
            id=key,
            cite=key[:8],
            role=DAMAGED,
            name=None,
            date=None,
            archived_at="",
            message={},
            text=str(error),
            lossless=False,
        )


def export_row(key: str, body: bytes) -> dict[str, Any]:
    """Return a stored message as a row of an export, plain JSON data; see `Archive.export`."""
    original = read_or_describe(key, body)
    row: dict[str, Any] = {
        "key": original.key,
        "id": original.id,
        "cite": original.cite,
        "role": original.role,
        "name": original.name,
        "date": original.date,
        "archived_at": original.archived_at,
        "lossless": original.lossless,
    }
    if original.role == DAMAGED:
        return row | {"form": None, "message": None, DAMAGED: original.text}
    form, given_id, _, _, message = unpacked(body)
    if given_id is not None and form == "langchain":
        message = {**message, "data": {**message["data"], "id": given_id}}
    elif given_id is not None:
        message = {"id": given_id, **message}
    return row | {"form": form, "message": message}


def parse_record(record_id: str, body: bytes | None) -> Record | None:
    """Return the record in stored bytes; None if it is missing, damaged, or has another id.

    Raises:
        ArchiveError: another version has written it.
    """
    try:
        data = unpacked(body or b"")
        version = data["v"]
        if isinstance(version, int) and version != RECORD_FORMAT:
            raise other_format(version, RECORD_FORMAT)
        record = Record.from_json(data)
        return record if record.id == record_id else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def parse_head(scope: Scope, body: bytes | None) -> str | None:
    """Return the id of the head in stored bytes; empty for no record, None without a head.

    Raises:
        ArchiveError: they are damaged.
    """
    try:
        return None if body is None else str(unpacked(body))
    except ValueError as error:
        raise ArchiveError(
            f"The head of thread {scope.thread!r} cannot be read: {error}; restore a backup, or "
            "forget the thread."
        ) from error


def other_format(version: int, known: int) -> ArchiveError:
    """Return the error to raise for data that another version has written, in another format."""
    if version > known:
        remedy = "upgrade conspectus to read it"
    else:
        remedy = (
            "a version from before the first release has written it, and no later one reads it; "
            "begin a new archive, or read this one with the version that has written it"
        )
    return ArchiveError(
        f"the archive holds data of format {version}, and this version of Conspectus reads format "
        f"{known}; {remedy}"
    )
