"""Make one call: divide the history, summarise if it is due, put it together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage

from conspectus._core.choices import EMBEDDED
from conspectus._core.items import Compact, Keep, Plan, Size, Stuck, Window
from conspectus._core.oldest_first import Limits, oldest_first
from conspectus._core.policy import Policy, grown
from conspectus._core.records import Record
from conspectus._core.sizes import TriggerClause
from conspectus.archive import Archive, Scope
from conspectus.bridge import io
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.background import Background, Preparations
from conspectus.compactor.compaction import Compaction
from conspectus.compactor.engine import SLACK, Engine
from conspectus.compactor.memory import FailedSummary, Memory
from conspectus.compactor.prepared import Chosen, chosen_flow, settled_flow
from conspectus.compactor.result import Failed, as_the_models
from conspectus.compactor.session import SUMMARY_FLOOR, Session
from conspectus.compactor.settings import open_archive
from conspectus.compactor.view import SMALL, History, look_flow, with_floors
from conspectus.errors import ArchiveError, RedactionError, StuckError, SummaryError
from conspectus.messages import read_messages, summary_message, summary_text
from conspectus.model.embedded import EmbeddedSummarizer
from conspectus.observe import emit, log
from conspectus.short_term import prompts, records
from conspectus.short_term.history import HistoryParts, divide, refuse_equal_ids
from conspectus.short_term.running_summary import (
    RunningSummary,
    SummarizationResult,
    name_of,
    read_running,
)
from conspectus.short_term.settings import ShortTermSettings
from conspectus.short_term.summarizer import PromptedSummarizer
from conspectus.tokens import TokenMeter


@dataclass(frozen=True, slots=True)
class ShortTermCall:
    """One call; the memory of a function is new each time, unless it prepares."""

    settings: ShortTermSettings
    memory: Memory
    thread: object = None
    background: Preparations | None = None

    async def run(self, messages: Sequence[Any], running_summary: object) -> SummarizationResult:
        given = self.settings
        running = read_running(running_summary)
        standing = [] if running is None else prompts.standing(given.final_prompt, running.summary)
        parts = divide(messages, running, standing)
        total = given.tallies.follow(_name(parts), parts.rest).totals[0]
        if given.archive is None:
            if total < given.reach and not self._may_begin(parts, total, running):
                return self._plain(parts, running)
            return await self._work(parts, running, standing, None)
        scope = records.scope_of(self.thread)
        around = [message for message in (parts.system, *standing) if message is not None]
        whole = total + sum(given.count([message]) for message in around)
        due = total >= given.reach or whole > given.max_tokens
        due = due or self._may_begin(parts, total, running)
        if not due and not records.is_news(given.archive, scope, running):
            return self._plain(parts, running)
        try:
            archive = given.archive
            if not isinstance(archive, Archive):
                archive = await io(lambda: open_archive(given.archive))
            try:
                await records.follow_flow(archive, given.archive, scope, running)
                if not due:
                    return self._plain(parts, running)
                result = await self._work(parts, running, standing, archive)
                now = result.running_summary
                await records.follow_flow(archive, given.archive, scope, now)
                return result
            finally:
                if archive is not given.archive:
                    archive.close()
        except ArchiveError as error:
            if given.on_failure == "raise":
                raise
            said = "the archive cannot be read for now, nothing is summarised: %s"
            log("history_kept", said, error)
            return self._plain(parts, running)

    # The result

    def _plain(self, parts: HistoryParts, running: RunningSummary | None) -> SummarizationResult:
        if running is None:
            return SummarizationResult(list(parts.messages))
        return self._result(parts, running, parts.rest)

    def _result(
        self, parts: HistoryParts, running: RunningSummary, rest: Sequence[BaseMessage]
    ) -> SummarizationResult:
        made = prompts.shown(self.settings.final_prompt, running.summary, parts.system, rest)
        # A summary that stands in the state already keeps its id there.
        back = {(type(m), str(m.content)): m for m in reversed(parts.back)}
        kept = {id(parts.system), *map(id, rest)}
        made = [m if id(m) in kept else back.get((type(m), str(m.content)), m) for m in made]
        return SummarizationResult(made, running)

    # The work

    async def _work(
        self,
        parts: HistoryParts,
        running: RunningSummary | None,
        standing: list[BaseMessage],
        archive: Archive | None,
    ) -> SummarizationResult:
        given, scope = self._knowing(parts), self._scope(parts)
        chain = () if archive is None else (await records.chain_flow(archive, scope, running))
        before: tuple[Record, ...] = ()
        if archive is None and running is not None:
            before = records.notes_before(running, self._where(parts, running))
        # A caller's history decides what is made anew: drafts are kept in archives only, and in
        # memory where they were prepared.
        memory = Memory() if self.background is None else self.memory
        engine = _engine(given, archive, memory, self.background)
        history = await _history(engine, parts, running, standing, chain)
        history = replace(history, before=before)
        history, decided = decide(given, engine, history, clip=archive is not None)
        over = history.size.tokens > given.max_tokens
        failed = self.memory.of(scope).failure(_mark(running), history.size.messages, over)
        held = failed is not None and not grown(history.size.tokens, failed.size.tokens)
        if held and isinstance(decided, Compact) and decided.evict:
            decided = Keep("its latest summary failed", history.size.tokens)
        anchor = Anchor(archive, memory, scope, head=chain)
        turn, chosen = Turn(engine, scope, None, anchor, settings=given), Chosen(decided)
        if self.background is not None and not held:
            room = Window(given.max_tokens)
            chosen = await chosen_flow(replace(turn, room=room), history, decided)
        history, decided = chosen.view or history, chosen.plan
        if not isinstance(decided, Compact):
            return self._unchanged(parts, running, history, decided)
        if decided.at_most > given.max_tokens:
            most = decided.budget or 0
            reason = (
                f"what must stay in view and a summary take up to {decided.at_most:,} tokens and "
                f"max_tokens is {most:,}: raise max_tokens, shorten the system prompt or the "
                "newest message, or pass archive=, so that large messages can be clipped"
            )
            self._complain(Stuck(reason, decided.tokens, decided.at_most, most))
        refuse_equal_ids(parts.rest)
        left = [entry.source for i in decided.evicted if (entry := history.places[i].entry)]
        gone = [str(message.id) for message in left if isinstance(message, BaseMessage)]
        ids = (running.summarized_message_ids if running else set()) | set(gone)
        last = next((m.id for m in reversed(parts.messages) if m.id in ids), None)

        def after(record: Record) -> RunningSummary | None:
            return RunningSummary(record.summary, ids, last) if decided.evict else running

        anchor.names = lambda record: name_of(after(record))
        turn = replace(turn, engine=replace(engine, order=chosen.order or engine.order))
        try:
            ready, waited = chosen.draft, chosen.waited
            compaction = Compaction(turn, history, decided, ready=ready, waited=waited)
            outcome, view = await compaction.run()
            await settled_flow(turn, history, chosen, outcome)
        except (SummaryError, RedactionError) as error:
            self._failed(scope, running, history)
            if isinstance(error, RedactionError):
                raise
            raise as_the_models(error) from error.__cause__
        if isinstance(outcome, Failed):
            if not isinstance(outcome.error, ArchiveError):
                self._failed(scope, running, history)
            return self._unchanged(parts, running, history, Keep(outcome.reason, 0))
        self.memory.of(scope).failed = None
        now = after(outcome.record)
        if now is not None and archive is None:
            records.keep_notes(now, self._where(parts, now), [*before, outcome.record])
        return self._viewed(parts, now, view)

    def _scope(self, parts: HistoryParts) -> Scope:
        if self.settings.archive is not None:
            return records.scope_of(self.thread)
        if self.background is None:
            return Scope("local", _name(parts))
        # Drafts lie in memory from one call to the next, and ids such as "1" tell nobody apart.
        first = str(parts.rest[0].content) if parts.rest else ""
        return Scope("local", f"{self.thread or ''}\0{_name(parts)}\0{first:.200}")

    def _may_begin(self, parts: HistoryParts, total: int, running: RunningSummary | None) -> bool:
        jobs = self.background
        if jobs is None or total < self.settings.reach * jobs.setting.prepare:
            return False
        known = jobs.latest(self._scope(parts))
        count = len(parts.rest) + (parts.system is not None) + (running is not None)
        head = known.head if known is not None else ""
        return jobs.wanted(self._scope(parts), head, Size(total, count))

    def _where(self, parts: HistoryParts, running: RunningSummary) -> object:
        return records.conversation(self.thread, parts.messages, running)

    def _knowing(self, parts: HistoryParts) -> ShortTermSettings:
        """Return the settings with the sizes that were already counted."""
        given, rest = self.settings, parts.rest
        sizes = given.tallies.follow(_name(parts), rest)
        knowing = copy(given)
        knowing.known = {id(m): sizes.upto(n + 1) - sizes.upto(n) for n, m in enumerate(rest)}
        return knowing

    def _unchanged(
        self,
        parts: HistoryParts,
        running: RunningSummary | None,
        history: History,
        decided: Keep | Stuck,
    ) -> SummarizationResult:
        if isinstance(decided, Stuck):
            self._complain(decided)
        if not any(place.item.clipped for place in history.places):
            return self._plain(parts, running)
        return self._viewed(parts, running, history)

    def _viewed(
        self, parts: HistoryParts, running: RunningSummary | None, view: History
    ) -> SummarizationResult:
        found = [place.source for place in view.places if not place.item.summary]
        rest = [m for m in found if isinstance(m, BaseMessage) and m is not parts.system]
        if running is None:
            return SummarizationResult([*parts.alone, *rest])
        return self._result(parts, running, rest)

    def _complain(self, stuck: Stuck) -> None:
        scope = records.scope_of(self.thread) if self.thread else None
        emit("stuck", scope, tokens_before=stuck.tokens, needed=stuck.needed, budget=stuck.budget)
        if self.settings.on_failure == "raise":
            raise StuckError(stuck.reason, needed=stuck.needed, budget=stuck.budget)
        log("history_does_not_fit", "%s", stuck.reason)

    def _failed(self, scope: Scope, running: RunningSummary | None, history: History) -> None:
        size, over = history.size, history.size.tokens > self.settings.max_tokens
        self.memory.of(scope).failed = FailedSummary(_mark(running), size, size, over)


def _name(parts: HistoryParts) -> str:
    return str(parts.rest[0].id) if parts.rest else ""


def _mark(running: RunningSummary | None) -> str | None:
    if running is None:
        return None
    return f"{len(running.summarized_message_ids)} {running.last_summarized_message_id}"


async def _history(
    engine: Engine,
    parts: HistoryParts,
    running: RunningSummary | None,
    standing: list[BaseMessage],
    chain: Sequence[Record],
) -> History:
    leading, head = parts.leading, chain[-1] if chain else None
    between: list[Any] = []
    if running is not None:
        # A record's own message if it is known, else one like another library's.
        mark = {"mark": head.mark} if head is not None else {}
        archived = head is not None and head.archived
        text = summary_text(running.summary, archived=archived, **mark)
        between = [summary_message(text, head.id if head is not None else "before")]
    messages = [*parts.alone, *parts.rest[:leading], *between, *parts.rest[leading:]]
    history = await look_flow(engine, read_messages(messages), chain)
    size = sum(map(engine.meter.message, standing))
    places = tuple(
        replace(place, item=replace(place.item, tokens=size)) if place.item.summary else place
        for place in history.places
    )
    return replace(history, places=places)


def _engine(
    given: ShortTermSettings,
    archive: Archive | None,
    memory: Memory,
    background: Preparations | None,
) -> Engine:
    asked = PromptedSummarizer(given)
    return Engine(
        policy=swaps_below(given),
        memory=memory,
        background=background,
        meter=TokenMeter(given.count),
        frame=given.summary_size(""),
        archive=archive,
        summarizers={asked.name: asked, EMBEDDED: EmbeddedSummarizer()},
        order=(asked.name,),
        on_failure=given.on_failure,
        timeout=None,
        size=given.summary_size,
        redaction=given.redaction,
        notes=given.notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Session):
    """One history, summarised in LangMem's order."""

    settings: ShortTermSettings

    def nears(self, size: Size, setting: Background) -> bool:
        return size.tokens >= self.settings.reach * setting.prepare

    def foresees(self, history: History, share: float) -> tuple[History, Plan]:
        """Plan as if a share of the trigger had to gather."""
        sooner = copy(self.settings)
        sooner.max_tokens_before_summary = math.ceil(self.settings.reach * share)
        return decide(sooner, self.engine, history, clip=False)

    def message_size(self, body: str) -> int:
        return self.settings.summary_size(body)


def swaps_below(given: ShortTermSettings) -> Policy:
    """Return the policy by which prepared notes free enough: with them, less has gathered."""
    reach = min(given.reach + given.max_summary_tokens, given.max_tokens)
    return Policy(trigger=(TriggerClause(tokens=max(1, reach)),))


def decide(
    given: ShortTermSettings, engine: Engine, history: History, clip: bool
) -> tuple[History, Plan]:
    """Plan without clips; with them only if that is not enough."""
    frame = given.summary_size("")
    limits = Limits(
        most=given.max_tokens,
        reach=given.reach,
        share=given.max_summary_tokens,
        frame=frame,
        floor=frame + SUMMARY_FLOOR,
        slack=SLACK,
    )
    decided = oldest_first(history.items, limits, clip=False)
    fits = isinstance(decided, Compact) and decided.at_most <= given.max_tokens
    if not clip or fits or history.size.tokens <= given.max_tokens:
        return history, decided
    history = with_floors(history, engine, SMALL)
    return history, oldest_first(history.items, limits, clip=True)
