"""The view of one history: records folded over it, measured; truncated messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from conspectus._langchain import is_ai_message
from conspectus.core.items import Clip, Item, Size, newest_user
from conspectus.core.records import Chain, ClipMark, Record
from conspectus.engine.folding import bears_mark, clip_text, fold
from conspectus.messages import (
    ARCHIVED,
    Message,
    Source,
    clip,
    has_long_arguments,
    is_summary_message,
    read_messages,
    smallest_clip,
    summary_message,
    summary_text,
    with_short_arguments,
)
from conspectus.messages.message import is_expendable, tools_of
from conspectus.tokens import Report, TokenMeter

if TYPE_CHECKING:
    from conspectus.engine.settings import Engine

SMALL = 80  # Messages of up to this many tokens are never clipped: the pointer takes as much


@dataclass(frozen=True, kw_only=True)
class ViewItem(Item):
    """One message of the view: the item that is planned over, with the message itself."""

    source: Source
    engine: Engine | None = None  # by which its least size is measured, once a plan asks for it
    entry: Message | None = None  # the message as it was sent; None for the standing summary
    back: bool = False  # the entry is a clip that came back, not the original
    mark: ClipMark | None = None  # the mark of its clip, if it is truncated
    media_stay: bool = False  # it is the user's newest message, whose images and files stay

    @property
    def foreign(self) -> bool:
        """Whether it is a summary by another library."""
        return self.summary and self.entry is not None

    def smallest(self) -> int:
        return self._least

    @cached_property
    def _least(self) -> int:
        entry, engine = self.entry, self.engine
        if engine is None or engine.where is None or entry is None or self.tokens <= SMALL:
            return self.tokens
        count, media = engine.meter.message, self.media_stay
        return min(self.tokens, smallest_clip(entry, count, engine.where, media_stay=media))

    def shortened(self, longest: int, ending: str) -> int:
        entry, engine = self.entry, self.engine
        if engine is None or engine.where is None or entry is None:
            return self.tokens
        if not has_long_arguments(self.source, longest):
            return self.tokens
        return engine.meter.message(with_short_arguments(entry, longest, ending, engine.where))


@dataclass(frozen=True, slots=True)
class History:
    """One history, read and folded."""

    items: tuple[ViewItem, ...]
    chain: Chain
    dropped: int
    like: type  # the caller's kind of message
    # records outside the chain whose notes still hold: they were made without an archive, and a
    # chain in an archive begins after them
    before: Chain = ()

    @property
    def head(self) -> Record | None:
        return self.chain[-1] if self.chain else None

    @property
    def head_id(self) -> str | None:
        return self.chain[-1].id if self.chain else None

    @property
    def size(self) -> Size:
        return Size(sum(item.tokens for item in self.items), len(self.items))

    @property
    def sources(self) -> list[Source]:
        return [item.source for item in self.items]

    @property
    def foreign(self) -> bool:
        """Whether a summary of another library is in view."""
        return any(item.foreign for item in self.items)

    def corrected(self, engine: Engine) -> History:
        """Scale the tokens of each message."""
        ratio, items = engine.meter.ratio, self.items
        scaled = (replace(i, tokens=math.ceil(i.tokens * ratio), engine=engine) for i in items)
        return replace(self, items=tuple(scaled))


def like_of(messages: Sequence[Source]) -> type:
    """Return the kind of message that a caller uses: `dict`, or a LangChain message."""
    return dict if any(isinstance(message, dict) for message in messages) else object


def look(engine: Engine, entries: list[Message], chain: Chain) -> History:
    """Fold the records of a thread over a history, and measure the view."""
    folded = fold(chain, entries)
    meter, keep_count, pin = engine.meter, engine.keep_count, engine.pin
    like = like_of([entry.source for entry in entries])
    newest = max((i for i, e in enumerate(entries) if e.role == "user"), default=-1)
    first = next((i for i, e in enumerate(entries) if e.role != "system"), -1)
    tools = tools_of(entries)
    items = []
    for index, key, mark, back in folded.remaining:
        entry, source = entries[index], entries[index].source
        if mark is not None and not back:
            short = shortened(entry, mark, meter, mark.where or ARCHIVED)
            if not mark.shown or clip_text(read_messages([short])[0]) == mark.shown:
                source = short
            else:  # another way to count: sent back, it would not be known for a clip
                mark = None
        pinned = pin is not None and bool(pin(entry.source))
        alone = like is not dict or (index == first and index != newest)
        item = ViewItem(
            key=key,
            role=entry.role,
            tokens=meter.entry(entry) if source is entry.source else meter.message(source),
            calls=tuple(call.id for call in entry.calls if call.id),
            answers=entry.answers,
            needs=entry.needs,
            joined=entry.joined,
            pinned=pinned,
            summary=alone and not pinned and is_summary_message(source),
            clipped=mark is not None,
            counted=-1 if keep_count is None else keep_count(source),
            marked=bears_mark(entry),
            tools=tools[index],
            expendable=entry.role == "tool" and is_expendable(source),
            source=source,
            engine=engine,
            entry=entry,
            back=back,
            mark=mark,
        )
        items.append(item)
    asked = newest_user(items)
    if asked is not None and entries[folded.remaining[asked].position].media:
        items[asked] = replace(items[asked], media_stay=True)
    summary = next((record for record in reversed(folded.chain) if record.summary), None)
    if summary is not None:
        _put_summary(items, summary, engine, like)
    return History(tuple(items), folded.chain, folded.dropped, like)


def _put_summary(items: list[ViewItem], record: Record, engine: Engine, like: type) -> None:
    """Put the summary behind the leading system messages.

    Whoever looks for the user's newest message from the end then finds the request, and no summary.
    """
    text = summary_text(record.summary, archived=record.archived, mark=record.mark)
    message = summary_message(text, record.id, like=like)
    counted = -1 if engine.keep_count is None else engine.keep_count(message)
    name, tokens = f"summary:{record.id}", engine.meter.message(message)
    summary = ViewItem(name, "user", tokens, summary=True, counted=counted, source=message)
    others = (i for i, item in enumerate(items) if item.role != "system" or item.summary)
    items.insert(next(others, len(items)), summary)


# Reports of usage


def reports_of(history: History) -> list[Report]:
    """Return the models' reports of this history since its last compaction.

    Earlier answers measured messages that have left. After another library's summary none is known.
    """
    if history.foreign:
        return []
    before = history.head.messages_after if history.head else 0
    reports, tokens = [], 0
    for index, item in enumerate(history.items):
        usage = reported(item.source)
        if usage and index >= before:
            reports.append(Report(tokens, usage))
        tokens += item.tokens
    return reports


def reported(message: Source) -> int:
    """Return the input tokens that a model reported with its answer; 0 for none."""
    usage = message.usage_metadata if is_ai_message(message) else None
    tokens = usage.get("input_tokens") if isinstance(usage, Mapping) else None
    # A provider may report anything; only a count counts.
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


# Truncated messages


def shortened(original: Message, how: Clip | ClipMark, meter: TokenMeter, where: str) -> Source:
    """Show a message short."""
    if how.longest:
        return with_short_arguments(original, how.longest, how.ending, where)
    return clip(original, how.limit, meter.scaled(1.0).message, where)


def clipped(item: ViewItem, original: Message, how: Clip, engine: Engine) -> ViewItem:
    """Show an item short, from its whole original, with the mark by which it is known again."""
    meter, where = engine.meter, engine.where
    assert where is not None
    # A clip is made again whenever its history comes back whole, and must then be the same:
    # its limit is one of the estimate as it is without what was reported in between.
    limit = int(how.limit / meter.ratio)
    if item.media_stay:  # in less room than that they would become descriptions
        least = smallest_clip(original, meter.scaled(1.0).message, where, media_stay=True)
        limit = max(limit, least)
    short = shortened(original, replace(how, limit=limit), meter, where)
    read = read_messages([short])[0]
    if where.replace("{cite}", original.cite) not in read.reading:
        return item  # it says nowhere what it is short for
    archived = where == ARCHIVED
    text, elsewhere = clip_text(read) if archived else "", "" if archived else where
    mark = ClipMark(item.key, text, limit, elsewhere, how.longest, how.ending)
    return replace(item, source=short, tokens=meter.message(short), clipped=True, mark=mark)


def applied(
    history: History, record: Record, gone: set[int], clips: dict[int, ViewItem], engine: Engine
) -> History:
    """Apply a record to the view, as folding it over the whole history would."""
    covers = set(record.covers)
    items = [
        clips.get(index, item)
        for index, item in enumerate(history.items)
        if index not in gone
        and not (record.summary and item.summary and (item.entry is None or item.key in covers))
    ]
    if record.summary:
        _put_summary(items, record, engine, history.like)
    return replace(history, items=tuple(items), chain=(*history.chain, record))
