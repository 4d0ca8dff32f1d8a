"""Read one agent's history, measure it, and plan."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from conspectus.archive import Scope
from conspectus.core.items import Compact, Plan, Size, Stuck, Window
from conspectus.core.ladder import GIANT, SHORT
from conspectus.core.plan import plan
from conspectus.core.prepared_cut import foreseen
from conspectus.core.records import Record
from conspectus.engine.anchors import Anchor
from conspectus.engine.background import Background
from conspectus.engine.engine import SLACK, Engine
from conspectus.engine.memory import FailedSummary
from conspectus.engine.recognising import may_be_summaries
from conspectus.engine.view import (
    History,
    corrected,
    look,
    look_flow,
    reports_of,
    with_briefs,
    with_floors,
)
from conspectus.messages import Entry, Source, read_messages, summary_message, summary_text
from conspectus.tokens import Report

SUMMARY_FLOOR = 120
"""Tokens beside its frame below which a summary holds little more than one rule."""


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's history in one thread.

    Attributes:
        asked: the size that the trigger is compared with, if the caller counts in its own way.
        last: the size that the latest compaction reached, counted likewise.
        ratio: the correction of the estimate by reports of usage, if the caller knows it.
    """

    engine: Engine
    scope: Scope
    room: Window | None
    anchor: Anchor
    asked: Size | None = None
    last: Size | None = None
    ratio: float | None = None

    def message_size(self, body: str) -> int:
        text = summary_text(body, archived=self.engine.archive is not None)
        return self.engine.meter.message(summary_message(text, ""))

    def fold(self, messages: Sequence[Source]) -> Awaitable[History]:
        return self.folded(read_messages(messages))

    async def folded(self, entries: list[Entry]) -> History:
        """Put the records that belong to a history in force, and fold them over it."""
        known = await self.anchor.chain_flow()
        history = await look_flow(self.engine, entries, known)
        if self.engine.archive is not None and not all(record.archived for record in known):
            # Made when there was no archive: they stand like another library's summary.
            return replace(look(self.engine, entries, ()), before=history.chain)
        if all(place.entry is not None for place in history.places):
            # A summary that the records in force do not know may be that of another branch, or of a
            # time that the history has gone back to.
            for name in may_be_summaries(entries, marked=self.anchor.checkpointed):
                other = await self.anchor.named_flow(name)
                if other:
                    again = await look_flow(self.engine, entries, other)
                    if again.chain:
                        history = again
                        break
        if history.chain != tuple(known):
            await self.anchor.moved_flow(history.chain)
        return history

    def corrected(self, history: History) -> tuple[Session, History]:
        """Correct the estimate by reports of models; return session and history."""
        own = self.with_ratio(reports_of(history))
        return own, history if own is self else corrected(history, own.engine.meter.ratio)

    def with_ratio(self, reports: Sequence[Report]) -> Session:
        """Return the session with an estimate that is corrected by reports of models."""
        if self.ratio is not None:
            meter = self.engine.meter.scaled(self.ratio)
        else:
            reserved, limit = (self.room.reserved, self.room.limit) if self.room else (0, None)
            meter = self.engine.meter.corrected(reports, reserved, limit)
        if meter is self.engine.meter:
            return self
        frame = math.ceil(self.engine.frame * meter.ratio)
        policy = replace(self.engine.policy, summary_frame=frame + SLACK)
        return replace(self, engine=replace(self.engine, policy=policy, meter=meter, frame=frame))

    def is_quiet(self, size: Size, head: Record | None) -> bool:
        """Tell whether neither the trigger, nor the window, nor a preparation asks for anything."""
        over = self.budget is not None and size.tokens > self.budget
        limit = None if self.room is None else self.room.limit
        jobs = self.engine.background
        last = head.size_after if head and (jobs is None or head.covers) else None
        return not (
            over
            or self.engine.policy.fired(size, limit, last)
            or (jobs is not None and self.nears(size, jobs.setting))
        )

    def nears(self, size: Size, setting: Background) -> bool:
        return setting.near(self.engine.policy, size, self.room)

    @property
    def budget(self) -> int | None:
        return None if self.room is None else self.room.budget

    def over(self, history: History) -> bool:
        return self.budget is not None and history.size.tokens > self.budget

    def _last(self, history: History, failed: FailedSummary | None) -> Size | None:
        """Return the size from which the trigger waits for growth."""
        if failed is not None:
            return failed.asked
        if self.engine.background is not None and history.head and not history.head.covers:
            return None  # shown short until notes were finished, which then need not wait
        if self.asked is not None:
            return self.last
        return history.head.size_after if history.head else None

    def decided(self, history: History, force: bool) -> tuple[History, Plan]:
        """Plan; after a failed summary only if the history has changed."""
        memory, count = self.engine.memory, history.size.messages
        failed = memory.of(self.scope).failure(history.head_id, count, self.over(history))
        history, decided = self._decide(history, failed, force)
        if isinstance(decided, Stuck) and failed is not None and failed.why:
            # The numbers alone would not say what to mend.
            decided = replace(decided, reason=f"{decided.reason}; {failed.why}")
        return history, decided

    def foresees(self, history: History, share: float) -> tuple[History, Plan]:
        """Plan as if the trigger fired at a share of itself."""
        asked = foreseen(self.asked or history.size, share)
        engine = replace(self.engine, policy=replace(self.engine.policy, arguments=None))
        session = replace(self, asked=asked, last=None, engine=engine)
        return session._decide(history, None, False)

    def _decide(
        self, history: History, failed: FailedSummary | None, force: bool
    ) -> tuple[History, Plan]:
        """Plan with the floors of large messages; with more floors where messages leave."""
        engine, where = self.engine, self.engine.where
        decide = partial(
            plan,
            policy=engine.policy,
            window=self.room,
            asked=self.asked,
            last=self._last(history, failed),
            failed=failed.size.tokens if failed is not None and failed.over else None,
            force=force,
            clip=where is not None,
            words=self.engine.archive is not None,
            floor=engine.frame + SUMMARY_FLOOR,
        )
        if where is None:
            return history, decide(history.items)
        if (how := engine.policy.arguments) is not None:
            history = with_briefs(history, engine, how)
        bounds = []
        if (stale := engine.policy.stale) is not None:
            bounds.append(0 if any(item.expendable for item in history.items) else stale.smallest)
        bounds += [self.room.budget // GIANT] if self.room is not None else []
        if not bounds:
            return history, decide(history.items)  # nothing is shown short without a window
        history = with_floors(history, engine, min(bounds, default=0))
        decided = decide(history.items)
        leaves = isinstance(decided, Compact) and decided.evicted and self.room is not None
        if isinstance(decided, Stuck) or leaves:
            over = 0 if self.room is None or not leaves else self.room.budget // SHORT
            history = with_floors(history, engine, over)
            decided = decide(history.items)
        return history, decided
