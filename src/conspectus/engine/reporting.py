"""What is reported of one call: to the caller as a result, to listeners, and in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conspectus.core.plans import Compact, Keep, Stuck
from conspectus.core.policy import size_has_grown
from conspectus.core.records import Cost, Record
from conspectus.engine.approval import SummaryRefused
from conspectus.engine.attempts import Attempts, attempts_of
from conspectus.engine.history import HistoryContext
from conspectus.engine.history_store import SUMMARY_FAILED
from conspectus.engine.leaving import Leaving
from conspectus.engine.measuring import correct_sizes
from conspectus.engine.memory import FailedSummary
from conspectus.engine.planning import Decision
from conspectus.engine.result import CompactionResult, Failure, Outcome
from conspectus.engine.view import View, view_of
from conspectus.errors import ArchiveError, ArchiveOvertaken, ConspectusError
from conspectus.messages import Source, read_messages
from conspectus.observe import emit, log
from conspectus.observe.observation import Observation, error_fields

# Why a history was compacted, where its cause does not say it.
REASONS = {"forced": "it was asked for", "gathered": "enough messages have gathered"}

CUT = (
    "thread %s: the summary by %s was cut at its end, by at least %s tokens, and is used up to its "
    "last whole sentence; raise max_tokens of its model or max_summary_tokens for longer ones"
)

STUCK_AND_SMALLER = "{}; what may leave has left"


def _make_result(
    view: View, outcome: Outcome, reason: str, *, tokens_before: int | None = None, **more: Any
) -> CompactionResult:
    """Return the result for a view that is sent, and tell listeners if that is stuck.

    `more` are fields of the result.
    """
    history = view.history
    tokens = view.size.tokens
    if outcome == "stuck":
        needed = more.get("needed")
        emit("stuck", history.scope, tokens_before=tokens, needed=needed, budget=history.budget)
    is_readable = history.store.keeps_originals and more.get("failed") != "archive"
    holds_all = all(record.archived and not record.foreign for record in view.chain)
    summaries = (record.summary for record in reversed(view.chain) if record.summary)
    return CompactionResult(
        outcome=outcome,
        reason=reason,
        messages=list(view.sent),
        summary=next(summaries, ""),
        archived=is_readable and holds_all and not view.foreign,
        tokens_before=tokens if tokens_before is None else tokens_before,
        tokens_after=tokens,
        budget=history.budget,
        kept=sum(not item.summary for item in view.items),
        clipped=sum(item.clipped for item in view.items),
        dropped=view.dropped,
        alternates=view.alternates,
        head=view.stored_head,
        **more,
    )


def report_unchanged(view: View, plan: Keep | Stuck) -> CompactionResult:
    """Report that a history stays as it is."""
    if isinstance(plan, Stuck):
        return _make_result(view, "stuck", plan.reason, needed=plan.needed)
    return _make_result(view, "kept", plan.reason, preparing=plan.preparing)


async def report_overtaken(
    view: View, error: ArchiveOvertaken | None, spent: Cost
) -> CompactionResult:
    """Report that another worker was first at each try, and what was spent in vain.

    Raises:
        ArchiveOvertaken: with `on_failure="raise"`; its `cost` is what was spent.
    """
    assert error is not None, "nobody was first"
    engine = view.history.engine
    await engine.notify(view.history.scope, "failed", reason=str(error))
    if engine.settings.on_failure == "raise":
        error.cost = spent
        raise error
    return _make_result(view, _outcome_of(view), str(error), failed="archive", cost=spent)


async def report_unreadable(
    history: HistoryContext, messages: Sequence[Source], error: ArchiveError
) -> CompactionResult:
    """Report a history whose records cannot be read; it stays as it was sent."""
    view = correct_sizes(view_of(history, read_messages(messages), ()))
    [reason] = await history.engine.redacted([str(error)])
    log("history_kept", "the history was kept as it was: %s", reason)
    return _make_result(view, _outcome_of(view), reason, failed="archive")


def _outcome_of(view: View) -> Outcome:
    """Return the outcome for a view that stays as it is."""
    return "stuck" if view.history.exceeds_window(view.size) else "kept"


# A compaction that failed


async def report_failure(
    decision: Decision, leaving: Leaving | None, error: ConspectusError, observation: Observation
) -> CompactionResult:
    """Report a compaction that failed: to listeners, and as a result.

    Args:
        decision: the decision that was to be put in force.
        leaving: what was to leave; None if that could not be gathered.
        error: why it failed.
        observation: the event of the compaction.

    Raises:
        ConspectusError: the error, if `on_failure` is `"raise"` and no person has refused.
    """
    view = decision.view
    engine = view.history.engine
    attempts = attempts_of(error)
    cause = _cause_of(error)
    fields = error_fields(error)
    reason = str(error)
    failures: list[str] = []
    redaction = None if leaving is None else leaving.redaction
    # The error of a redactor quotes no message, and the redactor, which has failed, might hang.
    if cause != "redaction":
        texts = [reason, fields["error_message"], *attempts.failures]
        reason, fields["error_message"], *failures = await engine.redacted(texts, redaction)
    if view.history.exceeds_window(view.size):
        budget = view.history.budget or 0
        reason += f"; the history takes {view.size.tokens:,} of {budget:,} tokens"
    was_refused = isinstance(error, SummaryRefused)
    observation.add(tries_failed=len(attempts.failures))
    if was_refused:
        observation.add(outcome="refused")
    else:
        observation.add(outcome="failed", failure=error.failure, **fields)
    await engine.notify(view.history.scope, "failed", redaction, is_clean=True, reason=reason)
    if engine.settings.on_failure == "raise" and not was_refused:
        raise error
    assert isinstance(decision.plan, Compact)
    return _make_result(
        view,
        _outcome_of(view),
        reason,
        cause=decision.plan.cause,
        cost=attempts.spent,
        failed=cause,
        failures=tuple(failures),
    )


def _cause_of(error: ConspectusError) -> Failure:
    """Return what has failed, as a result names it."""
    if error.failure == "archive":
        return "archive"
    return "redaction" if error.failure == "redaction" else "summary"


async def remember_failure(view: View, error: ConspectusError) -> None:
    """Remember a summary that failed or was refused, here and for other processes.

    A failure of the archive is not remembered: the next step tries again.
    """
    if _cause_of(error) == "archive":
        return
    history = view.history
    size = view.size
    over = history.exceeds_window(size)
    trigger_size = history.trigger_size or size
    before = history.memory.failure_of(view.head_id, size.messages, over)
    times = 1
    # Without a window, and for a person who has refused, each tenth counts alike.
    counts_failures = history.window is not None and not isinstance(error, SummaryRefused)
    if before is not None and counts_failures:
        times = before.times + size_has_grown(trigger_size, before.trigger_size)
    failure = FailedSummary(view.head_id, trigger_size, size, over, times)
    history.memory.latest_failure = failure
    await history.store.note_failure(SUMMARY_FAILED, failure)


async def forget_failure(history: HistoryContext) -> None:
    """Forget an earlier failure, here and for other processes: a compaction has succeeded."""
    if history.memory.latest_failure is not None:
        await history.store.note_failure(SUMMARY_FAILED, None)
    history.memory.latest_failure = None


# A compaction that is in force


async def report_compacted(
    leaving: Leaving, record: Record, after: View, attempts: Attempts, observation: Observation
) -> CompactionResult:
    """Report a compaction that is in force: to the caller's listeners, and as a result."""
    history = after.history
    engine = history.engine
    plan = leaving.plan
    failures = attempts.failures
    facts: dict[str, Any] = {"record": record.id, "tokens": record.tokens_after, "by": record.by}
    if engine.redaction is not None:
        facts["redacted"] = dict(record.redacted)
        failures = tuple(await engine.redacted(failures, leaving.redaction))
        observation.add(redacted=sum(record.redacted.values()))
    await engine.notify(history.scope, "end", leaving.redaction, **facts)
    _log_too_tight(history, plan)
    is_stuck = plan.budget is not None and after.size.tokens > plan.budget
    outcome: Outcome = "stuck" if is_stuck else "compacted"
    observation.add(
        outcome="passing" if engine.surface.for_one_request else outcome,
        messages=len(leaving.keys),
        tokens_after=after.size.tokens,
        record=record.id,
        name=record.by,
        cost=attempts.spent,  # a draft that was found is in the event of who wrote it
        money=record.bill.get("money") if attempts.spent == record.cost else None,
        tries_failed=len(failures),
        error_message=failures[-1] if failures else "",
    )
    if history.trigger_size is not None and history.count_view is not None:
        size_after = history.count_view(after.sources)
        observation.add(trigger_before=history.trigger_size.tokens, trigger_after=size_after.tokens)
    if record.cut:
        observation.add(cut=record.cut)
        log("summary_cut", CUT, history.scope.thread, record.by, record.cut)
    if leaving.decision.waited:
        observation.add(waited=record.bill["waited"])
    needed: int | None = None
    reason = _reason_of(plan, record, after)
    if is_stuck and plan.stuck is not None:
        needed = max(plan.stuck.needed, after.size.tokens)
        reason = STUCK_AND_SMALLER.format(plan.stuck.reason)
    return _make_result(
        after,
        outcome,
        reason,
        needed=needed,
        cause=plan.cause,
        record=record,
        tokens_before=leaving.view.size.tokens,
        evicted=len(leaving.keys),
        cost=attempts.spent,
        failures=failures,
        redacted=dict(leaving.redacted),
    )


def _reason_of(plan: Compact, record: Record, after: View) -> str:
    """Say why a history was compacted, and what it came to."""
    reason = REASONS.get(plan.cause.partition(":")[0], f"reached its {plan.cause}")
    if plan.budget is not None:
        reason += f"; now {after.size.tokens:,} of at most {plan.budget:,} tokens"
    if record.cut:
        reason += f"; the summary misses its end, at least {record.cut:,} tokens"
    return reason


def _log_too_tight(history: HistoryContext, plan: Compact) -> None:
    """Log once which setting leaves too little room after a compaction."""
    policy = history.engine.policy
    reported = history.memory.reported_settings
    setting = (policy.keep, policy.trigger, history.limit)
    if plan.tight and setting not in reported:
        reported.add(setting)
        log("too_tight", "%s", plan.tight)


def report_swapped_in(decision: Decision) -> None:
    """Tell listeners that a draft of the background is in force, if one is."""
    if decision.draft is not None:
        facts = {"waited": decision.waited, "messages": len(decision.draft.read)}
        scope = decision.view.history.scope
        emit("preparation", scope, name="swapped_in", **facts)
