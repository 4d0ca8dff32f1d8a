"""One message as read: speaker, text, calls and answers; and the key by which it is known.

A `Message` keeps the caller's own object. Histories share what was read, so that none is changed
once it has a key: what belongs to one history is set in a copy.

Messages are written as JSON text, and read back equal to the originals. Stores choke on bytes, on
NUL and on lone surrogates, so an archived message is one ASCII text. Bytes, tuples and odd keys are
tagged; a description takes the place of what has no form in JSON, and `Encoded.lossless` says so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from conspectus._langchain import is_message
from conspectus.core.items import Role
from conspectus.errors import MessageError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Source: TypeAlias = "BaseMessage | Mapping[str, Any]"  # A message as callers have it

_SHORT_ID = re.compile(r"[\w.:-]{1,12}")  # What is cited as it is; else the start of the key is

NOT_NEEDED = "conspectus_not_needed"
"""The mark by which a tool says that its result will not be needed again: a key of the message's
`additional_kwargs` or `artifact`, or of the message itself if that is a dict."""

TAG = "~conspectus"  # Key of a tagged value: `{"~conspectus": "bytes", "value": ...}`
MOST_BITS = 4096  # of an integer; Python writes none of more than 4,300 digits

THOUGHTS = frozenset({"thinking", "redacted_thinking"})
EACH = 1_000  # Characters that a remembered message counts for beside its own

DEEPEST = 200
"""Levels of nesting that are kept; a description replaces deeper parts. JSON readers and writers
recurse, which Python limits to 1,000 calls, those of the agent around them included."""

_UNSENDABLE = re.compile("[\ud800-\udfff\x00]")
_LEAVES = frozenset({str, float, bool, type(None)})
_KEYS = frozenset({str})
_NOTHING: dict[type, Any] = {dict: {}, list: []}  # most fields of a message; one is enough for all
_WRITER = json.JSONEncoder(ensure_ascii=False, default=str)
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Call(NamedTuple):
    """One tool call: its id, the tool's name, and its arguments as text."""

    id: str
    name: str
    args: str

    @property
    def reading(self) -> str:
        """The call in plain text, with plain line breaks."""
        try:
            values = json.loads(self.args)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return f"{self.name} {self.args}".strip()
        first, *rest = [(key, as_text(part)) for key, part in values.items()] or [("", "")]
        lines = [f"{key}: {part}" for key, part in rest]
        return "\n".join([f"{self.name} {first[1]}" if values else self.name, *lines])


class Result(NamedTuple):
    """The answer to one call; a message may hold several."""

    call: str
    text: str
    failed: bool


@dataclass(slots=True)
class Message:
    """One message, read."""

    source: Source  # the caller's own object, never changed
    id: str  # without one, derived from its content and earlier occurrences
    key: str  # identity and version: hash of id, content and occurrence
    role: Role  # of the speaker
    text: str  # what can be read: text, reasoning, media as short descriptions
    own: str = ""  # the speaker's own words in it, without the results of tools
    name: str | None = None  # of the speaker or the tool, if it has one
    calls: tuple[Call, ...] = ()  # tool calls that it makes
    answers: tuple[str, ...] = ()  # ids of calls that it answers
    results: tuple[Result, ...] = ()  # the answers among its blocks
    needs: tuple[str, ...] = ()  # ids of calls that must stand before it, which it does not answer
    joined: bool = False  # it continues the answer that the message before it began
    goes_on: str = ""  # "pause": the model's next message continues it; "response": its next item
    date: str | None = None  # when it was said, as the caller wrote it
    media: tuple[Mapping[str, Any], ...] = ()  # blocks without text, the caller's own
    given_id: str | None = None  # the id that the caller gave it
    redacted: bool = False  # secrets were taken out, so that it differs from the message sent
    sealed: bool = False  # it stands for earlier messages, and its provider alone can read it
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What was derived from it, by name; kept as long as its reading is remembered."""

    @property
    def cite(self) -> str:
        """The name in a summary: its id if short and plain, else the start of its key."""
        plain = _SHORT_ID.fullmatch(self.id)
        return self.id if plain and self.given_id is not None else self.key[:8]

    @property
    def reading(self) -> str:
        """The text with its tool calls, for summarisers and for recall."""
        if not self.calls:
            return self.text
        if "reading" not in self.memo:
            parts = [self.text, *(call.reading for call in self.calls)]
            self.memo["reading"] = "\n".join(parts if self.text else parts[1:])
        return str(self.memo["reading"])

    @property
    def encoded(self) -> Encoded:
        """The original as JSON data, without its id, which is kept beside it."""
        lost: list[type] = []
        data = self.memo.get("data") or tagged(fields_of(self.source), lost)
        if is_message(self.source):
            body = {key: part for key, part in data.items() if key != "id"}
            return Encoded("langchain", {"type": self.source.type, "data": body}, not lost)
        # The id beside the message is a text, so an id of another type stays in it.
        body = {key: part for key, part in data.items() if key != "id" or type(part) is not str}
        return Encoded("dict", body, not lost)

    @property
    def stem(self) -> str:
        """The part of its key that does not depend on the messages before it."""
        if "stem" not in self.memo:
            data = self.memo.get("data") or tagged(fields_of(self.source), [])
            if self.given_id is not None and data.get("id") != self.given_id:
                data = {**data, "id": self.given_id}  # a UUID, or a number, comes back as a text
            text = ("langchain" if is_message(self.source) else "dict") + _SORTED.encode(data)
            digest = hashlib.sha256(text.encode()).hexdigest()
            self.memo["stem"] = digest[: 28 if self.given_id is None else 32]
            self.memo["size"] = EACH + len(text)
        return str(self.memo["stem"])


def message_of(entry: Message) -> BaseMessage:
    """Return the original as a LangChain message."""
    if is_message(entry.source):
        return entry.source
    from langchain_core.messages import HumanMessage, convert_to_messages

    try:
        return convert_to_messages([dict(entry.source)])[0]
    except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError):
        return HumanMessage(entry.reading, id=entry.id)


def as_text(value: Any) -> str:
    """Return a value as text: JSON where it is none."""
    if isinstance(value, str):
        return value
    try:
        return _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError):  # other keys, long numbers, endless nesting
        return json.dumps(tagged(value, []), ensure_ascii=False)


def name_entries(
    messages: list[Message],
    seen: Mapping[str, int] | None = None,
    missing: Mapping[int, Collection[str]] | None = None,
) -> None:
    """Give each message its key, and an id if it has none; one with another key becomes a copy.

    `seen` counts earlier contents, as `occurrences` does, if the start of the history is missing.
    `missing` has, by the index of a summary or a clip, the keys of the messages that it stands for.
    A message after it with the same id and content is another one.
    """
    counts: dict[str, int] = dict(seen or {})
    taken: set[str] = set()
    for index, message in enumerate(messages):
        if missing and index in missing:
            taken.update(missing[index])
        stem = message.stem
        number = counts.get(stem, 0)
        if message.given_id is None:
            # The key has the content and its number, so that messages which have left can be
            # counted by their keys alone.
            key = name = f"{stem}-{number}"
        else:  # it may be the same message twice, id and all
            key = _occurring(stem, number) if number else stem
            while key in taken:
                number += 1
                key = _occurring(stem, number)
            name = message.id
        counts[stem] = number + 1
        if not message.key:  # read just now
            message.key, message.id = key, name
        elif message.key != key:
            messages[index] = replace(message, key=key, id=name)


def _occurring(key: str, again: int) -> str:
    return hashlib.sha256(f"{key}\0{again}".encode()).hexdigest()[:32]


def occurrences(keys: Iterable[str]) -> Counter[str]:
    """Count, by keys, the occurrences of contents among messages without ids."""
    counts: Counter[str] = Counter()
    for key in keys:
        content, dash, number = key.partition("-")
        if dash and number.isdigit():
            counts[content] = max(counts[content], int(number) + 1)
    return counts


def is_expendable(message: Any) -> bool:
    """Tell whether a tool says that its result will not be needed."""
    holders: tuple[Any, ...] = (message,)
    if is_message(message):
        holders = (message.additional_kwargs, getattr(message, "artifact", None))
    return any(isinstance(one, Mapping) and one.get(NOT_NEEDED) is True for one in holders)


def tools_of(messages: Sequence[Message]) -> list[tuple[str, ...]]:
    """Return, for each message, the tools whose results it holds.

    The nearest call before it names the tool, as ids are used again.
    """
    called: dict[str, str] = {}
    tools: list[tuple[str, ...]] = []
    for message in messages:
        names = [called.get(answer, message.name or "") for answer in message.answers]
        tools.append(tuple(dict.fromkeys(filter(None, names))) if names else ())
        for call in message.calls:
            if call.id:
                called[call.id] = call.name
    return tools


class Encoded(NamedTuple):
    """A message as JSON data without its id; `form` is `langchain` or `dict`."""

    form: str
    data: dict[str, Any]
    lossless: bool

    @property
    def text(self) -> str:
        """The data as an ASCII text; keys are sorted, so that equal messages have equal text."""
        return _SORTED.encode(self.data)


def fields_of(message: Any) -> Any:
    """Return all fields of a message as a mapping."""
    if not is_message(message):
        return message
    extra = message.__pydantic_extra__
    return {**vars(message), **extra} if extra else vars(message)


def tagged(value: Any, lost: list[type], inside: tuple[int, ...] = ()) -> Any:
    """Copy a value as JSON data; what has no form in it is tagged or described.

    The copy has the same texts, so it takes little room. `inside` has the identities of the parts
    around it; the types of what is only described go to `lost`.
    """
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is not dict and kind is not list:
        if isinstance(value, (str, float)):  # an enumeration, or the like
            return value
        if isinstance(value, int) and value.bit_length() <= MOST_BITS:
            return value
        if isinstance(value, (bytes, bytearray)):
            return {TAG: "bytes", "value": base64.b64encode(value).decode()}
    elif not value:
        return _NOTHING[kind]
    if id(value) in inside or len(inside) >= DEEPEST:
        lost.append(kind)
        return f"[{too_deep(value, inside)}]"
    inside = (*inside, id(value))
    if isinstance(value, (list, tuple)):
        parts = [part if type(part) in _LEAVES else tagged(part, lost, inside) for part in value]
        return parts if isinstance(value, list) else {TAG: "tuple", "value": parts}
    if kind is dict or isinstance(value, Mapping):
        if TAG not in value and _KEYS.issuperset(map(type, value)):
            return {
                key: part if type(part) in _LEAVES else tagged(part, lost, inside)
                for key, part in value.items()
            }
        pairs = [[tagged(part, lost, inside) for part in pair] for pair in value.items()]
        return {TAG: "pairs", "value": pairs}
    lost.append(kind)
    if callable(getattr(value, "model_dump", None)):
        with suppress(Exception):  # as of a class
            return tagged(value.model_dump(), lost, inside)
    return f"[an object of {kind.__module__}.{kind.__qualname__}]"


def without_objects(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Return a value with objects of a provider's SDK, at any depth, as the dicts that are sent.

    Without any, it is the value itself. `inside` has the identities of the parts around it.
    """
    if isinstance(value, (Mapping, list, tuple)):
        parts = [*value.values()] if isinstance(value, Mapping) else value
        if too_deep(value, inside):
            return value
        made = [without_objects(part, (*inside, id(value))) for part in parts]
        if all(map(is_, made, parts)):
            return value
        return dict(zip(value, made, strict=True)) if isinstance(value, Mapping) else made
    if hasattr(value, "model_dump") and not is_message(value):
        with suppress(Exception):  # as of a class; who reads it names it
            exclude = getattr(value, "__api_exclude__", None)
            made = value.model_dump(exclude_none=True, exclude=exclude)
            return made if isinstance(made, dict) else value
    return value


def characters(value: Any) -> int:
    """Return the characters that content holds: images and files are most of it."""
    if isinstance(value, (str, bytes)):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(characters, parts)) if isinstance(value, (dict, list, tuple)) else 0


def has_thoughts(message: Any) -> bool:
    """Return whether an answer holds thoughts, which its provider may not count when it returns."""
    blocks = message.content if isinstance(message.content, list) else ()
    kinds = [block.get("type") for block in blocks if isinstance(block, dict)]
    beside = any(str(name).startswith("reasoning") for name in message.additional_kwargs)
    return beside or any(kind in kinds for kind in ("reasoning", *THOUGHTS))


def too_deep(value: Any, inside: tuple[int, ...]) -> str | None:
    """Say why a part is not kept inside the parts with these identities; None if it is."""
    if id(value) in inside:
        return "a part that holds itself"
    return f"a part nested more than {DEEPEST} levels deep" if len(inside) >= DEEPEST else None


def sendable(text: str) -> str:
    """Replace characters that JSON in UTF-8 or a store cannot carry: lone surrogates and NUL."""
    return _UNSENDABLE.sub("\ufffd", text)


def decode(form: str, text: str, message_id: str | None) -> BaseMessage | dict[str, Any]:
    """Read the text of an `Encoded`; what is no message is a `MessageError`."""
    try:
        data = json.loads(text, object_hook=_untagged)
        if form == "langchain":
            from langchain_core.messages import messages_from_dict

            body = {**data["data"], "id": message_id}
            return messages_from_dict([{"type": data["type"], "data": body}])[0]
        return {**data} if message_id is None or "id" in data else {**data, "id": message_id}
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"an archived message cannot be read: {error}") from error


_READERS: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "pairs": dict,
    "tuple": tuple,
}


def _untagged(value: dict[str, Any]) -> Any:
    reader = _READERS.get(value.get(TAG, ""))
    return reader(value["value"]) if reader else value
