"""One agent's history in one thread: its records and drafts, its view, its plan.

With an archive a process remembers pauses of a session alone, and failures stand in the archive,
where each process finds them. Without one it holds the records too, so that a history sent whole
again is not summarised again.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID

from conspectus._newest import Newest
from conspectus.archive import Scope
from conspectus.bridge import home, is_held, pause
from conspectus.core.items import Compact, Keep, Plan, Size, Window, highest
from conspectus.core.plan import BELOW, foreseen, plan
from conspectus.core.policy import EMBEDDED, REARM, grown, keep_tokens
from conspectus.core.records import Chain, Draft, Record, from_plain, to_plain
from conspectus.engine.sliding import RECENT, answered, contents_of, goes_on_from
from conspectus.engine.view import History, fold, history_of, may_be_summaries
from conspectus.errors import ArchiveError, InputError
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.reading import CHARACTERS, THREADS
from conspectus.model.base import LastRequest
from conspectus.observe import log
from conspectus.tokens import Report, correction

if TYPE_CHECKING:
    from conspectus.engine.result import Seen
    from conspectus.engine.settings import Engine

PREPARE = 0.7
"""Share of the trigger from which on notes are prepared. In windows with a tenth of room above the
trigger, four tenths of it outlast a summary of 30 seconds."""

MOST_SCALE = 2.0
"""How many times as much, or as little, as its messages alone a list may take where each of them
still says its share."""

SUMMARY_FLOOR = 120  # Tokens beside its frame below which a summary holds little more than one rule

FAILED_BEFORE = (
    "the last compaction, at %d messages, failed or was refused; it is tried again once the "
    "history has grown by a tenth, or by more after failures in a row, or no longer fits the window"
)
ANOTHER = (
    "the history sent for thread %r does not go on from its summaries: it went back to before "
    "them, is another conversation, or the archive is an older copy of itself; recall searches "
    "this history alone from now on; give each conversation a thread_id of its own"
)

FAILED, SUMMARY, PREPARATION = "failed", "summary", "preparation"
"""The kind of a note about a failure, and its names."""

LOCAL = "local"  # The tenant where none is named
ThreadId = str | int | UUID

MOST_TIMES = 8  # Failures in a row after which a history must double before the next try
KEPT = 8  # Drafts, and chains, in memory for each session
LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two looks at the work of another worker, and after which it is taken as lost."""

_WRITING: dict[tuple[int, Scope, str], tuple[int, object]] = {}
"""The drafts that workers of this process are writing, each with the thread that it needs."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WRITING.clear)


def scope_of(tenant: str | None, thread_id: ThreadId, session: str) -> Scope:
    """Name a history; raise `InputError` for a name that is empty or no text."""
    if isinstance(thread_id, (int, UUID)) and not isinstance(thread_id, bool):
        thread_id = str(thread_id)
    for name, value in (("thread_id", thread_id), ("tenant", tenant), ("session", session)):
        if not (isinstance(value, str) and value) and not (name == "tenant" and value is None):
            raise InputError(f"{name} must be a text that is not empty, not {value!r}")
    return Scope(LOCAL if tenant is None else tenant, str(thread_id), session)


@dataclass(frozen=True, slots=True)
class FailedSummary:
    """A summary that failed, or that a person refused."""

    head: str | None
    trigger_size: Size  # the size of the history as its trigger counts
    size: Size  # the size as the meter counts
    over: bool  # it did not fit the window
    times: int = 1  # failures in a row

    @property
    def last(self) -> Size:
        """The size from which the next try is a tenth away; each failure in a row adds a tenth."""
        return foreseen(self.trigger_size, REARM ** (1 - min(self.times, MOST_TIMES)))

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(to_plain(self))

    @classmethod
    def read(cls, data: Any) -> FailedSummary | None:
        """Read what `to_json` wrote; None for anything else."""
        try:
            return from_plain(cls, data) if data else None
        except TypeError:
            return None


@dataclass(slots=True)
class SessionMemory:
    """What this process remembers of one session."""

    # where there is no archive, the records in force, other chains by the name of their head, and
    # drafts by the name of their plan
    chain: Chain = ()
    chains: Newest[str, Chain] = field(default_factory=lambda: Newest(KEPT))
    drafts: Newest[str, Draft] = field(default_factory=lambda: Newest(KEPT))
    failed: FailedSummary | None = None  # the latest summary, if it failed
    last_request: LastRequest | None = None  # the agent's last request that was answered
    answered: int = 0  # number of its requests that were
    recent: Sequence[str] = ()  # the contents of the history that was read last, by their keys
    told: set[object] = field(default_factory=set)  # settings that were said to be too tight

    def failure(self, head: str | None, messages: int, over: bool) -> FailedSummary | None:
        """Return the latest failure, if it is of the history as it is now.

        A history that no longer fits the window is tried once more. A shorter one has gone back.
        """
        failed = self.failed
        if failed is None or failed.head != head or messages < failed.size.messages:
            return None
        return None if over and not failed.over else failed


class Memory:
    """The bounded memory of a process: of sessions, and of histories as read."""

    def __init__(self) -> None:
        self._sessions: Newest[Scope, SessionMemory] = Newest(THREADS)
        self.histories: Newest[Scope, Seen] = Newest(THREADS, CHARACTERS, attrgetter("characters"))

    def of(self, scope: Scope) -> SessionMemory:
        return self._sessions.get_or_make(scope, SessionMemory)


@asynccontextmanager
async def alone(thread: Thread, draft: str) -> AsyncIterator[None]:
    """Wait until no other worker of this process writes a draft of this name.

    Nobody waits for work that needs the thread which would wait, or one that has ended.
    """
    key = (id(thread.engine.archive or thread.engine.memory), thread.scope, draft)
    mine, until = (home(), object()), monotonic() + LONGEST_LOOK
    while (writer := _WRITING.setdefault(key, mine)) is not mine and monotonic() < until:
        lives = any(one.ident == writer[0] for one in threading.enumerate())
        if not lives or is_held(writer[0]):
            break
        await pause(LOOK_AGAIN)
    try:
        yield
    finally:
        if _WRITING.get(key) is mine:
            del _WRITING[key]


@dataclass(slots=True)
class Thread:
    """One agent's history in one thread.

    For a caller with messages alone, the archive's pointer or this process's memory names the
    head. A graph has the head in its state, so that each checkpoint keeps its own.
    """

    engine: Engine
    scope: Scope
    room: Window | None = None  # the window; None if it is unknown
    # the id of the record in force, or without an archive the records, where the caller's state has
    # it; None where the pointer or the memory has it
    head: Chain | str | None = None
    # a checkpointer keeps that state; else callers may send messages alone
    checkpointed: bool = False
    # the caller's own name of a record, for the archive
    names: Callable[[Record], str] | None = None
    # the size that the trigger is compared with, if the caller counts in its own way
    trigger_size: Size | None = None
    # the size of a view as the trigger counts; None where that is the meter's
    count_view: Callable[[Sequence[Any]], Size] | None = None
    last: Size | None = None  # the size that the latest compaction reached, counted likewise
    # the correction of the estimate by reports of usage, if the caller knows it
    ratio: float | None = None
    # the caller knows that the history goes on from the record in force, wherever it begins
    goes_on: bool = False
    draft_only: bool = False  # drafts are made in the background, and nothing is put in force
    # the record that the archive's pointer named at the last look; empty for none
    pointer: str = ""

    @property
    def budget(self) -> int | None:
        return None if self.room is None else self.room.budget

    def tell_too_tight(self, plan: Compact) -> None:
        """Log once which setting leaves too little room after a compaction."""
        policy, told = self.engine.policy, self.engine.memory.of(self.scope).told
        setting = (policy.keep, policy.trigger, self.room and self.room.limit)
        if plan.tight and setting not in told:
            told.add(setting)
            log("too_tight", "%s", plan.tight)

    def over(self, size: Size) -> bool:
        return self.room is not None and size.tokens > self.room.budget

    # Records and drafts: in the archive, or without one in this process's memory

    async def in_force(self) -> Chain | str:
        """Look what is in force, for a caller with messages alone."""
        archive = self.engine.archive
        if archive is None:
            return self.engine.memory.of(self.scope).chain
        pointer: str | None = await archive.flow(archive.pointer, self.scope)
        self.pointer = pointer or ""
        return self.pointer

    async def chain(self) -> Chain:
        """Return the records in force, the oldest first."""
        archive, head = self.engine.archive, self.head
        if head is None:
            head = await self.in_force()
        if archive is None or isinstance(head, tuple):
            return head if isinstance(head, tuple) else ()
        return (await archive.flow(archive.chain_at, self.scope, head)) if head else ()

    async def commit(self, chain: Chain, record: Record) -> None:
        """Put a record in force on top of a chain; raise `ArchiveError` if that fails."""
        assert not self.draft_only, "what is prepared is not put in force"
        archive = self.engine.archive
        if archive is None:
            if self.head is None or not self.checkpointed:
                memory = self.engine.memory.of(self.scope)
                memory.chain = (*chain, record)
                memory.chains.put(record.name, memory.chain)
        elif self.head is None:
            await archive.flow(archive.commit, self.scope, record, seen=self.pointer)
        else:
            # Branches of one thread share the pointer, which is for readers without a state.
            await archive.flow(archive.commit, self.scope, record, alone=False)
            if self.names is not None:
                note = {self.names(record): {"id": record.id}}
                await archive.flow(archive.note, self.scope, "record", note)

    async def find_draft(self, name: str) -> Draft | None:
        archive = self.engine.archive
        if archive is None:
            return self.engine.memory.of(self.scope).drafts.get(name)
        return await archive.flow(archive.find_draft, self.scope, name)

    async def save_draft(self, name: str, draft: Draft) -> None:
        archive = self.engine.archive
        if archive is None:
            self.engine.memory.of(self.scope).drafts.put(name, draft)
        else:
            await archive.flow(archive.save_draft, self.scope, name, draft)

    # Failures: in the archive, for every process and every instance

    async def recall_failure(self, history: History, plan: Plan) -> bool:
        """Take over a failure of this history that somebody has noted; return whether there is one.

        It is looked for only where a plan asks for a summary.
        """
        if not (isinstance(plan, Compact) and plan.summary_tokens):
            return False
        memory = self.engine.memory.of(self.scope)
        noted, known = await self._noted(SUMMARY), memory.failed
        if noted is None or noted == known or noted.head != history.head_id:
            return False
        if known is not None and known.head == noted.head and known.times > noted.times:
            return False
        memory.failed = noted
        return True

    async def note_failure(self, failed: FailedSummary | None, what: str = "") -> None:
        """Note a failure in the archive, or with None that it is over."""
        archive = self.engine.archive
        if archive is None:
            return
        note = {} if failed is None else failed.to_json()
        try:
            await archive.flow(archive.note, self.scope, FAILED, {what or SUMMARY: note})
        except ArchiveError as error:
            log("failure_not_noted", "other processes do not know of this failure: %s", error)

    async def has_prepared_in_vain(self, history: History) -> bool:
        """Tell whether preparing has failed for this history, which has hardly grown since."""
        noted, size = await self._noted(PREPARATION), self.trigger_size or history.size
        if noted is None or noted.head != history.head_id:
            return False
        before = noted.trigger_size
        is_grown = grown(size.tokens, before.tokens) or grown(size.messages, before.messages)
        return size.messages >= before.messages and not is_grown

    async def _noted(self, what: str) -> FailedSummary | None:
        archive = self.engine.archive
        if archive is None:
            return None
        try:
            notes = await archive.flow(archive.notes, self.scope, FAILED, [what])
        except ArchiveError:
            return None  # whoever needs the archive says so
        return FailedSummary.read(notes.get(what))

    # The view

    async def history(self, entries: list[Message]) -> History:
        """Return a history with the records that belong to it, which are put in force."""
        engine, archive, known = self.engine, self.engine.archive, await self.chain()
        memory = engine.memory.of(self.scope)
        contents = contents_of(entries) if known else []
        # In a state that is kept, each history has its own record, and says so.
        goes_on = self.goes_on or (self.head is None and goes_on_from(memory.recent, contents))
        history = history_of(engine, entries, known, goes_on=goes_on)
        if archive is not None and not all(record.archived for record in known):
            # Made when there was no archive: they stand like another library's summary.
            return history_of(engine, entries, ())
        if all(item.entry is not None for item in history.items):
            # A summary that the records in force do not know may be that of another branch, or of a
            # time that the history has gone back to.
            for name in may_be_summaries(entries, marked=self.checkpointed):
                if archive is not None:
                    other = await archive.flow(archive.chain_of, self.scope, name)
                else:
                    chains = engine.memory.of(self.scope).chains
                    other = (chains.get(name) if self.head is None else None) or ()
                # Of a chain only the newest record is sure to be whole: `other` has its summary.
                if other and [one.id for one in other] == [one.id for one in known[: len(other)]]:
                    other = (*other, *known[len(other) :])
                again = history_of(engine, entries, other) if other else history
                if other and again.chain:
                    history = again
                    break
        if self.head is None:
            history = await self._onward(entries, history)
        noted = next((record for record in reversed(history.chain) if record.by), None)
        if archive is not None and noted is not None and not noted.segment:  # gone back to it
            whole = await archive.flow(archive.chain_at, self.scope, history.chain[-1].id)
            # An earlier one may still have the summary that stands in the history.
            both = zip(whole, history.chain, strict=False)
            merged = tuple(one if one.summary else before for one, before in both)
            history = history_of(engine, entries, merged or history.chain, goes_on=goes_on)
        chain = history.chain
        # What comes behind the last answer may be asked in other words, or not at all.
        memory.recent = contents[: answered(entries)][-RECENT:]
        if chain != tuple(known) and self.head is None and not self.draft_only:
            if not chain:
                log("another_history", ANOTHER, self.scope.thread)
            if archive is None:
                engine.memory.of(self.scope).chain = chain
            else:
                self.pointer = chain[-1].id if chain else ""
                try:
                    await archive.flow(archive.set_head, self.scope, self.pointer or None)
                except ArchiveError as error:
                    if engine.settings.on_failure == "raise":
                        raise
                    log("head_not_moved", "recall may bring what was taken back: %s", error)
        return history

    async def _onward(self, entries: list[Message], history: History) -> History:
        """Go on to later records that fit: those of a branch that comes back, or of a longer form.

        A history with a summary names its own record, or somebody has pasted it.
        """
        engine, archive = self.engine, self.engine.archive
        if any(entry.text.startswith(SUMMARY_LINE) for entry in entries):
            return history
        if archive is not None:
            later = await archive.flow(archive.chains_after, self.scope, history.head_id)
        else:
            later = [*reversed(engine.memory.of(self.scope).chains.values())]
        fitting = (fold(one, entries).chain for one in later if len(one) > len(history.chain))
        longest = max(fitting, key=len, default=())
        return (
            history_of(engine, entries, longest) if len(longest) > len(history.chain) else history
        )

    def corrected(self, reports: Sequence[Report], head: Record | None) -> Thread:
        """Return the thread with an estimate that is corrected by reports of models.

        Until there are reports since the record in force, its own correction holds: otherwise the
        same view would have another size, and be compacted again with nothing new in it.
        """
        ratio = self.ratio
        corrections = head.corrections if head else {}
        if self.engine.meter.exact or (ratio is None and not reports and not corrections):
            return self
        if ratio is None:
            room = self.room
            overhead, limit = (room.reserved, room.limit) if room else (0, None)
            known = self.engine.meter.known_ratio(corrections)
            ratio = correction(reports, overhead, limit, known=known)
        meter = self.engine.meter.scaled(ratio)
        if meter is self.engine.meter:
            return self
        return replace(self, engine=self.engine.measuring_by(meter))

    def shared_out(self, history: History) -> tuple[Thread, History]:
        """Return both with the count of a caller's counter shared out among the messages.

        A list need not take as much as its messages alone: each then counts in proportion. Where
        they alone say little of the list, as where each is counted with the usage that it reports,
        the estimate says what their shares are, and nothing is clipped, as no count says to what.
        """
        engine = self.engine
        meter = engine.meter
        total = history.size.tokens - meter.base
        sizes = [item.tokens for item in history.items]
        if not meter.counts_lists or total <= 0 or total == sum(sizes):
            return self, history
        if not sum(sizes) / MOST_SCALE <= total <= sum(sizes) * MOST_SCALE:
            meter = meter.estimating()
            sizes = [meter.message(item.source) for item in history.items]
            engine = replace(engine, where=None)
        engine = engine.measuring_by(meter.scaled(total / sum(sizes)))
        return replace(self, engine=engine), history.shared_out(engine, sizes, total)

    # The plan

    def is_quiet(self, size: Size, head: Record | None) -> bool:
        """Tell whether neither the trigger, nor the window, nor a preparation asks for anything."""
        return not (self.nears(size) or self._fires(size, head))

    def asks(self, size: Size) -> bool:
        """Tell whether the trigger, as the caller counts, or the window asks for a compaction."""
        limit = None if self.room is None else self.room.limit
        asked = self.engine.policy.fired(self.trigger_size or size, limit)
        return asked is not None or self.over(size)

    def _fires(self, size: Size, head: Record | None) -> bool:
        """Tell whether the trigger or the window asks for a compaction."""
        limit = None if self.room is None else self.room.limit
        last = head.size_after if head else None
        return self.over(size) or self.engine.policy.fired(size, limit, last) is not None

    def nears(self, size: Size) -> bool:
        """Tell whether notes should be prepared for a history of this size."""
        limit = None if self.room is None else self.room.limit
        if self.engine.background is None:
            return False
        return self.engine.policy.fired(foreseen(size, PREPARE), limit) is not None

    def plan(
        self, history: History, force: bool = False, tighter: int = 0, *, ahead: bool = False
    ) -> Plan:
        """Plan; after a failed summary only if the history has changed.

        With `ahead` plan as if the trigger fired where notes are prepared, and nothing had failed.
        `tighter` are tokens of the window that the plan leaves free.
        """
        room = self.room
        if tighter and room is not None:
            room = replace(room, reserved=room.reserved + tighter)
        engine, size, asked, failed = self.engine, history.size, self.trigger_size, None
        if engine.meter.counts_lists and not (force or ahead or self.asks(size)):
            return Keep(BELOW, size.tokens, due=False)
        last = self._reached(history) if asked is None else self.last
        if ahead:
            asked, last = foreseen(asked or size, PREPARE), None
        else:
            memory = engine.memory.of(self.scope)
            failed = memory.failure(history.head_id, size.messages, self.over(size))
        decided = plan(
            history.items,
            engine.policy,
            room,
            trigger_size=asked,
            last=last if failed is None else failed.last,
            failed=failed.size.tokens if failed is not None and failed.over else None,
            stuck_at=None if tighter else self.stuck_at(history),
            cut=self._cut(history),
            base=self.base_of(history),
            force=force,
            clip=engine.where is not None,
            clip_users=engine.archive is not None,
            floor=engine.frame + self._least_text(),
            never_larger=[*engine.writers] == [EMBEDDED],
            coming=1 - PREPARE if ahead else 0,
        )
        if not (failed and isinstance(decided, Keep)) or decided.due:
            return decided
        waits = self._fires(self.trigger_size or size, history.head)
        return replace(decided, reason=FAILED_BEFORE % failed.size.messages) if waits else decided

    def _reached(self, history: History) -> Size | None:
        """Return the size that the latest compaction reached.

        A counter that reads the usage of an answer says after the next one what was reached.
        """
        head, meter = history.head, self.engine.meter
        if head is None or not meter.counts_lists:
            return head.size_after if head else None
        since = head.messages_after
        later = (
            i for i in range(since, len(history.items)) if history.items[i].role == "assistant"
        )
        first = next(later, None)
        if first is None:
            return head.size_after
        reached = meter.whole(history.sources[: first + 1])
        return Size(min(head.tokens_after, reached), since)

    def _least_text(self) -> int:
        """Return the tokens of text below which a summary holds little, as a caller counts them."""
        meter = self.engine.meter
        return math.ceil(SUMMARY_FLOOR * max(1.0, meter.ratio if meter.counts_lists else 1.0))

    def base_of(self, history: History) -> int:
        """Return the tokens that a caller's counter adds to any list."""
        return min(self.engine.meter.base, history.size.tokens)

    def stuck_at(self, history: History) -> int | None:
        """Return the tokens that the latest compaction reached, if that was over the window."""
        head = history.head
        over = head is not None and self.over(head.size_after)
        return head.tokens_after if head is not None and over else None

    def _cut(self, history: History) -> int | None:
        """Find the first message that `keep` keeps by a caller's counter, as LangChain finds it.

        None where messages are kept by number, or where nobody's counter counts.
        """
        engine, limit = self.engine, None if self.room is None else self.room.limit
        most = keep_tokens(engine.policy.keep, limit)
        if most is None or not engine.meter.counts_lists:
            return None
        sources = history.sources

        def fits(kept: int) -> bool:
            return engine.meter.whole(sources[len(sources) - kept :]) <= most

        return len(sources) - highest(0, len(sources), fits)
