"""Build the view of one history, and apply records to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from conspectus._langchain import is_ai_message
from conspectus.core.boundaries import newest_user
from conspectus.core.fold import View, fold, place_of_summary
from conspectus.core.items import Clip, Item, Size
from conspectus.core.policy import Arguments
from conspectus.core.records import ClipMark, Record
from conspectus.engine.engine import Engine
from conspectus.engine.recognising import bears_mark, clip_text, sent_of
from conspectus.errors import RedactionError
from conspectus.messages import (
    ARCHIVED,
    Entry,
    Source,
    clip,
    has_long_arguments,
    is_summary_message,
    read_messages,
    smallest_clip,
    summary_message,
    summary_text,
    with_pointer,
    with_short_arguments,
)
from conspectus.messages.message import is_expendable, tools_of
from conspectus.observe import log
from conspectus.redaction import for_view
from conspectus.tokens import Report, TokenMeter

SMALL = 80
"""Messages of up to this many tokens are never clipped: the pointer takes as much."""


@dataclass(frozen=True, slots=True)
class Place:
    """One message of the view.

    Attributes:
        entry: the message as it was sent; None for the standing summary.
        back: the entry is a clip that came back, not the original.
        mark: the mark of its clip, if it is shown short.
        media_stay: it is the user's newest message, whose images and files stay.
    """

    item: Item
    source: Source
    entry: Entry | None
    back: bool = False
    mark: ClipMark | None = None
    media_stay: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """One history, read and folded.

    Attributes:
        like: the caller's kind of message.
        before: records outside the chain whose notes still hold: they were made without an
            archive, and a chain in an archive begins after them.
    """

    places: tuple[Place, ...]
    chain: tuple[Record, ...]
    dropped: int
    like: type
    before: tuple[Record, ...] = ()

    @property
    def items(self) -> list[Item]:
        return [place.item for place in self.places]

    @property
    def head(self) -> Record | None:
        return self.chain[-1] if self.chain else None

    @property
    def head_id(self) -> str | None:
        return None if self.head is None else self.head.id

    @property
    def size(self) -> Size:
        return Size(sum(place.item.tokens for place in self.places), len(self.places))

    @property
    def sources(self) -> list[Source]:
        return [place.source for place in self.places]


def like_of(messages: Sequence[Source]) -> type:
    """Return the kind of message that a caller uses: `dict`, or a LangChain message."""
    return dict if any(isinstance(message, dict) for message in messages) else object


def look(
    engine: Engine,
    entries: list[Entry],
    chain: Sequence[Record],
    redacted: Mapping[int, Entry | None] | None = None,
) -> History:
    """Fold the records of a thread over a history, and measure the view.

    `redacted` are the messages to show short without their secrets, by place; None for one that
    could not be redacted, which is shown whole.
    """
    view: View = fold(chain, sent_of(entries, chain))
    meter, sizes, pin = engine.meter, engine.sizes, engine.pin
    pinned = [pin is not None and bool(pin(entry.source)) for entry in entries]
    like = like_of([entry.source for entry in entries])
    newest = max((i for i, e in enumerate(entries) if e.role == "user"), default=-1)
    first = next((i for i, e in enumerate(entries) if e.role != "system"), -1)
    tools = tools_of(entries)
    places = []
    for shown in view.shown:
        if shown.index is None:
            assert view.chain
            record = next(r for r in reversed(view.chain) if r.summary)
            places.append(summary_place(record, engine, like))
            continue
        entry = entries[shown.index]
        source = entry.source
        mark = shown.clip
        if mark is not None and not shown.back:
            whole = entry if redacted is None else redacted.get(shown.index, entry)
            where = mark.where or ARCHIVED
            short = None if whole is None else shortened(whole, mark, meter, where)
            if short is None or (mark.shown and clip_text(read_messages([short])[0]) != mark.shown):
                # Another redactor or way to count: sent back, it would not be known for a clip.
                mark = None
            else:
                source = short
        foreign = (
            is_summary_message(source)
            and not pinned[shown.index]
            and (like is not dict or (shown.index == first and shown.index != newest))
        )
        item = Item(
            key=shown.key,
            role=entry.role,
            tokens=meter.entry(entry) if source is entry.source else meter.message(source),
            calls=tuple(call.id for call in entry.calls if call.id),
            answers=entry.answers,
            needs=entry.needs,
            joined=entry.joined,
            pinned=pinned[shown.index],
            summary=foreign,
            clipped=mark is not None,
            counted=-1 if sizes is None else sizes(source),
            marked=bears_mark(entry),
            tools=tools[shown.index],
            expendable=entry.role == "tool" and is_expendable(source),
        )
        places.append(Place(item, source, entry, shown.back, mark))
    return History(tuple(places), view.chain, view.dropped, like)


async def look_flow(engine: Engine, entries: list[Entry], chain: Sequence[Record]) -> History:
    """Redact the messages that are shown short, then `look`."""
    redaction = engine.redaction
    if redaction is None or not any(record.clips for record in chain):
        return look(engine, entries, chain)
    short = [
        shown.index
        for shown in fold(chain, sent_of(entries, chain)).shown
        if shown.index is not None and shown.clip is not None and not shown.back
    ]
    redacted: dict[int, Entry | None] = dict.fromkeys(short)
    try:
        done = await redaction.entries([entries[index] for index in short])
        redacted = {i: for_view(one, entries[i]) for i, one in zip(short, done, strict=True)}
    except RedactionError as error:
        log("shown_whole", "messages that were shown short are shown whole for now: %s", error)
    return look(engine, entries, chain, redacted)


def shortened(original: Entry, how: Clip | ClipMark, meter: TokenMeter, where: str) -> Source:
    """Show a message short, or whole with a pointer if redaction has made it short."""
    if how.longest:
        short = with_short_arguments(original, how.longest, how.ending, where)
    else:
        short = clip(original, how.limit, meter.plain.message, where)
    if original.redacted and _pointer(original, where) not in read_messages([short])[0].reading:
        return with_pointer(original, where)
    return short


def _pointer(original: Entry, where: str) -> str:
    return where.replace("{cite}", original.cite)


def reports_of(history: History) -> list[Report]:
    """Return the models' reports of this history since its last compaction.

    Earlier answers measured messages that have left. After another library's summary none is known.
    """
    if any(place.item.summary and place.entry is not None for place in history.places):
        return []
    before = history.head.messages_after if history.head else 0
    reports, tokens = [], 0
    for index, place in enumerate(history.places):
        told = reported(place.source)
        if told and index >= before:
            reports.append(Report(tokens, told))
        tokens += place.item.tokens
    return reports


def reported(message: Source) -> int:
    """Return the input tokens that a model reported with its answer; 0 for none."""
    usage = message.usage_metadata if is_ai_message(message) else None
    told = usage.get("input_tokens") if isinstance(usage, Mapping) else None
    # A provider may report anything; only a count counts.
    return told if isinstance(told, int) and told > 0 else 0


def corrected(history: History, ratio: float) -> History:
    def scaled(place: Place) -> Place:
        return replace(place, item=replace(place.item, tokens=math.ceil(place.item.tokens * ratio)))

    return replace(history, places=tuple(map(scaled, history.places)))


def summary_place(record: Record, engine: Engine, like: type) -> Place:
    text = summary_text(record.summary, archived=record.archived, mark=record.mark)
    message = summary_message(text, record.id, like=like)
    counted = -1 if engine.sizes is None else engine.sizes(message)
    tokens = engine.meter.message(message)
    item = Item(f"summary:{record.id}", "user", tokens, summary=True, counted=counted)
    return Place(item, message, None)


def with_floors(history: History, engine: Engine, over: int) -> History:
    """Measure the least size of every message larger than `over` tokens."""
    newest, places, meter, where = newest_user(history.items), [], engine.meter, engine.where
    assert where is not None
    for index, place in enumerate(history.places):
        entry, large = place.entry, place.item.tokens > max(SMALL, over)
        if entry is not None and place.item.floor < 0 and large:
            stay = index == newest and bool(entry.media)
            floor = smallest_clip(entry, meter.message, where, media_stay=stay)
            place = replace(place, item=replace(place.item, floor=floor), media_stay=stay)
        places.append(place)
    return replace(history, places=tuple(places))


def with_briefs(history: History, engine: Engine, how: Arguments) -> History:
    """Measure each message whose large arguments could be shortened."""
    sizes, where = engine.sizes, engine.where
    assert where is not None
    places = []
    for place in history.places:
        whole = place.entry is not None and place.mark is None
        if whole and has_long_arguments(place.source, how.longest):
            assert place.entry is not None
            short = with_short_arguments(place.entry, how.longest, how.ending, where)
            counted = -1 if sizes is None else sizes(short)
            item = replace(place.item, brief=engine.meter.message(short), brief_counted=counted)
            place = replace(place, item=item)
        places.append(place)
    return replace(history, places=tuple(places))


def clipped(place: Place, original: Entry, how: Clip, meter: TokenMeter, where: str) -> Place:
    """Show a place short, from its whole original, with the mark by which it is known again."""
    # A clip is made again whenever its history comes back whole, and must then be the same:
    # its limit is one of the estimate as it is without what was reported in between.
    limit = int(how.limit / meter.ratio)
    if place.media_stay:  # in less room than that they would become descriptions
        least = smallest_clip(original, meter.plain.message, where, media_stay=True)
        limit = max(limit, least)
    short = shortened(original, replace(how, limit=limit), meter, where)
    read = read_messages([short])[0]
    if _pointer(original, where) not in read.reading:  # it says nowhere what it is short for
        return place
    archived = where == ARCHIVED
    shown, elsewhere = clip_text(read) if archived else "", "" if archived else where
    mark = ClipMark(place.item.key, shown, limit, elsewhere, how.longest, how.ending)
    item = replace(place.item, tokens=meter.message(short), clipped=True)
    return Place(item, short, place.entry, place.back, mark)


def applied(
    history: History, record: Record, gone: set[int], clips: dict[int, Place], engine: Engine
) -> History:
    """Apply a record to the view, as folding it over the whole history would."""
    places: list[Place] = []
    summary = summary_place(record, engine, history.like) if record.summary else None
    covers = set(record.covers)
    first = place_of_summary([i.role == "system" and not i.summary for i in history.items])
    for index, place in enumerate(history.places):
        if summary is not None and index == first:
            places.append(summary)
            summary = None
        replaced = place.entry is None or place.item.key in covers
        if index in gone or (place.item.summary and record.summary and replaced):
            continue
        places.append(clips.get(index, place))
    if summary is not None:
        places.append(summary)
    return replace(history, places=tuple(places), chain=(*history.chain, record))
