"""Make one call: divide the history, summarise if it is due, put it together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import BaseMessage

from conspectus._core.choices import EMBEDDED
from conspectus._core.items import Compact, Keep, Plan, Size, Stuck, Window
from conspectus._core.oldest_first import CURE, Limits, oldest_first
from conspectus._core.policy import Policy, grown
from conspectus._core.records import Record
from conspectus._core.sizes import TriggerClause
from conspectus._langchain import hide_from_streams
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import io
from conspectus.compactor.anchors import Anchor, Chain
from conspectus.compactor.background import Background, Preparations
from conspectus.compactor.compaction import Compaction
from conspectus.compactor.engine import SLACK, Engine
from conspectus.compactor.memory import FailedSummary, Memory
from conspectus.compactor.prepared import Chosen, chosen_flow, settled_flow
from conspectus.compactor.result import Failed, as_the_models
from conspectus.compactor.session import SUMMARY_FLOOR, Session
from conspectus.compactor.settings import open_archive
from conspectus.compactor.view import SMALL, History, look_flow, with_floors
from conspectus.errors import ArchiveError, InputError, RedactionError, StuckError, SummaryError
from conspectus.messages import read_messages, summary_message, summary_text
from conspectus.model.embedded import EmbeddedSummarizer
from conspectus.observe import emit, log
from conspectus.short_term import prompts
from conspectus.short_term.history import HistoryParts, divide, refuse_equal_ids
from conspectus.short_term.settings import ShortTermSettings
from conspectus.short_term.summarizer import PromptedSummarizer
from conspectus.short_term.summary import (
    RunningSummary,
    SummarizationResult,
    name_of,
    read_running,
)
from conspectus.tokens import TokenMeter

REMEMBERED = 256
"""Most running summaries whose notes are in memory, where there is no archive."""

_chains: Newest[tuple[object, str], Chain] = Newest(REMEMBERED)


@dataclass(frozen=True, slots=True)
class ShortTermCall:
    """One call.

    A caller's state holds only the running summary. So the records that led to it are found by its
    name, in the archive or in this process, and time travel brings them back with it.

    Attributes:
        named: the messages that show the summary get ids, as in a graph's state.
    """

    settings: ShortTermSettings
    memory: Memory
    thread: object = None
    background: Preparations | None = None
    named: bool = False

    async def run(self, messages: Sequence[Any], running_summary: object) -> SummarizationResult:
        given = self.settings
        running = read_running(running_summary)
        standing = [] if running is None else prompts.shown(given.final_prompt, running.summary)
        parts = divide(messages, running, standing)
        if given.archive is None:
            return await self._step(parts, running, standing, None)
        if self.thread in (None, ""):
            raise InputError(
                "archive= needs to know the conversation: pass thread_id=, or call it in a graph "
                'whose config has {"configurable": {"thread_id": ...}}'
            )
        try:
            archive = await io(lambda: open_archive(given.archive))
            try:
                return await self._step(parts, running, standing, archive)
            finally:
                if archive is not given.archive:
                    archive.close()
        except ArchiveError as error:
            if given.on_failure == "raise":
                raise
            said = "the archive cannot be read for now, nothing is summarised: %s"
            log("history_kept", said, error)
            return self._result(parts, running, parts.rest)

    async def _step(
        self,
        parts: HistoryParts,
        running: RunningSummary | None,
        standing: list[BaseMessage],
        archive: Archive | None,
    ) -> SummarizationResult:
        given, rest = self.settings, parts.rest
        sizes, scope = given.sizes(str(rest[0].id) if rest else "", rest), self._scope(parts)
        total, share = sizes.totals[0], 1.0
        if self.background is not None:
            share = self.background.setting.prepare
        whole = total + sum(given.count([one]) for one in (*parts.system, *standing))
        chain = await self._chain(archive, scope, running)
        if total < given.reach * share and whole <= given.max_tokens:
            return self._result(parts, running, rest)
        given.known = {id(m): sizes.upto(n + 1) - sizes.upto(n) for n, m in enumerate(rest)}
        engine = self._engine(archive)
        history = await self._history(engine, parts, running, standing, chain)
        session = Turn(
            engine, scope, None, Anchor(archive, self.memory, scope, chain), settings=given
        )
        return await self._work(session, parts, running, history)

    async def _chain(
        self, archive: Archive | None, scope: Scope, running: RunningSummary | None
    ) -> Chain:
        """Return the records behind a running summary; the archive's pointer moves with them."""
        if archive is None:
            noted = running is not None and self.settings.notes
            return (_chains.get((self.thread, name_of(running))) if noted else None) or ()
        chain = await archive.flow(archive.chain_of, scope, name_of(running))
        head = chain[-1].id if chain else None
        if (await archive.flow(archive.pointer, scope)) not in (None, head):
            await archive.flow(archive.set_head, scope, head)  # for recall without a state
        said = running.summary if running is not None else ""
        return chain if chain and chain[-1].summary in (said, "") else ()

    async def _work(
        self,
        session: Turn,
        parts: HistoryParts,
        running: RunningSummary | None,
        history: History,
    ) -> SummarizationResult:
        given, memory = self.settings, session.engine.memory.of(session.scope)
        history, decided = session.planned(history, given.reach)
        over = history.size.tokens > given.max_tokens
        size, mark = history.size, name_of(running)
        failure = FailedSummary(mark, size, size, over)
        failed = memory.failure(mark, size.messages, over)
        held = failed is not None and not grown(size.tokens, failed.size.tokens)
        if held and isinstance(decided, Compact) and decided.evict:
            decided = Keep("its latest summary failed", size.tokens)
        chosen = Chosen(decided)
        if self.background is not None and not held:
            session = replace(session, room=Window(given.max_tokens))
            chosen = await chosen_flow(session, history, decided)
        history, decided = chosen.view or history, chosen.plan
        if isinstance(decided, Stuck):
            self._complain(session.scope, decided)
        if not isinstance(decided, Compact):
            return self._result(parts, running, _shown(parts, history))
        if decided.at_most > given.max_tokens:
            reason = (
                f"what must stay in view and a summary take up to {decided.at_most:,} tokens and "
                f"max_tokens is {given.max_tokens:,}: {CURE}"
            )
            limits = decided.tokens, decided.at_most, given.max_tokens
            self._complain(session.scope, Stuck(reason, *limits))
        refuse_equal_ids(m.id for m in parts.rest)
        left = [entry.id for i in decided.evicted if (entry := history.places[i].entry)]
        ids = (running.summarized_message_ids if running else set()) | set(map(str, left))
        last = next((m.id for m in reversed(parts.messages) if m.id in ids), None)

        def after(record: Record) -> RunningSummary | None:
            return RunningSummary(record.summary, ids, last) if decided.evict else running

        session.anchor.names = lambda record: name_of(after(record))
        order = chosen.order or session.engine.order
        session = replace(session, engine=replace(session.engine, order=order))
        ready, waited = chosen.draft, chosen.waited
        try:
            compaction = Compaction(session, history, decided, ready=ready, waited=waited)
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
            return self._result(parts, running, _shown(parts, history))
        memory.failed = None
        now = after(outcome.record)
        if session.engine.archive is None and given.notes:
            _chains.put((self.thread, name_of(now)), view.chain)
        return self._result(parts, now, _shown(parts, view))

    def _result(
        self, parts: HistoryParts, running: RunningSummary | None, rest: Sequence[BaseMessage]
    ) -> SummarizationResult:
        if running is None:
            return SummarizationResult([*parts.system, *rest])
        system = next(iter(parts.system), None)
        made = prompts.shown(self.settings.final_prompt, running.summary, system, rest)
        own = {id(message) for message in (*parts.system, *rest)}
        named = {
            id(one): one.model_copy(update={"id": str(uuid5(NAMESPACE_URL, str(one.content)))})
            for one in made
            if id(one) not in own
        }
        # A node writes them to a state; a caller of the function may do so, too.
        if hide_from_streams(named.values()) or self.named:
            made = [named.get(id(one), one) for one in made]
        return SummarizationResult(made, running)

    def _scope(self, parts: HistoryParts) -> Scope:
        if self.thread not in (None, ""):
            return Scope("local", str(self.thread))
        # Drafts may be in memory from one call to the next, and ids such as "1" are in all.
        first = f"{parts.rest[0].id}\0{parts.rest[0].content}" if parts.rest else ""
        return Scope("local", hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:16])

    def _complain(self, scope: Scope, stuck: Stuck) -> None:
        emit("stuck", scope, tokens_before=stuck.tokens, needed=stuck.needed, budget=stuck.budget)
        if self.settings.on_failure == "raise":
            raise StuckError(stuck.reason, needed=stuck.needed, budget=stuck.budget)
        log("history_does_not_fit", "%s", stuck.reason)

    async def _history(
        self,
        engine: Engine,
        parts: HistoryParts,
        running: RunningSummary | None,
        standing: list[BaseMessage],
        chain: Chain,
    ) -> History:
        """Read the history with the summary in the form in which the engine knows it."""
        between: list[Any] = []
        if running is not None:
            head = chain[-1] if chain else None
            mark = {"mark": head.mark} if head else {}
            text = summary_text(running.summary, archived=bool(head and head.archived), **mark)
            between = [summary_message(text, head.id if head else "before")]
        leading, rest = parts.rest[: parts.leading], parts.rest[parts.leading :]
        entries = read_messages([*parts.system, *leading, *between, *rest])
        history = await look_flow(engine, entries, chain)
        size = sum(map(engine.meter.message, standing))
        places = tuple(
            replace(place, item=replace(place.item, tokens=size)) if place.item.summary else place
            for place in history.places
        )
        return replace(history, places=places)

    def _engine(self, archive: Archive | None) -> Engine:
        given = self.settings
        asked = PromptedSummarizer(given)
        # With a prepared summary, less has gathered.
        enough = min(given.reach + given.max_summary_tokens, given.max_tokens)
        return Engine(
            policy=Policy(trigger=(TriggerClause(tokens=max(1, enough)),)),
            memory=self.memory,
            background=self.background,
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
        return self.planned(history, math.ceil(self.settings.reach * share), clip=False)

    def message_size(self, body: str) -> int:
        return self.settings.summary_size(body)

    def planned(self, history: History, reach: int, *, clip: bool = True) -> tuple[History, Plan]:
        """Plan without clips; with them, which need an archive, only if that is not enough."""
        given, frame = self.settings, self.engine.frame
        limits = Limits(
            most=given.max_tokens,
            reach=reach,
            share=given.max_summary_tokens,
            frame=frame,
            floor=frame + SUMMARY_FLOOR,
            slack=SLACK,
        )
        decided = oldest_first(history.items, limits, clip=False)
        fits = isinstance(decided, Compact) and decided.at_most <= given.max_tokens
        if not clip or self.engine.archive is None or fits or history.size.tokens <= limits.most:
            return history, decided
        history = with_floors(history, self.engine, SMALL)
        return history, oldest_first(history.items, limits, clip=True)


def _shown(parts: HistoryParts, view: History) -> list[BaseMessage]:
    """Return the messages in view behind the system message, without the summary."""
    sources = [place.source for place in view.places if not place.item.summary]
    return [m for m in sources if isinstance(m, BaseMessage)][len(parts.system) :]
