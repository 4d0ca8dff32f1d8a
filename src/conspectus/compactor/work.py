"""One compaction for one session: the order for the core's flow, and how each effect is done."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from conspectus import events
from conspectus._core import flow
from conspectus._core.flow import EMBEDDED
from conspectus._core.items import Compact
from conspectus._core.preparation import preparation
from conspectus._core.records import Cost, Draft
from conspectus._drive import Flow, interpret, pause
from conspectus.archive import Scope
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.asking import asked_flow, reading_flow
from conspectus.compactor.checking import Lengths, checked, refused
from conspectus.compactor.leaving import event_of, tell
from conspectus.compactor.material import Material
from conspectus.compactor.observed import cause_of, failed, whose_of
from conspectus.compactor.preview import PreviewRequest, approved
from conspectus.compactor.redacting import event_flow, told_flow, written_flow
from conspectus.compactor.tools import SLACK, Tools
from conspectus.compactor.view import History, applied
from conspectus.compactor.waiting import taken_flow
from conspectus.errors import ConspectusError, RedactionError
from conspectus.events import Seen, observing
from conspectus.events.notes import noted
from conspectus.ledger import Ledger
from conspectus.messages import Entry
from conspectus.summarize import (
    Form,
    Shares,
    SummaryRequest,
    composed,
    cut_short,
    for_model,
    wrong_with,
)

logger = logging.getLogger("conspectus")


def identity_of(tools: Tools, focus: str) -> str:
    """All that would change a summary beside the messages that it stands for, as one string."""
    return "\0".join(
        [
            *(tools.summarizers[name].identity for name in tools.order),
            focus,
            *([] if tools.shares == Shares() else [repr(tools.shares)]),
            *([tools.redaction.identity] if tools.redaction is not None else []),
        ]
    )


@dataclass(slots=True)
class Work:
    """One compaction.

    Attributes:
        tools: what it works with.
        scope: whose session it is.
        anchor: where its records and drafts are.
        history: the view before it.
        plan: what to do.
        focus: what the caller wants kept above all.
        adopted: the summary of what leaves, where another library has written it already.
        ledger: the facts with those of what leaves.
        stays: tokens of what stays in view beside the summary.
        ready: the draft that was prepared beside the agent; None where there is none.
        material: all that it reads.
    """

    tools: Tools
    scope: Scope
    anchor: Anchor
    history: History
    plan: Compact
    focus: InitVar[str]
    adopted: InitVar[Draft | None] = None
    ready: Draft | None = None
    ledger: Ledger = field(default_factory=Ledger)
    stays: int = 0
    begun: str = ""
    asked: set[str] = field(default_factory=set)
    material: Material = field(init=False)

    def __post_init__(self, focus: str, adopted: Draft | None) -> None:
        self.material = Material(self.tools, self.history, self.plan, focus, adopted)

    def run(self) -> Flow[tuple[flow.Done | flow.Failed, History]]:
        """Carry out the plan; the history that comes back is the new view, or the old one."""
        plan = self.plan
        with observing(
            events.Compaction,
            whose_of(self.scope),
            cause="adopted" if self.material.adopted is not None else cause_of(plan.cause),
            tokens_before=plan.tokens,
            budget=plan.budget,
            clipped=len(plan.clips),
        ) as seen:
            if self.tools.redaction is not None:
                seen.withhold()
            try:
                outcome = yield from self._carried_out(seen)
            except RedactionError as error:
                seen.tell(**failed(error))
                raise
            except ConspectusError as error:  # whoever wants it raised
                seen.tell(**(yield from event_flow(self.material.redaction, failed(error))))
                raise
            if isinstance(outcome, flow.Failed):
                why = failed(outcome.error, refused=outcome.refused)
                why["tries_failed"] = len(outcome.failures)
                if isinstance(outcome.error, RedactionError):
                    # Of our own words; a redactor that hangs is not asked again about them.
                    seen.tell(**why)
                    return outcome, self.history
                seen.tell(**(yield from event_flow(self.material.redaction, why)))
                reason = (yield from told_flow(self.material.redaction, [outcome.reason]))[0]
                return replace(outcome, reason=reason), self.history
            failures = yield from told_flow(self.material.redaction, outcome.failures)
            outcome = replace(outcome, failures=tuple(failures))
            record = outcome.record
            gone = set(plan.evicted)
            after = applied(self.history, record, gone, self.material.clips, self.tools.meter)
            seen.tell(
                outcome="passing" if self.tools.passing else "compacted",
                tokens_after=after.size.tokens,
                record=record.id,
                by=record.by,
                tries_failed=len(outcome.failures),
            )
            return outcome, after

    def _carried_out(self, seen: Seen) -> Flow[flow.Done | flow.Failed]:
        try:
            yield from self.material.gather_flow(self.scope)
            seen.tell(evicted=len(self.material.leaving))
            if self.material.redaction is not None:
                seen.tell(redacted=sum(self.material.redacted.values()))
            order = yield from self._order()
            return (yield from interpret(flow.compaction(order), self._perform))
        except RedactionError as error:
            self._emit("failed", {"reason": str(error)})
            if self.tools.on_failure == "raise":
                raise
            return flow.Failed(str(error), error, Cost())
        finally:
            if self.begun:
                self.tools.memory.end(self.scope, self.begun)

    def ordered_flow(self) -> Flow[flow.Order]:
        """Gather all that is read, and say what is to be done."""
        yield from self.material.gather_flow(self.scope)
        return (yield from self._order())

    def prepared_flow(self, order: flow.Order) -> Flow[Draft | flow.Failed]:
        """Make the draft of an order, and put nothing in force."""
        try:
            return (yield from interpret(preparation(order), self._perform))
        finally:
            if self.begun:
                self.tools.memory.end(self.scope, self.begun)

    # What the order needs

    def _order(self) -> Flow[flow.Order]:
        head, plan, tools = self.history.head, self.plan, self.tools
        before, staying = self.material.ledger, self.material.staying
        left = self.material.read()
        self.ledger = yield from reading_flow(
            lambda: before.updated(left, tools.skills).without_superseded(staying),
            [*left, *staying],
        )
        gone = set(plan.evicted)
        kept = [
            self.material.clips.get(i, place)
            for i, place in enumerate(self.history.places)
            if i not in gone and not (place.item.summary and plan.summary_tokens)
        ]
        self.stays = sum(place.item.tokens for place in kept)
        return flow.Order(
            plan=replace(plan, summary_tokens=self._lengths.asked) if plan.summary_tokens else plan,
            keys=tuple(place.item.key for place in self.material.leaving),
            clips=tuple(p.mark for p in self.material.clips.values() if p.mark is not None),
            parent=head.id if head else None,
            standing=self.material.standing,
            ledger=self.ledger.to_json(),
            summarisers=tools.order,
            identity=identity_of(tools, self.material.focus),
            archived=tools.archive is not None,
            roomy=plan.budget is None or plan.tokens <= plan.budget,
            on_failure=tools.on_failure,
            messages_after=len(kept) + bool(plan.summary_tokens),
            kept_tokens=self.stays,
            adopted=self.material.adopted,
            preview=tools.preview is not None,
            redacted=self.material.redacted if tools.redaction is not None else None,
            among=self._among(),
        )

    def _among(self) -> tuple[str, ...]:
        """The keys of what leaves, with those of messages that stay in view before the last of it:
        they leave later, and the archive is to know where they stood."""
        items = [place.item for place in self.history.places]
        leaving = {place.item.key for place in self.material.leaving}
        known = {key for record in self.history.chain for key in record.order}
        last = max((i for i, item in enumerate(items) if item.key in leaving), default=-1)
        among = tuple(
            item.key
            for item in items[: last + 1]
            if item.key in leaving
            or not (item.summary or item.role == "system" or item.key in known)
        )
        return () if leaving.issuperset(among) else among

    @property
    def _lengths(self) -> Lengths:
        return Lengths.of(
            self.plan, self._replaced(), self.stays, alone=self.tools.size is not None
        )

    def _replaced(self) -> int:
        items = self.history.items
        standing = sum(item.tokens for item in items if item.summary)
        return standing + sum(items[i].tokens for i in self.plan.evicted)

    # How each effect is done

    def _perform(self, effect: flow.Effect) -> Flow[Any]:
        archive, anchor, scope = self.tools.archive, self.anchor, self.scope
        match effect:
            case flow.Archive(keys) if archive is not None:
                yield from archive.put_flow(scope, [self.material.originals[key] for key in keys])
            case flow.ReadBack(keys) if archive is not None:
                return (
                    yield from archive.missing_flow(
                        scope, [self.material.originals[key] for key in keys]
                    )
                )
            case flow.FindDraft(plan):
                return (yield from self._found(plan))
            case flow.Summarise():
                with observing(events.CompactionStep, step="summarize", by=effect.by) as seen:
                    return (yield from self._summarise(effect, seen))
            case flow.Check(draft, keys):
                with observing(events.CompactionStep, step="check", by=draft.by) as seen:
                    entries = [self.material.originals[key] for key in keys]
                    tools, size = self.tools, self.material.size
                    found = checked(draft, entries, self.ledger, self._lengths, tools, size)
                    wrong = len(found.problems)
                    seen.tell(problems=wrong, tokens=found.draft.tokens)
                    seen.tell(outcome="refused" if wrong else "ok")
                return found
            case flow.SaveDraft(plan, draft):
                yield from anchor.save_draft_flow(plan, draft)
            case flow.Preview(draft, kept):
                with observing(events.CompactionStep, step="preview", by=draft.by) as seen:
                    answer = yield from self._preview(draft, kept)
                    seen.tell(outcome="ok" if answer is not None else "refused")
                return answer
            case flow.Commit(record):
                with observing(events.CompactionStep, step="commit", by=record.by):
                    yield from self._tell_hooks()
                    yield from anchor.commit_flow(self.history.chain, record)
            case flow.Wait(seconds):
                yield pause(seconds)
            case flow.Emit(event, data):
                self._emit(event, (yield from event_flow(self.material.redaction, data)))
        return None

    def _tell_hooks(self) -> Flow[None]:
        """Tell of what leaves: it is archived, and its summary is sound."""
        left = self.material.read()
        if self.tools.hooks and left:
            closed = self.tools.redaction is not None
            event = event_of(
                left, self.material.staying, self.scope, self.plan.cause, closed=closed
            )
            yield from tell(self.tools.hooks, event, self.tools.timeout)

    def _found(self, plan: str) -> Flow[Draft | None]:
        """The draft of a plan; where there is none yet, another worker may be writing it."""
        if self.ready is not None:
            return (yield from self._topped_up(self.ready))
        if (yield from taken_flow(self.tools.memory, self.scope, plan)):
            self.begun = plan
        return (yield from self.anchor.find_draft_flow(plan))

    def _topped_up(self, ready: Draft) -> Flow[Draft]:
        """A draft with what the embedded summariser notes of messages that came later."""
        read = set(ready.read)
        keys = [place.item.key for place in self.material.leaving]
        later = [self.material.originals[key] for key in keys if key not in read]
        if not later:
            return ready
        with observing(events.CompactionStep, step="summarize", by=EMBEDDED) as seen:
            asked = replace(self._request(later, self._lengths.fine), standing=ready.text)
            added = yield from asked_flow(
                self.tools, self.material.redaction, EMBEDDED, asked, seen
            )
        return replace(ready, text=added.text, read=(*ready.read, *added.read))

    def _request(self, entries: Sequence[Entry], limit: int, spent: int = 0) -> SummaryRequest:
        return SummaryRequest(
            entries=entries,
            standing=self.material.standing,
            ledger=self.ledger,
            limit=max(1, limit - self.tools.frame - SLACK),
            count=self.tools.meter.text,
            focus=self.material.focus,
            kept=self.material.staying,
            spent=spent,
            most=max(1, self._lengths.fine - self.tools.frame - SLACK),
            shares=self.tools.shares,
            archived=self.tools.archive is not None,
        )

    def _summarise(self, wanted: flow.Summarise, seen: Seen) -> Flow[Draft]:
        by = wanted.by
        if by not in self.asked:  # within one compaction the flow waits as long as it was asked to
            self.asked.add(by)
            if rest := self.tools.memory.rests(by):
                raise flow.resting(by, rest)
        summarizer, shares = self.tools.summarizers[by], self.tools.shares
        form: Form = getattr(summarizer, "form", "whole")
        entries = [self.material.originals[key] for key in wanted.keys]
        request = self._request(entries, wanted.limit, wanted.spent)
        alone = form != "notes" and not shares.parts
        asked = request if alone or form == "notes" else for_model(request, whole=form == "whole")
        draft = yield from asked_flow(self.tools, self.material.redaction, by, asked, seen)
        if form == "notes":
            return draft
        if wrong := wrong_with(draft.text, request.entries):
            raise refused(by, draft, wrong)
        draft = self._cut(draft)
        if alone:
            return draft
        # In the notes its lines would give way until the rest fits, so it is judged before.
        if wrong := self._lengths.exceeded_by(draft, self.material.size(draft.text)):
            raise refused(by, draft, wrong)
        most = max(1, self._lengths.most - self.tools.frame - SLACK)
        text, facts = yield from reading_flow(
            lambda: composed(request, draft.text, whole=form == "whole", most=most),
            request.entries,
        )
        self.ledger = self.ledger.merged(facts)
        return replace(draft, text=text)

    def _cut(self, draft: Draft) -> Draft:
        """A text cut at the end of a line where it is longer than a caller allows."""
        lengths, count, size = self._lengths, self.tools.meter.text, self.material.size
        room = lengths.most - self.tools.frame - SLACK
        text = draft.text
        while lengths.may_be_cut and (over := size(text) - lengths.most) > 0 and room > 0:
            text, _ = cut_short(draft.text, room, count)
            room -= over  # a message may count for more than its parts
        return replace(draft, text=text, cut=count(draft.text) - count(text))

    def _preview(self, draft: Draft, kept: bool) -> Flow[Draft | None]:
        limit = self._lengths.most
        request = PreviewRequest(
            summary=draft.text,
            evict=len(self.material.leaving),
            cause=self.plan.cause,
            limit=max(1, limit - self.tools.frame - SLACK),
            by=draft.by,
            kept=kept,
        )
        assert self.tools.preview is not None
        answer = approved(self.tools.preview, request, draft, self.material.size, limit)
        if answer is None or answer.text == draft.text:
            return answer
        text = yield from written_flow(self.material.redaction, answer.text)
        return (
            answer
            if text == answer.text
            else flow.with_tokens(answer, text, self.material.size(text))
        )

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
