"""The view of one history: what the model sees, place by place, and how a record changes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from conspectus._core.items import Clip, Item, Size
from conspectus._core.records import ClipMark, Record, Sent, View, fold
from conspectus.messages import (
    SUMMARY_LINE,
    Entry,
    Source,
    clip,
    is_summary_message,
    read_messages,
    smallest_clip,
    summary_message,
    summary_text,
)
from conspectus.tokens import TokenMeter

SMALL = 80
"""Messages of up to so many tokens are never clipped: the mark would take what it saves."""


@dataclass(frozen=True, slots=True)
class Place:
    """One message of the view.

    Attributes:
        item: what the core knows of it.
        source: the message as the model sees it.
        entry: what was sent; None for the standing summary.
        back: the entry is a clip that came back, not the original.
        mark: how it is shown short, where it is.
    """

    item: Item
    source: Source
    entry: Entry | None
    back: bool = False
    mark: ClipMark | None = None


@dataclass(frozen=True, slots=True)
class History:
    """One history, read and folded.

    Attributes:
        places: the view.
        chain: the records in force.
        dropped: messages left out because the chain covers them.
        like: the caller's kind of message.
        seen: what was sent, read.
    """

    places: tuple[Place, ...]
    chain: tuple[Record, ...]
    dropped: int
    like: type

    @property
    def items(self) -> list[Item]:
        """What the core sees."""
        return [place.item for place in self.places]

    @property
    def head(self) -> Record | None:
        """The record in force."""
        return self.chain[-1] if self.chain else None

    @property
    def size(self) -> Size:
        """Tokens and messages of the view."""
        return Size(sum(place.item.tokens for place in self.places), len(self.places))

    @property
    def sources(self) -> list[Source]:
        """The messages as the model sees them."""
        return [place.source for place in self.places]


def like_of(messages: Sequence[Source]) -> type:
    """The kind of message that a caller uses: `dict`, or a LangChain message."""
    return dict if any(isinstance(message, dict) for message in messages) else object


def marked_record(entry: Entry, texts: dict[str, str]) -> str | None:
    """The record whose summary message this is: its text must be that record's, to the letter."""
    return texts.get(entry.text) if entry.text.startswith(SUMMARY_LINE) else None


def look(
    entries: Sequence[Entry], chain: Sequence[Record], meter: TokenMeter, pins: Iterable[bool]
) -> History:
    """Fold the records of a thread over a history, and measure what the model would see."""
    texts = {summary_text(r.summary, archived=r.archived): r.id for r in chain if r.summary}
    sent = [Sent(e.key, e.role == "system", marked_record(e, texts)) for e in entries]
    view: View = fold(chain, sent)
    pinned = list(pins)
    like = like_of([entry.source for entry in entries])
    newest = max((i for i, e in enumerate(entries) if e.role == "user"), default=-1)
    first = next((i for i, e in enumerate(entries) if e.role != "system"), -1)
    places = []
    for shown in view.shown:
        if shown.index is None:
            assert view.chain
            record = next(r for r in reversed(view.chain) if r.summary)
            places.append(summary_place(record, meter, like))
            continue
        entry = entries[shown.index]
        source = entry.source
        if shown.clip is not None and not shown.back:
            source = clip(entry, shown.clip.limit, meter.message)
        foreign = is_summary_message(source) and (
            like is not dict or (shown.index == first and shown.index != newest)
        )
        item = Item(
            key=shown.key,
            role=entry.role,
            tokens=meter.entry(entry) if source is entry.source else meter.message(source),
            calls=tuple(call.id for call in entry.calls if call.id),
            answers=entry.answers,
            pinned=pinned[shown.index],
            summary=foreign,
            clipped=shown.clip is not None,
        )
        places.append(Place(item, source, entry, shown.back, shown.clip))
    return History(tuple(places), view.chain, view.dropped, like)


def summary_place(record: Record, meter: TokenMeter, like: type) -> Place:
    """The place of a record's summary message."""
    text = summary_text(record.summary, archived=record.archived)
    message = summary_message(text, record.id, like=like)
    item = Item(f"summary:{record.id}", "user", meter.message(message), summary=True)
    return Place(item, message, None)


def with_floors(history: History, meter: TokenMeter, over: int) -> History:
    """The history with the least size of every message larger than `over` tokens measured."""
    places = tuple(
        replace(place, item=replace(place.item, floor=smallest_clip(place.entry, meter.message)))
        if place.entry is not None
        and not place.back
        and place.item.floor < 0
        and place.item.tokens > max(SMALL, over)
        else place
        for place in history.places
    )
    return replace(history, places=places)


def clipped(place: Place, original: Entry, how: Clip, meter: TokenMeter) -> Place:
    """A place shown short, from its original, with the mark by which it is known again."""
    short = clip(original, how.limit, meter.message)
    mark = ClipMark(place.item.key, read_messages([short])[0].key, how.limit)
    item = replace(place.item, tokens=meter.message(short), clipped=True)
    return Place(item, short, place.entry, place.back, mark)


def applied(
    history: History, record: Record, gone: set[int], clips: dict[int, Place], meter: TokenMeter
) -> History:
    """The view once a record is in force: the same as folding it over the whole history."""
    places: list[Place] = []
    summary = summary_place(record, meter, history.like) if record.summary else None
    leading = True
    for index, place in enumerate(history.places):
        leading = leading and place.item.role == "system" and not place.item.summary
        if summary is not None and not leading:
            places.append(summary)
            summary = None
        if index in gone or (place.item.summary and record.summary):
            continue
        places.append(clips.get(index, place))
    if summary is not None:
        places.append(summary)
    return replace(history, places=tuple(places), chain=(*history.chain, record))
