"""Carry out one compaction: archive, read back, summarise, check, save, preview, commit.

This order is the commit rule: a failure before the commit leaves the history as it was.
"""

from __future__ import annotations

import time
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, NamedTuple

from conspectus.archive import Archive, Scope
from conspectus.bridge import aside, pause
from conspectus.core.items import Compact
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Cost, Draft, Record
from conspectus.engine.anchors import Anchor
from conspectus.engine.asking import (
    answer_flow,
    as_ours,
    asked_for,
    in_notes,
    ladder_of,
    request_of,
    resting,
    topped_up,
)
from conspectus.engine.checking import (
    approved_flow,
    checked,
    cost_by,
    draft_name,
    draft_of,
    refused,
)
from conspectus.engine.engine import Engine
from conspectus.engine.material import Material, tell_hooks_flow
from conspectus.engine.memory import taken_flow
from conspectus.engine.observed import (
    by_name,
    cause_of,
    emit,
    failed,
    instead_of,
    said_once,
)
from conspectus.engine.redacting import (
    redacted_event_flow,
    redacted_summary_flow,
    redacted_texts_flow,
)
from conspectus.engine.result import Done, Failed
from conspectus.engine.riding import riding
from conspectus.engine.session import Session
from conspectus.engine.view import History, applied
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    ArchiveUnconfirmed,
    ConspectusError,
    RedactionError,
    SummaryError,
)
from conspectus.observe import Observation, observing, price_of
from conspectus.observe.prices import currency

RETRY_AFTER = (0.5, 2.0)
"""Seconds before the second and the third try of one summariser, unless its provider asks for
more."""

LONGEST_WAIT = 20.0
"""Most seconds to wait on a provider's request; if it asks for more, its summariser is not tried
again."""


class _Written(NamedTuple):
    draft: Draft
    spent: Cost
    failures: tuple[str, ...]
    found: bool


@dataclass(slots=True)
class Compaction:
    """One compaction.

    Attributes:
        adopted: the summary by another library of the messages that leave; None for none.
        ready: the draft that was prepared for it; None for none.
        waited: seconds that the caller has waited for that draft.
        begun: name of the draft that this worker has claimed; empty for none.
    """

    session: Session
    history: History
    plan: Compact
    focus: InitVar[str] = ""
    adopted: InitVar[Draft | None] = None
    ready: Draft | None = None
    waited: float = 0.0
    engine: Engine = field(init=False)
    anchor: Anchor = field(init=False)
    scope: Scope = field(init=False)
    material: Material = field(init=False)
    begun: str = ""
    start: float = field(default_factory=time.monotonic)

    def __post_init__(self, focus: str, adopted: Draft | None) -> None:
        self.engine, self.anchor = self.session.engine, self.session.anchor
        self.scope = self.session.scope
        self.material = Material(self.engine, self.history, self.plan, focus, adopted)

    async def run(self) -> tuple[Done | Failed, History]:
        """Carry out the plan, beside the event loop; return the outcome and the view then."""
        return await aside(self._run())

    async def _run(self) -> tuple[Done | Failed, History]:
        plan, engine = self.plan, self.engine
        raises = engine.on_failure == "raise"
        with observing(
            "compaction",
            self.scope,
            cause="adopted" if self.material.adopted is not None else cause_of(plan.cause),
            tokens_before=plan.tokens,
            budget=plan.budget,
            clipped=len(plan.clips),
        ) as seen:
            if engine.redaction is not None:
                seen.hide_errors()
            outcome: Done | Failed
            try:
                outcome = await self._steps(seen)
                if isinstance(outcome, Failed):
                    await self._tell("failed", reason=outcome.reason)
                    if raises and not outcome.refused:
                        raise outcome.error
            except RedactionError as error:
                emit(self.engine, self.scope, "failed", {"reason": str(error)})
                if raises:
                    seen.add(**failed(error))
                    raise
                outcome = Failed(str(error), error, Cost())
            except ConspectusError as error:
                self._release_claim()
                redaction = self.material.redaction
                seen.add(**(await redacted_event_flow(redaction, failed(error))))
                raise
            finally:
                self._release_claim()
            if isinstance(outcome, Failed):
                return (await self._failed(outcome, seen)), self.history
            record, gone = outcome.record, set(plan.evicted)
            if self.waited:
                seen.add(waited=self.waited + self._seconds)
            after = applied(self.history, record, gone, self.material.clips, engine)
            failures = await redacted_texts_flow(self.material.redaction, outcome.failures)
            seen.add(
                outcome="passing" if engine.passing else "compacted",
                tokens_after=after.size.tokens,
                record=record.id,
                name=record.by,
                cost=record.cost,
                money=record.bill.get("money"),
                tries_failed=len(failures),
                error_message=instead_of(record.by, failures),
            )
            return replace(outcome, failures=tuple(failures)), after

    async def _steps(self, seen: Observation) -> Done | Failed:
        plan, material = self.plan, self.material
        await material.gather_flow(self.scope)
        seen.add(messages=len(material.keys), archived=self.engine.archive is not None)
        if material.redaction is not None:
            seen.add(redacted=sum(material.redacted.values()))
        count = len(material.keys)
        await self._tell("start", cause=plan.cause, tokens=plan.tokens, evict=count)
        if self.engine.archive is not None:
            try:
                await self._archive(self.engine.archive)
            except ArchiveError as error:
                return Failed(said_once(error), error, Cost())
        draft, spent, failures = material.adopted, Cost(), tuple[str, ...]()
        if draft is None and plan.summary_tokens:
            written = await self._summary()
            if isinstance(written, Failed):
                return written
            draft, spent, failures, found = written
            if (ask := self.engine.preview) is not None:
                with observing("step", name="preview", by=draft.by) as shown:
                    draft = await approved_flow(ask, material, draft, plan.cause, found)
                    shown.add(outcome="ok" if draft is not None else "refused")
                if draft is None:
                    said = "the summary was refused by the person who was asked"
                    return Failed(said, SummaryError(said), spent, True, failures)
        record = self._record(draft)
        try:
            with observing("step", name="commit", by=record.by):
                await tell_hooks_flow(self.material, self.scope)
                await self.anchor.commit_flow(self.history.chain, record)
        except ArchiveError as error:
            if isinstance(error, ArchiveOvertaken):
                error.cost = spent
            why = f"the record could not be written: {error}"
            return Failed(why, error, spent, failures=failures)
        facts = {"record": record.id, "tokens": record.tokens_after, "by": record.by}
        if self.engine.redaction is not None:
            facts["redacted"] = dict(record.redacted)
        await self._tell("end", **facts)
        return Done(record, draft, spent, failures)

    async def prepared_flow(self) -> Draft | Failed:
        """Take the first half, up to the stored draft; ask nobody, put nothing in force.

        Return the draft, or why there is none.
        """
        await self.material.gather_flow(self.scope)
        try:
            if self.engine.archive is not None:
                await self._archive(self.engine.archive)
            written = await self._summary()
            if isinstance(written, Failed):
                return written
            # Summaries of other libraries were read as what was known before.
            read = dict.fromkeys((*written.draft.read, *self.material.keys))
            return replace(written.draft, read=tuple(read))
        except ArchiveError as error:
            return Failed(said_once(error), error, Cost())
        finally:
            self._release_claim()

    # Into the archive, and back out again

    async def _archive(self, archive: Archive) -> None:
        """Archive the originals and read them back: a store may forget."""
        keys = self.material.keys + tuple(mark.key for mark in self.material.marks)
        originals = [self.material.originals[key] for key in keys]
        if not originals:
            return
        await archive.flow(archive.put, self.scope, originals)
        missing = await archive.flow(archive.missing, self.scope, originals)
        if missing:
            raise ArchiveUnconfirmed(
                f"the store took {len(keys)} messages and did not give {len(missing)} of them "
                "back; check its disk, its quota and its time to live"
            )

    # The summary

    async def _summary(self) -> _Written | Failed:
        """Find the draft; else ask each summariser in turn, the last resort at the end."""
        plan, material = self._draft_name(), self.material
        try:
            draft = await self._found(plan)
        except ArchiveError as trouble:
            return Failed(said_once(trouble), trouble, Cost())
        paid = Cost()
        if draft is not None:
            draft, problems = checked(material, draft)
            if not problems:
                return _Written(draft, Cost(), (), found=True)
            paid = draft.cost
        spent, failures = Cost(), tuple[str, ...]()
        error: Exception = SummaryError("no summariser was given")
        for by in ladder_of(self.engine, self.plan):
            last = self.engine.memory.of(self.scope).last_request
            for tries, wait in enumerate((*RETRY_AFTER, None)):
                asked, cached, transient = 0.0, False, False
                try:
                    with observing("step", name="summarize", by=by) as seen:
                        # After a pause asked for here, which has waited, it is tried again.
                        if not tries and (rest := self.engine.memory.rests(by)):
                            raise resting(by, rest)
                        request = request_of(material, by)
                        request = riding(material, by, request, last, again=bool(failures))
                        cached, last = request.last is not None, None
                        try:
                            answer = await answer_flow(self.engine, by, request, seen)
                            draft = await self._redacted(draft_of(answer, by))
                        except Exception as failure:
                            raise as_ours(failure, by, self.engine)  # noqa: B904  # has its cause
                        draft = in_notes(material, by, draft, request)
                    spent += draft.cost
                    draft, problems = checked(material, draft)
                    if not problems:
                        # Tries that failed were paid for too, and the record is all that says so.
                        draft = replace(draft, cost=paid + spent, seconds=self._seconds)
                        await self.anchor.save_draft_flow(plan, draft)
                        return _Written(draft, spent, failures, found=False)
                    error = refused(by, draft, problems)
                except ArchiveError as failure:
                    why = f"the draft could not be written: {failure}"
                    return Failed(why, failure, spent, failures=failures)
                except SummaryError as failure:
                    error, transient = failure, getattr(failure, "transient", False)
                    asked = asked_for(failure)
                    spent += cost_by(by, getattr(failure, "cost", Cost()))
                failures = (*failures, by_name(by, error))
                await self._tell("attempt_failed", by=by, reason=str(error))
                if wait is None or not (cached or transient) or asked > LONGEST_WAIT:
                    break
                if transient or asked:
                    await pause(max(wait, asked))
        try:
            return Failed(str(error), error, spent, failures=failures)
        finally:
            del error  # it holds this frame

    def _draft_name(self) -> str:
        material, parent = self.material, self.history.head_id
        identity, limit = self.engine.identity(material.focus), material.lengths.asked
        return draft_name(parent, material.keys, limit, identity, material.standing)

    async def _found(self, plan: str) -> Draft | None:
        """Find the draft of a plan; another worker may be writing it."""
        if self.ready is None and (await taken_flow(self.engine.memory, self.scope, plan)):
            self.begun = plan
        draft = self.ready or (await self.anchor.find_draft_flow(plan))
        if draft is None:
            return None
        return draft if self.ready is None else (await self._topped_up(draft))

    async def _topped_up(self, ready: Draft) -> Draft:
        """Add the embedded summariser's notes of later messages to a prepared draft."""
        material, read = self.material, set(ready.read)
        later = [material.originals[key] for key in material.keys if key not in read]
        if not later:
            return ready
        with observing("step", name="summarize", by=EMBEDDED):
            return topped_up(material, ready, later)

    def _release_claim(self) -> None:
        if self.begun:
            self.engine.memory.end(self.scope, self.begun)
            self.begun = ""

    async def _redacted(self, draft: Draft) -> Draft:
        text = await redacted_summary_flow(self.material.redaction, draft.text)
        return replace(draft, text=text)

    # The record

    @property
    def _seconds(self) -> float:
        return round(time.monotonic() - self.start, 3)

    def _bill(self, draft: Draft) -> dict[str, Any]:
        """Return the seconds and the money that the record cost, beside tokens."""
        own, prepared = self._seconds, 0.0 if self.ready is None else self.ready.seconds
        amount = price_of(draft.cost)
        money = {} if amount is None else {"money": amount, "currency": currency()}
        waited = round(own + self.waited, 3)
        return {"seconds": round(own + prepared, 3), "waited": waited, **money}

    def _record(self, draft: Draft | None) -> Record:
        material = self.material
        made = draft or Draft(material.standing, by="", read=())
        return Record.make(
            parent=self.history.head_id,
            covers=material.keys,
            clips=material.marks,
            summary=made.text,
            segment=made.segment,
            cause=self.plan.cause,
            tokens_before=self.plan.tokens,
            tokens_after=material.tokens + made.tokens,
            messages_after=len(material.places) + bool(self.plan.summary_tokens),
            archived=self.engine.archive is not None,
            by=made.by,
            cost=made.cost,
            cut=made.cut,
            request=made.request,
            redacted=dict(material.redacted) if material.redaction is not None else {},
            order=material.among(),
            bill=self._bill(made),
        )

    # Events

    async def _tell(self, event: str, **data: Any) -> None:
        clean = await redacted_event_flow(self.material.redaction, data)
        emit(self.engine, self.scope, event, clean)

    async def _failed(self, outcome: Failed, seen: Observation) -> Failed:
        redaction, why = self.material.redaction, failed(outcome.error, refused=outcome.refused)
        why["tries_failed"] = len(outcome.failures)
        if isinstance(outcome.error, RedactionError):
            # Of our own words; a redactor that hangs is not asked again about them.
            seen.add(**why)
            return outcome
        seen.add(**(await redacted_event_flow(redaction, why)))
        [reason] = await redacted_texts_flow(redaction, [outcome.reason])
        return replace(outcome, reason=reason)
