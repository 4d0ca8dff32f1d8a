"""One message as read: speaker, text, calls and answers; and the key by which it is known.

An entry keeps the caller's own object. Histories share entries, so that none is changed once it has
a key: what belongs to one history is set in a copy.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from conspectus.core.items import Role
from conspectus.messages.codec import Encoded, encode, encode_copy
from conspectus.messages.content import Call, Result

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Source: TypeAlias = "BaseMessage | Mapping[str, Any]"  # A message as callers have it

SHORT_ID = 12  # Length up to which an id is cited as it is; otherwise the start of the key is


@dataclass(slots=True)
class Entry:
    """One message, read.

    Attributes:
        source: the caller's own object, never changed.
        id: its id; without one, derived from its content and earlier occurrences.
        key: identity and version: hash of id, content and occurrence.
        role: the speaker's role.
        name: the speaker's or the tool's name, if given.
        text: its readable text: text, reasoning, media as short descriptions.
        own: the speaker's own words in it, without the results of tools.
        calls: tool calls that it makes.
        answers: ids of calls that it answers.
        results: the answers among its blocks, one by one.
        needs: ids of calls that must stand before it, although it does not answer them.
        joined: whether it continues the answer that the message before it began.
        goes_on: `pause` if the next message of the model continues it, `response` if one that is
            an item of OpenAI's Responses does.
        date: when it was said, as the caller wrote it, if known.
        media: its blocks without text, such as images and files, the caller's own.
        redacted: whether secrets were taken out, so that it differs from the message sent.
        memo: what was derived from it, by name; kept as long as its reading is remembered.
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
    joined: bool = False
    goes_on: str = ""
    date: str | None = None
    media: tuple[Mapping[str, Any], ...] = ()
    given_id: str | None = None
    redacted: bool = False
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def cite(self) -> str:
        """The name in a summary: its id if short and plain, else the start of its key."""
        plain = 0 < len(self.id) <= SHORT_ID and all(c.isalnum() or c in "-_:." for c in self.id)
        return self.id if plain and self.given_id is not None else self.key[:8]

    @property
    def reading(self) -> str:
        """The text with its tool calls, for summarisers and for recall."""
        if not self.calls:
            return self.text
        if "reading" not in self.memo:
            parts = [self.text, *(call.reading for call in self.calls)]
            self.memo["reading"] = "\n".join(parts if self.text else parts[1:])
        reading: str = self.memo["reading"]
        return reading

    @property
    def encoded(self) -> Encoded:
        """The original as JSON text."""
        if "encoded" not in self.memo:
            copy, kind = self.memo.get("copy", (None, ""))
            self.memo["encoded"] = (
                Encoded("langchain" if kind else "dict", encode_copy(copy, kind), True)
                if copy
                else encode(self.source)
            )
        encoded: Encoded = self.memo["encoded"]
        return encoded

    @property
    def digest(self) -> str:
        """Hash of its content, without its id."""
        if "digest" not in self.memo:
            copy, kind = self.memo.get("copy", (None, ""))
            text = encode_copy(copy, kind) if copy else self.encoded.text
            self.memo["digest"] = hashlib.sha256(text.encode()).hexdigest()
        digest: str = self.memo["digest"]
        return digest

    @property
    def stem(self) -> str:
        """The part of its key that does not depend on the messages before it."""
        if "stem" not in self.memo:
            stem = self.digest[:28]
            if self.given_id is not None:
                named = f"{self.given_id}\0{self.digest}".encode("utf-8", "backslashreplace")
                stem = hashlib.sha256(named).hexdigest()[:32]
            self.memo["stem"] = stem
        found: str = self.memo["stem"]
        return found


def name_entries(
    entries: list[Entry],
    seen: Mapping[str, int] | None = None,
    missing: Mapping[int, Collection[str]] | None = None,
) -> None:
    """Give each entry its key, and an id if it has none; see `read_messages`.

    An entry with another key is replaced by a copy. `missing` has, by the place of a summary or a
    clip, the keys of the messages that it stands for. A message after it with the same id and
    content is another one.
    """
    counts: dict[str, int] = dict(seen or {})
    taken: set[str] = set()
    for place, entry in enumerate(entries):
        if missing and place in missing:
            taken.update(missing[place])
        stem: str = entry.memo.get("stem") or entry.stem
        number = counts.get(stem, 0)
        if entry.given_id is None:
            # The key has the content and its number, so that messages which have left can be
            # counted by their keys alone.
            name = f"{stem}-{number}"
        else:  # it may be the same message twice, id and all
            while (name := _occurring(stem, number)) in taken:
                number += 1
        counts[stem] = number + 1
        own = name if entry.given_id is None else entry.id
        if not entry.key:  # read just now
            entry.key, entry.id = name, own
        elif entry.key != name:
            entries[place] = replace(entry, key=name, id=own)


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
