"""The draft of a summary: found, or written by summarisers that are asked in turn, and checked."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from conspectus.bridge import StepTimeout, call_either_way, pause
from conspectus.core.items import Size
from conspectus.core.planner import divide_size
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Cost, Draft
from conspectus.engine.attempts import Attempts, name_cost
from conspectus.engine.cached_request import after_last_request
from conspectus.engine.draft_lock import draft_lock
from conspectus.engine.leaving import DAMAGED_NOTES, Leaving
from conspectus.engine.measuring import evicted_since_model
from conspectus.engine.summary_notes import (
    merge_answer,
    notes_without_model,
    rejection,
    rejection_reasons,
    request_for,
    shorten_draft,
)
from conspectus.errors import (
    RedactionError,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)
from conspectus.messages.framing import framed_body
from conspectus.model.base import Summary, SummaryRequest
from conspectus.observe import log, observing
from conspectus.observe.observation import is_way_out, safe_text

RETRY_AFTER = (0.5, 2.0)
"""Seconds before the second and the third attempt of one summariser."""

LONGEST_WAIT = 20.0
"""The most seconds to wait before another attempt if a provider asks to wait. If it asks for more,
that summariser is not asked again."""


@dataclass(frozen=True, slots=True)
class WrittenDraft:
    """A draft that has passed its checks."""

    draft: Draft
    found: bool = False  # it was there already, so a person may have read it


async def find_or_write(leaving: Leaving, attempts: Attempts) -> WrittenDraft:
    """Return the draft of this plan if there is one; else ask each summariser in turn.

    A plan that only clips messages keeps the summary that there is. All that is spent is entered
    in `attempts`, also if this raises an error.

    Raises:
        SummaryError: no summariser succeeded.
        RedactionError: secrets could not be taken out of what a summariser wrote.
    """
    if not leaving.plan.makes_summary:
        return WrittenDraft(Draft(leaving.previous_summary, by="", read=()))
    if _is_cheaper_to_write(leaving):
        return WrittenDraft(await _ask_in_turn(leaving, attempts))
    history = leaving.view.history
    name = _draft_name(leaving, await history.store.undone())
    async with draft_lock(history, name):
        found = await _find(leaving, name, attempts)
        if found is not None:
            return WrittenDraft(found, found=True)
        started = time.monotonic()
        draft = await _ask_in_turn(leaving, attempts)
        # Failed attempts were paid for, too; only the record says so.
        seconds = round(time.monotonic() - started, 3)
        draft = replace(draft, cost=attempts.spent, seconds=seconds)
        if _is_worth_saving(leaving, draft):
            await history.store.save_draft(name, draft)
    return WrittenDraft(draft)


def _is_cheaper_to_write(leaving: Leaving) -> bool:
    """Tell whether writing a draft costs no more than looking for one.

    That is so if only the embedded summariser writes, and no person is asked about the draft.
    """
    engine = leaving.engine
    is_prepared = leaving.decision.draft is not None
    return engine.writes_without_model and engine.preview is None and not is_prepared


def _is_worth_saving(leaving: Leaving, draft: Draft) -> bool:
    """Tell whether another call should find a draft: it cost a call, or a person may approve it."""
    is_paid = draft.by != EMBEDDED or draft.cost.calls > 0
    return is_paid or leaving.engine.preview is not None


async def _find(leaving: Leaving, name: str, attempts: Attempts) -> Draft | None:
    """Return the draft that was prepared for this decision, or stored under this name.

    A prepared draft is paid for here, even if it cannot be used. A stored one was paid for by the
    call that saved it.
    """
    prepared = leaving.decision.draft
    if prepared is not None:
        attempts.add_cost(prepared.by, prepared.cost)
    draft = prepared or await leaving.view.history.store.find_draft(name)
    return None if draft is None else _usable(leaving, draft)


def _draft_name(leaving: Leaving, undone: Sequence[str]) -> str:
    """Name a draft by what it depends on, so that every process finds it.

    After an undo it has another name, so that a summariser is asked anew: somebody did not like the
    summary that was there.
    """
    identity = leaving.engine.summary_identity(leaving.texts.focus)
    return hash_of(
        [
            leaving.view.head_id,
            leaving.leaving_keys,
            leaving.room.target,
            identity,
            leaving.previous_summary,
            *undone,
        ]
    )


def hash_of(parts: Sequence[Any]) -> str:
    """Hash plain data, the same in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _usable(leaving: Leaving, draft: Draft) -> Draft | None:
    """Return a finished draft as it can be used now, shortened if need be; None if it cannot."""
    limit = leaving.room.hard
    try:
        if draft.notes and leaving.summary_size(framed_body(draft.body)) > limit:
            draft = shorten_draft(leaving, draft, limit)
        return check_draft(leaving, draft)
    except SummaryRejected:
        return None
    except DAMAGED_NOTES as error:
        log("notes_damaged", "the notes of a stored draft are damaged; it is not used: %s", error)
        return None


def check_draft(leaving: Leaving, draft: Draft) -> Draft:
    """Check a draft; return it framed as it will be sent, and measured.

    Raises:
        SummaryRejected: it cannot be used.
    """
    with observing("step", name="check", by=draft.by) as observation:
        text = framed_body(draft.body)
        tokens = leaving.summary_size(text)
        replaced = leaving.most_by(draft.by)
        reasons = rejection_reasons(
            draft,
            leaving.evicted_messages,
            tokens=tokens,
            replaced=replaced,
            limit=leaving.room.hard,
        )
        outcome = "rejected" if reasons else "ok"
        observation.add(problems=len(reasons), tokens_after=tokens, outcome=outcome)
    if reasons:
        raise rejection(draft, reasons)
    return replace(draft, body=text, tokens=tokens)


# Summarisers, asked in turn: each of these functions calls the next one
#
# `_ask_in_turn`: the first summariser that succeeds.
# `_ask_up_to_three_times`: one summariser, again after a failure that may pass.
# `_attempt`: once. The draft is checked, and a failure is entered in `attempts`.
# `_draft_from`: the answer is paid for, redacted, and becomes the notes of a draft.
# `_call_summarizer`: whatever fails is a `SummaryError`.
# `_call_within_time`: a summariser of the caller's own, within its time.


async def _ask_in_turn(leaving: Leaving, attempts: Attempts) -> Draft:
    """Return the draft of the first summariser that succeeds.

    If what they wrote is refused, and `on_failure` is `"degrade"`, the embedded summariser writes.

    Raises:
        SummaryError: no summariser succeeded.
        RedactionError: secrets could not be taken out of an answer.
    """
    *earlier, last = _summarizers_in_turn(leaving)
    for by in earlier:
        try:
            return await _ask_up_to_three_times(leaving, by, attempts)
        except SummaryError:
            continue  # `attempts` has the reason
    try:
        return await _ask_up_to_three_times(leaving, last, attempts)
    except SummaryError:
        # Nobody knows whether a model whose text was rejected would answer better at the next step,
        # and each try is paid for.
        may_degrade = attempts.was_rejected and leaving.engine.settings.on_failure == "degrade"
        if last == EMBEDDED or not may_degrade:
            raise
    return await _ask_up_to_three_times(leaving, EMBEDDED, attempts)


async def _ask_up_to_three_times(leaving: Leaving, by: str, attempts: Attempts) -> Draft:
    """Ask one summariser, up to three times if its failure may pass.

    Only the first request may be a cached one. The smallest one follows.
    """
    smallest = request_for(leaving, by) if by != EMBEDDED else None
    request = _cached_request(leaving, by, smallest, attempts)
    for seconds in RETRY_AFTER:
        try:
            return await _attempt(leaving, by, request, attempts)
        except SummaryError as error:
            if not _may_be_tried_again(error, request):
                raise
            smallest = _with_complaint(smallest, error)
            request = smallest
            await _wait_before_retry(error, seconds)
    return await _attempt(leaving, by, request, attempts)  # the last one: its failure is raised


async def _attempt(
    leaving: Leaving, by: str, request: SummaryRequest | None, attempts: Attempts
) -> Draft:
    """Ask one summariser once, and check its draft; a failure is entered and told to listeners."""
    try:
        with observing("step", name="summarize", by=by):
            draft = await _draft_from(leaving, by, request, attempts)
        return check_draft(leaving, draft)
    except SummaryError as error:
        attempts.add_failure(by, error)
        await leaving.engine.notify(
            leaving.view.history.scope,
            "attempt_failed",
            leaving.redaction,
            by=by,
            reason=str(error),
        )
        raise


def _with_complaint(request: SummaryRequest | None, error: SummaryError) -> SummaryRequest | None:
    """Return a request that says what the rejected summary lacked, if it lacked something."""
    if request is None or not isinstance(error, SummaryRejected) or not error.missing:
        return request
    return replace(request, complaint=error.missing)


async def _wait_before_retry(error: SummaryError, seconds: float) -> None:
    """Wait if the provider was busy, and as long as it asks."""
    if error.transient or error.retry_after:
        await pause(max(seconds, error.retry_after or 0.0))


def _cached_request(
    leaving: Leaving, by: str, smallest: SummaryRequest | None, attempts: Attempts
) -> SummaryRequest | None:
    """Return the request that follows the agent's last one, if that may be; else the smallest."""
    last_request = leaving.view.history.memory.last_request
    if smallest is None or not leaving.engine.uses_prompt_cache:
        return smallest
    if last_request is None and attempts.failures:
        return smallest  # why it is not cached was logged before
    return after_last_request(leaving, by, smallest, last_request)


def _may_be_tried_again(error: SummaryError, request: SummaryRequest | None) -> bool:
    """Tell whether the same summariser is asked once more after a failure."""
    if (error.retry_after or 0.0) > LONGEST_WAIT:
        return False
    if request is not None and request.last is not None:
        return True  # the smallest request may succeed where the cached one did not
    # A summariser that took too long would do so again.
    return error.transient and not isinstance(error, SummarizerTimeout)


def _summarizers_in_turn(leaving: Leaving) -> list[str]:
    """Return the names of the summarisers to ask, the embedded one as the last resort."""
    engine = leaving.engine
    if _is_due_by_window_alone(leaving) or _only_shortens_notes(leaving):
        return [EMBEDDED]
    names = [*engine.summarizers]
    is_last_resort = engine.settings.on_failure == "degrade" and EMBEDDED not in names
    if is_last_resort and _must_become_smaller(leaving):
        names.append(EMBEDDED)
    return names


def _only_shortens_notes(leaving: Leaving) -> bool:
    """Tell whether nothing leaves, so that there is nothing for a summariser to read."""
    is_all_noted = not leaving.evicted_messages and not leaving.texts.foreign_summaries
    return leaving.engine.settings.notes and is_all_noted


def _must_become_smaller(leaving: Leaving) -> bool:
    """Tell whether a history cannot stay as it is until a summariser succeeds."""
    plan = leaving.plan
    if plan.budget is not None:
        return plan.tokens > plan.budget
    # Without a window only the trigger is a limit. The history must be twice as large.
    history = leaving.view.history
    half = divide_size(history.size_for_trigger(leaving.view.size), 2.0)
    return history.engine.policy.fired(half, None) is not None


def _is_due_by_window_alone(leaving: Leaving) -> bool:
    """Tell whether only the window asks for a compaction, so that no model is paid for it.

    A trigger in tokens says how often a model is asked. The window may be full before: with a
    trigger at 100,000 tokens, a system prompt of 60,000 and a window of 128,000, that is at
    messages of 68,000. Then the notes on what leaves are made without a model. A model is asked
    again, and reads these notes, when all that was added since its last summary reaches the
    trigger.

    This concerns only agents, which have a count of their own for the trigger. If the trigger
    counts what the window counts, it would never fire first, so a model is asked each time.
    """
    history = leaving.view.history
    engine = history.engine
    if leaving.plan.cause.kind != "window" or history.limit is None:
        return False
    if engine.preview is not None or not engine.settings.notes:
        return False  # a person reads, or a model writes, the whole summary
    size = history.trigger_size
    if size is None:
        return False  # the trigger counts as the window does
    limit = history.limit
    thresholds = [clause.threshold(limit) for clause in engine.policy.trigger]
    if not any(threshold is not None and threshold <= limit for threshold in thresholds):
        return False  # no trigger counts tokens, or none can be reached in this window
    not_summarised = _size_since_model_summary(leaving, size)
    return engine.policy.fired(not_summarised, limit) is None


def _size_since_model_summary(leaving: Leaving, size: Size) -> Size:
    """Return the size of all that no model has summarised, as the trigger counts.

    `size` is the size of the view, in the same count.
    """
    view = leaving.view
    evicted = evicted_since_model(view.head)
    # The trigger may have another count.
    trigger_share = size.tokens / max(1, view.size.tokens)
    tokens = size.tokens + int(evicted.tokens * trigger_share)
    return Size(tokens, size.messages + evicted.messages)


async def _draft_from(
    leaving: Leaving, by: str, request: SummaryRequest | None, attempts: Attempts
) -> Draft:
    """Ask one summariser for its answer, and make a draft with notes of it.

    Without a request, the notes are made of the messages alone, and nobody is asked.

    Raises:
        SummaryError: that failed.
        RedactionError: secrets could not be taken out of the answer.
    """
    if request is None:
        return notes_without_model(leaving)
    try:
        answer = await _call_summarizer(leaving, by, request)
    except SummaryError as error:
        attempts.add_cost(by, getattr(error, "cost", Cost()))
        raise
    attempts.add_cost(by, answer.cost)
    text = await leaving.clean(answer.text)
    cost = name_cost(by, answer.cost)
    draft = Draft(text, by, answer.read, cost, request_kind=answer.request_kind, cut=answer.cut)
    return merge_answer(leaving, draft, request, checked=answer.checked)


async def _call_summarizer(leaving: Leaving, by: str, request: SummaryRequest) -> Summary:
    """Return the answer of a summariser, by its own steps if it has some.

    Raises:
        SummaryError: it failed, in whatever way.
    """
    engine = leaving.engine
    steps = engine.traits_of(by).summarize_flow
    timeout = engine.settings.summarizer_timeout
    try:
        if steps is not None:  # it limits the time of each of its calls, and reports them
            return await steps(request)
        return await _call_within_time(engine.summarizers[by], by, request, timeout)
    except Exception as error:
        if isinstance(error, (SummaryError, RedactionError)) or is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {safe_text(error)}") from error


async def _call_within_time(
    summarizer: Any, by: str, request: SummaryRequest, timeout: float | None
) -> Summary:
    """Call a summariser of the caller's own within its time."""
    ask = partial(summarizer.summarize, request)
    ask_on_loop = partial(summarizer.asummarize, request)
    with observing("model_call", name=by, summarizer=by) as observation:
        spent = Cost(1).asked_of(by)
        try:
            answer = await call_either_way(ask, ask_on_loop, timeout)
            if not isinstance(answer, Summary):
                observation.add(outcome="rejected")
                raise SummaryError(f"{by} must answer with a Summary, not with {answer!r:.200}")
            if answer.cost.calls:
                spent = name_cost(by, answer.cost)
            return answer
        except StepTimeout as error:
            observation.add(outcome="timeout")
            too_late = f"{by} did not answer within {timeout:g} seconds"
            raise SummarizerTimeout(too_late) from error
        finally:
            # If it uses one of our summarisers, those calls have events of their own.
            cost = Cost() if observation.spent.calls else spent
            observation.add(cost=cost, name=", ".join(spent.models) or by)
