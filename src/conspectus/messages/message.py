"""One message as it was read: speaker, text, calls and answers; and the key that identifies it.

A `Message` keeps the caller's own object. Histories share messages that were read, so a message
never changes once it has a key. What belongs to one history is set in a copy.

Messages are written as JSON text, and read back equal to the originals. Stores choke on bytes, on
NUL and on lone surrogates, so an archived message is one ASCII text. Bytes, tuples and keys that
are not texts are tagged. A description replaces what cannot be written as JSON; then
`Encoded.lossless` is False.
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

_SHORT_ID = re.compile(r"[\w.:-]{1,12}")  # cited as it is; else the start of the key is cited

NOT_NEEDED = "conspectus_not_needed"
"""The mark with which a tool says that its result will not be needed again. It is a key of the
message's `additional_kwargs` or `artifact`, or of the message itself if that is a dict."""

TAG = "~conspectus"
"""The key of a tagged value: `{"~conspectus": "bytes", "value": ...}`."""

MAX_BITS = 4096
"""The most bits of an integer. Python writes no number of more than 4,300 digits."""

THOUGHT_TYPES = frozenset({"thinking", "redacted_thinking"})
MESSAGE_OVERHEAD = 1_000
"""Added to the characters of each message that is remembered."""

MAX_NESTING = 200
"""Levels of nesting that are kept; a description replaces deeper parts. JSON readers and writers
recurse, and Python allows 1,000 nested calls, including those of the agent around them."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"  # what decoders put in the place of a character that they cannot read
_LEAVES = frozenset({str, float, bool, type(None)})
_KEYS = frozenset({str})
_EMPTY: dict[type, Any] = {dict: {}, list: []}  # most fields of a message; all can share these
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
        texts = [(key, as_text(part)) for key, part in values.items()]
        if not texts:
            return self.name
        (_, first), *further = texts
        return "\n".join([f"{self.name} {first}", *(f"{key}: {text}" for key, text in further)])


class Result(NamedTuple):
    """The answer to one call; a message may hold several."""

    call: str
    text: str
    failed: bool


@dataclass(slots=True)
class Remembered:
    """What was derived from a message; each value is None or empty until it is needed.

    Histories that share a message share this, too. A value that also depends on something else is
    stored with it: with the rules about hosts, or with the way to count.
    """

    copy: Any = None  # of the message's content, to see changes; None if that cannot be copied
    data: Any = None  # its content as JSON data, if nothing is lost in that form
    stem: str = ""
    cache_weight: int = 0  # its characters, as a cache counts them; known with the stem
    reading: str = ""
    by_host: tuple[bool, object] | None = None
    topics: tuple[tuple[str, ...], object] | None = None
    tokens: tuple[object, int] | None = None


@dataclass(slots=True)
class Message:
    """One message, read.

    Attributes:
        source: the caller's own object, which is never changed; for an object of a provider's SDK,
            the dict that it sends.
        id: the caller's id; else an id that is made from the content, and from the number of
            earlier messages with the same content.
        key: a hash of id, content and occurrence. An edited message has another key.
        role: the role of the speaker.
        text: the readable content: text, reasoning, and short descriptions of media.
        own: the speaker's own words in it, without the results of tools.
        name: the name of the speaker or the tool, if it has one.
        calls: the tool calls that it makes.
        answers: the ids of the calls that it answers.
        results: the answers among its blocks.
        needs: the ids of calls that must be before it, and that it does not answer.
        continues_reply: whether it continues the answer that began in the message before it.
        continuation: what continues it: `pause` for the model's next message, `response` for its
            next item, empty for nothing.
        date: when it was said, as the caller wrote it.
        media: blocks without text, the caller's own.
        given_id: the id that the caller gave it.
        redacted: whether secrets were removed, so that it differs from the message that was sent.
        sealed: whether it replaces earlier messages, and only its provider can read it.
        remembered: what was derived from it.
    """

    source: Source
    id: str
    key: str
    role: Role
    text: str
    own: str = ""
    name: str | None = None
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    needs: tuple[str, ...] = ()
    continues_reply: bool = False
    continuation: str = ""
    date: str | None = None
    media: tuple[Mapping[str, Any], ...] = ()
    given_id: str | None = None
    redacted: bool = False
    sealed: bool = False
    remembered: Remembered = field(default_factory=Remembered, repr=False, compare=False)

    @property
    def cite(self) -> str:
        """The name in a summary: its id if short and plain, else the start of its key."""
        is_citable = self.given_id is not None and _SHORT_ID.fullmatch(self.id)
        return self.id if is_citable else self.key[:8]

    @property
    def reading(self) -> str:
        """The text with its tool calls, for summarisers and for recall."""
        if not self.calls:
            return self.text
        if not self.remembered.reading:
            parts = [call.reading for call in self.calls]
            if self.text:
                parts.insert(0, self.text)
            self.remembered.reading = "\n".join(parts)
        return self.remembered.reading

    @property
    def encoded(self) -> Encoded:
        """The original as JSON data, without its id. The archive stores the id separately."""
        lost: list[type] = []  # types of parts that are only described
        data = self.remembered.data or to_json_data(fields_of(self.source), lost)
        if is_message(self.source):
            body = {key: part for key, part in data.items() if key != "id"}
            return Encoded("langchain", {"type": self.source.type, "data": body}, not lost)
        # The id is stored as a text, so an id of another type stays in the message.
        body = {key: part for key, part in data.items() if key != "id" or type(part) is not str}
        return Encoded("dict", body, not lost)

    @property
    def stem(self) -> str:
        """The part of its key that does not depend on the messages before it."""
        if not self.remembered.stem:
            self._derive_stem_and_weight()
        return self.remembered.stem

    @property
    def cache_weight(self) -> int:
        """The characters of the message, as a cache counts them."""
        if not self.remembered.cache_weight:
            self._derive_stem_and_weight()
        return self.remembered.cache_weight

    def _derive_stem_and_weight(self) -> None:
        """Derive the stem and the weight in a cache."""
        data = self.remembered.data or to_json_data(fields_of(self.source), [])
        if self.given_id is not None and data.get("id") != self.given_id:
            data = {**data, "id": self.given_id}  # a UUID, or a number, comes back as a text
        text = ("langchain" if is_message(self.source) else "dict") + _SORTED.encode(data)
        digest = hashlib.sha256(text.encode()).hexdigest()
        # Without an id, the key also has a dash and a number, so that all keys have one length.
        self.remembered.stem = digest[: 28 if self.given_id is None else 32]
        self.remembered.cache_weight = MESSAGE_OVERHEAD + len(text)


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
    """Return a value as text: as JSON if it is no text."""
    if isinstance(value, str):
        return value
    try:
        return _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError):  # other keys, long numbers, endless nesting
        return json.dumps(to_json_data(value, []), ensure_ascii=False)


def assign_keys(
    messages: list[Message],
    earlier_counts: Mapping[str, int] | None = None,
    missing: Mapping[int, Collection[str]] | None = None,
) -> None:
    """Give each message its key, and an id if it has none; copy a message that has another key.

    `earlier_counts` is the result of `occurrences` for a missing start of the history. `missing`
    has, by the index of a summary or a clip, the keys of the messages that it replaces. A message
    after it with the same id and content is another one.
    """
    counts: dict[str, int] = dict(earlier_counts or {})
    taken_keys: set[str] = set()
    for index, message in enumerate(messages):
        if missing and index in missing:
            taken_keys.update(missing[index])
        stem = message.stem
        number = counts.get(stem, 0)
        if message.given_id is None:
            # The key has the content and its number, so that evicted messages can be counted by
            # their keys alone.
            key = f"{stem}-{number}"
            message_id = key
        else:  # the same message may be there twice, with its id
            key = _numbered_key(stem, number)
            while key in taken_keys:
                number += 1
                key = _numbered_key(stem, number)
            message_id = message.id
        counts[stem] = number + 1
        if not message.key:  # read just now
            message.key = key
            message.id = message_id
        elif message.key != key:
            messages[index] = replace(message, key=key, id=message_id)


def _numbered_key(stem: str, number: int) -> str:
    """Return the key of a message with `number` equal messages before it, in id and content."""
    if not number:
        return stem
    return hashlib.sha256(f"{stem}\0{number}".encode()).hexdigest()[:32]


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
    return any(isinstance(holder, Mapping) and holder.get(NOT_NEEDED) is True for holder in holders)


def tools_of(messages: Sequence[Message]) -> list[tuple[str, ...]]:
    """Return, for each message, the tools whose results it holds.

    The nearest call before it names the tool, because ids are used again.
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


def to_json_data(value: Any, lost: list[type], inside: tuple[int, ...] = ()) -> Any:
    """Copy a value as JSON data; tag or describe what JSON cannot express.

    The copy shares the texts, so it takes little room. `inside` has the id() of the parts around
    the value. The types of parts that are only described are added to `lost`.
    """
    value_type = type(value)
    if value_type in _LEAVES:
        return value
    if value_type is not dict and value_type is not list:
        if isinstance(value, (str, float)):  # an enumeration, or the like
            return value
        if isinstance(value, int) and value.bit_length() <= MAX_BITS:
            return value
        if isinstance(value, (bytes, bytearray)):
            return {TAG: "bytes", "value": base64.b64encode(value).decode()}
    elif not value:
        return _EMPTY[value_type]
    left_out = why_left_out(value, inside)
    if left_out:
        lost.append(value_type)
        return f"[{left_out}]"
    inside = (*inside, id(value))
    if isinstance(value, (list, tuple)):
        parts = [
            part if type(part) in _LEAVES else to_json_data(part, lost, inside) for part in value
        ]
        return parts if isinstance(value, list) else {TAG: "tuple", "value": parts}
    if value_type is dict or isinstance(value, Mapping):
        if TAG not in value and _KEYS.issuperset(map(type, value)):
            return {
                key: part if type(part) in _LEAVES else to_json_data(part, lost, inside)
                for key, part in value.items()
            }
        pairs = [[to_json_data(part, lost, inside) for part in pair] for pair in value.items()]
        return {TAG: "pairs", "value": pairs}
    lost.append(value_type)
    if callable(getattr(value, "model_dump", None)):
        with suppress(Exception):  # as of a class
            return to_json_data(value.model_dump(), lost, inside)
    return f"[an object of {value_type.__module__}.{value_type.__qualname__}]"


def without_objects(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Return a value in which objects of a provider's SDK, at any depth, are dicts as sent.

    Without such objects, it is the value itself. `inside` has the id() of the parts around it.
    """
    if isinstance(value, (Mapping, list, tuple)):
        parts = [*value.values()] if isinstance(value, Mapping) else value
        if why_left_out(value, inside):
            return value
        plain_parts = [without_objects(part, (*inside, id(value))) for part in parts]
        if all(map(is_, plain_parts, parts)):
            return value
        if isinstance(value, Mapping):
            return dict(zip(value, plain_parts, strict=True))
        return plain_parts
    if hasattr(value, "model_dump") and not is_message(value):
        with suppress(Exception):  # as of a class; the reader of the message names it in an error
            exclude = getattr(value, "__api_exclude__", None)
            fields = value.model_dump(exclude_none=True, exclude=exclude)
            return fields if isinstance(fields, dict) else value
    return value


def characters(value: Any) -> int:
    """Return the characters in a content; images and files have most of them."""
    if isinstance(value, (str, bytes)):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(characters, parts)) if isinstance(value, (dict, list, tuple)) else 0


def has_thoughts(message: Any) -> bool:
    """Tell whether an answer has thoughts.

    A provider may not count them when the answer is sent back to it.
    """
    if any(str(name).startswith("reasoning") for name in message.additional_kwargs):
        return True
    blocks = message.content if isinstance(message.content, list) else ()
    types = [block.get("type") for block in blocks if isinstance(block, dict)]
    return any(name in types for name in ("reasoning", *THOUGHT_TYPES))


def why_left_out(value: Any, inside: tuple[int, ...]) -> str | None:
    """Return why a part is not kept; None if it is. `inside` has the id() of parts around it."""
    if id(value) in inside:
        return "a part that holds itself"
    if len(inside) >= MAX_NESTING:
        return f"a part nested more than {MAX_NESTING} levels deep"
    return None


def sendable(text: str) -> str:
    """Replace characters that JSON in UTF-8 or a store cannot carry: lone surrogates and NUL."""
    return _SURROGATE.sub(_REPLACEMENT, text.replace("\x00", _REPLACEMENT))


def decode(form: str, text: str, message_id: str | None) -> BaseMessage | dict[str, Any]:
    """Read the text of an `Encoded`; raise `MessageError` if it is no message."""
    try:
        data = json.loads(text, object_hook=_from_json_data)
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


def _from_json_data(value: dict[str, Any]) -> Any:
    reader = _READERS.get(value.get(TAG, ""))
    return reader(value["value"]) if reader else value
