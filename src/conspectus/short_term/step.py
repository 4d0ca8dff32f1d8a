"""Make one call: divide the history, summarise if it is due, put it together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import BaseMessage

from conspectus._langchain import hide_from_streams
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import io
from conspectus.core.items import Compact, Keep, Plan, Size, Stuck, Window
from conspectus.core.oldest_first import Limits, oldest_first, too_large
from conspectus.core.policy import grown
from conspectus.core.records import Record
from conspectus.engine.compaction import carry_out
from conspectus.engine.settings import SLACK, Engine, open_archive
from conspectus.engine.thread import SUMMARY_FLOOR, Chain, Thread
from conspectus.engine.view import SMALL, History, look, with_floors
from conspectus.errors import ArchiveError, ConspectusError, InputError, StuckError, SummaryError
from conspectus.messages import is_summary_message, read_messages, summary_message, summary_text
from conspectus.observe import emit, log
from conspectus.short_term.prompts import shown
from conspectus.short_term.running_summary import (
    RunningSummary,
    SummarizationResult,
    divide,
    name_of,
    read_running,
    refuse_equal_ids,
)
from conspectus.short_term.settings import Counts, ShortTerm

REMEMBERED = 256
"""Most running summaries whose notes are in memory, where there is no archive."""

_chains: Newest[tuple[object, str], Chain] = Newest(REMEMBERED)


async def summarized(
    own: ShortTerm, messages: Sequence[Any], given: object, thread: object, *, named: bool = False
) -> SummarizationResult:
    """Make one call; `named` gives ids to the messages that show the summary."""
    own.check()
    step = Step(own, messages, read_running(given), thread, named)
    if own.archive is None:
        return await step.run(None)
    if thread in (None, ""):
        raise InputError(
            "archive= needs to know the conversation: pass thread_id=, or call it in a graph "
            'whose config has {"configurable": {"thread_id": ...}}'
        )
    try:
        archive = await io(lambda: open_archive(own.archive))
        try:
            return await step.run(archive)
        finally:
            if archive is not own.archive:
                archive.close()
    except ArchiveError as error:
        if own.on_failure == "raise":
            raise
        said = "the archive cannot be read for now, nothing is summarised: %s"
        log("history_kept", said, error)
        return step.result(step.running, step.parts.rest)


class Step:
    """One call.

    A caller's state holds only the running summary. So the records that led to it are found by its
    name, in the archive or in this process, and time travel brings them back with it.
    """

    def __init__(
        self,
        own: ShortTerm,
        messages: Sequence[Any],
        running: RunningSummary | None,
        thread: object,
        named: bool,
    ) -> None:
        self.own, self.running, self.thread, self.named = own, running, thread, named
        self.standing = shown(own.final_prompt, running.summary) if running else []
        self.parts = divide(messages, running, self.standing)
        rest = self.parts.rest
        # Ids such as "1" are in all conversations.
        first = f"{rest[0].id}\0{rest[0].content}" if rest else ""
        digest = hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:16]
        self.scope = Scope("local", digest if thread in (None, "") else str(thread))

    async def run(self, archive: Archive | None) -> SummarizationResult:
        own, rest = self.own, self.parts.rest
        count = Counts.of(own.token_counter)
        total = count.history(rest)
        whole = total + sum(count([one]) for one in (*self.parts.system, *self.standing))
        chain = await self._chain(archive)
        jobs = own._background
        near = own.reach * (jobs.prepare if jobs is not None else 1)
        if total < near and whole <= own.max_tokens:
            return self.result(self.running, rest)
        engine = own.engine(archive)
        history = await self._history(engine, chain)
        thread = Turn(engine, self.scope, Window(own.max_tokens), chain, own=own)
        return await self._compact(thread, history)

    async def _chain(self, archive: Archive | None) -> Chain:
        """Return the records behind the running summary; the archive's pointer goes to them."""
        running, notes = self.running, self.own.notes
        if archive is None:
            return (_chains.get((self.thread, name_of(running))) if notes else None) or ()
        chain = await archive.flow(archive.chain_of, self.scope, name_of(running))
        head = chain[-1].id if chain else None
        if (await archive.flow(archive.pointer, self.scope)) not in (None, head):
            await archive.flow(archive.set_head, self.scope, head)  # for recall without a state
        said = running.summary if running is not None else ""
        return chain if chain and chain[-1].summary in (said, "") else ()

    async def _history(self, engine: Engine, chain: Chain) -> History:
        """Read the history with the summary in the form in which the engine knows it."""
        parts, between = self.parts, list[Any]()
        if self.running is not None:
            head = chain[-1] if chain else None
            mark = {"mark": head.mark} if head else {}
            archived = head is not None and head.archived
            text = summary_text(self.running.summary, archived=archived, **mark)
            between = [summary_message(text, head.id if head else "before")]
        entries = read_messages([*parts.system, *between, *parts.rest])
        history = await look(engine, entries, chain)
        size = sum(map(engine.meter.message, self.standing))
        places = tuple(
            replace(place, item=replace(place.item, tokens=size)) if place.item.summary else place
            for place in history.places
        )
        return replace(history, places=places)

    async def _compact(self, thread: Turn, history: History) -> SummarizationResult:
        own, running, memory = self.own, self.running, self.own.memory.of(self.scope)
        history, decided = thread.planned(history, own.reach)
        size = history.size
        failed = memory.failure(history.head_id, size.messages, size.tokens > own.max_tokens)
        if failed is not None and not grown(size.tokens, failed.size.tokens):
            if isinstance(decided, Compact) and decided.evicted:
                decided = Keep("its latest summary failed", size.tokens)
            thread = replace(thread, engine=replace(thread.engine, background=None))
        self._complain_of(decided)
        if isinstance(decided, Compact):
            refuse_equal_ids(m.id for m in self.parts.rest)

        def after(record: Record) -> RunningSummary | None:
            if not record.covers:
                return running
            covers = set(record.covers)
            left = {
                p.entry.id
                for p in history.places
                if p.entry and p.item.key in covers and not p.item.summary
            }
            ids = (running.summarized_message_ids if running else set()) | left
            last = next((m.id for m in reversed(self.parts.messages) if m.id in ids), None)
            return RunningSummary(record.summary, ids, last)

        thread.names = lambda record: name_of(after(record))
        try:
            result = await carry_out(thread, history, decided)
        except SummaryError as error:
            cause = error.__cause__
            while isinstance(cause, ConspectusError):
                cause = cause.__cause__
            if isinstance(cause, Exception):
                raise cause from None  # as LangMem does
            raise
        if result.record is None:
            return self._viewed(running, result.messages)
        now = after(result.record)
        if thread.engine.archive is None and own.notes:
            chain = (*history.chain, result.record)
            _chains.put((self.thread, name_of(now)), chain)
        return self._viewed(now, result.messages)

    def _complain_of(self, plan: Plan) -> None:
        """Say, or raise, that a plan does not fit."""
        needed = plan.needed if isinstance(plan, Stuck) else getattr(plan, "at_most", 0)
        budget = self.own.max_tokens
        if needed <= budget:
            return
        emit("stuck", self.scope, tokens_before=plan.tokens, needed=needed, budget=budget)
        reason = too_large(needed, budget)
        if self.own.on_failure == "raise":
            raise StuckError(reason, needed=needed, budget=budget)
        log("history_does_not_fit", "%s", reason)

    def _viewed(
        self, running: RunningSummary | None, view: Sequence[object]
    ) -> SummarizationResult:
        rest = [one for one in view if isinstance(one, BaseMessage)]
        rest = [one for one in rest if not is_summary_message(one)]
        return self.result(running, rest[len(self.parts.system) :])

    def result(
        self, running: RunningSummary | None, rest: Sequence[BaseMessage]
    ) -> SummarizationResult:
        system = self.parts.system
        if running is None:
            return SummarizationResult([*system, *rest])
        made = shown(self.own.final_prompt, running.summary, system, rest)
        sent = {id(message) for message in (*system, *rest)}
        named = {
            id(one): one.model_copy(update={"id": str(uuid5(NAMESPACE_URL, str(one.content)))})
            for one in made
            if id(one) not in sent
        }
        # A state gives ids to messages; of the function's caller only a stream is seen.
        if hide_from_streams(named.values()) or self.named:
            made = [named.get(id(one), one) for one in made]
        return SummarizationResult(made, running)


@dataclass(slots=True, kw_only=True)
class Turn(Thread):
    """One history, summarised in LangMem's order."""

    own: ShortTerm

    def nears(self, size: Size, prepare: float) -> bool:
        return size.tokens >= self.own.reach * prepare

    def foresees(self, history: History, share: float) -> tuple[History, Plan]:
        """Plan as if a share of the trigger had to gather."""
        return self.planned(history, math.ceil(self.own.reach * share), clip=False)

    def planned(self, history: History, reach: int, *, clip: bool = True) -> tuple[History, Plan]:
        """Plan without clips; with them, which need an archive, only if that is not enough."""
        own, frame = self.own, self.engine.frame
        limits = Limits(
            most=own.max_tokens,
            reach=reach,
            share=own.max_summary_tokens,
            frame=frame,
            floor=frame + SUMMARY_FLOOR,
            slack=SLACK,
        )
        decided = oldest_first(history.items, limits, clip=False)
        fits = isinstance(decided, Compact) and decided.at_most <= own.max_tokens
        if not clip or self.engine.archive is None or fits or history.size.tokens <= limits.most:
            return history, decided
        history = with_floors(history, self.engine, SMALL)
        return history, oldest_first(history.items, limits, clip=True)
