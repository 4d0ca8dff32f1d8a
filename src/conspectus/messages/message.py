"""One message as read: speaker, text, calls and answers; and the key by which it is known.

A `Message` keeps the caller's own object. Histories share what was read, so that none is changed
once it has a key: what belongs to one history is set in a copy.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from conspectus._langchain import is_message
from conspectus.core.items import Role
from conspectus.messages.codec import Encoded, encode, to_json

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Source: TypeAlias = "BaseMessage | Mapping[str, Any]"  # A message as callers have it

_SHORT_ID = re.compile(r"[\w.:-]{1,12}")  # What is cited as it is; else the start of the key is

_WRITER = json.JSONEncoder(ensure_ascii=False, default=str)

NOT_NEEDED = "conspectus_not_needed"
"""The mark by which a tool says that its result will not be needed again: a key of the message's
`additional_kwargs` or `artifact`, or of the message itself if that is a dict."""


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
        """The original as JSON text."""
        return encode(self.source, self.memo.get("copy"))

    @property
    def stem(self) -> str:
        """The part of its key that does not depend on the messages before it."""
        if "stem" not in self.memo:
            digest = hashlib.sha256(self.encoded.text.encode()).hexdigest()
            stem = digest[:28]
            if self.given_id is not None:
                named = f"{self.given_id}\0{digest}".encode("utf-8", "backslashreplace")
                stem = hashlib.sha256(named).hexdigest()[:32]
            self.memo["stem"] = stem
        return str(self.memo["stem"])


def as_text(value: Any) -> str:
    """Return a value as text: JSON where it is none."""
    if isinstance(value, str):
        return value
    try:
        return _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError):  # other keys, long numbers, endless nesting
        return json.dumps(to_json({"value": value})[1]["value"], ensure_ascii=False)


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
            while (key := _occurring(stem, number)) in taken:
                number += 1
            name = message.id
        counts[stem] = number + 1
        if not message.key:  # read just now
            message.key, message.id = key, name
        elif message.key != key:
            messages[index] = replace(message, key=key, id=name)


def _occurring(key: str, again: int) -> str:
    return hashlib.sha256(f"{key}\0{again}".encode()).hexdigest()[:32] if again else key


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
    if not is_message(message):
        return isinstance(message, Mapping) and message.get(NOT_NEEDED) is True
    artifact = getattr(message, "artifact", None)
    holders = (message.additional_kwargs, artifact if isinstance(artifact, Mapping) else {})
    return any(holder.get(NOT_NEEDED) is True for holder in holders)


def tools_of(messages: Sequence[Message]) -> list[tuple[str, ...]]:
    """Return, for each message, the tools whose results it holds.

    The nearest call before it names the tool, as ids are used again.
    """
    called: dict[str, str] = {}
    tools: list[tuple[str, ...]] = []
    for message in messages:
        names = [called.get(answer, message.name or "") for answer in message.answers]
        tools.append(tuple(dict.fromkeys(filter(None, names))))
        called.update((call.id, call.name) for call in message.calls if call.id)
    return tools
