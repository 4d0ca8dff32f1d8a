"""Drafts that are prepared in the background, before the trigger, and put in force at it.

This wraps the story of `compaction`, which knows nothing of it: `decide_with_drafts` stands in the
place of `planning.decide`.

A preparation archives what would leave and saves a draft under the name of the notes that it
follows; it puts nothing in force. At the trigger the draft is used if all that it read still stands
in the history and may leave. Two processes may prepare at once: the draft saved last is found, and
the commit decides, as everywhere. A preparation runs in a daemon thread. Where an event loop has
begun it, its async calls are made on that loop while it runs, and then on one of its own. Its calls
of a model belong to the run that has begun it: they have its callbacks, tags, metadata and config.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from conspectus._langchain import begun_beside, kept_config
from conspectus.archive.guard import GATE, GateShut
from conspectus.core.items import Size
from conspectus.core.plan import may_leave, plan_draft
from conspectus.core.plans import Compact, Keep
from conspectus.core.records import Draft, notes_number_of
from conspectus.engine.branches import load_view
from conspectus.engine.draft_lock import draft_lock
from conspectus.engine.history import HistoryContext
from conspectus.engine.history_store import PREPARATION_FAILED
from conspectus.engine.leaving import gather_leaving, measure_summary
from conspectus.engine.measuring import correct_sizes, share_out_count
from conspectus.engine.memory import FailedSummary
from conspectus.engine.planning import (
    CompactionRequest,
    Decision,
    base_of,
    decide,
    fits_by_counter,
    has_prepared_in_vain,
    plan_for,
)
from conspectus.engine.preparations import (
    LIVE,
    LOST_AFTER_SECONDS,
    POLL_SECONDS,
    STOPPED,
    Preparation,
    Preparations,
    wait_while,
)
from conspectus.engine.summary import find_or_write, hash_of
from conspectus.engine.view import View
from conspectus.errors import ConspectusError, SummaryError
from conspectus.messages import Message
from conspectus.observe import emit, heard_by, log, observing

RUN = "prepare a summary"
"""The name of a preparation in traces."""

IN_VAIN = "preparing failed before; it is tried again once the history has grown by a tenth"
KEPT_WHILE_PREPARING = (
    "the next notes are being prepared, and the messages fit the window until they are there"
)
MISFIT = "the history has gone back or was changed, or something that it stands for must stay now"


# At the trigger


async def decide_with_drafts(view: View, request: CompactionRequest) -> Decision:
    """Decide about a history whose notes are prepared: a finished draft is put in force."""
    decision = await decide(view, request)
    if request.force or request.focus:
        return decision
    return await use_prepared_draft(decision)


async def use_prepared_draft(decision: Decision) -> Decision:
    """Return the decision with a draft that was prepared for it.

    Where none is ready yet, a preparation is begun and the history is kept as it is, while it fits;
    where it does not fit, one that is under way is waited for. The decision comes back as it is if
    there is no draft, and the summary is then written in the foreground.
    """
    view = decision.view
    history = view.history
    jobs = _jobs_of(history)
    size = history.trigger_size or view.size
    head = view.head_id or ""
    if not isinstance(decision.plan, Compact):
        if isinstance(decision.plan, Keep):
            begin_if_near(view, head, size)
        return decision
    if not _may_be_prepared(decision):
        return decision
    prepared = await _with_finished_draft(decision)
    if prepared is not None or jobs.closed:
        return prepared or decision
    job = jobs.latest.get(history.scope)
    has_ended = job is not None and not job.under_way and job.head_id == head
    if not history.exceeds_window(view.size) and not has_ended:
        begin_preparation(view.history, view, head, size)
        emit("preparation", history.scope, name="kept_meanwhile")
        return replace(decision, plan=Keep(KEPT_WHILE_PREPARING, view.size.tokens, preparing=True))
    if job is None or not job.under_way:
        return decision
    return await _after_waiting(decision, job)


def _jobs_of(history: HistoryContext) -> Preparations:
    """Return the preparations of a history's owner, which prepares notes."""
    jobs = history.engine.preparations
    assert jobs is not None, "nothing is prepared where background is off"
    return jobs


def _may_be_prepared(decision: Decision) -> bool:
    """Tell whether a draft may be waited for: nothing has failed, and it would be enough."""
    view = decision.view
    plan = decision.plan
    assert isinstance(plan, Compact)
    over = view.history.exceeds_window(view.size)
    failed = view.history.memory.failure_of(view.head_id, view.size.messages, over)
    return plan.makes_summary and failed is None and plan.stuck is None


async def _after_waiting(decision: Decision, job: Preparation) -> Decision:
    """Return the decision once a preparation has ended, or takes longer than a summariser may."""
    history = decision.view.history
    start = time.monotonic()
    job.leave_blocked_loop()
    longest = history.engine.settings.summarizer_timeout or LOST_AFTER_SECONDS
    await wait_while(lambda: job.under_way, longest)
    waited = time.monotonic() - start
    prepared = await _with_finished_draft(decision)
    if prepared is None and waited >= POLL_SECONDS:
        emit("preparation", history.scope, name="waited", waited=waited)
    return replace(prepared or decision, waited=waited)


async def _with_finished_draft(decision: Decision) -> Decision | None:
    """Return the decision that puts a finished draft in force; None if there is no draft.

    A draft that does not fit the history is dropped: the decision stays as it is then.
    """
    view = decision.view
    plan = decision.plan
    assert isinstance(plan, Compact)
    draft = await view.history.store.find_draft(_draft_name(view))
    if draft is None:
        return None
    if _draft_fits(draft, view):
        # What is still above the trigger then is for the next preparation.
        size = measure_summary(view, draft.body, (), 0, notes_number_of(view.head_id, (), ()))
        leaving = _places_read(view, draft)
        base = base_of(view)
        swap = plan_draft(view.items, view.history.window, plan, leaving, size, base)
        if swap is not None and fits_by_counter(view, swap):
            return replace(decision, plan=swap, draft=draft)
    facts = {"outcome": "dropped", "reason": MISFIT, "messages": len(draft.read)}
    emit("preparation", view.history.scope, name="dropped", **facts)
    return decision


def _draft_name(view: View) -> str:
    """Name the draft that follows the notes in force, made with these settings."""
    # A record that only clips messages does not change a draft.
    notes = next((record.id for record in reversed(view.chain) if record.covers), "")
    return hash_of(["prepared", notes, view.history.engine.summary_identity("")])


def _places_read(view: View, draft: Draft) -> list[int]:
    """Return the places of the messages that a draft has read."""
    read = set(draft.read)
    return [at for at, item in enumerate(view.items) if item.key in read and not item.summary]


def _draft_fits(draft: Draft, view: View) -> bool:
    """Tell whether all that a draft stands for is in the history, and may leave."""
    foreign = {item.key for item in view.items if item.foreign}
    present = foreign | {item.key for item in view.items if not item.summary}
    is_there = foreign <= set(draft.read) <= present
    return is_there and may_leave(view.items, _places_read(view, draft))


# Before the trigger


def begin_if_near(view: View, head: str, size: Size) -> None:
    """Begin a preparation for a history whose trigger is near."""
    history = view.history
    if history.nears_trigger(size) and _jobs_of(history).may_begin(history.scope, head, size):
        begin_preparation(history, view, head, size)


def begin_preparation(
    history: HistoryContext,
    messages: View | list[Message],
    head: str = "",
    size: Size | None = None,
) -> Preparation:
    """Prepare the next notes of a history in the background.

    Args:
        history: whose notes are prepared.
        messages: its messages as read, or its view.
        head: id of the record in force.
        size: its size as the trigger counts; with it, a preparation that fails at once is tried
            again only once the history has grown.

    Returns:
        The preparation, or the one that is under way.
    """
    jobs = _jobs_of(history)
    job = Preparation(head_id=head, size=size)
    # No listener of the caller's own and no person is asked, as the run may be over by then.
    engine = replace(history.engine, on_event=None, preview=None, hooks=())
    beside = replace(history, engine=engine, draft_only=True)
    context = contextvars.copy_context()
    context.run(GATE.set, job.gate)
    report_end: Callable[[dict[str, Any]], object] = dict
    is_traced = threading.Event()

    def work() -> None:
        is_traced.wait()
        try:
            prepared = _prepare(beside, messages, job)
            context.run(job.driver.run, heard_by(engine.listeners, prepared))
        except GateShut as error:
            job.outcome = "cancelled"
            job.reason = str(error)
        except BaseException as error:
            job.outcome = "failed"
            job.reason = f"{type(error).__name__}: {error}"
        finally:
            with suppress(Exception):  # of a callback, which may belong to a run that has ended
                report_end({"outcome": job.outcome})

    with jobs.lock:
        latest = jobs.latest.get(history.scope)
        if latest is not None and latest.under_way:
            return latest
        if jobs.closed:
            return replace(job, outcome="cancelled", reason=STOPPED)
        job.thread = threading.Thread(target=work, daemon=True, name="conspectus-background")
        job.thread.start()
        jobs.add(history.scope, job)
        LIVE.add(job)
    try:
        report_end = _begin_traced_run(context)  # callbacks of the caller's, so outside the lock
    finally:
        is_traced.set()
    return job


def _begin_traced_run(context: contextvars.Context) -> Callable[[dict[str, Any]], object]:
    """Begin a run of LangChain for the work in a context; return what reports its end."""
    runs = sys.modules.get("langchain_core.runnables.config")
    if runs is None:
        return dict  # nobody traces
    report_end: Callable[[dict[str, Any]], object] = dict
    config = kept_config(runs.var_child_runnable_config.get())
    try:
        report_end = begun_beside(config, RUN)
    except Exception as error:
        log("listener_failed", "a callback of the run failed: %s", error, exc_info=error)
    context.run(runs.var_child_runnable_config.set, config)
    return report_end


async def _prepare(
    history: HistoryContext, messages: View | list[Message], job: Preparation
) -> None:
    """Prepare a draft, and note in the job how it ended."""
    emit("preparation", history.scope, name="began")
    with observing("preparation", history.scope, name="finished", waited=0.0) as observation:
        observation.hides_errors |= history.engine.redaction is not None
        try:
            count, job.reason = await _write_draft(history, messages, job)
            job.outcome = "nothing" if job.reason else "ready"
            observation.add(messages=count, reason=job.reason)
        except ConspectusError as error:
            if isinstance(error, SummaryError) and job.size is not None:
                failure = FailedSummary(job.head_id or None, job.size, job.size, over=False)
                await history.store.note_failure(PREPARATION_FAILED, failure)
            [job.reason] = await history.engine.redacted([str(error)])
            job.outcome = "failed"
            observation.add(outcome="failed", failure=error.failure)
            observation.add(error=type(error).__qualname__, error_message=job.reason)


async def _write_draft(
    history: HistoryContext, messages: View | list[Message], job: Preparation
) -> tuple[int, str]:
    """Write the draft that is foreseen; return how many messages it read, or why there is none."""
    if isinstance(messages, View):
        view = replace(messages, history=history, counted_size=messages.size)
    else:
        view = correct_sizes(await load_view(history, messages))
    job.head_id = view.head_id or ""
    job.size = history.trigger_size or view.size
    name = _draft_name(view)
    async with draft_lock(history, name):
        saved = await history.store.find_draft(name)
        if saved is not None and _draft_fits(saved, view):
            return 0, ""
        view = share_out_count(view)
        plan = plan_for(view, for_preparation=True)
        if not isinstance(plan, Compact):
            return 0, plan.reason
        if plan.stuck is not None:
            return 0, plan.stuck.reason
        if not plan.evicted:
            return 0, "messages are only clipped"
        if await has_prepared_in_vain(view):
            return 0, IN_VAIN
        leaving = await gather_leaving(Decision(view, plan))
        await history.store.store_originals(leaving.originals)
        written = await find_or_write(leaving)
        # Summaries of other libraries were read as what was known before.
        read = dict.fromkeys((*written.draft.read, *leaving.keys))
        await history.store.save_draft(name, replace(written.draft, read=tuple(read)))
    return len(leaving.keys), ""
