"""Make views: of a history and its records, and of what a plan keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile
from typing import Any

from conspectus.core.exchanges import newest_user_item
from conspectus.core.plan_types import Compact
from conspectus.core.records import Chain, Record, RecordedClip
from conspectus.engine.clips import clip_by_record
from conspectus.engine.engine import Engine
from conspectus.engine.folding import Folded, Remaining, fold, is_marked_summary
from conspectus.engine.history import HistoryContext
from conspectus.engine.view import View, ViewItem
from conspectus.messages import (
    Message,
    Source,
    is_summary_message,
    summary_message,
    summary_text,
)
from conspectus.messages.alternation import (
    described_parts,
    took_two_in_a_row,
)
from conspectus.messages.framing import NO_NUMBER
from conspectus.messages.hosts import is_host_message, standing_topics
from conspectus.messages.message import is_expendable, tools_of

NO_ID = 16 * "0"
"""It takes the place of the id of a record that does not exist yet."""


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
        may_be_summary = not as_dicts or _may_be_unmarked_summary(place, first, newest)
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
            is_summary=is_summary,
            clipped=recorded_clip is not None,
            tokens_for_keep=None
            if engine.caller_format.keep_count is None
            else engine.caller_format.keep_count(source),
            is_marked_summary=is_marked_summary(entry),
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
    short = clip_by_record(recorded, entry, engine)
    return (entry.source, None) if short is None else (short, recorded)


def _tokens_of(entry: Message, source: Source, engine: Engine) -> int:
    """Measure a message as it is shown. The size of an unclipped message is remembered."""
    if source is entry.source:
        return engine.meter.count_entry(entry)
    return engine.meter.count_message(source)


def _newest_sealed(entries: Sequence[Message]) -> int:
    """Return the place of the newest message that only its provider can read; -1 for none.

    It replaces all messages before it.
    """
    return max((place for place, entry in enumerate(entries) if entry.sealed), default=-1)


def _may_be_unmarked_summary(place: int, first: int, newest: int) -> bool:
    """Tell whether a dict, which has no mark, may be a summary.

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
    valid: set[int] = set()
    superseded: set[int] = set()
    known_topics: set[str] = set()
    for place in range(len(entries) - 1, -1, -1):
        topics = standing_topics(entries[place])
        if topics:
            if known_topics.issuperset(topics):
                superseded.add(place)
            else:
                valid.add(place)
            known_topics.update(topics)
    return valid, superseded


def must_join(engine: Engine, may_need_joining: bool, *, compacted: bool) -> bool:
    """Tell whether messages of the user in a row are joined in a view.

    `compacted` says that messages have left the history.
    """
    if engine.joining == "if_needed":
        return may_need_joining and compacted
    return engine.joining == "always" or (engine.joining == "when_compacted" and compacted)


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
        tokens=engine.meter.count_message(message),
        is_summary=True,
        tokens_for_keep=None
        if engine.caller_format.keep_count is None
        else engine.caller_format.keep_count(message),
        source=message,
    )
    return _with_summary(items, summary)


def _with_summary(items: Sequence[ViewItem], summary: ViewItem) -> list[ViewItem]:
    """Put a summary after the leading system messages, before any message of the user."""
    others = (place for place, item in enumerate(items) if item.role != "system" or item.is_summary)
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
            key=f"summary:{NO_ID}", role="user", tokens=0, is_summary=True, source=message
        )
        items = _with_summary(items, summary)
    joined = must_join(history.engine, view.may_need_joining, compacted=True)
    return replace(view, items=tuple(items), joins_user_messages=joined, counted_size=None).sent


# What a plan keeps


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
        and not (item.is_summary and (replaces_summaries or item.is_summary_in_force))
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
        if place not in evicted and not item.is_summary
    ]
    others = dropwhile(lambda item: item.role == "system", kept)
    users = takewhile(lambda item: item.role == "user" and not item.answers, others)
    return described_parts([item.source for item in users], fields=fields)
