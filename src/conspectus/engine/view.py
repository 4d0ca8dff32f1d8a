"""The view of one history: what the model sees, message by message, with sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, dropwhile, pairwise, takewhile
from typing import Any

from conspectus._langchain import is_ai_message
from conspectus.core.exchanges import newest_user_item
from conspectus.core.items import Item, Size
from conspectus.core.plans import Compact, PlannedClip
from conspectus.core.records import Chain, Record, RecordedClip
from conspectus.engine.engine import Engine
from conspectus.engine.folding import Folded, Remaining, clip_hash, fold, is_labelled_summary
from conspectus.engine.history import HistoryContext
from conspectus.messages import (
    Message,
    Source,
    is_summary_message,
    read_messages,
    summary_message,
    summary_text,
)
from conspectus.messages.alternation import (
    ReceivedJoined,
    alternating,
    described_parts,
    rejoined,
    took_two_in_a_row,
)
from conspectus.messages.framing import NO_NUMBER
from conspectus.messages.hosts import is_host_message, standing_topics
from conspectus.messages.message import has_thoughts, is_expendable, tools_of
from conspectus.messages.shortening import ARCHIVED, clip_message, smallest_clip
from conspectus.tokens import UsageReport

NO_ID = 16 * "0"
"""Stands in the place of the id of a record that is not made yet."""

NEVER_CLIPPED = 80
"""Messages of up to this many tokens are never clipped: the pointer to the original takes as much.
"""


@dataclass(kw_only=True)
class ViewItem(Item):
    """One message of the view: the item that is planned over, with the message itself."""

    source: Source
    engine: Engine | None = None  # by which its least size is measured, once a plan asks for it
    entry: Message | None = None  # the message as it was sent; None for the summary in force
    came_clipped: bool = False  # the entry is a clip that came back, not the original
    recorded_clip: RecordedClip | None = None  # what its record says of it, if it is a clip
    media_stay: bool = False  # it is the user's newest message, whose images and files stay

    @property
    def foreign(self) -> bool:
        """Whether it is a summary without a record: another library's, or one that was pasted."""
        return self.summary and self.entry is not None

    @cached_property
    def least(self) -> int:
        engine = self.engine
        if engine is None or engine.clip_pointer is None or self.entry is None:
            return self.tokens
        if self.tokens <= NEVER_CLIPPED:
            return self.tokens
        count = engine.meter.message
        smallest = smallest_clip(self.entry, count, engine.clip_pointer, media_stay=self.media_stay)
        return min(self.tokens, smallest)


@dataclass(frozen=True, eq=False)
class View:
    """A history, read, with its records folded over it: what the model sees.

    `history.engine` has the meter that has measured the items.
    """

    history: HistoryContext
    items: tuple[ViewItem, ...]
    chain: Chain  # the records that belong to the history
    entries: Sequence[Message]  # the caller's messages, as read
    as_dicts: bool  # the caller sends dicts, so the summary message is one
    dropped: int = 0  # messages that were left out because the records cover them
    stored_head: str = ""  # id of the record that the store names as in force; empty if none
    is_other_branch: bool = False  # the store names other records than those of this history
    came_joined: tuple[ReceivedJoined, ...] = ()
    alternates: bool = False
    """No model has answered two messages of the user in a row in this history."""
    joins_user_messages: bool = False  # so that views have none either
    clients_own: frozenset[str] = frozenset()  # as in `Folded`
    uncorrected: View | None = None  # the same, where reports of usage have corrected the sizes
    counted_size: Size | None = None  # a size that was measured before its items were made

    @cached_property
    def head(self) -> Record | None:
        """The record in force."""
        return self.chain[-1] if self.chain else None

    @cached_property
    def head_id(self) -> str | None:
        """The id of the record in force."""
        return self.head.id if self.head else None

    @cached_property
    def sources(self) -> list[Source]:
        """The messages of the view, each by itself."""
        return [item.source for item in self.items]

    @cached_property
    def foreign(self) -> bool:
        """Whether a summary of another library is in view."""
        return any(item.foreign for item in self.items)

    @cached_property
    def sent(self) -> list[Source]:
        """The messages of the view as they are sent, those of the user in a row joined."""
        if self.joins_user_messages:
            return alternating(self.sources, self.came_joined)
        return rejoined(self.sources, self.came_joined) if self.came_joined else self.sources

    @cached_property
    def size(self) -> Size:
        """The size of the view as it is sent: by a caller's counter, or else of its messages."""
        if self.counted_size is not None:
            return self.counted_size
        counted = self.history.engine.count_as_sent(self.sent)
        if counted is None:
            counted = sum(item.tokens for item in self.items)
        return Size(counted, len(self.items))

    @cached_property
    def reports(self) -> list[UsageReport]:
        """The models' reports of usage since the last compaction.

        Earlier answers measured messages that have left. After another library's summary none is
        known.
        """
        if self.foreign:
            return []
        since = self.head.messages_after if self.head else 0
        return reports_of(self.sources, [item.tokens for item in self.items], since)

    def with_meter_of(self, history: HistoryContext) -> View:
        """Return it with the tokens of each message as a corrected meter counts them."""
        engine = history.engine
        ratio = engine.meter.ratio
        items = tuple(
            replace(item, tokens=math.ceil(item.tokens * ratio), engine=engine)
            for item in self.items
        )
        return replace(self, history=history, items=items, uncorrected=self)

    def with_sizes(self, history: HistoryContext, sizes: Sequence[int], tokens: int) -> View:
        """Return it with `tokens` shared out among its messages, each in proportion to its size.

        The meter of `history` measures what is made of them, such as a summary, in the same tokens.
        """
        ratio = tokens / sum(sizes)
        bounds = [0, *(round(total * ratio) for total in accumulate(sizes))]
        items = tuple(
            replace(item, tokens=end - begin, engine=history.engine)
            for item, (begin, end) in zip(self.items, pairwise(bounds), strict=True)
        )
        uncorrected = self.uncorrected or self
        return replace(
            self, history=history, items=items, uncorrected=uncorrected, counted_size=self.size
        )


# Made of a history and its records


def view_of(
    history: HistoryContext,
    entries: Sequence[Message],
    chain: Chain,
    *,
    is_continuation: bool = False,
) -> View:
    """Fold the records of a thread over a history, and measure the view; see `fold`."""
    alternates = chain[-1].alternates if chain else not took_two_in_a_row(entries)
    folded = fold(chain, entries, is_continuation=is_continuation)
    as_dicts = any(isinstance(entry.source, dict) for entry in folded.entries)
    items = _items_of(history.engine, folded, as_dicts)
    return View(
        history=history,
        items=tuple(items),
        chain=folded.chain,
        entries=entries,
        as_dicts=as_dicts,
        dropped=folded.dropped,
        came_joined=folded.came_joined,
        alternates=alternates,
        joins_user_messages=must_join(history.engine, alternates, compacted=bool(folded.chain)),
        clients_own=folded.clients_own,
    )


def _items_of(engine: Engine, folded: Folded, as_dicts: bool) -> list[ViewItem]:
    """Return the messages of a view, with the summary in force among them."""
    entries = folded.entries
    newest = max((at for at, entry in enumerate(entries) if entry.role == "user"), default=-1)
    first = next((at for at, entry in enumerate(entries) if entry.role != "system"), -1)
    sealed = _newest_sealed(entries)
    standing, superseded = _standing_statements(entries)
    tools = tools_of(entries)
    items: list[ViewItem] = []
    for remaining in folded.remaining:
        place = remaining.place
        entry = entries[place]
        source, recorded_clip = _shown(entry, remaining, engine)
        is_pinned = place == sealed or place in standing
        is_pinned = is_pinned or (engine.pin is not None and engine.pin(entry.source))
        may_be_summary = not as_dicts or _may_be_unlabelled_summary(place, first, newest)
        is_summary = may_be_summary and not is_pinned and is_summary_message(source)
        item = ViewItem(
            key=remaining.key,
            role=entry.role,
            tokens=_tokens_of(entry, source, engine),
            calls=tuple(call.id for call in entry.calls if call.id),
            answers=entry.answers,
            needs=entry.needs,
            continues_reply=entry.continues_reply,
            pinned=is_pinned,
            summary=is_summary,
            clipped=recorded_clip is not None,
            tokens_for_keep=None
            if engine.surface.keep_count is None
            else engine.surface.keep_count(source),
            labelled=is_labelled_summary(entry),
            by_host=entry.role == "user" and is_host_message(entry),
            superseded=place in superseded,
            tools=tools[place],
            expendable=entry.role == "tool" and is_expendable(source),
            source=source,
            engine=engine,
            entry=entry,
            came_clipped=remaining.came_clipped,
            recorded_clip=recorded_clip,
        )
        items.append(item)
    items = _with_media_of_the_newest(items)
    noted = next((record for record in reversed(folded.chain) if record.summary), None)
    return items if noted is None else _with_summary_of(items, noted, engine, as_dicts)


def _shown(
    entry: Message, remaining: Remaining, engine: Engine
) -> tuple[Source, RecordedClip | None]:
    """Return a message as it is shown, and how it is clipped."""
    recorded = remaining.clip
    if recorded is None or remaining.came_clipped:
        return entry.source, recorded
    short = _clip_by(recorded, entry, engine)
    return (entry.source, None) if short is None else (short, recorded)


def _clip_by(recorded: RecordedClip, original: Message, engine: Engine) -> Source | None:
    """Show a message as its record did; None where it would come out in another way.

    Its tokens are counted in another way then. Sent back, it would not be known.
    """
    count = engine.meter.scaled(1.0).message
    short = clip_message(original, recorded.limit, count, recorded.pointer or ARCHIVED)
    if recorded.text_hash and clip_hash(read_messages([short])[0]) != recorded.text_hash:
        return None
    return short


def is_outdated_clip(item: ViewItem) -> bool:
    """Tell whether a message came back as an older record has clipped it, and not the newest."""
    if item.entry is None or item.recorded_clip is None or not item.came_clipped:
        return False
    return (
        bool(item.recorded_clip.text_hash) and clip_hash(item.entry) != item.recorded_clip.text_hash
    )


def clip_item_again(item: ViewItem, original: Message, engine: Engine) -> ViewItem:
    """Show a message that came back as an older record has clipped it as the newest does."""
    short = None if item.recorded_clip is None else _clip_by(item.recorded_clip, original, engine)
    if short is None:
        return item
    return replace(item, source=short, tokens=engine.meter.message(short))


def _tokens_of(entry: Message, source: Source, engine: Engine) -> int:
    """Measure a message as it is shown; what was measured of it once is remembered."""
    if source is entry.source:
        return engine.meter.entry(entry)
    return engine.meter.message(source)


def _newest_sealed(entries: Sequence[Message]) -> int:
    """Return the place of the newest message that its provider alone can read; -1 for none.

    It stands for all before it.
    """
    return max((at for at, entry in enumerate(entries) if entry.sealed), default=-1)


def _may_be_unlabelled_summary(place: int, first: int, newest: int) -> bool:
    """Tell whether a dict, which has no label, may be a summary: by its place alone.

    It stands first behind system messages, and is not the user's newest message.
    """
    return place == first and place != newest


def _with_media_of_the_newest(items: list[ViewItem]) -> list[ViewItem]:
    """Have images and files of the user's newest message stay."""
    place = newest_user_item(items)
    if place is None:
        return items
    newest = items[place]
    if newest.entry is None or not newest.entry.media:
        return items
    return [*items[:place], replace(newest, media_stay=True), *items[place + 1 :]]


def _standing_statements(entries: Sequence[Message]) -> tuple[set[int], set[int]]:
    """Return the places of hosts' statements that stand, and of those that newer ones replace.

    A host gives a date or the user's memory once a thread: the newest statement about each holds.
    """
    standing: set[int] = set()
    superseded: set[int] = set()
    stated: set[str] = set()
    for place in range(len(entries) - 1, -1, -1):
        topics = standing_topics(entries[place])
        if topics:
            (superseded if stated.issuperset(topics) else standing).add(place)
            stated.update(topics)
    return standing, superseded


def must_join(engine: Engine, alternates: bool, *, compacted: bool) -> bool:
    """Tell whether messages of the user in a row are joined in a view.

    Without a setting that demands it, a history of which nothing has left is sent as it came.
    """
    if engine.settings.alternate_roles == "on":
        return engine.joins_by_setting is not False
    is_asked_for = alternates if engine.joins_by_setting is None else engine.joins_by_setting
    return is_asked_for and compacted


def reports_of(
    messages: Sequence[Source], sizes: Sequence[int], since: int, *, thinks: bool = False
) -> list[UsageReport]:
    """Return the models' reports of usage from place `since` on.

    `thinks` says that an answer before that place had thoughts.
    """
    before = [0, *accumulate(sizes)]
    reports: list[UsageReport] = []
    for place in range(since, len(messages)):
        message = messages[place]
        # Of other messages pydantic takes long to say that they have none.
        usage = message.usage_metadata if is_ai_message(message) else None
        tokens = usage.get("input_tokens") if isinstance(usage, Mapping) else None
        if isinstance(tokens, int) and tokens > 0:  # a provider may report anything
            thinks = thinks or has_thoughts(message)
            reports.append(UsageReport(before[place], tokens, thinks))
    return reports


# The summary among the messages


def _with_summary_of(
    items: Sequence[ViewItem], record: Record, engine: Engine, as_dicts: bool
) -> list[ViewItem]:
    """Return a view with the summary of a record."""
    text = summary_text(record.summary, archived=record.archived, number=record.notes_number)
    message = summary_message(text, record.id, as_dict=as_dicts, name=engine.surface.summary_name)
    summary = ViewItem(
        key=f"summary:{record.id}",
        role="user",
        tokens=engine.meter.message(message),
        summary=True,
        tokens_for_keep=None
        if engine.surface.keep_count is None
        else engine.surface.keep_count(message),
        source=message,
    )
    return _with_summary(items, summary)


def _with_summary(items: Sequence[ViewItem], summary: ViewItem) -> list[ViewItem]:
    """Put a summary behind the leading system messages, before any request of the user."""
    others = (at for at, item in enumerate(items) if item.role != "system" or item.summary)
    place = next(others, len(items))
    return [*items[:place], summary, *items[place:]]


def view_after(view: View, remaining: Sequence[ViewItem], record: Record) -> View:
    """Return the view that is sent once a record is in force, as folding it would give it."""
    history = view.history
    engine = history.engine
    items = list(remaining)
    if record.summary:
        items = _with_summary_of(items, record, engine, view.as_dicts)
    return replace(
        view,
        items=tuple(items),
        chain=(*view.chain, record),
        stored_head="" if history.head_source.in_state else record.id,
        joins_user_messages=must_join(engine, view.alternates, compacted=True),
        counted_size=None,
    )


def provisional_summary_message(view: View, body: str, number: str = NO_NUMBER) -> Source:
    """Return the message of a summary whose record has no id yet."""
    history = view.history
    text = summary_text(body, archived=history.store.keeps_originals, number=number)
    name = history.engine.surface.summary_name
    return summary_message(text, NO_ID, as_dict=view.as_dicts, name=name)


def messages_to_send(
    view: View, items: Sequence[ViewItem], body: str | None = None, number: str = NO_NUMBER
) -> list[Source]:
    """Return what is sent after a compaction whose record has no id yet.

    Args:
        view: the view before it.
        items: what stays beside the summary.
        body: the text of the summary; None if there is none.
        number: the number of the notes, which stands in the summary message.
    """
    history = view.history
    items = list(items)
    if body is not None:
        message = provisional_summary_message(view, body, number)
        summary = ViewItem(
            key=f"summary:{NO_ID}", role="user", tokens=0, summary=True, source=message
        )
        items = _with_summary(items, summary)
    joined = must_join(history.engine, view.alternates, compacted=True)
    return replace(view, items=tuple(items), joins_user_messages=joined, counted_size=None).sent


# What a plan takes out


def clip_item(
    item: ViewItem, original: Message, planned_clip: PlannedClip, engine: Engine
) -> ViewItem:
    """Show an item short, from its whole original, with what makes it known again."""
    meter = engine.meter
    pointer = engine.clip_pointer
    assert pointer is not None, "nothing is clipped where nothing keeps originals"
    # A clip is made again whenever its history comes back whole, and must then be the same:
    # its limit is one of the estimate as it is without what was reported in between.
    limit = int(planned_clip.limit / meter.ratio)
    count = meter.scaled(1.0).message
    if item.media_stay:  # in less room than that they would become descriptions
        limit = max(limit, smallest_clip(original, count, pointer, media_stay=True))
    short = clip_message(original, limit, count, pointer)
    [read] = read_messages([short])
    if pointer.replace("{cite}", original.cite) not in read.reading:
        return item  # it says nowhere what it is short for
    if pointer == ARCHIVED:
        recorded = RecordedClip(item.key, clip_hash(read), limit)
    else:
        recorded = RecordedClip(item.key, "", limit, pointer)
    return replace(
        item, source=short, tokens=meter.message(short), clipped=True, recorded_clip=recorded
    )


def remaining_items(
    view: View, plan: Compact, clips: Mapping[int, ViewItem]
) -> tuple[ViewItem, ...]:
    """Return what stays in view beside the summary: the clips of a plan in their places."""
    evicted = set(plan.evicted)
    replaces_summaries = plan.makes_summary
    return tuple(
        clips.get(place, item)
        for place, item in enumerate(view.items)
        if place not in evicted
        and not (item.summary and (replaces_summaries or item.entry is None))
    )


def describe_users_behind_summary(
    view: View, evicted: set[int], clips: Mapping[int, ViewItem], *, fields: bool
) -> list[dict[str, Any]]:
    """Describe the messages of the user that will stand directly behind a new summary.

    With `fields` what they hold beside their content is part of it.
    """
    kept = [
        clips.get(place, item)
        for place, item in enumerate(view.items)
        if place not in evicted and not item.summary
    ]
    others = dropwhile(lambda item: item.role == "system", kept)
    users = takewhile(lambda item: item.role == "user" and not item.answers, others)
    return described_parts([item.source for item in users], fields=fields)
