"""The view of one history: records folded over it, its messages measured and truncated.

A caller sends either its whole history or the view that it got back the last time, with the summary
message of a record. Records that do not fit the history are dropped, never trusted.

Where the view has no two messages of the user in a row, the summary is one message with those that
follow it. One that comes back is taken apart by its record before anything else is looked for.

Users paste summaries and clips, and agents repeat them. A clip is known once: where it comes first,
and not behind the summary that covers its original. A LangChain message bears our mark; a dict has
none. Without marks one summary is known, in the user's role, before any answer of the agent; others
are messages, so that a pasted one brings no abandoned branch back. Messages after a summary are
counted on from the covered ones, so that repeated words are another message.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, dropwhile, pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from conspectus._langchain import is_ai_message
from conspectus.core.items import Clip, Compact, Item, Size, newest_user
from conspectus.core.records import Chain, ClipMark, Record
from conspectus.engine.sliding import begun_later, content_of
from conspectus.messages import (
    SUMMARY_LINE,
    Message,
    Source,
    is_summary_message,
    read_message,
    read_messages,
    summary_message,
    summary_text,
)
from conspectus.messages.alternation import (
    Came,
    alternating,
    as_it_came,
    bears_joined_mark,
    described_parts,
    taken_apart,
    took_two_in_a_row,
)
from conspectus.messages.framing import NO_MARK, summary_names
from conspectus.messages.hosts import is_host_message, standing_topics
from conspectus.messages.message import (
    has_thoughts,
    is_expendable,
    name_entries,
    occurrences,
    tools_of,
)
from conspectus.messages.shortening import ARCHIVED, POINTER, clip, smallest_clip
from conspectus.tokens import Report

if TYPE_CHECKING:
    from conspectus.engine.settings import Engine

NO_ID = 16 * "0"  # In the place of the id of a record that is not made yet
SMALL = 80  # Messages of up to this many tokens are never clipped: the pointer takes as much


class Remaining(NamedTuple):
    """One message of the view: its position in the history as sent, and its original's key."""

    position: int
    key: str
    clip: ClipMark | None  # how it is truncated
    back: bool  # it came back clipped, so its text is not the original's


class Folded(NamedTuple):
    """The view of a history, by the records that fit it."""

    chain: Chain
    entries: list[Message]  # of the history, each message that came joined taken apart
    remaining: list[Remaining]
    dropped: int  # messages that were left out because the records cover them
    came: tuple[Came, ...] = ()  # those that came joined
    # keys of messages that the client has put in the place of others, such as its own summary
    apart: frozenset[str] = frozenset()


def fold(chain: Chain, entries: list[Message], *, goes_on: bool = False) -> Folded:
    """Return the view of a history, given the records of its thread; messages get their keys.

    The history may begin later than the records do; see `sliding`, also for `goes_on`.

    What drops a record: it comes after a summary message that came back. In a history without one,
    its messages are not there from some place on, unchanged and in order, or it covers the user's
    newest message, which a client has gone back to, to ask it again.
    """
    if not chain:
        whole = (Remaining(i, entry.key, None, False) for i, entry in enumerate(entries))
        return Folded((), entries, list(whole), 0)
    entries, came = _parted(entries, chain)
    summaries = _summaries(entries, chain)
    clips = _clips(entries, chain, summaries)
    keys = [clips[i][1] if i in clips else entry.key for i, entry in enumerate(entries)]
    number = summaries[max(summaries)] if summaries else None
    apart = frozenset[str]()
    if number is None:
        live, entries, keys, apart = _fitting_or_begun_later(chain, entries, keys, goes_on)
    else:
        behind = max(summaries) + 1
        newer = _fitting(chain[number + 1 :], entries[behind:], keys[behind:])
        live = (*chain[: number + 1], *newer)
    covered = {key for record in live for key in record.covers}
    marks = {mark.key: mark for record in live for mark in record.clips}
    back = {(mark.shown, mark.key) for record in live for mark in record.clips}
    remaining, dropped = list[Remaining](), 0
    for index, entry in enumerate(entries):
        if summaries.get(index, len(live)) < len(live):
            continue  # the standing summary takes its place
        came_back = clips.get(index) in back
        key = keys[index] if came_back else entry.key
        if key in covered:  # none after a summary: it has another key there
            dropped += 1
        else:
            remaining.append(Remaining(index, key, marks.get(key), came_back))
    return Folded(live, entries, remaining, dropped, came, apart)


def _parted(entries: list[Message], chain: Chain) -> tuple[list[Message], tuple[Came, ...]]:
    """Take messages apart that begin with a summary of the chain, as views have joined them.

    A dict is only taken for one before any answer of the agent: elsewhere somebody has pasted it.
    """
    parted: list[Message] = []
    came: list[Came] = []
    may_be_joined = True
    for entry in entries:
        parts = None
        begins = entry.role == "user" and entry.text.startswith(SUMMARY_LINE)
        if begins and (may_be_joined or bears_joined_mark(entry.source)):
            summaries = (record for record in reversed(chain) if record.summary)
            tries = (taken_apart(entry.source, record) for record in summaries)
            parts = next(filter(None, tries), None)
        may_be_joined = may_be_joined and parts is None and entry.role in ("system", "user")
        if parts is None:
            parted.append(entry)
        else:
            parted += map(read_message, parts)
            came.append(Came(entry.source, tuple(parts)))
    if not came:
        return entries, ()
    name_entries(parted)
    return parted, tuple(came)


def _fitting_or_begun_later(
    chain: Chain, entries: list[Message], keys: list[str], goes_on: bool
) -> tuple[Chain, list[Message], list[str], frozenset[str]]:
    """Return the leading records that fit a history without a summary, its messages, their keys.

    The last are the keys of those that the client has put in the place of others. Where the history
    begins later than the records, equal messages are counted on from those that are missing, so
    that repeated words are another message.
    """
    live = _fitting(chain, entries, keys)
    contents = [content_of(key) for key in keys]
    for count in range(len(chain), len(live), -1):
        begun = begun_later(chain[:count], entries, contents, goes_on=goes_on)
        if begun is None:
            continue
        start, missing, own = begun
        behind = entries[start:]
        before = occurrences([*keys[:start], *missing])
        name_entries(behind, before, {0: missing})
        clipped = {at for at, key in enumerate(keys) if key != entries[at].key}
        renamed = [*entries[:start], *behind]
        named = [keys[at] if at in clipped else one.key for at, one in enumerate(renamed)]
        return chain[:count], renamed, named, frozenset(named[at] for at in own)
    return live, entries, keys, frozenset()


def _fitting(chain: Chain, entries: list[Message], keys: list[str]) -> Chain:
    """Return the leading records whose messages a whole history holds, in order."""
    place = _newest_of_user(entries)
    newest = None if place is None else keys[place]
    positions = {key: index for index, key in enumerate(keys)}
    taken: set[str] = set()
    for count, record in enumerate(chain):
        before = -1
        for key in record.covers:
            if key == newest or key in taken or positions.get(key, -1) <= before:
                return tuple(chain[:count])
            before = positions[key]
            taken.add(key)
        if not all(mark.key in positions for mark in record.clips):
            return tuple(chain[:count])
    return tuple(chain)


def _newest_of_user(entries: Sequence[Message]) -> int | None:
    """Return the place of the user's newest message, by the rule of `core.items.newest_user`."""
    in_role = [i for i, entry in enumerate(entries) if entry.role == "user"]
    unmarked = [i for i in in_role if not bears_mark(entries[i])]
    of_user = (i for i in reversed(unmarked) if not is_host_message(entries[i]))
    return next(of_user, unmarked[-1] if unmarked else None)


def _standing_statements(entries: Sequence[Message]) -> tuple[set[int], set[int]]:
    """Return the places of hosts' statements that stand, and of those that newer ones replace.

    A host gives a date or the user's memory once a thread: the newest statement about each holds.
    """
    standing: set[int] = set()
    superseded: set[int] = set()
    stated: set[str] = set()
    for i in range(len(entries) - 1, -1, -1):
        topics = standing_topics(entries[i])
        if topics:
            (superseded if stated.issuperset(topics) else standing).add(i)
            stated.update(topics)
    return standing, superseded


def bears_mark(entry: Message) -> bool:
    """Return whether a message is marked as a summary; dicts cannot be."""
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def may_be_summaries(entries: Sequence[Message], *, marked: bool) -> list[str]:
    """Name the summaries whose records are not in force but may belong here, last first.

    One without our mark counts only where the view puts a summary, and not with `marked`.
    """
    first = next((i for i, entry in enumerate(entries) if entry.role != "system"), -1)
    names = [
        name
        for i, entry in reversed([*enumerate(entries)])
        if entry.text.startswith(SUMMARY_LINE)
        and (
            bears_mark(entry)
            or bears_joined_mark(entry.source)
            or (i == first and entry.role == "user" and not marked)
        )
        for name in summary_names(entry.text)
    ]
    return list(dict.fromkeys(names))


def _summaries(entries: Sequence[Message], chain: Chain) -> dict[int, int]:
    """Map messages that are summaries of the chain to the number of their record.

    The text must be equal. If one of several bears our mark, the others are pasted messages.
    Without marks it is the first one of the user before any answer of the agent.
    """
    equal: dict[int, int] = {}
    for i, entry in enumerate(entries):
        if entry.text.startswith(SUMMARY_LINE):
            for number, record in reversed([*enumerate(chain)]):
                body = record.summary
                if body and body in entry.text and entry.text == summary_text(
                    body, archived=record.archived, mark=record.mark
                ):  # fmt: skip
                    equal[i] = number
                    break
    if not equal:
        return {}
    if marked := {i: number for i, number in equal.items() if bears_mark(entries[i])}:
        return marked
    roles = [entry.role for entry in entries]
    answer = next((i for i, role in enumerate(roles) if role in ("assistant", "tool")), len(roles))
    at = next((i for i in equal if roles[i] == "user" and i < answer), None)
    return {} if at is None else {at: equal[at]}


def clip_text(entry: Message) -> str:
    """Hash a clip with its role and calls; return an empty text for other messages."""
    if POINTER not in entry.reading:
        return ""
    parts = "\0".join((entry.role, *entry.answers, entry.reading))
    return hashlib.sha256(parts.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _clips(
    entries: list[Message], chain: Chain, summaries: Mapping[int, int]
) -> dict[int, tuple[str, str]]:
    """Map messages that are clips to the hash of their text and the key of their original.

    Messages get new keys where a summary or a clip replaces some, which count too.
    """
    at = max(summaries, default=len(entries))
    below = chain[: summaries[at] + 1] if summaries else ()
    covered = [key for record in below for key in record.covers]
    waiting: dict[str, list[str]] = {}  # the originals of each text
    for mark in (mark for record in chain for mark in record.clips if mark.shown):
        if mark.key not in (keys := waiting.setdefault(mark.shown, [])):
            keys.append(mark.key)
    known = {key for keys in waiting.values() for key in keys}
    answered, taken, clips = set(covered), set[str](), dict[int, tuple[str, str]]()
    for i, entry in enumerate(entries) if waiting else ():
        text = clip_text(entry)
        left = waiting.get(text, [])
        while left and (left[0] in taken or (i > at and left[0] in answered)):
            left.pop(0)
        key = left[0] if left else entry.key
        if key in known:
            taken.add(key)
        if left:
            clips[i] = text, key
    missing = {i: [key] for i, (_, key) in clips.items()}
    if summaries:
        missing[at] = covered
    if missing:
        stems = {entry.stem for entry in entries}
        gone = (*covered, *(key for _, key in clips.values()))
        again = occurrences(k for k in gone if "-" in k and k.partition("-")[0] in stems)
        name_entries(entries, again, missing)
    return clips


# The view


@dataclass(kw_only=True)
class ViewItem(Item):
    """One message of the view: the item that is planned over, with the message itself."""

    source: Source
    engine: Engine | None = None  # by which its least size is measured, once a plan asks for it
    entry: Message | None = None  # the message as it was sent; None for the standing summary
    back: bool = False  # the entry is a clip that came back, not the original
    mark: ClipMark | None = None  # the mark of its clip, if it is truncated
    media_stay: bool = False  # it is the user's newest message, whose images and files stay
    # it is a summary without a record: another library's, or one that was pasted
    foreign: bool = False

    @cached_property
    def least(self) -> int:
        entry, engine = self.entry, self.engine
        if engine is None or engine.where is None or entry is None or self.tokens <= SMALL:
            return self.tokens
        count, media = engine.meter.message, self.media_stay
        return min(self.tokens, smallest_clip(entry, count, engine.where, media_stay=media))


@dataclass
class History:
    """One history, read and folded."""

    items: tuple[ViewItem, ...]
    chain: Chain
    dropped: int
    like: type  # the caller's kind of message
    engine: Engine
    came: tuple[Came, ...] = ()
    # no model has answered two messages of the user in a row in it
    alternates: bool = False
    joins: bool = False  # so views have none either
    apart: frozenset[str] = frozenset()  # as in `Folded`
    head: Record | None = field(init=False)
    head_id: str | None = field(init=False)
    sources: list[Source] = field(init=False)
    foreign: bool = field(init=False)  # a summary of another library is in view

    def __post_init__(self) -> None:
        self.head = self.chain[-1] if self.chain else None
        self.head_id = self.head.id if self.head else None
        self.sources = [item.source for item in self.items]
        self.foreign = any(item.foreign for item in self.items)

    @cached_property
    def sent(self) -> list[Source]:
        """The messages of the view as they are sent, those of the user in a row joined."""
        if self.joins:
            return alternating(self.sources, self.came)
        return as_it_came(self.sources, self.came) if self.came else self.sources

    @cached_property
    def size(self) -> Size:
        """The size of the view as it is sent: by a caller's counter, or else of its messages."""
        counted = self.engine.counted(self.sent)
        tokens = sum(item.tokens for item in self.items) if counted is None else counted
        return Size(tokens, len(self.items))

    def reports(self) -> list[Report]:
        """Return the models' reports of usage since the last compaction.

        Earlier answers measured messages that have left. After another library's summary none is
        known.
        """
        since = self.head.messages_after if self.head else 0
        sizes = [item.tokens for item in self.items]
        return [] if self.foreign else reports_of(self.sources, sizes, since)

    def measured_by(self, engine: Engine) -> History:
        """Return it with the tokens of each message as a corrected meter counts them."""
        ratio, items = engine.meter.ratio, self.items
        scaled = (replace(i, tokens=math.ceil(i.tokens * ratio), engine=engine) for i in items)
        return replace(self, items=tuple(scaled), engine=engine)

    def shared_out(self, engine: Engine, sizes: Sequence[int], tokens: int) -> History:
        """Return it with `tokens` shared out among its messages, each in proportion to its size.

        `engine` measures what is made of them, such as a summary, in the same tokens.
        """
        ratio = tokens / sum(sizes)
        bounds = [0, *(round(total * ratio) for total in accumulate(sizes))]
        items = tuple(
            replace(item, tokens=end - begin, engine=engine)
            for item, (begin, end) in zip(self.items, pairwise(bounds), strict=True)
        )
        shared = replace(self, items=items, engine=engine)
        shared.size = self.size
        return shared


def history_of(
    engine: Engine, entries: list[Message], chain: Chain, *, goes_on: bool = False
) -> History:
    """Fold the records of a thread over a history, and measure the view; see `fold`."""
    alternates = chain[-1].alternates if chain else not took_two_in_a_row(entries)
    folded = fold(chain, entries, goes_on=goes_on)
    entries = folded.entries
    meter, keep_count, pin = engine.meter, engine.keep_count, engine.pin
    like = dict if any(isinstance(entry.source, dict) for entry in entries) else object
    newest = max((i for i, e in enumerate(entries) if e.role == "user"), default=-1)
    first = next((i for i, e in enumerate(entries) if e.role != "system"), -1)
    # The newest stands for all before it.
    sealed = max((i for i, e in enumerate(entries) if e.sealed), default=-1)
    standing, superseded = _standing_statements(entries)
    tools, items = tools_of(entries), list[ViewItem]()
    for index, key, mark, back in folded.remaining:
        entry, source = entries[index], entries[index].source
        if mark is not None and not back:
            short = clip(entry, mark.limit, meter.scaled(1.0).message, mark.where or ARCHIVED)
            if not mark.shown or clip_text(read_messages([short])[0]) == mark.shown:
                source = short
            else:  # another way to count: sent back, it would not be known for a clip
                mark = None
        pinned = index == sealed or index in standing or (pin is not None and pin(entry.source))
        alone = like is not dict or (index == first and index != newest)
        summary = alone and not pinned and is_summary_message(source)
        item = ViewItem(
            key=key,
            role=entry.role,
            tokens=meter.entry(entry) if source is entry.source else meter.message(source),
            calls=tuple(call.id for call in entry.calls if call.id),
            answers=entry.answers,
            needs=entry.needs,
            joined=entry.joined,
            pinned=pinned,
            summary=summary,
            foreign=summary,
            clipped=mark is not None,
            counted=-1 if keep_count is None else keep_count(source),
            marked=bears_mark(entry),
            hosts=entry.role == "user" and is_host_message(entry),
            superseded=index in superseded,
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
    noted = next((record for record in reversed(folded.chain) if record.summary), None)
    if noted is not None:
        _put_summary(items, noted, engine, like)
    folds: Any = {"came": folded.came, "alternates": alternates, "apart": folded.apart}
    view = History(tuple(items), folded.chain, folded.dropped, like, engine, **folds)
    view.joins = joins(engine, view, compacted=bool(view.chain))
    return view


def joins(engine: Engine, view: History, *, compacted: bool) -> bool:
    """Tell whether messages of the user in a row are joined in a view.

    Without a setting that demands it, a history of which nothing has left is sent as it came.
    """
    if engine.settings.alternate_roles == "on":
        return engine.alternate is not False
    wanted = view.alternates if engine.alternate is None else engine.alternate
    return wanted and compacted


def _put_summary(items: list[ViewItem], record: Record, engine: Engine, like: type) -> None:
    """Put the summary behind the leading system messages, before any request of the user."""
    text = summary_text(record.summary, archived=record.archived, mark=record.mark)
    message = summary_message(text, record.id, like=like, name=engine.summary_name)
    counted = -1 if engine.keep_count is None else engine.keep_count(message)
    name, tokens = f"summary:{record.id}", engine.meter.message(message)
    summary = ViewItem(name, "user", tokens, summary=True, counted=counted, source=message)
    _insert_summary(items, summary)


def _insert_summary(items: list[ViewItem], summary: ViewItem) -> None:
    others = (i for i, item in enumerate(items) if item.role != "system" or item.summary)
    items.insert(next(others, len(items)), summary)


def sent_with(
    history: History,
    items: Sequence[ViewItem],
    engine: Engine,
    body: str | None = None,
    mark: str = NO_MARK,
) -> list[Source]:
    """Return what is sent after a compaction whose record has no id yet, with this summary."""
    items = list(items)
    if body is not None:
        text = summary_text(body, archived=engine.archive is not None, mark=mark)
        message = summary_message(text, NO_ID, like=history.like)
        summary = ViewItem(f"summary:{NO_ID}", "user", 0, summary=True, source=message)
        _insert_summary(items, summary)
    after = replace(history, items=tuple(items))
    after.joins = joins(engine, after, compacted=True)
    return after.sent


def reports_of(messages: Sequence[Source], sizes: Sequence[int], since: int) -> list[Report]:
    """Return the models' reports of usage from place `since` on."""
    before, reports, thinks = [0, *accumulate(sizes)], list[Report](), False
    for i in range(since, len(messages)):
        message = messages[i]
        # Of other messages pydantic takes long to say that they have none.
        usage = message.usage_metadata if is_ai_message(message) else None
        tokens = usage.get("input_tokens") if isinstance(usage, Mapping) else None
        if isinstance(tokens, int) and tokens > 0:  # a provider may report anything
            thinks = thinks or has_thoughts(message)
            reports.append(Report(before[i], tokens, thinks))
    return reports


# Truncated messages


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
    short = clip(original, limit, meter.scaled(1.0).message, where)
    read = read_messages([short])[0]
    if where.replace("{cite}", original.cite) not in read.reading:
        return item  # it says nowhere what it is short for
    text, elsewhere = (clip_text(read), "") if where == ARCHIVED else ("", where)
    mark = ClipMark(item.key, text, limit, elsewhere)
    return replace(item, source=short, tokens=meter.message(short), clipped=True, mark=mark)


def staying(history: History, plan: Compact, clips: Mapping[int, ViewItem]) -> list[ViewItem]:
    """Return what stays in view beside the summary: the clips of a plan in their places."""
    gone = set(plan.evicted)
    summarised = bool(plan.summary_tokens)
    return [
        clips.get(index, item)
        for index, item in enumerate(history.items)
        if index not in gone and not (item.summary and (summarised or item.entry is None))
    ]


def view_after(
    history: History, remaining: Sequence[ViewItem], record: Record, engine: Engine
) -> History:
    """Return the view that is sent once a record is in force, as folding it would give it."""
    items = list(remaining)
    if record.summary:
        _put_summary(items, record, engine, history.like)
    chain = (*history.chain, record)
    after = replace(history, items=tuple(items), chain=chain, engine=engine)
    after.joins = joins(engine, after, compacted=True)
    return after


def behind_summary(
    history: History, gone: set[int], clips: Mapping[int, ViewItem], *, fields: bool
) -> list[dict[str, Any]]:
    """Describe the messages of the user that will stand directly behind a new summary.

    With `fields` what they hold beside their content is part of it.
    """
    stay = [
        clips.get(index, item)
        for index, item in enumerate(history.items)
        if index not in gone and not item.summary
    ]
    others = dropwhile(lambda item: item.role == "system", stay)
    run = takewhile(lambda item: item.role == "user" and not item.answers, others)
    return described_parts([item.source for item in run], fields=fields)
