"""The story of one call: from the messages of a caller to the record in force.

`compact` decides. `carry_out` does what was decided, and reports how it ended. `put_in_force`
changes the history: at its very end, so that a failure before leaves the history as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.records import Chain, Cost, Record
from conspectus.engine.approval import ask_for_approval
from conspectus.engine.attempts import Attempts
from conspectus.engine.branches import load_view, settle_branch
from conspectus.engine.decision import (
    CompactionDecision,
    CompactionRequest,
    Decide,
    decide,
)
from conspectus.engine.failures import forget_failure, remember_failure
from conspectus.engine.fitting import check_budget, fit_record
from conspectus.engine.history import HistoryContext
from conspectus.engine.hooks import SummarizationEvent, call_hooks, copy_for_hook
from conspectus.engine.leaving import Leaving, gather_leaving, places_that_leave
from conspectus.engine.measuring import correct_sizes
from conspectus.engine.quiet import remember_if_quiet
from conspectus.engine.reporting import (
    Committed,
    notify_unexpected,
    report_compacted,
    report_failure,
    report_overtaken,
    report_unchanged,
)
from conspectus.engine.result import CompactionResult
from conspectus.engine.summary import find_or_write
from conspectus.errors import ArchiveOvertaken, ConspectusError
from conspectus.messages import Message
from conspectus.observe import observing
from conspectus.observe.observation import Observation

MOST_TRIES = 4
"""Tries of one call, each of which another worker may overtake."""


async def compact(
    history: HistoryContext,
    entries: Sequence[Message],
    request: CompactionRequest,
    decide_with: Decide = decide,
) -> CompactionResult:
    """Decide what one call does to a history, and do it; if another worker was first, begin again.

    Raises:
        ArchiveError: the archive cannot be read.
        ConspectusError: the compaction failed, and `on_failure` is `"raise"`.
    """
    spent = Cost()
    chain_at_first: Chain | None = None
    for _ in range(MOST_TRIES):
        view = correct_sizes(await load_view(history, entries))
        view = await settle_branch(view)  # the store names the records of this history from now on
        if chain_at_first is None:
            chain_at_first = view.chain
        if _has_new_record(view.chain, chain_at_first):  # another worker has compacted the history
            request = replace(request, force=False)
        decision = await decide_with(view, request)
        if not isinstance(decision, CompactionDecision):
            result = report_unchanged(decision)
            # `view`, not `decision.view`: the short path (`quiet`) compares estimates.
            remember_if_quiet(view, decision.plan, result)
            return replace(result, cost=spent)
        attempts = Attempts()
        try:
            result = await carry_out(decision, attempts, request.focus)
            return replace(result, cost=spent + result.cost)
        except ArchiveOvertaken as error:
            spent += attempts.spent
            overtaken = error
    view = correct_sizes(await load_view(history, entries))
    return await report_overtaken(view, overtaken, spent)


def _has_new_record(chain: Chain, before: Chain) -> bool:
    """Tell whether a chain has a record that it did not have before; after an undo it has not."""
    known = {record.id for record in before}
    return any(record.id not in known for record in chain)


async def carry_out(
    decision: CompactionDecision, attempts: Attempts, focus: str = ""
) -> CompactionResult:
    """Put a decision in force and report it, or why the history stays as it was.

    All that is spent is entered in `attempts`, also if this raises an error.

    Raises:
        ArchiveOvertaken: another worker has put its own record in force.
        ConspectusError: the compaction failed, and `on_failure` is `"raise"`.
    """
    leaving: Leaving | None = None
    with _observing_compaction(decision) as observation:
        try:
            await _notify_start(decision)
            leaving = await gather_leaving(decision, focus)
            committed = await put_in_force(leaving, attempts)
        except ArchiveOvertaken:
            observation.add(tries_failed=len(attempts.failures))
            raise  # `compact` begins again
        except ConspectusError as error:
            await remember_failure(decision.view, error)
            return await report_failure(decision, leaving, error, attempts, observation)
        except Exception as error:
            # A function of the caller has failed, or `interrupt()` leaves the node.
            await notify_unexpected(decision, error)
            raise
        result = await report_compacted(leaving, committed, attempts, observation)
    await forget_failure(decision.view.history)  # the event has ended, and does not wait for this
    return result


async def put_in_force(leaving: Leaving, attempts: Attempts) -> Committed:
    """Archive what leaves, write its summary, measure what will be sent, commit the record.

    This order is the commit rule: a failure before the commit leaves the history as it was.
    """
    store = leaving.view.history.store
    await store.store_originals(leaving.messages_to_archive)  # raises unless they can be read back
    written = await find_or_write(leaving, attempts)
    draft = await ask_for_approval(leaving, written)

    record, after = fit_record(leaving, draft)  # exactly what the model will be sent
    check_budget(leaving, after)
    await notify_hooks(leaving)  # the caller's own, which change nothing
    await commit(leaving, record)  # unless another worker was first
    return Committed(record, after)


async def notify_hooks(leaving: Leaving) -> None:
    """Tell the caller's `before_summarization` what is about to leave."""
    engine = leaving.engine
    if engine.hooks and leaving.evicted_messages:
        await call_hooks(engine.hooks, _event_of(leaving), engine.settings.summarizer_timeout)


async def commit(leaving: Leaving, record: Record) -> None:
    """Put a record in force.

    Raises:
        ArchiveOvertaken: another worker was first.
    """
    view = leaving.view
    with observing("step", name="commit", by=record.by):
        await view.history.store.commit(view.chain, record, expected_head_id=view.stored_head_id)


# What listeners and hooks are told


def _observing_compaction(decision: CompactionDecision) -> Observation:
    """Observe a compaction: its event begins and ends with the `with` block."""
    plan = decision.plan
    history = decision.view.history
    observation = Observation(
        "compaction",
        history.scope,
        cause=plan.cause.kind,
        tokens_before=plan.tokens,
        budget=plan.budget,
        clipped=len(plan.clips),
        archived=history.store.keeps_originals,
    )
    observation.hides_errors |= history.engine.redaction is not None
    return observation


async def _notify_start(decision: CompactionDecision) -> None:
    """Tell the caller's listener that a compaction begins."""
    plan = decision.plan
    history = decision.view.history
    await history.engine.notify(
        history.scope,
        "start",
        cause=str(plan.cause),
        tokens=plan.tokens,
        evict=len(places_that_leave(decision.view, plan)),
    )


def _event_of(leaving: Leaving) -> SummarizationEvent:
    """Describe a compaction for hooks, with copies of what leaves and of what stays."""
    scope = leaving.view.history.scope
    redacted = leaving.engine.redaction is not None
    return SummarizationEvent(
        messages_to_summarize=tuple(
            copy_for_hook(message, redacted=redacted) for message in leaving.evicted_messages
        ),
        preserved_messages=tuple(
            copy_for_hook(message, redacted=redacted) for message in leaving.kept_messages
        ),
        thread_id=scope.thread,
        session=scope.session,
        tenant=scope.tenant,
        cause=str(leaving.plan.cause),
        agent_name=leaving.engine.caller_format.agent_name,
        runtime=leaving.engine.caller_format.runtime,
    )
