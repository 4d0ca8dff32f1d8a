"""Carry out one call of the compactor: read, decide, compact, report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from conspectus.bridge import aside
from conspectus.core.boundaries import exchanges, must_stay
from conspectus.core.items import Compact, Keep, Stuck
from conspectus.core.plan import BELOW
from conspectus.core.records import Cost, Draft, Record
from conspectus.engine.compaction import Compaction
from conspectus.engine.memory import FailedSummary
from conspectus.engine.prepared import Chosen, chosen_flow, settled_flow
from conspectus.engine.result import CompactionResult, Done, Failed, as_the_models
from conspectus.engine.seen import Seen
from conspectus.engine.session import Session
from conspectus.engine.view import History
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    MessageError,
    RedactionError,
    SummaryError,
)
from conspectus.messages import Source, is_summary_message, read_messages
from conspectus.notes.segment import Segment
from conspectus.observe import emit

LOOKS = 4
"""Most reads of a history that other workers compact meanwhile."""


async def compact_flow(
    session: Session, messages: Sequence[Source], force: bool, focus: str
) -> CompactionResult:
    """Read a history, decide, and carry the decision out.

    If another worker compacts it meanwhile, its record is found at the next read. The result
    includes the cost of the reads before.
    """
    if not (force or focus) and (kept := await _as_before(session, messages)) is not None:
        return kept
    return await aside(_compacted(session, messages, force, focus))


async def _compacted(
    session: Session, messages: Sequence[Source], force: bool, focus: str
) -> CompactionResult:
    entries = read_messages(messages, thread=session.scope)
    spent, seen = Cost(), None
    for left in reversed(range(LOOKS)):
        history = await session.folded(entries)
        # Another worker did what was forced, unless on another branch of the thread.
        force = force and seen in (None, history.chain)
        own, counted = session.corrected(history)
        view, decided = own.decided(counted, force)
        if isinstance(decided, Keep) and _may_repeat(session, history):
            seen_now = Seen.of(messages, history, session.anchor.in_force)
            session.engine.memory.saw(session.scope, seen_now)
        chosen = Chosen(decided)
        if own.engine.background is not None and not (force or focus):
            chosen = await chosen_flow(own, view, decided)
        if not isinstance(chosen.plan, Compact):
            kept = _unchanged(own, view, chosen.plan)
            return replace(kept, cost=spent, preparing=chosen.goes_on)
        order = chosen.order or own.engine.order
        writer = replace(own, engine=replace(own.engine, order=order))
        base, ready, waited = chosen.view or view, chosen.draft, chosen.waited
        compaction = Compaction(writer, base, chosen.plan, focus, ready=ready, waited=waited)
        try:
            outcome, after = await compaction.run()
            if isinstance(outcome, Failed) and isinstance(outcome.error, ArchiveOvertaken):
                raise outcome.error
        except ArchiveOvertaken as error:
            if not left and own.engine.on_failure == "raise":
                raise
            spent += getattr(error, "cost", Cost())
            seen, reason = history.chain, str(error)
        except (SummaryError, RedactionError) as error:
            _remember_failure(own, view, error)
            if isinstance(error, RedactionError):
                raise
            raise as_the_models(error) from error.__cause__
        else:
            await settled_flow(own, view, chosen, outcome)
            result = _ended(own, compaction, outcome, after)
            if chosen.draft is not None and result.record is not None:
                spent += chosen.draft.cost
            return replace(result, cost=spent + result.cost, preparing=chosen.goes_on)
    history = await session.folded(entries)
    kept = _unchanged(session, history, Keep(reason, history.size.tokens))
    return replace(kept, failed="archive", cost=spent)


async def adopt_flow(
    session: Session, messages: Sequence[Source], covers: Collection[str], text: str, by: str
) -> CompactionResult:
    """Put the summary of another library in force, its originals archived."""
    history = await session.folded(read_messages(messages))
    items = history.items
    ex = exchanges(items)
    fixed = must_stay(items, ex)
    leaves = {
        i
        for i, place in enumerate(history.places)
        if place.entry is not None and place.entry.id in covers and i not in fixed
    }
    # A group that the other library split stays in view.
    torn = {ex.group[i] for i in range(len(items)) if i not in leaves}
    leaving = [i for i in sorted(leaves) if ex.group[i] not in torn]
    size = history.size.tokens
    if not leaving:
        return _unchanged(session, history, Keep(f"nothing that {by} covers may leave", size))
    keys = tuple(items[i].key for i in leaving)
    decided = Compact(f"taken over from {by}", tuple(leaving), (), 1, size, size, None)
    segment = Segment(text=text, alone=True).to_json()
    draft = Draft(text, by, keys, Cost(), session.message_size(text), segment=segment)
    compaction = Compaction(session, history, decided, adopted=draft)
    return _ended(session, compaction, *(await compaction.run()))


def _may_repeat(session: Session, history: History | None = None) -> bool:
    """Tell whether steps are decided by sizes alone while nothing is due, on such a view."""
    policy, ours = session.engine.policy, session.anchor.head is None
    plain = ours and policy.arguments is None and session.asked is None and session.ratio is None
    if history is None or not plain:
        return plain
    # What was shown whole as it could not be redacted, or is no summary only as it comes last.
    short = session.engine.redaction is not None and any(one.clips for one in history.chain)
    users = [one for one in history.places if one.entry is not None and one.item.role == "user"]
    passing = bool(users) and is_summary_message(users[-1].source)
    return not (short or passing)


async def _as_before(session: Session, messages: Sequence[Source]) -> CompactionResult | None:
    """Return the result where nothing is due and the history begins with what was read before."""
    memory, scope = session.engine.memory, session.scope
    seen = memory.seen(scope)
    if seen is None or memory.of(scope).failed is not None or not _may_repeat(session):
        return None
    if await session.anchor.at_head() != seen.head:
        return None
    if (seen := seen.beginning(messages)) is None:
        return None
    try:
        now = seen.followed(messages, session.engine.meter)
    except MessageError:
        return None  # raised again, with its place, where all are read
    if now is None:
        return None
    seen = now
    memory.saw(scope, seen)
    own = session.with_ratio(seen.reports)
    size, head = seen.size(own.engine.meter.ratio), seen.chain[-1] if seen.chain else None
    if not own.is_quiet(size, head):
        return None
    return CompactionResult(
        outcome="kept",
        reason=BELOW,
        messages=list(seen.sources),
        **_in_force(session, seen.chain, seen.foreign),
        tokens_before=size.tokens,
        tokens_after=size.tokens,
        budget=session.budget,
        kept=seen.kept,
        clipped=seen.clipped,
        dropped=seen.dropped,
    )


def _unchanged(session: Session, history: History, decided: Keep | Stuck) -> CompactionResult:
    return _result(
        session,
        history,
        outcome="stuck" if isinstance(decided, Stuck) else "kept",
        reason=decided.reason,
        tokens_before=history.size.tokens,
        needed=decided.needed if isinstance(decided, Stuck) else None,
    )


def _ended(
    session: Session, compaction: Compaction, outcome: Done | Failed, after: History
) -> CompactionResult:
    if isinstance(outcome, Failed):
        return _failed(session, compaction.history, compaction.plan, outcome)
    session.engine.memory.of(session.scope).failed = None
    return _done(session, compaction, outcome, after)


def _failed(
    session: Session, history: History, decided: Compact, outcome: Failed
) -> CompactionResult:
    kinds = ((ArchiveError, "archive"), (RedactionError, "redaction"), (Exception, "summary"))
    failed = next(name for kind, name in kinds if isinstance(outcome.error, kind))
    if failed != "archive":
        _remember_failure(session, history, outcome.error)
    over = decided.budget is not None and decided.tokens > decided.budget
    return _result(
        session,
        history,
        outcome="stuck" if over else "kept",
        reason=outcome.reason,
        cause=decided.cause,
        tokens_before=history.size.tokens,
        cost=outcome.spent,
        failed=failed,
    )


def _remember_failure(session: Session, history: History, error: Exception | None) -> None:
    size, over = history.size, session.over(history)
    why = f"secrets could not be redacted: {error}" if isinstance(error, RedactionError) else ""
    failure = FailedSummary(history.head_id, session.asked or size, size, over, why)
    session.engine.memory.of(session.scope).failed = failure


def _done(
    session: Session, compaction: Compaction, outcome: Done, after: History
) -> CompactionResult:
    decided, material, notes = compaction.plan, compaction.material, []
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
    reason = "it was asked for" if decided.cause == "forced" else f"reached its {decided.cause}"
    if decided.budget is not None:
        reason += f"; now {after.size.tokens:,} of at most {decided.budget:,} tokens"
    return _result(
        session,
        after,
        outcome="compacted",
        reason=reason,
        cause=decided.cause,
        record=outcome.record,
        tokens_before=compaction.history.size.tokens,
        evicted=len(material.leaving),
        cost=outcome.spent,
        failures=outcome.failures,
        redacted=dict(material.redacted),
        notes=tuple(notes),
    )


def _in_force(session: Session, chain: Sequence[Record], foreign: bool) -> dict[str, Any]:
    """Return the summary in force, and whether the archive holds all that has left."""
    summary = next((record.summary for record in reversed(chain) if record.summary), "")
    confirmed = session.engine.archive is not None and all(one.archived for one in chain)
    return {"summary": summary, "archived": confirmed and not foreign}


def _result(session: Session, view: History, **more: Any) -> CompactionResult:
    tokens, budget = view.size.tokens, session.budget
    if more["outcome"] == "stuck":
        needed = more.get("needed")
        emit("stuck", session.scope, tokens_before=tokens, needed=needed, budget=budget)
    foreign = any(place.item.summary and place.entry is not None for place in view.places)
    return CompactionResult(
        messages=view.sources,
        **_in_force(session, view.chain, foreign),
        tokens_after=tokens,
        budget=budget,
        kept=sum(not place.item.summary for place in view.places),
        clipped=sum(place.item.clipped for place in view.places),
        dropped=view.dropped,
        **more,
    )
