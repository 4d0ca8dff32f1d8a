"""Compactions as plain data: the chain of records, and the view that it gives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from conspectus.core.costs import COUNTS
from conspectus.core.costs import Cost as Cost
from conspectus.core.items import Size

FORMAT = 1  # Version of the plain form; a reader refuses a newer one


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished summary that is not committed yet.

    Attributes:
        text: the body, without the line that opens a summary message.
        by: name of the summariser.
        read: keys of the originals that were read whole.
        tokens: size of the whole summary message, once measured.
        cut: tokens cut off at its end, as it was longer than the caller allows.
        segment: what it adds to the notes, as plain data.
        request: as for `Record`.
        seconds: time that it took to write.
    """

    text: str
    by: str
    read: tuple[str, ...]
    cost: Cost = field(default_factory=Cost)
    tokens: int = 0
    cut: int = 0
    segment: Mapping[str, Any] = field(default_factory=dict)
    request: str = ""
    seconds: float = field(default=0.0, compare=False)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        data = {"v": FORMAT, **data, "cost": self.cost.to_json()}
        return _without_empty(data, "segment", "request", "seconds")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Draft:
        known = {one.name for one in fields(cls)}
        parts = {k: v for k, v in data.items() if k in known}
        parts["read"] = tuple(parts["read"])
        parts["cost"] = Cost.from_json(parts["cost"])
        return cls(**parts)


@dataclass(frozen=True, slots=True)
class ClipMark:
    """One message shown short.

    Attributes:
        key: the original.
        shown: hash of the clipped text, by which it is recognised when it comes back, even with
            other ids and marks; empty if no archive holds the original, as then no clip comes back.
        where: where its original is, in the words of the clip; empty for the archive.
        limit, longest, ending: as for `Clip`.
    """

    key: str
    shown: str
    limit: int
    where: str = ""
    longest: int = 0
    ending: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the mark as plain data, without empty parts."""
        data = asdict(self)
        return {k: v for k, v in data.items() if v or k in _MARK[:3]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ClipMark:
        """Read a mark of any version; an invalid one is a `TypeError`."""
        return cls(**{k: v for k, v in data.items() if k in _MARK})


_MARK = tuple(one.name for one in fields(ClipMark))
"""Names of its parts; the first three are always written."""


@dataclass(frozen=True, slots=True)
class Record:
    """One finished compaction.

    Attributes:
        id: hash of all that follows but its bill; equal compactions have equal ids.
        parent: the record before it; None for the first of a thread.
        covers: keys of the originals that left the view, in order: the manifest.
        clips: messages shown short from now on.
        summary: body of the summary of all that the chain covers; empty for clips alone.
        segment: what it adds to the notes, as plain data; empty for clips alone.
        cause: the trigger or other reason for it.
        tokens_before: size of the view before it.
        tokens_after: size of the view after it.
        messages_after: its length after it, in messages.
        archived: whether the archive has confirmed the originals.
        by: name of the summariser; empty for clips alone.
        cost: calls and tokens that it took, those of tries that failed too.
        redacted: secrets taken out of its originals, by kind.
        cut: tokens cut off at the end of a summary longer than `max_summary_tokens`, or than was
            asked for; 0 if it is whole.
        order: keys in the order of the conversation: those that left, and those before the last of
            them that stay and that no earlier record names; empty if none stays.
        request: `"cached"` if the summary was asked for by an instruction after the agent's last
            request, `"smallest"` by a request of its own; empty without one.
        bill: its costs beside tokens: `seconds` in all, those that the caller `waited`, and, with
            known prices, `money` and its `currency`. Records are compared without it.
    """

    id: str
    parent: str | None
    covers: tuple[str, ...]
    clips: tuple[ClipMark, ...]
    summary: str
    segment: Mapping[str, Any]
    cause: str
    tokens_before: int
    tokens_after: int
    messages_after: int
    archived: bool
    by: str
    cost: Cost
    redacted: Mapping[str, int] = field(default_factory=dict)
    cut: int = 0
    order: tuple[str, ...] = ()
    request: str = ""
    bill: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        parts = f"{len(self.covers):,} messages left, {len(self.clips):,} shown short"
        return f"<Record {self.id}: {sizes}, {parts}{f', by {self.by}' if self.by else ''}>"

    @property
    def mark(self) -> str:
        """Six digits in the summary message that tell branches apart.

        They come from the covered keys, so they are known before the summary is.
        """
        parts = [self.parent, self.covers, [clip.key for clip in self.clips]]
        return f"{int(hashlib.sha256(json.dumps(parts).encode()).hexdigest(), 16) % 10**6:06}"

    @property
    def name(self) -> str:
        """The mark and the summary, by which a returning history names the record."""
        return f"{self.mark}\n{self.summary}"

    @property
    def size_after(self) -> Size:
        """The size of the view after it."""
        return Size(self.tokens_after, self.messages_after)

    @classmethod
    def make(cls, **parts: Any) -> Record:
        """Make a record with the id that its parts give it."""
        bare = cls(id="", **{k: v for k, v in parts.items() if k != "bill"})
        text = json.dumps(bare.to_json(), sort_keys=True, ensure_ascii=True)
        return cls(id=hashlib.sha256(text.encode()).hexdigest()[:16], **parts)

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON data."""
        data: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        data["bill"] = dict(self.bill)
        data["cost"] = self.cost.to_json()
        data["clips"] = tuple(clip.to_json() for clip in self.clips)
        return _without_empty({"v": FORMAT, **data}, "redacted", "cut", "order", "request", "bill")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Read a record that `to_json` wrote, without parts that a newer version added.

        So workers of two versions can serve one thread.

        Raises:
            ValueError: it was written in a newer format, or is no record.
            KeyError, TypeError: a part of it is missing, or of another type.
        """
        if data.get("v") != FORMAT:
            raise ValueError(f"record format {data.get('v')!r} is not {FORMAT}")
        known = {one.name for one in fields(cls)}
        parts = {k: v for k, v in data.items() if k in known}
        parts["covers"] = tuple(parts["covers"])
        parts["order"] = tuple(parts.get("order", ()))
        parts["clips"] = tuple(map(ClipMark.from_json, parts["clips"]))
        parts["cost"] = Cost.from_json(parts["cost"])
        record = cls(**parts)
        record._check()
        return record

    def _check(self) -> None:
        texts = [self.id, self.summary, self.cause, self.by, self.request]
        texts += [*self.covers, *self.order]
        texts += [
            text for clip in self.clips for text in (clip.key, clip.shown, clip.where, clip.ending)
        ]
        costs = (self.cost, *self.cost.models.values())
        cost = (getattr(spent, one) for spent in costs for one in COUNTS)
        counts = [self.tokens_before, self.tokens_after, self.messages_after, self.cut, *cost]
        counts += [
            *(n for clip in self.clips for n in (clip.limit, clip.longest)),
            *self.redacted.values(),
        ]
        named = self.parent is None or isinstance(self.parent, str)
        whole = (
            isinstance(self.segment, Mapping)
            and isinstance(self.redacted, Mapping)
            and isinstance(self.bill, Mapping)
            and isinstance(self.archived, bool)
        )
        if not (named and whole and all(isinstance(text, str) for text in texts)):
            raise TypeError("a part of the record is not what it should be")
        if not all(isinstance(count, int) for count in counts):
            raise TypeError("a count of the record is no whole number")


Chain = Sequence[Record]  # Records from the first of a thread to its head


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of a history as a caller sent it.

    `record` is the record whose summary it is, if ours; `text` the hash of its text and `original`
    the original's key if it is a clip of ours; `user` whether a user said it.
    """

    key: str
    system: bool = False
    record: str | None = None
    text: str = ""
    original: str = ""
    user: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """One place in the view: a message as sent, a clip of it, or the standing summary.

    `index` is its place in the history as sent, None for the summary; `key` the original's. `back`:
    it came back clipped, so its text is not the original's.
    """

    index: int | None
    key: str
    clip: ClipMark | None = None
    back: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The messages that the model sees, by the chain in force.

    `dropped` counts messages that were left out because the chain covers them.
    """

    chain: tuple[Record, ...]
    shown: tuple[Shown, ...]
    dropped: int

    @property
    def head(self) -> Record | None:
        return self.chain[-1] if self.chain else None


def _without_empty(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """Leave out empty fields that earlier versions did not have."""
    return {name: value for name, value in data.items() if value or name not in names}


def fold(chain: Chain, history: Sequence[Sent]) -> View:
    """Return the view of a history, given the records of its thread.

    A caller sends either its whole history or the view it got back the last time, with the summary
    message of a record. Records that do not fit the history are dropped, never trusted: the ones
    after a summary message that came back, or, in a whole history, the first one whose messages are
    not all there, unchanged and in order, and all after it. A record that covers the user's newest
    message does not fit either: a client has gone back to it, to ask it again.
    """
    at = next((i for i in range(len(history) - 1, -1, -1) if history[i].record), None)
    marker = None if at is None else history[at].record
    number = next((i for i, record in enumerate(chain) if record.id == marker), None)
    if at is None or number is None:
        live, at = _fitting(chain, history), len(history)
    else:
        live = tuple(chain[: number + 1])
    covered = {key for record in live for key in record.covers}
    clips = {mark.key: mark for record in live for mark in record.clips}
    back = {(mark.shown, mark.key) for record in live for mark in record.clips}
    known = {record.id for record in live}
    shown: list[Shown] = []
    dropped = 0
    summary = next((r for r in reversed(live) if r.summary), None)
    pending = summary
    first = place_of_summary([sent.system for sent in history])
    for index, sent in enumerate(history):
        if pending is not None and index == first:
            shown.append(Shown(None, f"summary:{pending.id}"))
            pending = None
        if sent.record in known:
            continue  # the standing summary takes its place
        came_back = (sent.text, sent.original) in back
        key = sent.original if came_back else sent.key
        if key in covered and index < at:
            dropped += 1
        else:
            shown.append(Shown(index, key, clips.get(key), back=came_back))
    if pending is not None:
        shown.append(Shown(None, f"summary:{pending.id}"))
    return View(live, tuple(shown), dropped)


def place_of_summary(system: Sequence[bool]) -> int:
    """Return the index before which the summary stands: behind the leading system messages.

    Whoever looks for the user's newest message from the end then finds the request, and no summary.
    """
    return next((i for i, one in enumerate(system) if not one), len(system))


def originals_of(chain: Chain) -> dict[str, list[str]]:
    """Map the hash of each clipped text to the keys of its originals, in order.

    Messages with equal texts have equal clips, so there may be several.
    """
    found: dict[str, dict[str, None]] = {}
    for record in chain:
        for mark in record.clips:
            if mark.shown:
                found.setdefault(mark.shown, {})[mark.key] = None
    return {text: list(keys) for text, keys in found.items()}


def _fitting(chain: Chain, history: Sequence[Sent]) -> tuple[Record, ...]:
    """Return the leading records whose messages a whole history holds, in order.

    None of them covers the user's newest message.
    """
    newest = next((sent.original or sent.key for sent in reversed(history) if sent.user), None)
    place = {sent.original or sent.key: index for index, sent in enumerate(history)}
    taken: set[str] = set()
    for count, record in enumerate(chain):
        before = -1
        for key in record.covers:
            if key == newest or key in taken or place.get(key, -1) <= before:
                return tuple(chain[:count])
            before = place[key]
            taken.add(key)
        if not all(mark.key in place for mark in record.clips):
            return tuple(chain[:count])
    return tuple(chain)
