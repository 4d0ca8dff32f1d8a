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
from conspectus.engine.anchors import Anchor, Chain
from conspectus.engine.background import Background
from conspectus.engine.compaction import Compaction
from conspectus.engine.engine import SLACK, Engine
from conspectus.engine.memory import FailedSummary
from conspectus.engine.prepared import Chosen, chosen_flow, settled_flow
from conspectus.engine.result import Failed, as_the_models
from conspectus.engine.session import SUMMARY_FLOOR, Session
from conspectus.engine.settings import open_archive
from conspectus.engine.view import SMALL, History, look_flow, with_floors
from conspectus.errors import ArchiveError, InputError, RedactionError, StuckError, SummaryError
from conspectus.messages import read_messages, summary_message, summary_text
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
        near = own.reach * (jobs.setting.prepare if jobs is not None else 1)
        if total < near and whole <= own.max_tokens:
            return self.result(self.running, rest)
        engine = own.engine(archive)
        history = await self._history(engine, chain)
        anchor = Anchor(archive, own.memory, self.scope, chain)
        return await self._compact(Turn(engine, self.scope, None, anchor, own=own), history)

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
        history = await look_flow(engine, entries, chain)
        size = sum(map(engine.meter.message, self.standing))
        places = tuple(
            replace(place, item=replace(place.item, tokens=size)) if place.item.summary else place
            for place in history.places
        )
        return replace(history, places=places)

    async def _compact(self, session: Turn, history: History) -> SummarizationResult:
        own, running, memory = self.own, self.running, self.own.memory.of(self.scope)
        history, decided = session.planned(history, own.reach)
        size, mark = history.size, name_of(running)
        failure = FailedSummary(mark, size, size, size.tokens > own.max_tokens)
        failed = memory.failure(mark, size.messages, failure.over)
        held = failed is not None and not grown(size.tokens, failed.size.tokens)
        if held and isinstance(decided, Compact) and decided.evicted:
            decided = Keep("its latest summary failed", size.tokens)
        chosen = Chosen(decided)
        if session.engine.background is not None and not held:
            session = replace(session, room=Window(own.max_tokens))
            chosen = await chosen_flow(session, history, decided)
        history, decided = chosen.view or history, chosen.plan
        self._complain_of(decided)
        if not isinstance(decided, Compact):
            return self._viewed(running, history)
        refuse_equal_ids(m.id for m in self.parts.rest)
        left = [entry.id for i in decided.evicted if (entry := history.places[i].entry)]
        ids = (running.summarized_message_ids if running else set()) | set(map(str, left))
        last = next((m.id for m in reversed(self.parts.messages) if m.id in ids), None)

        def after(record: Record) -> RunningSummary | None:
            return RunningSummary(record.summary, ids, last) if decided.evicted else running

        session.anchor.names = lambda record: name_of(after(record))
        engine = replace(session.engine, order=chosen.order or session.engine.order)
        session, ready = replace(session, engine=engine), chosen.draft
        try:
            compaction = Compaction(session, history, decided, ready=ready, waited=chosen.waited)
            outcome, view = await compaction.run()
            await settled_flow(session, history, chosen, outcome)
        except (SummaryError, RedactionError) as error:
            memory.failed = failure
            if isinstance(error, RedactionError):
                raise
            raise as_the_models(error) from error.__cause__
        if isinstance(outcome, Failed):
            if not isinstance(outcome.error, ArchiveError):
                memory.failed = failure
            return self._viewed(running, history)
        memory.failed = None
        now = after(outcome.record)
        if engine.archive is None and own.notes:
            _chains.put((self.thread, name_of(now)), view.chain)
        return self._viewed(now, view)

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

    def _viewed(self, running: RunningSummary | None, view: History) -> SummarizationResult:
        sources = [place.source for place in view.places if not place.item.summary]
        rest = [one for one in sources if isinstance(one, BaseMessage)]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Session):
    """One history, summarised in LangMem's order."""

    own: ShortTerm

    def nears(self, size: Size, setting: Background) -> bool:
        return size.tokens >= self.own.reach * setting.prepare

    def foresees(self, history: History, share: float) -> tuple[History, Plan]:
        """Plan as if a share of the trigger had to gather."""
        return self.planned(history, math.ceil(self.own.reach * share), clip=False)

    def message_size(self, body: str) -> int:
        return self.own.summary_size(body)

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
