"""The story of one call: from the messages of a caller to the record in force.

`compact` decides, and `put_in_force` carries the decision out. What is in force changes at the very
end, so that a failure before leaves the history as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from conspectus.core.plans import Compact
from conspectus.core.records import Record
from conspectus.engine.approval import approved
from conspectus.engine.branches import load_view
from conspectus.engine.history import HistoryContext
from conspectus.engine.hooks import SummarizationEvent, call_hooks, copy_for_hook
from conspectus.engine.leaving import Leaving, gather_leaving, notify
from conspectus.engine.measuring import corrected
from conspectus.engine.next_record import check_budget, measured
from conspectus.engine.planning import CompactionRequest, Decide, Decision, decide
from conspectus.engine.quiet import remember_if_quiet
from conspectus.engine.reporting import compacted, failed, overtaken, unchanged
from conspectus.engine.result import CompactionResult
from conspectus.engine.stores import SUMMARY_FAILED
from conspectus.engine.summary import Attempts, errors_carry, find_or_write
from conspectus.engine.view import View
from conspectus.errors import ArchiveOvertaken, ConspectusError
from conspectus.messages import Message
from conspectus.observe import emit, observing

MOST_READS = 4  # of a history that other workers compact meanwhile


async def compact(
    history: HistoryContext,
    messages: Sequence[Message],
    request: CompactionRequest,
    decide: Decide = decide,
) -> CompactionResult:
    """Decide what one call does to a history, and do it; if another worker was first, begin again.

    Raises:
        ArchiveError: the archive cannot be read.
        ConspectusError: the compaction failed, and `on_failure` is `"raise"`.
    """
    for _ in range(MOST_READS):
        view = corrected(await load_view(history, messages))
        decision = await decide(view, request.still_to_do(view))
        if not isinstance(decision.plan, Compact):
            result = unchanged(decision.view, decision.plan)
            await remember_if_quiet(view, decision.plan, result)
            return replace(result, cost=request.spent)
        try:
            result = await carry_out(decision, request.focus)
            return replace(result, cost=request.spent + result.cost)
        except ArchiveOvertaken as error:
            request = request.for_retry(view, error)
    view = corrected(await load_view(history, messages))
    return overtaken(view, request)


class Committed(NamedTuple):
    """What a compaction has come to."""

    record: Record
    view: View  # exactly what the model will be sent
    attempts: Attempts


async def put_in_force(leaving: Leaving) -> Committed:
    """Archive what leaves, write its summary, measure what will be sent, commit the record.

    This order is the commit rule: a failure before the commit leaves the history as it was.
    """
    store = leaving.view.history.store
    await store.store_originals(leaving.originals)  # raises unless they can be read back
    written = await find_or_write(leaving)
    with errors_carry(written.attempts):
        draft = await approved(written, leaving)

        record, after = measured(leaving, draft)  # exactly what the model will be sent
        check_budget(after, leaving)
        await commit(leaving, record)  # unless another worker was first
    return Committed(record, after, written.attempts)


async def commit(leaving: Leaving, record: Record) -> None:
    """Tell the caller's hooks what leaves, and put a record in force."""
    view = leaving.view
    assert not view.history.draft_only, "drafts of the background are never put in force"
    engine = leaving.engine
    with observing("step", name="commit", by=record.by):
        if engine.hooks and leaving.to_read:
            await call_hooks(engine.hooks, _event_of(leaving), engine.settings.summarizer_timeout)
        await view.history.store.commit(view.chain, record, expected_head=view.stored_head)


def _event_of(leaving: Leaving) -> SummarizationEvent:
    """Describe a compaction for hooks, with copies of what leaves and of what stays."""
    scope = leaving.view.history.scope
    redacted = leaving.engine.redaction is not None
    return SummarizationEvent(
        messages_to_summarize=tuple(
            copy_for_hook(message, redacted=redacted) for message in leaving.to_read
        ),
        preserved_messages=tuple(
            copy_for_hook(message, redacted=redacted) for message in leaving.kept
        ),
        thread_id=scope.thread,
        session=scope.session,
        tenant=scope.tenant,
        cause=leaving.plan.cause,
        agent_name=leaving.engine.agent_name,
        runtime=leaving.engine.runtime,
    )


async def carry_out(decision: Decision, focus: str = "") -> CompactionResult:
    """Put a decision in force and report it, or why the history stays as it was.

    Raises:
        ArchiveOvertaken: another worker has put its own record in force; with what was spent.
        ConspectusError: the compaction failed, and `on_failure` is `"raise"`.
    """
    plan = decision.plan
    assert isinstance(plan, Compact), "a history that is kept needs nothing"
    history = decision.view.history
    leaving: Leaving | None = None
    with observing(
        "compaction",
        history.scope,
        cause=plan.cause.partition(":")[0],
        tokens_before=plan.tokens,
        budget=plan.budget,
        clipped=len(plan.clips),
        archived=history.store.keeps_originals,
    ) as observation:
        observation.hides_errors |= history.engine.redaction is not None
        try:
            leaving = await gather_leaving(decision, focus)
            await _tell_start(leaving)
            committed = await put_in_force(leaving)
        except ConspectusError as error:
            return await failed(decision, leaving, error, observation)
        result = await compacted(leaving, *committed, observation)
    await _settle(decision)
    return result


async def _tell_start(leaving: Leaving) -> None:
    """Tell the caller's listener that a compaction begins."""
    await notify(
        leaving.view,
        "start",
        leaving.redaction,
        cause=leaving.plan.cause,
        tokens=leaving.plan.tokens,
        evict=len(leaving.keys),
    )


async def _settle(decision: Decision) -> None:
    """Report a draft that was swapped in, and that an earlier failure is over."""
    history = decision.view.history
    draft = decision.draft
    if draft is not None:
        facts = {"waited": decision.waited, "messages": len(draft.read)}
        emit("preparation", history.scope, name="swapped_in", **facts)
    if history.memory.failed is not None:
        await history.store.note_failure(SUMMARY_FAILED, None)
    history.memory.failed = None
