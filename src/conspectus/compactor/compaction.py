"""One compaction: archive, read back, find or write the summary, check, save, preview, commit.

The order is the commit rule: originals into the archive and read back, the summary made and
checked, the draft stored, the record committed. Whatever fails before the commit leaves the history
as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from conspectus import events
from conspectus._core.choices import EMBEDDED
from conspectus._core.items import Compact
from conspectus._core.records import Cost, Draft, Record
from conspectus._drive import Flow, pause
from conspectus.archive import Archive, Scope
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.asking import (
    answer_flow,
    as_ours,
    asked_for,
    in_notes_flow,
    request_of,
    resting,
)
from conspectus.compactor.checking import checked, refused
from conspectus.compactor.drafts import draft_name, draft_of
from conspectus.compactor.leaving import event_of, tell
from conspectus.compactor.material import Material
from conspectus.compactor.observed import cause_of, failed, whose_of
from conspectus.compactor.outcome import Done, Failed
from conspectus.compactor.preview import PreviewRequest, approved
from conspectus.compactor.redacting import event_flow, told_flow, written_flow
from conspectus.compactor.riding import riding
from conspectus.compactor.tools import Tools
from conspectus.compactor.view import History, applied
from conspectus.compactor.waiting import taken_flow
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    ArchiveUnconfirmed,
    ConspectusError,
    RedactionError,
    SummaryError,
)
from conspectus.events import CompactionStep, Seen, observing
from conspectus.events.notes import noted
from conspectus.ledger import Ledger

logger = logging.getLogger("conspectus")

Claim = Callable[[str, tuple[str, ...]], Flow[bool]]

RETRY_AFTER = (0.5, 2.0)
"""Seconds to wait before the second and the third try of one summariser; longer where its provider
asks for it."""

LONGEST_WAIT = 20.0
"""The most seconds to wait because a provider asks for it. Where it asks for more, the summariser
is not tried again: an agent's step should not stand still, and to ask earlier would be in vain."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A checked summary: what it took, tries that failed, and whether it was found as a draft."""

    draft: Draft
    spent: Cost
    failures: tuple[str, ...]
    found: bool


@dataclass(slots=True)
class Compaction:
    """One compaction.

    Attributes:
        tools: what it works with.
        scope: whose session it is.
        anchor: where its records and drafts are.
        history: the view before it.
        plan: what to do.
        focus: what the caller wants kept above all.
        adopted: the summary of what leaves, where another library has written it already.
        ready: the draft that was prepared for it; None where there is none.
        material: all that it reads.
        begun: name of the draft that this worker has taken upon itself; empty for none.
        asked: names of the summarisers that were asked.
    """

    tools: Tools
    scope: Scope
    anchor: Anchor
    history: History
    plan: Compact
    focus: InitVar[str]
    adopted: InitVar[Draft | None] = None
    ready: Draft | None = None
    material: Material = field(init=False)
    begun: str = ""
    asked: set[str] = field(default_factory=set)

    def __post_init__(self, focus: str, adopted: Draft | None) -> None:
        self.material = Material(self.tools, self.history, self.plan, focus, adopted)

    def run(self) -> Flow[tuple[Done | Failed, History]]:
        """Carry out the plan; the history that comes back is the new view, or the old one."""
        plan, tools = self.plan, self.tools
        raises = tools.on_failure == "raise"
        with observing(
            events.Compaction,
            whose_of(self.scope),
            cause="adopted" if self.material.adopted is not None else cause_of(plan.cause),
            tokens_before=plan.tokens,
            budget=plan.budget,
            clipped=len(plan.clips),
        ) as seen:
            if tools.redaction is not None:
                seen.withhold()
            outcome: Done | Failed
            try:
                outcome = yield from self._steps(seen)
                if isinstance(outcome, Failed):
                    yield from self._tell("failed", reason=outcome.reason)
                    if raises and not outcome.refused:
                        raise outcome.error
            except RedactionError as error:
                self._emit("failed", {"reason": str(error)})
                if raises:
                    seen.tell(**failed(error))
                    raise
                outcome = Failed(str(error), error, Cost())
            except ConspectusError as error:
                self._let_others_go_on()
                seen.tell(**(yield from event_flow(self.material.redaction, failed(error))))
                raise
            finally:
                self._let_others_go_on()
            if isinstance(outcome, Failed):
                return (yield from self._failed(outcome, seen)), self.history
            record, gone = outcome.record, set(plan.evicted)
            after = applied(self.history, record, gone, self.material.clips, tools.meter)
            failures = yield from told_flow(self.material.redaction, outcome.failures)
            seen.tell(
                outcome="passing" if tools.passing else "compacted",
                tokens_after=after.size.tokens,
                record=record.id,
                by=record.by,
                tries_failed=len(failures),
            )
            return replace(outcome, failures=tuple(failures)), after

    def _steps(self, seen: Seen) -> Flow[Done | Failed]:
        """The steps, in their order."""
        plan, material = self.plan, self.material
        yield from material.gather_flow(self.scope)
        seen.tell(evicted=len(material.keys))
        if material.redaction is not None:
            seen.tell(redacted=sum(material.redacted.values()))
        yield from self._tell(
            "start", cause=plan.cause, tokens=plan.tokens, evict=len(material.keys)
        )
        if self.tools.archive is not None:
            try:
                yield from self._archive(self.tools.archive)
            except ArchiveError as error:
                return Failed(_said_once(error), error, Cost())
        draft, spent, failures = material.adopted, Cost(), tuple[str, ...]()
        if draft is None and plan.summary_tokens:
            written = yield from self._summary()
            if isinstance(written, Failed):
                return written
            draft, spent, failures = written.draft, written.spent, written.failures
            if self.tools.preview is not None:
                draft = yield from self._preview(draft, written.found)
                if draft is None:
                    said = "the summary was refused by the person who was asked"
                    return Failed(said, SummaryError(said), spent, True, failures)
        record = self._record(draft)
        try:
            yield from self._commit(record)
        except ArchiveError as error:
            if isinstance(error, ArchiveOvertaken):
                error.cost = spent
            why = f"the record could not be written: {error}"
            return Failed(why, error, spent, failures=failures)
        found = {} if self.tools.redaction is None else {"redacted": dict(record.redacted)}
        yield from self._tell(
            "end", record=record.id, tokens=record.tokens_after, by=record.by, **found
        )
        return Done(record, draft, spent, failures)

    def prepared_flow(self, claim: Claim) -> Flow[Draft | Failed | None]:
        """The first half: all up to the stored draft. Nobody is asked, and nothing is in force.

        Args:
            claim: given the name of the draft and the keys of what it stands for, says whether this
                worker is to make it.

        Returns:
            The draft; why there is none; None where another worker is at it.
        """
        yield from self.material.gather_flow(self.scope)
        name = self._draft_name()
        if not (yield from claim(name, self.material.keys)):
            return None
        try:
            if self.tools.archive is not None:
                yield from self._archive(self.tools.archive)
            written = yield from self._summary()
            return written if isinstance(written, Failed) else written.draft
        except ArchiveError as error:
            return Failed(_said_once(error), error, Cost())
        finally:
            self._let_others_go_on()

    # Into the archive, and back out again

    def _archive(self, archive: Archive) -> Flow[None]:
        """Archive what leaves and what is shown short: a store that confirms and forgets is found
        out here."""
        keys = self.material.keys + tuple(mark.key for mark in self.material.marks)
        originals = [self.material.originals[key] for key in keys]
        if not originals:
            return
        yield from archive.put_flow(self.scope, originals)
        missing = yield from archive.missing_flow(self.scope, originals)
        if missing:
            raise ArchiveUnconfirmed(
                f"the store took {len(keys)} messages and did not give {len(missing)} of them "
                "back; check its disk, its quota and its time to live"
            )

    # The summary

    def _summary(self) -> Flow[_Written | Failed]:
        """The draft if there is one; else each summariser in turn, then the last resort."""
        plan, material = self._draft_name(), self.material
        try:
            draft = yield from self._found(plan)
        except ArchiveError as trouble:
            return Failed(_said_once(trouble), trouble, Cost())
        if draft is not None:
            draft, problems = self._checked(draft)
            if not problems:
                return _Written(draft, Cost(), (), found=True)
        spent, failures = Cost(), tuple[str, ...]()
        error: Exception = SummaryError("no summariser was given")
        for by in self._ladder():
            last = self.tools.memory.of(self.scope).last_request
            for wait in (*RETRY_AFTER, None):
                asked, cached = 0.0, False
                try:
                    with observing(CompactionStep, step="summarize", by=by) as seen:
                        self._may_be_asked(by)
                        request = riding(material, by, request_of(material, spent.tokens), last)
                        cached, last = request.last is not None, None
                        try:
                            answer = yield from answer_flow(self.tools, by, request, seen)
                            draft = yield from self._redacted(draft_of(answer, by))
                        except Exception as failure:
                            raise as_ours(failure, by, self.tools)  # noqa: B904  # has its cause
                        draft = yield from in_notes_flow(material, by, draft, request)
                    spent += draft.cost
                    draft, problems = self._checked(draft)
                    if not problems:
                        yield from self.anchor.save_draft_flow(plan, draft)
                        return _Written(draft, spent, failures, found=False)
                    error, retry = refused(by, draft, problems), cached
                except ArchiveError as failure:
                    why = f"the draft could not be written: {failure}"
                    return Failed(why, failure, spent, failures=failures)
                except SummaryError as failure:
                    error, retry = failure, cached or getattr(failure, "transient", False)
                    asked = asked_for(failure)
                    spent += getattr(failure, "cost", Cost())
                failures = (*failures, _by_name(by, error))
                yield from self._tell("attempt_failed", by=by, reason=str(error))
                if wait is None or not retry or asked > LONGEST_WAIT:
                    break
                yield pause(max(wait, asked))
        try:
            return Failed(str(error), error, spent, failures=failures)
        finally:
            del error  # it holds this frame

    def _draft_name(self) -> str:
        """Another one wherever the summary would be another."""
        head, material = self.history.head, self.material
        return draft_name(
            parent=head.id if head else None,
            keys=material.keys,
            limit=material.lengths.asked,
            identity=self.tools.identity(material.focus),
            standing=material.standing,
            ledger=material.ledger.to_json(),
        )

    def _found(self, plan: str) -> Flow[Draft | None]:
        """The draft of a plan; where there is none yet, another worker may be writing it."""
        if self.ready is None and (yield from taken_flow(self.tools.memory, self.scope, plan)):
            self.begun = plan
        draft = self.ready or (yield from self.anchor.find_draft_flow(plan))
        if draft is None:
            return None
        # What its summariser has named as binding stands in the ledger, whoever asked it.
        named, _ = Ledger.recovered({"facts": draft.binding})
        self.material.ledger = self.material.ledger.merged(named.facts)
        return draft if self.ready is None else (yield from self._topped_up(draft))

    def _topped_up(self, ready: Draft) -> Flow[Draft]:
        """A prepared draft with what the embedded summariser notes of messages that came later."""
        material, read = self.material, set(ready.read)
        later = [material.originals[key] for key in material.keys if key not in read]
        if not later:
            return ready
        with observing(CompactionStep, step="summarize", by=EMBEDDED) as seen:
            limit = self.tools.text_within(material.lengths.fine)
            asked = replace(
                request_of(material, 0), entries=later, standing=ready.text, limit=limit
            )
            answer = yield from answer_flow(self.tools, EMBEDDED, asked, seen)
            added = yield from self._redacted(draft_of(answer, EMBEDDED))
        return replace(ready, text=added.text, read=(*ready.read, *added.read))

    def _let_others_go_on(self) -> None:
        if self.begun:
            self.tools.memory.end(self.scope, self.begun)
            self.begun = ""

    def _ladder(self) -> tuple[str, ...]:
        """Who is asked, in turn."""
        tools, plan = self.tools, self.plan
        roomy = plan.budget is None or plan.tokens <= plan.budget
        last_resort = tools.on_failure == "degrade" and not roomy and EMBEDDED not in tools.order
        return (*tools.order, EMBEDDED) if last_resort else tools.order

    def _may_be_asked(self, by: str) -> None:
        """Pass by a summariser whose provider wants to be left alone, unless it has said so in this
        very compaction, which has waited then."""
        rest = 0.0 if by in self.asked else self.tools.memory.rests(by)
        self.asked.add(by)
        if rest:
            raise resting(by, rest)

    def _redacted(self, draft: Draft) -> Flow[Draft]:
        text = yield from written_flow(self.material.redaction, draft.text)
        return draft if text == draft.text else replace(draft, text=text)

    def _checked(self, draft: Draft) -> tuple[Draft, tuple[str, ...]]:
        """The draft with its size measured, and why it cannot be used; nothing if it can."""
        material = self.material
        with observing(CompactionStep, step="check", by=draft.by) as seen:
            entries = [material.originals[key] for key in material.keys]
            lengths, size = material.lengths, material.size
            draft, problems = checked(draft, entries, material.ledger, lengths, self.tools, size)
            seen.tell(problems=len(problems), tokens=draft.tokens)
            seen.tell(outcome="refused" if problems else "ok")
        return draft, problems

    # A person reads it

    def _preview(self, draft: Draft, kept: bool) -> Flow[Draft | None]:
        """The draft as a person approved it; None where it was refused."""
        material, ask = self.material, self.tools.preview
        assert ask is not None
        with observing(CompactionStep, step="preview", by=draft.by) as seen:
            most, by = material.lengths.most, draft.by
            limit, cause = self.tools.text_within(most), self.plan.cause
            evict = len(material.keys)
            request = PreviewRequest(draft.text, evict, cause, limit, by, kept=kept)
            answer = approved(ask, request, draft, material.size, most)
            if answer is not None and answer.text != draft.text:
                answer = yield from self._redacted(answer)
                answer = replace(answer, tokens=material.size(answer.text))
            seen.tell(outcome="ok" if answer is not None else "refused")
        return answer

    # The record

    def _record(self, draft: Draft | None) -> Record:
        material, head, tools = self.material, self.history.head, self.tools
        return Record.make(
            parent=head.id if head else None,
            covers=material.keys,
            clips=material.marks,
            summary=draft.text if draft else material.standing,
            ledger=material.ledger.to_json(),
            cause=self.plan.cause,
            tokens_before=self.plan.tokens,
            tokens_after=material.tokens + (draft.tokens if draft else 0),
            messages_after=len(material.places) + bool(self.plan.summary_tokens),
            archived=tools.archive is not None,
            by=draft.by if draft else "",
            cost=draft.cost if draft else Cost(),
            cut=draft.cut if draft else 0,
            request=draft.request if draft else "",
            redacted=dict(material.redacted) if tools.redaction is not None else {},
            order=material.among(),
        )

    def _commit(self, record: Record) -> Flow[None]:
        """Tell the hooks of what leaves, as it is archived and its summary is sound; then put the
        record in force."""
        with observing(CompactionStep, step="commit", by=record.by):
            left, staying, hooks = self.material.read(), self.material.staying, self.tools.hooks
            if hooks and left:
                closed = self.tools.redaction is not None
                event = event_of(left, staying, self.scope, self.plan.cause, closed=closed)
                yield from tell(hooks, event, self.tools.timeout)
            yield from self.anchor.commit_flow(self.history.chain, record)

    # What is told of it

    def _tell(self, event: str, **data: Any) -> Flow[None]:
        self._emit(event, (yield from event_flow(self.material.redaction, data)))

    def _emit(self, event: str, data: Mapping[str, Any]) -> None:
        data = {**data, "thread_id": self.scope.thread, "session": self.scope.session}
        logger.debug("%s %s", event, data, extra=noted("compaction_progress"))
        if self.tools.on_event is None:
            return
        try:
            self.tools.on_event(event, data)
        except Exception:
            # A listener that fails must not undo a compaction.
            logger.exception("on_event failed at %r", event, extra=noted("on_event_failed"))

    def _failed(self, outcome: Failed, seen: Seen) -> Flow[Failed]:
        """The failure as it may be told."""
        redaction, why = self.material.redaction, failed(outcome.error, refused=outcome.refused)
        why["tries_failed"] = len(outcome.failures)
        if isinstance(outcome.error, RedactionError):
            # Of our own words; a redactor that hangs is not asked again about them.
            seen.tell(**why)
            return outcome
        seen.tell(**(yield from event_flow(redaction, why)))
        [reason] = yield from told_flow(redaction, [outcome.reason])
        return replace(outcome, reason=reason)


def _by_name(by: str, error: Exception) -> str:
    """What went wrong, and with whom, said once."""
    return str(error) if f"{by} " in str(error) else f"{by}: {error}"


def _said_once(error: ArchiveError) -> str:
    """Why: errors of a store begin with it already."""
    text = str(error)
    return text if text.startswith("The archive failed") else f"the archive failed: {text}"
