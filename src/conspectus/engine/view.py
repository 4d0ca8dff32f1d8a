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
from conspectus.core.plan_types import Compact, PlannedClip
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
    JoinedMessage,
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
"""It takes the place of the id of a record that does not exist yet."""

NEVER_CLIPPED = 80
"""Messages of up to so many tokens are never clipped: the pointer takes as many."""


@dataclass(kw_only=True)
class ViewItem(Item):
    """One message of the view: the item of a plan, with the message itself."""

    source: Source
    engine: Engine | None = None  # measures its least size when a plan asks for it
    entry: Message | None = None  # the message as it was sent; None for the summary in force
    came_clipped: bool = False  # the entry is a clip that came back, not the original
    recorded_clip: RecordedClip | None = None  # what its record says of it, if it is a clip
    media_stay: bool = False  # it is the user's newest message, whose images and files stay

    @property
    def is_summary_in_force(self) -> bool:
        """Whether it is the summary in force: of all items only this one has no entry."""
        return self.entry is None

    @property
    def foreign(self) -> bool:
        """Whether it is a summary without a record: another library's, or one that was pasted."""
        return self.summary and not self.is_summary_in_force

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
    """A history, with its records folded over it: what the model sees.

    `history.engine` has the meter by which the items were measured.
    """

    history: HistoryContext
    items: tuple[ViewItem, ...]
    chain: Chain  # the records that belong to the history
    entries: Sequence[Message]  # the caller's messages, as read
    as_dicts: bool  # the caller sends dicts, so the summary message is one
    dropped: int = 0  # messages that were left out because the records cover them
    stored_head_id: str = ""  # id of the record that the store names as in force; empty if none
    is_other_branch: bool = False  # the store names other records than those of this history
    received_joined: tuple[JoinedMessage, ...] = ()
    # no model has answered two messages of the user in a row in this history, so it may refuse them
    may_need_joining: bool = False
    joins_user_messages: bool = False  # messages of the user in a row are sent as one
    clients_own: frozenset[str] = frozenset()  # as in `Folded`
    uncorrected: View | None = None  # the same view, if its sizes were corrected
    counted_size: Size | None = None  # a size that was measured before its items were made

    @cached_property
    def head(self) -> Record | None:
        """The record in force."""
        return self.chain[-1] if self.chain else None

    @cached_property
    def head_id(self) -> str:
        """The id of the record in force; empty if there is none."""
        return self.head.id if self.head else ""

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
        """The messages of the view as they are sent: those of the user in a row may be joined."""
        if self.joins_user_messages:
            return alternating(self.sources, self.received_joined)
        return (
            rejoined(self.sources, self.received_joined) if self.received_joined else self.sources
        )

    @cached_property
    def size(self) -> Size:
        """The size of the view as it is sent, by a caller's counter or by the meter."""
        if self.counted_size is not None:
            return self.counted_size
        counted = self.history.engine.count_as_sent(self.sent)
        if counted is None:
            counted = sum(item.tokens for item in self.items)
        return Size(counted, len(self.items))

    @cached_property
    def reports(self) -> list[UsageReport]:
        """The models' reports of usage since the last compaction.

        Earlier reports counted messages that have left. After another library's summary no report
        can be used.
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
        """Return it with `tokens` divided among its messages, each in proportion to its size.

        The meter of `history` measures new messages, such as a summary, in the same tokens.
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


# A history and its records as a view


def view_of(
    history: HistoryContext,
    entries: Sequence[Message],
    chain: Chain,
    *,
    is_continuation: bool = False,
) -> View:
    """Fold the records of a thread over a history, and measure the view; see `fold`."""
    may_need_joining = chain[-1].may_need_joining if chain else not took_two_in_a_row(entries)
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
        received_joined=folded.received_joined,
        may_need_joining=may_need_joining,
        joins_user_messages=must_join(
            history.engine, may_need_joining, compacted=bool(folded.chain)
        ),
        clients_own=folded.clients_own,
    )


def _items_of(engine: Engine, folded: Folded, as_dicts: bool) -> list[ViewItem]:
    """Return the messages of a view, with the summary in force among them."""
    entries = folded.entries
    newest = max((place for place, entry in enumerate(entries) if entry.role == "user"), default=-1)
    first = next((place for place, entry in enumerate(entries) if entry.role != "system"), -1)
    sealed = _newest_sealed(entries)
    stated, superseded = _hosts_statements(entries)
    tools = tools_of(entries)
    items: list[ViewItem] = []
    for remaining in folded.remaining:
        place = remaining.place
        entry = entries[place]
        source, recorded_clip = _shown(entry, remaining, engine)
        is_pinned = place == sealed or place in stated
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
            if engine.caller_format.keep_count is None
            else engine.caller_format.keep_count(source),
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
    """Clip a message as its record did; None if the result would be another one.

    It is another one if tokens are counted in another way now. It would not be recognised when it
    comes back.
    """
    count = engine.meter.scaled(1.0).message
    short = clip_message(original, recorded.limit, count, recorded.pointer or ARCHIVED)
    if recorded.text_hash and clip_hash(read_messages([short])[0]) != recorded.text_hash:
        return None
    return short


def is_outdated_clip(item: ViewItem) -> bool:
    """Tell whether a message came back as an older record clipped it, not as the newest does."""
    if item.entry is None or item.recorded_clip is None or not item.came_clipped:
        return False
    return (
        bool(item.recorded_clip.text_hash) and clip_hash(item.entry) != item.recorded_clip.text_hash
    )


def clip_item_again(item: ViewItem, original: Message, engine: Engine) -> ViewItem:
    """Clip a message as the newest record does that came back as an older record clipped it."""
    short = None if item.recorded_clip is None else _clip_by(item.recorded_clip, original, engine)
    if short is None:
        return item
    return replace(item, source=short, tokens=engine.meter.message(short))


def _tokens_of(entry: Message, source: Source, engine: Engine) -> int:
    """Measure a message as it is shown. The size of an unclipped message is remembered."""
    if source is entry.source:
        return engine.meter.entry(entry)
    return engine.meter.message(source)


def _newest_sealed(entries: Sequence[Message]) -> int:
    """Return the place of the newest message that only its provider can read; -1 for none.

    It replaces all messages before it.
    """
    return max((place for place, entry in enumerate(entries) if entry.sealed), default=-1)


def _may_be_unlabelled_summary(place: int, first: int, newest: int) -> bool:
    """Tell whether a dict, which has no label, may be a summary.

    It must be the first message after system messages, and not the user's newest message.
    """
    return place == first and place != newest


def _with_media_of_the_newest(items: list[ViewItem]) -> list[ViewItem]:
    """Keep images and files of the user's newest message."""
    place = newest_user_item(items)
    if place is None:
        return items
    newest = items[place]
    if newest.entry is None or not newest.entry.media:
        return items
    return [*items[:place], replace(newest, media_stay=True), *items[place + 1 :]]


def _hosts_statements(entries: Sequence[Message]) -> tuple[set[int], set[int]]:
    """Return the places of hosts' statements that are valid, and of those that are replaced.

    A host states a date or the user's memory once for a thread. The newest statement about each
    topic is valid.
    """
    newest: set[int] = set()
    superseded: set[int] = set()
    known_topics: set[str] = set()
    for place in range(len(entries) - 1, -1, -1):
        topics = standing_topics(entries[place])
        if topics:
            (superseded if known_topics.issuperset(topics) else newest).add(place)
            known_topics.update(topics)
    return newest, superseded


def must_join(engine: Engine, may_need_joining: bool, *, compacted: bool) -> bool:
    """Tell whether messages of the user in a row are joined in a view.

    Only `alternate_roles="on"` joins them in a history from which nothing has left. A caller that
    joins them itself, later, has set `joins_by_setting` to False.
    """
    if engine.settings.alternate_roles == "on":
        return engine.joins_by_setting is not False
    is_asked_for = may_need_joining if engine.joins_by_setting is None else engine.joins_by_setting
    return is_asked_for and compacted


def reports_of(
    messages: Sequence[Source], sizes: Sequence[int], since: int, *, thinks: bool = False
) -> list[UsageReport]:
    """Return the models' reports of usage from the place `since` on.

    `thinks` says that an answer before that place had thoughts.
    """
    before = [0, *accumulate(sizes)]
    reports: list[UsageReport] = []
    for place in range(since, len(messages)):
        message = messages[place]
        # Other messages have no usage, and pydantic is slow to say so.
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
    message = summary_message(
        text, record.id, as_dict=as_dicts, name=engine.caller_format.summary_name
    )
    summary = ViewItem(
        key=f"summary:{record.id}",
        role="user",
        tokens=engine.meter.message(message),
        summary=True,
        tokens_for_keep=None
        if engine.caller_format.keep_count is None
        else engine.caller_format.keep_count(message),
        source=message,
    )
    return _with_summary(items, summary)


def _with_summary(items: Sequence[ViewItem], summary: ViewItem) -> list[ViewItem]:
    """Put a summary after the leading system messages, before any message of the user."""
    others = (place for place, item in enumerate(items) if item.role != "system" or item.summary)
    place = next(others, len(items))
    return [*items[:place], summary, *items[place:]]


def view_after(view: View, remaining: Sequence[ViewItem], record: Record) -> View:
    """Return the view that is sent once a record is in force. Folding the record gives the same."""
    history = view.history
    engine = history.engine
    items = list(remaining)
    if record.summary:
        items = _with_summary_of(items, record, engine, view.as_dicts)
    return replace(
        view,
        items=tuple(items),
        chain=(*view.chain, record),
        stored_head_id="" if history.head_source.in_state else record.id,
        joins_user_messages=must_join(engine, view.may_need_joining, compacted=True),
        counted_size=None,
    )


def provisional_summary_message(view: View, body: str, number: str = NO_NUMBER) -> Source:
    """Return the message of a summary whose record has no id yet."""
    history = view.history
    text = summary_text(body, archived=history.store.keeps_originals, number=number)
    name = history.engine.caller_format.summary_name
    return summary_message(text, NO_ID, as_dict=view.as_dicts, name=name)


def messages_to_send(
    view: View, items: Sequence[ViewItem], body: str | None = None, number: str = NO_NUMBER
) -> list[Source]:
    """Return what is sent after a compaction whose record has no id yet.

    Args:
        view: the view before it.
        items: what stays in addition to the summary.
        body: the text of the summary; None if there is none.
        number: the number of the notes in the summary message.
    """
    history = view.history
    items = list(items)
    if body is not None:
        message = provisional_summary_message(view, body, number)
        summary = ViewItem(
            key=f"summary:{NO_ID}", role="user", tokens=0, summary=True, source=message
        )
        items = _with_summary(items, summary)
    joined = must_join(history.engine, view.may_need_joining, compacted=True)
    return replace(view, items=tuple(items), joins_user_messages=joined, counted_size=None).sent


# What a plan clips and keeps


def clip_item(
    item: ViewItem, original: Message, planned_clip: PlannedClip, engine: Engine
) -> ViewItem:
    """Clip an item, from its whole original, and describe the clip so that it is recognised."""
    meter = engine.meter
    pointer = engine.clip_pointer
    assert pointer is not None, "nothing is clipped where nothing keeps originals"
    # A clip is made again whenever its history comes back whole, and it must then be the same. So
    # its limit is in tokens of the estimate, without the corrections of the meantime.
    limit = int(planned_clip.tokens / meter.ratio)
    count = meter.scaled(1.0).message
    if item.media_stay:  # in less room they would become descriptions
        limit = max(limit, smallest_clip(original, count, pointer, media_stay=True))
    short = clip_message(original, limit, count, pointer)
    [read] = read_messages([short])
    if pointer.replace("{cite}", original.cite) not in read.reading:
        return item  # the clip would not name its original
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
    """Return what stays in view, except the summary, with the clips of a plan in their places."""
    evicted = set(plan.evicted_places)
    replaces_summaries = plan.makes_summary
    return tuple(
        clips.get(place, item)
        for place, item in enumerate(view.items)
        if place not in evicted
        and not (item.summary and (replaces_summaries or item.is_summary_in_force))
    )


def describe_users_after_summary(
    view: View, evicted: set[int], clips: Mapping[int, ViewItem], *, fields: bool
) -> list[dict[str, Any]]:
    """Describe the messages of the user that will come directly after a new summary.

    With `fields` the description has what they hold in addition to their content.
    """
    kept = [
        clips.get(place, item)
        for place, item in enumerate(view.items)
        if place not in evicted and not item.summary
    ]
    others = dropwhile(lambda item: item.role == "system", kept)
    users = takewhile(lambda item: item.role == "user" and not item.answers, others)
    return described_parts([item.source for item in users], fields=fields)
