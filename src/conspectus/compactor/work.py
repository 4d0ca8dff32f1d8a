"""One compaction for one session: the order for the core's flow, and how each effect is done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from conspectus._core import flow
from conspectus._core.items import Compact
from conspectus._core.records import Draft, Record
from conspectus._drive import Flow, Io, StepTimeout, interpret, pause
from conspectus.archive import Archive, Scope
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.drafts import body_of, draft_of, uncited
from conspectus.compactor.leaving import BeforeSummarization, event_of, tell
from conspectus.compactor.memory import Memory
from conspectus.compactor.preview import Preview, PreviewRequest, approved
from conspectus.compactor.view import History, Place, applied, clipped
from conspectus.errors import SummarizerTimeout, SummaryError
from conspectus.ledger import Ledger
from conspectus.ledger.skills import Skills
from conspectus.messages import (
    Entry,
    read_messages,
    summary_message,
    summary_text,
)
from conspectus.messages.summary import summary_body
from conspectus.summarize import (
    FLOOR,
    ExtractiveSummarizer,
    Summarizer,
    SummaryRequest,
    problems,
    with_missing_facts,
)
from conspectus.summarize.provider_errors import is_way_out
from conspectus.tokens import TokenMeter

logger = logging.getLogger("conspectus")

SLACK = 4
"""Tokens of the limit left free, as a whole message may count for more than its parts."""

MANY, LONG = 50, 20_000
"""Messages, and characters of them, that are read on the event loop itself at most."""

T = TypeVar("T")
DELEGATIONS, SKILLS = 20, 20
"""Pieces of work handed to others, and skill files read, the latest ones, that every summary tells
of, if it has room."""

OnEvent = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Tools:
    """What a compaction works with; the same for every session of a compactor.

    Attributes:
        meter: counts tokens.
        frame: tokens of a summary message that says nothing yet.
        archive: where originals go, if anywhere.
        memory: what is remembered between calls.
        summarizers: all there are, by name, the embedded one included.
        order: names of those to try, in turn.
        on_failure: what follows when none succeeds.
        timeout: seconds for one try of a summariser that sets none itself.
        on_event: whom to tell.
        preview: who reads a summary before it is in force; see `PreviewRequest`.
        hooks: told of what is about to leave.
        skills: which calls read skill files; None where none does.
        size: tokens of the message that shows a summary, where that is not one of ours.
    """

    meter: TokenMeter
    frame: int
    archive: Archive | None
    memory: Memory
    summarizers: Mapping[str, Summarizer]
    order: tuple[str, ...]
    on_failure: flow.OnFailure
    timeout: float | None
    on_event: OnEvent | None
    preview: Preview | None = None
    hooks: tuple[BeforeSummarization, ...] = ()
    skills: Skills | None = None
    size: Callable[[str], int] | None = None


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
        originals: the messages that leave or are clipped, as they were first sent, by key.
    """

    tools: Tools
    scope: Scope
    anchor: Anchor
    history: History
    plan: Compact
    focus: str
    adopted: Draft | None = None
    originals: dict[str, Entry] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    leaving: tuple[Place, ...] = ()
    clips: dict[int, Place] = field(default_factory=dict)
    lost: int = 0

    def run(self) -> Flow[tuple[flow.Done | flow.Failed, History]]:
        """Carry out the plan; the history that comes back is the new view, or the old one."""
        yield from self._gather()
        order = yield from self._order()
        outcome = yield from interpret(flow.compaction(order), self._perform)
        if isinstance(outcome, flow.Failed):
            return outcome, self.history
        gone = set(self.plan.evicted)
        return outcome, applied(self.history, outcome.record, gone, self.clips, self.tools.meter)

    # What the order needs

    def _gather(self) -> Flow[None]:
        """The originals of all that leaves or is clipped; those that came back clipped are read
        from the archive, so that a summariser reads the whole of them."""
        places = self.history.places
        gone = set(self.plan.evicted)
        self.leaving = tuple(
            place
            for i, place in enumerate(places)
            if i in gone or (self.plan.summary_tokens and _foreign(place))
        )
        wanted = [*self.leaving, *(places[clip.index] for clip in self.plan.clips)]
        short = [place for place in wanted if place.back]
        found: dict[str, Entry] = {}
        if short and self.tools.archive is not None:
            keys = [place.item.key for place in short]
            archived = yield from self.tools.archive.find_flow(self.scope, keys)
            for key, original in archived.items():
                entry = read_messages([original.message])[0]
                entry.key, entry.id = key, original.id
                found[key] = entry
            self.lost = len(set(keys) - set(found))
        for place in wanted:
            assert place.entry is not None
            self.originals[place.item.key] = found.get(place.item.key, place.entry)
        for clip in self.plan.clips:
            place = places[clip.index]
            self.clips[clip.index] = clipped(
                place, self.originals[place.item.key], clip, self.tools.meter
            )

    def _order(self) -> Flow[flow.Order]:
        head, plan, tools = self.history.head, self.plan, self.tools
        standing = head or self.history.before
        before = _ledger_of(standing) if standing else Ledger()
        # A summary quotes others: what it says is nobody's own statement.
        left = [self.originals[p.item.key] for p in self.leaving if not p.item.summary]
        staying = self._staying()
        self.ledger = yield from _reading(
            lambda: before.updated(left, tools.skills).without_superseded(staying),
            [*left, *staying],
        )
        gone = set(plan.evicted)
        kept = [
            self.clips.get(i, place)
            for i, place in enumerate(self.history.places)
            if i not in gone and not (place.item.summary and plan.summary_tokens)
        ]
        return flow.Order(
            plan=replace(plan, summary_tokens=self._limit()) if plan.summary_tokens else plan,
            keys=tuple(place.item.key for place in self.leaving),
            clips=tuple(p.mark for p in self.clips.values() if p.mark is not None),
            parent=head.id if head else None,
            standing=self._standing(),
            ledger=self.ledger.to_json(),
            summarisers=tools.order,
            identity="\0".join([*(tools.summarizers[n].identity for n in tools.order), self.focus]),
            archived=tools.archive is not None,
            roomy=plan.budget is None or plan.tokens <= plan.budget,
            on_failure=tools.on_failure,
            messages_after=len(kept) + bool(plan.summary_tokens),
            kept_tokens=sum(place.item.tokens for place in kept),
            adopted=self.adopted,
            preview=tools.preview is not None,
        )

    def _staying(self) -> list[Entry]:
        gone = set(self.plan.evicted)
        return [
            place.entry
            for i, place in enumerate(self.history.places)
            if i not in gone and place.entry is not None and not place.item.summary
        ]

    def _limit(self) -> int:
        """A summary never takes more than what it stands for, tiny histories aside."""
        return min(self.plan.summary_tokens, max(FLOOR, self._replaced()))

    def _replaced(self) -> int:
        items = self.history.items
        standing = sum(item.tokens for item in items if item.summary)
        return standing + sum(items[i].tokens for i in self.plan.evicted)

    # How each effect is done

    def _perform(self, effect: flow.Effect) -> Flow[Any]:
        archive, anchor, scope = self.tools.archive, self.anchor, self.scope
        match effect:
            case flow.Archive(keys) if archive is not None:
                yield from archive.put_flow(scope, [self.originals[key] for key in keys])
            case flow.ReadBack(keys) if archive is not None:
                return (
                    yield from archive.missing_flow(scope, [self.originals[key] for key in keys])
                )
            case flow.FindDraft(plan):
                return (yield from anchor.find_draft_flow(plan))
            case flow.Summarise():
                return (yield from self._summarise(effect))
            case flow.Check(draft, keys, limit):
                return self._check(draft, keys, limit)
            case flow.SaveDraft(plan, draft):
                yield from anchor.save_draft_flow(plan, draft)
            case flow.Preview(draft, kept):
                return self._preview(draft, kept)
            case flow.Commit(record):
                yield from self._tell_hooks()
                yield from anchor.commit_flow(self.history.chain, record)
            case flow.Wait(seconds):
                yield pause(seconds)
            case flow.Emit(event, data):
                self._emit(event, data)
        return None

    def _tell_hooks(self) -> Flow[None]:
        """Tell of what leaves: it is archived, and its summary is sound."""
        left = [self.originals[p.item.key] for p in self.leaving if not p.item.summary]
        if self.tools.hooks and left:
            event = event_of(left, self._staying(), self.scope, self.plan.cause)
            yield from tell(self.tools.hooks, event, self.tools.timeout)

    def _summarise(self, wanted: flow.Summarise) -> Flow[Draft]:
        by, timeout = wanted.by, self.tools.timeout
        summarizer = self.tools.summarizers[by]
        request = SummaryRequest(
            entries=[self.originals[key] for key in wanted.keys],
            standing=self._standing(),
            ledger=self.ledger,
            limit=max(1, wanted.limit - self.tools.frame - SLACK),
            count=self.tools.meter.text,
            focus=self.focus,
            kept=self._staying(),
            spent=wanted.spent,
        )
        steps = getattr(summarizer, "summarize_flow", None)
        try:
            if isinstance(summarizer, ExtractiveSummarizer):
                answer = yield from _reading(
                    lambda: summarizer.summarize(request), [*request.entries, *request.kept]
                )
            elif steps is not None:  # it sets a time for each of its own calls
                answer = yield from steps(request)
            else:
                answer = yield Io(
                    lambda: summarizer.summarize(request),
                    lambda: summarizer.asummarize(request),
                    timeout,
                )
            return draft_of(answer, by)
        except SummaryError:
            raise
        except StepTimeout as error:
            raise SummarizerTimeout(f"{by} did not answer within {timeout:g} seconds") from error
        except Exception as error:
            if is_way_out(error):
                raise
            raise SummaryError(f"{by} failed: {type(error).__name__}: {error}") from error

    def _preview(self, draft: Draft, kept: bool) -> Draft | None:
        limit = self._limit()
        request = PreviewRequest(
            summary=draft.text,
            evict=len(self.leaving),
            cause=self.plan.cause,
            limit=max(1, limit - self.tools.frame - SLACK),
            by=draft.by,
            kept=kept,
        )
        assert self.tools.preview is not None
        return approved(self.tools.preview, request, draft, self._size, limit)

    def _standing(self) -> str:
        """The summary so far: ours, and those of other libraries that ours replaces."""
        head = self.history.head
        foreign = [summary_body(p.entry.text) for p in self.leaving if _foreign(p) and p.entry]
        return "\n".join(part for part in (head.summary if head else "", *foreign) if part)

    def _size(self, body: str) -> int:
        if self.tools.size is not None:
            return self.tools.size(body)
        text = summary_text(body, archived=self.tools.archive is not None)
        return self.tools.meter.message(summary_message(text, "", like=self.history.like))

    def _check(self, draft: Draft, keys: Sequence[str], limit: int) -> flow.Checked:
        meter = self.tools.meter
        entries = [self.originals[key] for key in keys]
        text = body_of(draft.text)
        if text:
            room = limit - self.tools.frame - SLACK
            needed = (
                *self.ledger.standing(),
                *self.ledger.skills()[:SKILLS],
                *self.ledger.delegations()[:DELEGATIONS],
            )
            text = with_missing_facts(text, needed, room, meter.text)
        if self.tools.archive is None:
            carried = {fact.source for fact in self.ledger.facts}
            text = uncited(text, {entry.cite for entry in entries} | carried)
        tokens = self._size(text)
        found = problems(draft, entries, tokens=tokens, replaced=self._replaced(), limit=limit)
        return flow.Checked(flow.with_tokens(draft, text, tokens), found, self.ledger.to_json())

    def _emit(self, event: str, data: Mapping[str, Any]) -> None:
        data = {**data, "thread_id": self.scope.thread, "session": self.scope.session}
        logger.debug("%s %s", event, data)
        if self.tools.on_event is None:
            return
        try:
            self.tools.on_event(event, data)
        except Exception:
            # A listener that fails must not undo a compaction.
            logger.exception("on_event failed at %r", event)


def _ledger_of(record: Record) -> Ledger:
    """The ledger of a record; what is damaged in it is left out, with a line in the log."""
    ledger, wrong = Ledger.recovered(record.ledger)
    if wrong:
        logger.warning(
            "Record %s holds a damaged ledger; what can be read of it is carried on: %s",
            record.id,
            "; ".join(wrong[:3]),
        )
    return ledger


def _reading(work: Callable[[], T], entries: Sequence[Entry]) -> Flow[T]:
    """Work of our own on these messages: where there is much of it, off the event loop, which has
    others to serve."""
    if len(entries) > MANY or sum(len(entry.reading) for entry in entries) > LONG:
        return cast("T", (yield Io(work)))
    return work()


def _foreign(place: Place) -> bool:
    """A summary that somebody else wrote, or that we wrote for records we do not have."""
    return place.item.summary and place.entry is not None
