"""Drafts that are prepared in the background, before the trigger fires.

This wraps the story of `compaction`, which does not know of it: `compact_with_drafts` calls
`compact` with another function to decide.

A preparation archives what would leave, and saves a draft under a name that is made of the notes in
force. It commits nothing. When the trigger fires, the draft is used if all that it has read is
still in the history and may leave. Two processes may prepare at once: the draft that was saved last
is found, and the commit decides as always.

A preparation runs in a daemon thread. If an event loop has begun it, its async calls are made on
that loop while that runs, and later on a loop of its own. Its calls of a model belong to the run
that has begun it: they have the callbacks, tags, metadata and config of that run.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from conspectus._langchain import begun_beside, kept_config
from conspectus.archive.guard import GATE, GateShut
from conspectus.core.items import Size
from conspectus.core.plan_types import Compact, Keep
from conspectus.core.planner import may_leave, plan_draft
from conspectus.core.records import Draft, notes_number_of
from conspectus.engine.attempts import Attempts
from conspectus.engine.branches import load_view
from conspectus.engine.compaction import compact
from conspectus.engine.decision import (
    CompactionDecision,
    CompactionRequest,
    Decision,
    UnchangedDecision,
    base_of,
    decide,
    fits_by_counter,
    plan_for,
)
from conspectus.engine.draft_lock import draft_lock
from conspectus.engine.failures import check_prepared_in_vain, note_failed_preparation
from conspectus.engine.history import HistoryContext
from conspectus.engine.leaving import gather_leaving, measure_summary
from conspectus.engine.measuring import correct_sizes, share_out_count
from conspectus.engine.preparations import (
    LIVE,
    POLL_INTERVAL,
    STOPPED,
    WRITER_TIMEOUT,
    Preparation,
    Preparations,
    wait_while,
)
from conspectus.engine.result import CompactionResult
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
PREPARATION_BROKE = (
    "a preparation of notes has broken off (%s); the notes are written when the trigger fires"
)
MISFIT = "the history has gone back or was changed, or a message that the draft has read must stay"


# When the trigger has fired


async def compact_with_drafts(
    history: HistoryContext, entries: Sequence[Message], request: CompactionRequest
) -> CompactionResult:
    """Do what `compact` does, with drafts that were prepared, and prepare the next ones.

    Raises:
        ArchiveError: the archive cannot be read.
        ConspectusError: the compaction failed, and `on_failure` is `"raise"`.
    """
    decision: Decision | None = None

    async def decide_with_drafts(view: View, request: CompactionRequest) -> Decision:
        nonlocal decision
        decision = await decide(view, request)
        if not (request.force or request.focus):
            decision = await use_prepared_draft(decision)
        return decision

    result = await compact(history, entries, request, decide_with_drafts)
    if result.record is None or not isinstance(decision, CompactionDecision):
        return result
    if decision.draft is not None:
        facts = {"waited": decision.waited, "messages": len(decision.draft.read)}
        emit("preparation", history.scope, name="swapped_in", **facts)
    return result


async def use_prepared_draft(decision: Decision) -> Decision:
    """Return the decision with the draft that was prepared for it, if there is one.

    If no draft is ready, a preparation begins, and the history is kept as it is. If the history
    does not fit the window, a preparation that runs is waited for. If there is no draft even then,
    the decision is returned as it is, and the summary is written in the foreground.
    """
    view = decision.view
    history = view.history
    preparations = _preparations_of(history)
    if not isinstance(decision, CompactionDecision):
        if isinstance(decision.plan, Keep):
            _prepare_if_near(view)
        return decision
    if not _may_be_prepared(decision):
        return decision
    search = await _find_finished_draft(decision)
    if search.found_any or preparations.closed:
        return search.decision
    preparation = preparations.latest.get(history.scope)
    is_for_head = preparation is not None and preparation.head_id == view.head_id
    has_ended = preparation is not None and is_for_head and not preparation.under_way
    if not history.exceeds_window(view.size) and not has_ended:
        prepare_view(view)
        emit("preparation", history.scope, name="kept_meanwhile")
        return UnchangedDecision(view, Keep(KEPT_WHILE_PREPARING, view.size.tokens, preparing=True))
    if preparation is None or not preparation.under_way:
        return decision
    return await _wait_for_draft(decision, preparation)


def _preparations_of(history: HistoryContext) -> Preparations:
    """Return the preparations of a history's owner, which prepares notes."""
    preparations = history.engine.preparations
    assert preparations is not None, "drafts are prepared only with background on"
    return preparations


def _may_be_prepared(decision: CompactionDecision) -> bool:
    """Tell whether a draft may be waited for: nothing has failed, and it would be enough."""
    view = decision.view
    plan = decision.plan
    over = view.history.exceeds_window(view.size)
    failed = view.history.memory.failure_of(view.head_id, view.size.messages, over)
    return plan.makes_summary and failed is None and plan.fits


async def _wait_for_draft(
    decision: CompactionDecision, preparation: Preparation
) -> CompactionDecision:
    """Return the decision after a preparation has ended, or has taken too long for a summariser."""
    history = decision.view.history
    start = time.monotonic()
    preparation.leave_blocked_loop()
    longest = history.engine.settings.summarizer_timeout or WRITER_TIMEOUT
    await wait_while(lambda: preparation.under_way, longest)
    waited = time.monotonic() - start
    search = await _find_finished_draft(decision)
    if not search.found_any and waited >= POLL_INTERVAL:
        emit("preparation", history.scope, name="waited", waited=waited)
    return replace(search.decision, waited=waited)


class _DraftSearch(NamedTuple):
    """What a search for a finished draft has found."""

    found_any: bool  # there is a draft, whether it fits the history or not
    decision: CompactionDecision  # with the draft if it fits, else as it was


async def _find_finished_draft(decision: CompactionDecision) -> _DraftSearch:
    """Look for a finished draft, and put it into the decision if it fits the history.

    A draft that does not fit stays where it is, and is not used.
    """
    view = decision.view
    plan = decision.plan
    draft = await view.history.store.find_draft(await _name_draft(view))
    if draft is None:
        return _DraftSearch(found_any=False, decision=decision)
    if _draft_fits(draft, view):
        # What is still above the trigger then is for the next preparation.
        size = measure_summary(view, draft.body, (), 0, notes_number_of(view.head_id, (), ()))
        places = _places_read(view, draft)
        base = base_of(view)
        plan_with_draft = plan_draft(view.items, view.history.window, plan, places, size, base)
        if plan_with_draft is not None and fits_by_counter(view, plan_with_draft):
            with_draft = replace(decision, plan=plan_with_draft, draft=draft)
            return _DraftSearch(found_any=True, decision=with_draft)
    facts = {"outcome": "dropped", "reason": MISFIT, "messages": len(draft.read)}
    emit("preparation", view.history.scope, name="dropped", **facts)
    return _DraftSearch(found_any=True, decision=decision)


async def _name_draft(view: View) -> str:
    """Name the draft that continues the notes in force, made with these settings.

    After an undo it has another name, as in `summary`.
    """
    # A record that only clips messages changes no notes.
    notes = next((record.id for record in reversed(view.chain) if record.covers), "")
    identity = view.history.engine.summary_identity("")
    return hash_of(["prepared", notes, identity, *await view.history.store.undone()])


def _places_read(view: View, draft: Draft) -> list[int]:
    """Return the places of the messages that a draft has read."""
    read = set(draft.read)
    return [
        place for place, item in enumerate(view.items) if item.key in read and not item.is_summary
    ]


def _draft_fits(draft: Draft, view: View) -> bool:
    """Tell whether all that a draft has read is in the history, and may leave."""
    foreign = {item.key for item in view.items if item.is_foreign_summary}
    present = foreign | {item.key for item in view.items if not item.is_summary}
    is_there = foreign <= set(draft.read) <= present
    return is_there and may_leave(view.items, _places_read(view, draft))


# Before the trigger fires


def _prepare_if_near(view: View) -> None:
    """Begin a preparation for a history whose trigger is near."""
    history = view.history
    size = history.size_for_trigger(view.size)
    preparations = _preparations_of(history)
    is_near = history.nears_trigger(size)
    if is_near and preparations.may_begin(history.scope, view.head_id, size):
        prepare_view(view)


def prepare_view(view: View) -> Preparation:
    """Prepare the next notes of a history in the background; see `prepare_messages`."""
    size = view.history.size_for_trigger(view.size)
    return _begin(view.history, view, Preparation(head_id=view.head_id, size=size))


def prepare_messages(
    history: HistoryContext, entries: list[Message], head_id: str = "", size: Size | None = None
) -> Preparation:
    """Prepare the next notes of a history in the background.

    Args:
        history: whose notes are prepared.
        entries: its messages.
        head_id: id of the record in force; empty if there is none, or if it is not known yet.
        size: its size as the trigger counts. With it, a preparation that fails at once is tried
            again only after the history has grown.

    Returns:
        The preparation, or the one that runs already.
    """
    return _begin(history, entries, Preparation(head_id=head_id, size=size))


def _begin(
    history: HistoryContext, messages: View | list[Message], preparation: Preparation
) -> Preparation:
    """Begin a preparation in a thread; return it, or the one that runs already."""
    preparations = _preparations_of(history)
    # Neither the caller's listener nor a person is asked, because the run may be over by then.
    engine = replace(history.engine, on_event=None, preview=None, hooks=())
    background_history = replace(history, engine=engine)
    context = contextvars.copy_context()
    context.run(GATE.set, preparation.gate)
    report_end: Callable[[dict[str, Any]], object] = _report_nothing
    tracing_has_begun = threading.Event()

    def work() -> None:
        tracing_has_begun.wait()
        try:
            prepared = _prepare(background_history, messages, preparation)
            context.run(preparation.driver.run, heard_by(engine.listeners, prepared))
        except GateShut as error:
            preparation.outcome = "cancelled"
            preparation.reason = str(error)
        except BaseException as error:  # such as a redactor that fails on an error's text
            preparation.outcome = "failed"
            preparation.reason = f"{type(error).__name__} in a preparation"
            log("preparation_failed", PREPARATION_BROKE, type(error).__name__)
        finally:
            with suppress(Exception):  # of a callback, which may belong to a run that has ended
                report_end({"outcome": preparation.outcome})

    with preparations.lock:
        latest = preparations.latest.get(history.scope)
        if latest is not None and latest.under_way:
            return latest
        if preparations.closed:
            return replace(preparation, outcome="cancelled", reason=STOPPED)
        preparation.thread = threading.Thread(
            target=work, daemon=True, name="conspectus-background"
        )
        preparation.thread.start()
        preparations.add(history.scope, preparation)
        LIVE.add(preparation)
    try:
        report_end = _begin_traced_run(context)  # callbacks of the caller's, so outside the lock
    finally:
        tracing_has_begun.set()
    return preparation


def _report_nothing(outcome: Mapping[str, Any]) -> None:
    """Report the end of a run that nobody traces."""


def _begin_traced_run(context: contextvars.Context) -> Callable[[dict[str, Any]], object]:
    """Begin a run of LangChain for the work in a context; return what reports its end."""
    runs = sys.modules.get("langchain_core.runnables.config")
    if runs is None:
        return _report_nothing
    report_end: Callable[[dict[str, Any]], object] = _report_nothing
    config = kept_config(runs.var_child_runnable_config.get())
    try:
        report_end = begun_beside(config, RUN)
    except Exception as error:
        log("listener_failed", "a callback of the run failed: %s", error, exc_info=error)
    context.run(runs.var_child_runnable_config.set, config)
    return report_end


async def _prepare(
    history: HistoryContext, messages: View | list[Message], preparation: Preparation
) -> None:
    """Prepare a draft, and note in the preparation how it ended."""
    emit("preparation", history.scope, name="began")
    with observing("preparation", history.scope, name="finished", waited=0.0) as observation:
        observation.hides_errors |= history.engine.redaction is not None
        try:
            count, preparation.reason = await _write_draft(history, messages, preparation)
            preparation.outcome = "nothing" if preparation.reason else "ready"
            observation.add(messages=count, reason=preparation.reason)
        except GateShut:
            raise
        except Exception as error:
            is_foreseen = isinstance(error, ConspectusError)
            text = str(error) if is_foreseen else f"{type(error).__name__}: {error}"
            [preparation.reason] = await history.engine.redacted([text])
            preparation.outcome = "failed"
            failure = error.failure if isinstance(error, ConspectusError) else "summary"
            observation.add(outcome="failed", failure=failure)
            observation.add(error=type(error).__qualname__, error_message=preparation.reason)
            if isinstance(error, SummaryError) and preparation.size is not None:
                await note_failed_preparation(history, preparation.head_id, preparation.size)


async def _write_draft(
    history: HistoryContext, messages: View | list[Message], preparation: Preparation
) -> tuple[int, str]:
    """Write the next draft; return how many messages it has read, and why there is none if so."""
    if isinstance(messages, View):
        view = replace(messages, history=history, counted_size=messages.size)
    else:
        view = correct_sizes(await load_view(history, messages))
    preparation.head_id = view.head_id
    preparation.size = history.size_for_trigger(view.size)
    name = await _name_draft(view)
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
        if not plan.evicted_places:
            return 0, "messages are only clipped"
        if await check_prepared_in_vain(view):
            return 0, IN_VAIN
        leaving = await gather_leaving(CompactionDecision(view, plan))
        await history.store.store_originals(leaving.messages_to_archive)
        written = await find_or_write(leaving, Attempts())
        # Summaries of other libraries were read as what was known before.
        read = dict.fromkeys((*written.draft.read, *leaving.leaving_keys))
        await history.store.save_draft(name, replace(written.draft, read=tuple(read)))
    return len(leaving.leaving_keys), ""
