"""One call of the compactor, from the messages of a caller to the record in force."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.bridge import aside
from conspectus.core.items import Compact, Keep, Stuck
from conspectus.core.policy import grown
from conspectus.core.records import Cost, Draft, Record
from conspectus.engine.background import choose
from conspectus.engine.fitting import fitting
from conspectus.engine.hooks import Refused, approved, call_hooks
from conspectus.engine.material import Material, collect, confirm
from conspectus.engine.result import CompactionResult, as_before, remember
from conspectus.engine.sliding import RECENT
from conspectus.engine.thread import FailedSummary, Thread
from conspectus.engine.view import History, behind_summary, history_of, view_after
from conspectus.engine.writing import in_less_room, write
from conspectus.errors import ArchiveError, ArchiveOvertaken, ConspectusError, SummaryError
from conspectus.messages import Source, read_messages
from conspectus.observe import emit, log, observing, price_of
from conspectus.observe.events import error_fields

SHORTENED = 4  # How often a summary is made shorter whose record's id makes the view too large
ATTEMPTS = 4  # Most reads of a history that other workers compact meanwhile

# Why a history was compacted, where its cause does not say it.
REASONS = {"forced": "it was asked for", "gathered": "enough messages have gathered"}

TOO_LARGE = (
    "with messages truncated the history takes {:,} tokens of {:,}; use a model with a larger "
    "window, or a token_counter that counts a message always alike"
)

CUT = (
    "thread %s: the summary by %s was cut at its end, by at least %s tokens, and is used up to its "
    "last whole sentence; raise max_tokens of its model or max_summary_tokens for longer ones"
)

STUCK_AND_SMALLER = "{}; what may leave has left"


async def compact(
    thread: Thread, messages: Sequence[Source], force: bool = False, focus: str = ""
) -> CompactionResult:
    """Read a history, fold the records over it, decide, and carry the decision out.

    If another worker compacts it meanwhile, its record is found at the next read.
    """
    seen = None if force or focus else thread.engine.memory.histories.get(thread.scope)
    if seen is not None and (kept := await as_before(thread, messages, seen)) is not None:
        return kept
    return await aside(_compact(thread, messages, force, focus))


async def _compact(
    thread: Thread, messages: Sequence[Source], force: bool, focus: str
) -> CompactionResult:
    entries = read_messages(messages, thread=thread.scope)
    spent, before, left = Cost(), None, ATTEMPTS
    while True:
        history = await thread.history(entries)
        # In a retry: once this chain has grown, another worker has done what was forced.
        force = force and before in (None, history.chain)
        corrected = thread.corrected(history.reports(), history.head)
        view = history if corrected is thread else history.measured_by(corrected.engine)
        if force or corrected.nears(view.size) or corrected.asks(view.size):
            corrected, view = corrected.shared_out(view)
        plan = fitting(corrected, view, partial(corrected.plan, view, force), force=force)
        if not force and await corrected.recall_failure(view, plan):
            plan = fitting(corrected, view, partial(corrected.plan, view))
        try:
            result = await _carried_out(corrected, view, plan, focus, prepared=not (force or focus))
            if isinstance(plan, Keep):
                await remember(thread, entries, history, result)
            return replace(result, cost=spent + result.cost)
        except ArchiveOvertaken as error:
            spent += getattr(error, "cost", Cost())
            before, left = history.chain, left - 1
            if not left:
                return _overtaken(thread, await thread.history(entries), error, spent)


async def carry_out(thread: Thread, history: History, plan: Any) -> CompactionResult:
    """Carry out a plan for one history; where another worker was first, nothing changes."""
    try:
        return await aside(_carried_out(thread, history, plan))
    except ArchiveOvertaken as error:
        return _overtaken(thread, history, error, getattr(error, "cost", Cost()))


async def _carried_out(
    thread: Thread, history: History, plan: Any, focus: str = "", *, prepared: bool = True
) -> CompactionResult:
    """Carry out a plan.

    Raise `ArchiveOvertaken` with its cost if another worker has put its own record in force; what
    else fails is raised if `on_failure` is `"raise"`.
    """
    ready, waited = None, 0.0
    if thread.engine.background is not None and prepared:
        plan, ready, waited = await choose(thread, history, plan)
    if not isinstance(plan, Compact):
        return _unchanged(thread, history, plan)
    engine, material = thread.engine, Material(thread, history, plan, focus, ready, waited)
    cause, *_ = plan.cause.partition(":")
    sizes = {"tokens_before": plan.tokens, "budget": plan.budget, "clipped": len(plan.clips)}
    with observing("compaction", thread.scope, cause=cause, **sizes) as seen:
        seen.hides_errors |= engine.redaction is not None
        seen.add(archived=engine.archive is not None)
        try:
            record, after = await _put_in_force(material)
        except ConspectusError as error:
            return await _failed(material, error, seen)
        result = await _done(material, record, after, seen)
    if ready is not None:
        facts = {"waited": waited, "messages": len(ready.read)}
        emit("preparation", thread.scope, name="swapped_in", **facts)
    memory = engine.memory.of(thread.scope)
    if memory.failed is not None:
        await thread.note_failure(None)
    memory.failed = None
    return result


async def _put_in_force(material: Material) -> tuple[Record, History]:
    """Archive what leaves, write the draft, ask the person, measure the view, commit the record.

    This order is the commit rule: a failure before the commit leaves the history as it was.
    """
    thread, plan, engine = material.thread, material.plan, material.thread.engine
    started = time.monotonic()
    draft: Draft | None = None
    await collect(material)  # originals and the notes so far, without their secrets
    leaving = len(material.leaving)
    await material.tell("start", cause=plan.cause, tokens=plan.tokens, evict=leaving)
    await confirm(material)  # archived, and read back
    if plan.summary_tokens:
        draft, stored = await write(material)  # found under the name of its plan, or written
        if engine.preview is not None:
            draft = await approved(engine.preview, material, draft, stored)

    record, after = _measured(material, draft, started)
    if not _holds(plan, after):
        raise SummaryError(TOO_LARGE.format(after.size.tokens, plan.budget))
    with observing("step", name="commit", by=record.by):
        if engine.hooks:
            await call_hooks(material)
        await thread.commit(material.history.chain, record)  # unless another worker was first
    return record, after


def _measured(material: Material, draft: Draft | None, started: float) -> tuple[Record, History]:
    """Make the record, and the view that is sent once it is in force, with its size.

    The id of the record is in the view, and may count, too: where that is too much, the summary is
    made a little shorter, unless a person has approved it.
    """
    plan = material.plan
    record, after = _made(material, draft, started)
    may_be_shorter = material.thread.engine.preview is None and plan.stuck is None
    for _ in range(SHORTENED):
        over = after.size.tokens - (plan.budget or after.size.tokens)
        if over <= 0 or draft is None or not may_be_shorter:
            break
        draft = in_less_room(material, draft, draft.tokens - over)
        record, after = _made(material, draft, started)
    return record, after


def _holds(plan: Compact, after: History) -> bool:
    """Tell whether a view fits, or is the smallest that is legal, where nothing fits."""
    if plan.budget is None or after.size.tokens <= plan.budget:
        return True
    return plan.at_most > plan.budget


def _made(material: Material, draft: Draft | None, started: float) -> tuple[Record, History]:
    engine = material.thread.engine
    record = _record(material, draft, round(time.monotonic() - started, 3))
    after = view_after(material.history, material.remaining, record, engine)
    return replace(record, tokens_after=after.size.tokens), after


def _record(material: Material, draft: Draft | None, seconds: float) -> Record:
    """Make the record, without the size of the view after it, which bears its id."""
    plan, made = material.plan, draft or Draft(material.standing, by="", read=())
    meter = material.thread.engine.meter
    bill: dict[str, Any] = {"seconds": round(seconds, 3)}
    bill["waited"] = round(seconds + material.waited, 3)
    if material.ready is not None:
        bill["seconds"] = round(seconds + material.ready.seconds, 3)
    if made.cost.calls and (money := price_of(made.cost)) is not None:
        bill["money"] = money
    return Record.make(
        parent=material.history.head_id,
        covers=material.keys,
        clips=tuple(item.mark for item in material.clips.values() if item.mark),
        summary=made.text,
        segment=made.segment,
        cause=plan.cause,
        tokens_before=plan.tokens,
        tokens_after=0,
        messages_after=len(material.remaining) + bool(made.text),
        archived=material.thread.engine.archive is not None,
        by=made.by,
        cost=made.cost,
        cut=made.cut,
        request=made.request,
        redacted=dict(material.redacted),
        order=_order(material),
        stayed=_stayed(material),
        apart=tuple(key for key in material.keys if key in material.history.apart),
        foreign=bool(material.foreign),
        alternates=material.history.alternates,
        joined=_joined(material),
        corrections=meter.correction,
        bill=bill,
    )


def _joined(material: Material) -> tuple[dict[str, Any], ...]:
    """Describe the messages that are joined to the summary, if any are."""
    history = material.history
    joins = material.thread.engine.alternate
    if not material.plan.summary_tokens or joins is False:
        return ()
    if joins is None and not history.alternates:
        return ()
    fields = material.redaction is None  # what messages hold may be secret
    gone = set(material.plan.evicted)
    return tuple(behind_summary(history, gone, material.clips, fields=fields))


def _order(material: Material) -> tuple[str, ...]:
    """Return the keys of what leaves, and of what stays before the last of it.

    The latter leave later, and the archive must know where they stood.
    """
    items, leaving = material.history.items, set(material.keys)
    known = {key for record in material.history.chain for key in record.order}
    last = max((i for i, item in enumerate(items) if item.key in leaving), default=-1)
    order = tuple(
        item.key
        for item in items[: last + 1]
        if item.key in leaving or not (item.summary or item.role == "system" or item.key in known)
    )
    return () if leaving.issuperset(order) else order


def _stayed(material: Material) -> tuple[str, ...]:
    """Return the keys of what stays behind the last message that leaves."""
    history, leaving = material.history, set(material.keys)
    items = history.items
    last = max((i for i, item in enumerate(items) if item.key in leaving), default=-1)
    behind = (item for item in items[last + 1 :] if not item.summary and item.role != "system")
    return tuple(item.key for item in behind if item.key not in history.apart)[:RECENT]


# What is reported


async def unread(
    thread: Thread, messages: Sequence[Source], error: ArchiveError
) -> CompactionResult:
    """Report a history whose records cannot be read; it stays as it was sent."""
    history = history_of(thread.engine, read_messages(messages), ())
    [reason] = await thread.engine.redacted([str(error)])
    log("history_kept", "the history was kept as it was: %s", reason)
    outcome = "stuck" if thread.over(history.size) else "kept"
    return _result(thread, history, outcome=outcome, reason=reason, failed="archive")


def _unchanged(thread: Thread, history: History, plan: Keep | Stuck) -> CompactionResult:
    """Report that a history stays as it is."""
    if isinstance(plan, Stuck):
        needed = plan.needed
        return _result(thread, history, outcome="stuck", reason=plan.reason, needed=needed)
    preparing = plan.preparing
    return _result(thread, history, outcome="kept", reason=plan.reason, preparing=preparing)


def _overtaken(
    thread: Thread, history: History, error: ArchiveOvertaken, spent: Cost
) -> CompactionResult:
    """Report that another worker was first each time, or raise the error."""
    if thread.engine.settings.on_failure == "raise":
        raise error
    outcome: Any = "stuck" if thread.over(history.size) else "kept"
    more: Any = {"reason": str(error), "failed": "archive", "cost": spent}
    return _result(thread, history, outcome=outcome, **more)


async def _failed(material: Material, error: ConspectusError, seen: Any) -> CompactionResult:
    """Report a compaction that failed, or raise its error; remember it if its summary failed."""
    thread, history, plan = material.thread, material.history, material.plan
    engine, size, over = thread.engine, history.size, thread.over(history.size)
    what: Any = error.failure if error.failure in ("archive", "redaction") else "summary"
    fields, reason, failures = error_fields(error), str(error), list[str]()
    if what != "redaction":  # those are our words, and a redactor may hang
        words = [reason, fields["error_message"], *material.failures]
        words = await engine.redacted(words, material.redaction)
        reason, fields["error_message"], *failures = words
    if over:
        reason += f"; the history takes {size.tokens:,} of {thread.budget or 0:,} tokens"
    if what != "archive":
        memory, counted = engine.memory.of(thread.scope), thread.trigger_size or size
        known, times = memory.failure(history.head_id, size.messages, over), 1
        # Without a window, and for a person who has refused, each tenth counts alike.
        if known and thread.room is not None and not isinstance(error, Refused):
            before = known.trigger_size
            more = grown(counted.tokens, before.tokens) or grown(counted.messages, before.messages)
            times = known.times + more
        memory.failed = FailedSummary(history.head_id, counted, size, over, times)
        await thread.note_failure(memory.failed)
    refused, late = isinstance(error, Refused), isinstance(error, ArchiveOvertaken)
    outcome = "refused" if refused else "overtaken" if late else "failed"
    seen.add(outcome=outcome, tries_failed=len(material.failures))
    if outcome == "failed":
        seen.add(failure=error.failure, **fields)
    await material.tell("failed", clear=True, reason=reason)
    if isinstance(error, ArchiveOvertaken):
        error.cost = material.spent
    if late or (engine.settings.on_failure == "raise" and not refused):
        raise error
    return _result(
        thread,
        history,
        outcome="stuck" if over else "kept",
        reason=reason,
        cause=plan.cause,
        cost=material.spent,
        failed=what,
        failures=tuple(failures),
    )


async def _done(material: Material, record: Record, after: History, seen: Any) -> CompactionResult:
    """Report a compaction that is in force: to the caller's listeners, and as a result."""
    thread, engine, plan = material.thread, material.thread.engine, material.plan
    facts: dict[str, Any] = {"record": record.id, "tokens": record.tokens_after, "by": record.by}
    failures = material.failures
    if engine.redaction is not None:
        facts["redacted"] = dict(record.redacted)
        failures = tuple(await engine.redacted(failures, material.redaction))
        seen.add(redacted=sum(record.redacted.values()))
    await material.tell("end", **facts)
    stuck = plan.budget is not None and after.size.tokens > plan.budget
    thread.tell_too_tight(plan)
    seen.add(
        outcome="passing" if engine.passing else "stuck" if stuck else "compacted",
        messages=len(material.leaving),
        tokens_after=after.size.tokens,
        record=record.id,
        name=record.by,
        cost=record.cost,
        money=record.bill.get("money"),
        tries_failed=len(failures),
        error_message=failures[-1] if failures else "",
    )
    if thread.trigger_size is not None and thread.count_view is not None:
        counted = thread.count_view(after.sources)
        seen.add(trigger_before=thread.trigger_size.tokens, trigger_after=counted.tokens)
    if record.cut:
        seen.add(cut=record.cut)
    if material.waited:
        seen.add(waited=record.bill["waited"])
    reason = REASONS.get(plan.cause.partition(":")[0], f"reached its {plan.cause}")
    if plan.budget is not None:
        reason += f"; now {after.size.tokens:,} of at most {plan.budget:,} tokens"
    if record.cut:
        log("summary_cut", CUT, thread.scope.thread, record.by, record.cut)
        reason += f"; the summary misses its end, at least {record.cut:,} tokens"
    needed = None
    if stuck and plan.stuck is not None:
        needed = max(plan.stuck.needed, after.size.tokens)
        reason = STUCK_AND_SMALLER.format(plan.stuck.reason)
    return _result(
        thread,
        after,
        outcome="stuck" if stuck else "compacted",
        reason=reason,
        needed=needed,
        cause=plan.cause,
        record=record,
        tokens_before=material.history.size.tokens,
        evicted=len(material.leaving),
        cost=material.spent,
        failures=failures,
        redacted=dict(material.redacted),
    )


def _result(
    thread: Thread, view: History, tokens_before: int | None = None, **more: Any
) -> CompactionResult:
    tokens, budget = view.size.tokens, thread.budget
    if more["outcome"] == "stuck":
        needed = more.get("needed")
        emit("stuck", thread.scope, tokens_before=tokens, needed=needed, budget=budget)
    known = thread.engine.archive is not None and more.get("failed") != "archive"
    confirmed = known and all(made.archived and not made.foreign for made in view.chain)
    return CompactionResult(
        messages=list(view.sent),
        summary=next((made.summary for made in reversed(view.chain) if made.summary), ""),
        archived=confirmed and not view.foreign,
        tokens_before=tokens if tokens_before is None else tokens_before,
        tokens_after=tokens,
        budget=budget,
        kept=sum(not item.summary for item in view.items),
        clipped=sum(item.clipped for item in view.items),
        dropped=view.dropped,
        alternates=view.alternates,
        **more,
    )
