"""What is reported of one call: to the caller as a result, to listeners, and in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from conspectus.core.plan_types import CauseKind, Compact, Stuck
from conspectus.core.records import Cost, Record
from conspectus.engine.attempts import Attempts
from conspectus.engine.decision import CompactionDecision, UnchangedDecision
from conspectus.engine.failures import SummaryDeclined, failed_step_of
from conspectus.engine.history import HistoryContext
from conspectus.engine.leaving import Leaving
from conspectus.engine.measuring import correct_sizes
from conspectus.engine.result import CompactionResult, Failure, Outcome, StatedRule
from conspectus.engine.view import View
from conspectus.engine.viewing import view_of
from conspectus.errors import ArchiveError, ArchiveOvertaken, ConspectusError
from conspectus.messages import Source, read_messages
from conspectus.observe import emit, log
from conspectus.observe.observation import Observation, error_fields, is_way_out, safe_text

REASONS: dict[CauseKind, str] = {
    "forced": "it was asked for",
    "gathered": "enough messages have gathered",
}
"""Why a history was compacted, if the text of the cause does not say it."""

CUT = (
    "thread %s: the summary by %s was cut at its end, by at least %s tokens, and is used up to its "
    "last whole sentence; raise max_tokens of its model or max_summary_tokens for longer ones"
)

RULES_LEFT_OUT = (
    "thread %s: the summary has no room for %s rules of the user; raise the window or "
    "max_summary_tokens, or take out what is no rule with `conspectus rules`: %s"
)

STUCK_AND_SMALLER = "{}; what may leave has left"


def _make_result(
    view: View,
    outcome: Outcome,
    reason: str,
    *,
    tokens_before: int | None = None,
    failed: Failure | None = None,
    **details: Any,
) -> CompactionResult:
    """Return the result for a view that is sent; `details` are further fields of the result."""
    history = view.history
    tokens = view.size.tokens
    is_readable = history.store.keeps_originals and failed != "archive"
    holds_all = all(record.archived and not record.foreign for record in view.chain)
    summaries = (record.summary for record in reversed(view.chain) if record.summary)
    return CompactionResult(
        outcome=outcome,
        reason=reason,
        messages=list(view.sent),
        summary=next(summaries, ""),
        archived=is_readable and holds_all and not view.has_foreign_summary,
        tokens_before=tokens if tokens_before is None else tokens_before,
        tokens_after=tokens,
        budget=history.budget,
        kept=sum(not item.is_summary for item in view.items),
        clipped=sum(item.clipped for item in view.items),
        dropped=view.dropped,
        may_need_joining=view.may_need_joining,
        head_id=view.stored_head_id,
        failed=failed,
        **details,
    )


def _tell_if_stuck(view: View, result: CompactionResult) -> CompactionResult:
    """Tell listeners if a result is stuck, and return it."""
    if result.outcome == "stuck":
        emit(
            "stuck",
            view.history.scope,
            tokens_before=result.tokens_after,
            needed=result.needed,
            budget=result.budget,
        )
    return result


def report_unchanged(decision: UnchangedDecision) -> CompactionResult:
    """Report that a history stays as it is."""
    view = decision.view
    plan = decision.plan
    if isinstance(plan, Stuck):
        return _tell_if_stuck(view, _make_result(view, "stuck", plan.reason, needed=plan.needed))
    return _make_result(view, "kept", plan.reason, preparing=plan.preparing)


async def report_overtaken(view: View, error: ArchiveOvertaken, spent: Cost) -> CompactionResult:
    """Report that another worker was first at each try, and what was spent in vain.

    Raises:
        ArchiveOvertaken: with `on_failure="raise"`; its `cost` is what was spent.
    """
    engine = view.history.engine
    await engine.notify(view.history.scope, "failed", reason=str(error))
    if engine.settings.on_failure == "raise":
        error.cost = spent
        raise error
    result = _make_result(view, _outcome_of(view), str(error), failed="archive", cost=spent)
    return _tell_if_stuck(view, result)


async def report_unreadable(
    history: HistoryContext, messages: Sequence[Source], error: ArchiveError
) -> CompactionResult:
    """Report a history whose records cannot be read; it stays as it was sent."""
    view = correct_sizes(view_of(history, read_messages(messages), ()))
    [reason] = await history.engine.redacted([str(error)])
    log("history_kept", "the history was kept as it was: %s", reason)
    return _tell_if_stuck(view, _make_result(view, _outcome_of(view), reason, failed="archive"))


def _outcome_of(view: View) -> Outcome:
    """Return the outcome for a view that stays as it is."""
    return "stuck" if view.history.exceeds_window(view.size) else "kept"


# A compaction that failed


class _FailureReport(NamedTuple):
    """A compaction that failed, in texts without secrets."""

    step: Failure  # what has failed, as a result names it
    reason: str
    attempts: tuple[str, ...]  # why attempts to summarise failed


async def report_failure(
    decision: CompactionDecision,
    leaving: Leaving | None,
    error: ConspectusError,
    attempts: Attempts,
    observation: Observation,
) -> CompactionResult:
    """Report a compaction that failed: to listeners, and as a result. The history stays as it was.

    Args:
        decision: the decision that was to be put in force.
        leaving: what was to leave; None if that could not be gathered.
        error: why it failed.
        attempts: what was tried for a summary.
        observation: the event of the compaction.

    Raises:
        ConspectusError: the error, with what was spent, if `on_failure` is `"raise"`. What a person
            has declined is no error.
    """
    failure = await _notify_failure(decision, leaving, error, attempts, observation)
    view = decision.view
    is_declined = isinstance(error, SummaryDeclined)
    if view.history.engine.settings.on_failure == "raise" and not is_declined:
        error.cost = attempts.spent
        raise error
    result = _make_result(
        view,
        _outcome_of(view),
        failure.reason,
        cause=str(decision.plan.cause),
        cost=attempts.spent,
        failed=failure.step,
        failures=failure.attempts,
    )
    return _tell_if_stuck(view, result)


async def _notify_failure(
    decision: CompactionDecision,
    leaving: Leaving | None,
    error: ConspectusError,
    attempts: Attempts,
    observation: Observation,
) -> _FailureReport:
    """Tell listeners of a compaction that failed; return the texts without secrets."""
    history = decision.view.history
    step = failed_step_of(error)
    fields = error_fields(error)
    reason = str(error)
    failures: list[str] = []
    redaction = None if leaving is None else leaving.redaction
    # The error of a redactor quotes no message, and the redactor might hang again. The reasons of
    # earlier attempts, which it cannot redact, are left out.
    if step != "redaction":
        texts = [reason, fields["error_message"], *attempts.failures]
        reason, fields["error_message"], *failures = await history.engine.redacted(texts, redaction)
    tokens = decision.view.size.tokens
    if history.exceeds_window(decision.view.size):
        reason += f"; the history takes {tokens:,} of {history.budget or 0:,} tokens"
    observation.add(tries_failed=len(attempts.failures))
    if isinstance(error, SummaryDeclined):
        observation.add(outcome="declined")
    else:
        observation.add(outcome="failed", failure=error.failure, **fields)
    await history.engine.notify(history.scope, "failed", redaction, is_clean=True, reason=reason)
    return _FailureReport(step, reason, tuple(failures))


async def notify_unexpected(decision: CompactionDecision, error: Exception) -> None:
    """Tell the caller's listener that an error of a function of the caller has ended a compaction.

    If a graph stops to ask a person, the compaction will begin again, so nothing is told.
    """
    history = decision.view.history
    if not is_way_out(error):
        reason = f"{type(error).__name__}: {safe_text(error)}"
        await history.engine.notify(history.scope, "failed", reason=reason)


# A compaction that is in force


class Committed(NamedTuple):
    """A compaction that is in force."""

    record: Record
    view: View  # exactly what the model will be sent


async def report_compacted(
    leaving: Leaving, committed: Committed, attempts: Attempts, observation: Observation
) -> CompactionResult:
    """Report a compaction that is in force: to listeners, and as a result."""
    record, after = committed
    history = after.history
    engine = history.engine
    plan = leaving.plan
    failures = attempts.failures
    facts: dict[str, Any] = {"record": record.id, "tokens": record.tokens_after, "by": record.by}
    if engine.redaction is not None:
        facts["redacted"] = dict(record.redacted)
        failures = await engine.redacted(failures, leaving.redaction)
        observation.add(redacted=sum(record.redacted.values()))
    await engine.notify(history.scope, "end", leaving.redaction, **facts)
    _log_too_tight(history, plan)
    is_stuck = plan.budget is not None and after.size.tokens > plan.budget
    outcome: Outcome = "stuck" if is_stuck else "compacted"
    observation.add(
        outcome="passing" if engine.caller_format.for_one_request else outcome,
        messages=len(leaving.leaving_keys),
        tokens_after=after.size.tokens,
        record=record.id,
        name=record.by,
        cost=attempts.spent,  # a found draft is in the event of the call that wrote it
        money=record.bill.get("money") if attempts.spent == record.cost else None,
        tries_failed=len(failures),
        error_message=failures[-1] if failures else "",
    )
    trigger_after = _trigger_tokens_after(after)
    if history.trigger_size is not None and trigger_after is not None:
        observation.add(trigger_before=history.trigger_size.tokens, trigger_after=trigger_after)
    rules_left_out = _rules_left_out(leaving, record)
    _tell_of_rules_left_out(history.scope.thread, rules_left_out, observation)
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
    result = _make_result(
        after,
        outcome,
        reason,
        needed=needed,
        cause=str(plan.cause),
        record=record,
        tokens_before=leaving.view.size.tokens,
        evicted=len(leaving.leaving_keys),
        cost=attempts.spent,
        failures=tuple(failures),
        rules_left_out=rules_left_out,
        redacted=dict(leaving.texts.secrets_removed),
    )
    return _tell_if_stuck(after, result)


def _trigger_tokens_after(after: View) -> int | None:
    """Return the tokens of a view as the trigger counts them; None if it uses the meter's count.

    The record is in force, so an error of the caller's counter must not end the call.
    """
    counts = after.history.counts
    if counts is None or counts.count_view is None:
        return None
    try:
        return counts.count_view(after.sources).tokens
    except Exception as error:
        log("counter_failed", "a compaction was not counted; the counter: %s", safe_text(error))
        return None


def _rules_left_out(leaving: Leaving, record: Record) -> tuple[StatedRule, ...]:
    """Return the rules that stand neither in a summary nor in a message that stays."""
    stated = record.notes.get("rules_left_out", ())
    kept = "\n".join(message.own for message in leaving.kept_messages)
    return tuple(StatedRule(str(name), text) for name, text in stated if text not in kept)


def _tell_of_rules_left_out(
    thread: str, rules: Sequence[StatedRule], observation: Observation
) -> None:
    """Count the rules that have no room, and log them."""
    if rules:
        observation.add(rules_left_out=len(rules))
        named = "; ".join(f"{rule.text} [{rule.id}]" for rule in rules)
        log("rules_left_out", RULES_LEFT_OUT, thread, len(rules), named)


def _reason_of(plan: Compact, record: Record, after: View) -> str:
    """Say why a history was compacted, and to which size."""
    reason = REASONS.get(plan.cause.kind, f"reached its {plan.cause}")
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
