"""One call of the compactor, from the messages of a caller to the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus._core.boundaries import exchanges, must_stay
from conspectus._core.given_cut import foreseen
from conspectus._core.items import Compact, Keep, Plan, Size, Stuck, Window, spans_of
from conspectus._core.plan import plan
from conspectus._core.records import Cost, Draft
from conspectus._core.room import GIANT
from conspectus._drive import Flow
from conspectus.archive import Scope
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.compaction import Compaction
from conspectus.compactor.drafts import shown_in
from conspectus.compactor.engine import SLACK, Engine
from conspectus.compactor.memory import Failure
from conspectus.compactor.observed import whose_of
from conspectus.compactor.preparing import Chosen, chosen_flow, ended_flow
from conspectus.compactor.raising import as_the_models
from conspectus.compactor.recognising import may_be_summaries
from conspectus.compactor.result import CompactionResult, Done, Failed
from conspectus.compactor.view import (
    History,
    corrected,
    look,
    look_flow,
    reports_of,
    with_briefs,
    with_floors,
)
from conspectus.errors import ArchiveError, ArchiveOvertaken, RedactionError, SummaryError
from conspectus.events import HistoryStuck, tell
from conspectus.events.notes import log
from conspectus.messages import (
    Entry,
    Source,
    read_messages,
    summary_message,
    summary_text,
)

LOOKS = 4
"""How often a history is looked at, where other workers compact it each time meanwhile."""

SUMMARY_FLOOR = 120
"""Tokens beside its frame below which a summary says little more than one rule."""


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's history in one thread.

    Attributes:
        engine: what compactions work with.
        scope: whose history it is.
        room: the window that the result must fit; None where it is unknown.
        anchor: where its records and drafts are.
        asked: the size that the trigger is compared with, where the caller counts in its own way.
        last: the size that the latest compaction reached, likewise.
        sizes: tokens of a message as `keep` counts, likewise.
        ratio: by what reports of usage correct the estimate, where the caller has looked.
    """

    engine: Engine
    scope: Scope
    room: Window | None
    anchor: Anchor
    asked: Size | None = None
    last: Size | None = None
    sizes: Callable[[Any], int] | None = None
    ratio: float | None = None

    def compact(
        self, messages: Sequence[Source], force: bool, focus: str
    ) -> Flow[CompactionResult]:
        """Look at a history, decide, and carry the decision out.

        Where another worker has compacted it meanwhile, its record is seen at the next look. The
        cost of the looks before is part of the result.
        """
        entries = read_messages(messages)
        spent, seen = Cost(), None
        for left in reversed(range(LOOKS)):
            history = yield from self.folded(entries)
            # What was asked for has been done; unless it was done to another branch of the thread.
            force = force and seen in (None, history.chain)
            session, counted = self.corrected(history)
            view, decided = session._decided(counted, force)
            chosen = Chosen(decided)
            if self.engine.background is not None and not (force or focus):
                chosen = yield from chosen_flow(session, view, decided)
            if not isinstance(chosen.plan, Compact):
                kept = session._unchanged(view, chosen.plan)
                return replace(kept, cost=spent, preparing=chosen.goes_on)
            order = chosen.order or session.engine.order
            compaction = Compaction(
                replace(session, engine=replace(session.engine, order=order)),
                chosen.view or view,
                chosen.plan,
                focus,
                ready=chosen.draft,
            )
            try:
                outcome, after = yield from compaction.run()
                if isinstance(outcome, Failed) and isinstance(outcome.error, ArchiveOvertaken):
                    raise outcome.error
            except ArchiveOvertaken as error:
                if not left and self.engine.on_failure == "raise":
                    raise
                spent += getattr(error, "cost", Cost())
                seen, reason = history.chain, str(error)
            except (SummaryError, RedactionError) as error:
                session._remember_failure(view, error)
                if isinstance(error, RedactionError):
                    raise
                raise as_the_models(error) from error.__cause__
            else:
                result = session._ended(compaction, outcome, after)
                result = yield from ended_flow(session, view, chosen, result)
                return replace(result, cost=spent + result.cost)
        history = yield from self.folded(entries)
        kept = self._unchanged(history, Keep(reason, history.size.tokens))
        return replace(kept, failed="archive", cost=spent)

    # Before the decision

    def adopt(
        self, messages: Sequence[Source], covers: Collection[str], text: str, by: str
    ) -> Flow[CompactionResult]:
        """Put a summary in force that another library has written, its originals archived.

        Args:
            messages: the whole history.
            covers: ids of the messages that it stands for.
            text: the summary.
            by: name of the library.
        """
        history = yield from self.folded(read_messages(messages))
        items = history.items
        ex = exchanges(items)
        fixed = must_stay(items, ex)
        leaving = [
            i
            for i, place in enumerate(history.places)
            if place.entry is not None and place.entry.id in covers and i not in fixed
        ]
        leaves = set(leaving)
        # What the other library tore apart stays together here, in view.
        torn = {ex.group[i] for i in range(len(items)) if i not in leaves}
        leaving = [i for i in leaving if ex.group[i] not in torn]
        size = history.size.tokens
        if not leaving:
            return self._unchanged(history, Keep(f"nothing that {by} covers may leave", size))
        keys = tuple(items[i].key for i in leaving)
        decided = Compact(f"taken over from {by}", spans_of(leaving), (), 1, size, size, None)
        draft = Draft(text, by, keys, Cost(), self.message_size(text))
        compaction = Compaction(self, history, decided, adopted=draft)
        return self._ended(compaction, *(yield from compaction.run()))

    def message_size(self, body: str) -> int:
        """Count the tokens of the message that shows a summary."""
        text = summary_text(body, archived=self.engine.archive is not None)
        return self.engine.meter.message(summary_message(text, ""))

    def fold(self, messages: Sequence[Source]) -> Flow[History]:
        """Read messages and fold the records that belong to them."""
        return self.folded(read_messages(messages))

    def folded(self, entries: Sequence[Entry]) -> Flow[History]:
        """Fold the records that belong to a history, which are then the ones in force."""
        pin = self.engine.pin
        pins = [pin is not None and bool(pin(entry.source)) for entry in entries]
        known = yield from self.anchor.chain_flow()
        redaction, meter = self.engine.redaction, self.engine.meter
        history = yield from look_flow(redaction, entries, known, meter, pins, self.sizes)
        if self.engine.archive is not None and not all(record.archived for record in known):
            # Made when there was no archive: they stand like another library's summary.
            before = history.head
            history = look(entries, (), meter, pins, self.sizes)
            return replace(history, before=before)
        if all(place.entry is not None for place in history.places):
            # A summary that the records in force do not know may be that of another branch, or of a
            # time that the history has gone back to.
            for name in may_be_summaries(entries, marked=self.anchor.checkpointed):
                other = yield from self.anchor.named_flow(name)
                if other:
                    again = yield from look_flow(redaction, entries, other, meter, pins, self.sizes)
                    if again.chain:
                        history = again
                        break
        if history.chain != tuple(known):
            yield from self.anchor.moved_flow(history.chain)
        return history

    def corrected(self, history: History) -> tuple[Session, History]:
        """Correct the estimate by reports of models: the session and the history then."""
        if self.ratio is not None:
            meter = self.engine.meter.scaled(self.ratio)
        else:
            reserved, limit = (self.room.reserved, self.room.limit) if self.room else (0, None)
            meter = self.engine.meter.corrected(reports_of(history), reserved, limit)
        if meter is self.engine.meter:
            return self, history
        frame = math.ceil(self.engine.frame * meter.ratio)
        policy = replace(self.engine.policy, summary_frame=frame + SLACK)
        engine = replace(self.engine, policy=policy, meter=meter, frame=frame)
        return replace(self, engine=engine), corrected(history, meter.ratio)

    def over(self, history: History) -> bool:
        """Whether a history does not fit."""
        return self.room is not None and history.size.tokens > self.room.budget

    def _last(self, history: History, failed: Failure | None) -> Size | None:
        """Return the size from which the trigger waits for growth."""
        if failed is not None:
            return failed.asked
        if self.asked is not None:
            return self.last
        return history.head.size_after if history.head else None

    def _decided(self, history: History, force: bool) -> tuple[History, Plan]:
        """Plan, and heed the latest failure; `Stuck` gives it as a reason."""
        head, memory = history.head.id if history.head else None, self.engine.memory
        failed = memory.of(self.scope).failure(head, history.size.messages, self.over(history))
        history, decided = self._decide(history, failed, force)
        if not isinstance(decided, Stuck) and decided.beyond and memory.first_beyond():
            log("trigger_out_of_reach", "%s", decided.beyond)
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
        self, history: History, failed: Failure | None, force: bool
    ) -> tuple[History, Plan]:
        """Plan with the floors of large messages; with all floors if that is not enough."""
        where = self.engine.where
        clip = where is not None
        last = self._last(history, failed)
        floor = self.engine.frame + SUMMARY_FLOOR

        def decide(view: History) -> Plan:
            return plan(
                view.items,
                self.engine.policy,
                self.room,
                asked=self.asked,
                last=last,
                failed=failed.size.tokens if failed is not None and failed.over else None,
                force=force,
                clip=clip,
                words=self.engine.archive is not None,
                floor=floor,
            )

        if where is None:
            return history, decide(history)
        if (how := self.engine.policy.arguments) is not None:
            history = with_briefs(history, how, self.engine.meter, where, self.sizes)
        bounds = [self.engine.policy.clip_over] if self.engine.policy.clip_over is not None else []
        if (stale := self.engine.policy.stale) is not None:
            bounds.append(0 if any(item.expendable for item in history.items) else stale.smallest)
        bounds += [self.room.budget // GIANT] if self.room is not None else []
        history = with_floors(history, self.engine.meter, min(bounds, default=0), where)
        decided = decide(history)
        if isinstance(decided, Stuck):
            history = with_floors(history, self.engine.meter, 0, where)
            decided = decide(history)
        return history, decided

    # After it

    def _unchanged(self, history: History, decided: Keep | Stuck) -> CompactionResult:
        stuck = isinstance(decided, Stuck)
        return self._result(
            history,
            outcome="stuck" if stuck else "kept",
            reason=decided.reason,
            tokens_before=history.size.tokens,
            needed=decided.needed if isinstance(decided, Stuck) else None,
        )

    def _ended(
        self, compaction: Compaction, outcome: Done | Failed, after: History
    ) -> CompactionResult:
        if isinstance(outcome, Failed):
            return self._failed(compaction.history, compaction.plan, outcome)
        self.engine.memory.of(self.scope).failed = None
        return self._done(compaction, outcome, after)

    def _failed(self, history: History, decided: Compact, outcome: Failed) -> CompactionResult:
        archive = isinstance(outcome.error, ArchiveError)
        redaction = isinstance(outcome.error, RedactionError)
        if not archive:
            self._remember_failure(history, outcome.error)
        over = decided.budget is not None and decided.tokens > decided.budget
        return self._result(
            history,
            outcome="stuck" if over else "kept",
            reason=outcome.reason,
            cause=decided.cause,
            tokens_before=history.size.tokens,
            cost=outcome.spent,
            failed="archive" if archive else "redaction" if redaction else "summary",
        )

    def _remember_failure(self, history: History, error: Exception | None) -> None:
        head, size = history.head.id if history.head else None, history.size
        why = f"secrets could not be redacted: {error}" if isinstance(error, RedactionError) else ""
        failure = Failure(head, self.asked or size, size, self.over(history), why)
        self.engine.memory.of(self.scope).failed = failure

    def _done(self, compaction: Compaction, outcome: Done, after: History) -> CompactionResult:
        decided, material, notes = compaction.plan, compaction.material, []
        if outcome.draft is not None and outcome.draft.embedded:
            count = len(outcome.draft.embedded)
            notes.append(
                f"{count} messages were read by the embedded summariser to stay in the cap"
            )
        if outcome.record.cut:
            notes.append(
                f"the summary was longer than max_summary_tokens, also when asked for a shorter "
                f"one: its last {outcome.record.cut:,} tokens were cut off; raise the limit or use "
                "a model that keeps to it"
            )
        if material.lost:
            notes.append(
                f"{material.lost} clipped messages have lost their originals (expired or "
                "forgotten); what was left of them was read"
            )
        return self._result(
            after,
            outcome="compacted",
            reason=_why(decided.cause, after.size.tokens, decided.budget),
            cause=decided.cause,
            record=outcome.record,
            tokens_before=compaction.history.size.tokens,
            evicted=len(material.leaving),
            cost=outcome.spent,
            failures=outcome.failures,
            redacted=dict(material.redacted),
            notes=tuple(notes),
        )

    def _result(self, view: History, **more: Any) -> CompactionResult:
        if more["outcome"] == "stuck":
            tell(
                HistoryStuck,
                whose_of(self.scope),
                tokens=view.size.tokens,
                needed=more.get("needed"),
                budget=None if self.room is None else self.room.budget,
            )
        head = next((record for record in reversed(view.chain) if record.summary), None)
        foreign = any(place.item.summary and place.entry is not None for place in view.places)
        confirmed = self.engine.archive is not None and all(r.archived for r in view.chain)
        return CompactionResult(
            messages=view.sources,
            summary=head.summary if head else "",
            archived=confirmed and not foreign,
            tokens_after=view.size.tokens,
            budget=None if self.room is None else self.room.budget,
            kept=sum(not place.item.summary for place in view.places),
            clipped=sum(place.item.clipped for place in view.places),
            dropped=view.dropped,
            carried=shown_in(head.summary, head.ledger) if head else (),
            **more,
        )


def _why(cause: str, tokens: int, budget: int | None) -> str:
    """Give the cause of a compaction and its result, as one sentence."""
    asked = "it was asked for" if cause == "forced" else f"reached its {cause}"
    return asked if budget is None else f"{asked}; now {tokens:,} of at most {budget:,} tokens"
