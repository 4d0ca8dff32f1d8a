"""The draft of a summary: found, or written by summarisers that are asked in turn, and checked."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from conspectus.bridge import StepTimeout, call_either_way, pause
from conspectus.core.items import Size
from conspectus.core.plan import divide_size
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Cost, Draft
from conspectus.engine.attempts import Attempts, attach_attempts, attempts_of, name_cost
from conspectus.engine.cached_request import after_last_request
from conspectus.engine.draft_lock import draft_lock
from conspectus.engine.leaving import DAMAGED_NOTES, Leaving
from conspectus.engine.measuring import evicted_since_model
from conspectus.engine.summary_notes import (
    merge_answer,
    notes_by_rules,
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
"""Seconds before the second and the third try of one summariser."""

LONGEST_WAIT = 20.0
"""Seconds before another try on its provider's request at most; if that asks for more, the
summariser is not tried again."""


@dataclass(frozen=True, slots=True)
class WrittenDraft:
    """A draft that has passed its checks."""

    draft: Draft
    attempts: Attempts = field(default_factory=Attempts)
    found: bool = False  # it was there already, so a person may have read it


async def find_or_write(leaving: Leaving) -> WrittenDraft:
    """Take the draft of this plan if there is one; else ask each summariser in turn.

    A plan that only clips messages keeps the summary that there is. An error says what was spent:
    see `attempts_of`.

    Raises:
        SummaryError: no summariser succeeded.
        RedactionError: secrets could not be taken out of what a summariser wrote.
    """
    history = leaving.view.history
    engine = history.engine
    prepared = leaving.decision.draft
    if not leaving.plan.makes_summary:
        return WrittenDraft(Draft(leaving.previous_summary, by="", read=()))
    is_never_looked_for_again = (
        engine.preview is None and prepared is None and not history.draft_only
    )
    if is_never_looked_for_again and [*engine.summarizers] == [EMBEDDED]:
        return await _write(leaving)  # it is as cheap to write as to look for
    name = _name_of(leaving)
    async with draft_lock(history, name):
        attempts = Attempts()
        draft = prepared or await history.store.find_draft(name)
        if draft is not None:
            usable = _usable(leaving, draft)
            if usable is not None:
                # A draft that was found was paid for by whoever saved it.
                spent = Cost() if prepared is None else draft.cost
                return WrittenDraft(usable, Attempts(spent), found=True)
            if prepared is not None:
                attempts = attempts.with_cost(prepared.cost)  # it was paid for all the same
        started = time.monotonic()
        written = await _write(leaving, attempts)
        # Tries that failed were paid for too; the record is all that says so.
        seconds = round(time.monotonic() - started, 3)
        draft = replace(written.draft, cost=written.attempts.spent, seconds=seconds)
        # What the embedded one writes is written again as cheaply, but a person may approve it.
        if draft.by != EMBEDDED or draft.cost.calls or engine.preview is not None:
            with attach_attempts(written.attempts):
                await history.store.save_draft(name, draft)
    return replace(written, draft=draft)


def _name_of(leaving: Leaving) -> str:
    """Name a draft by all that would change it, so that any process finds it."""
    identity = leaving.engine.summary_identity(leaving.focus)
    return hash_of(
        [
            leaving.view.head_id,
            leaving.keys,
            leaving.sizes.target,
            identity,
            leaving.previous_summary,
        ]
    )


def hash_of(parts: Sequence[Any]) -> str:
    """Hash plain data, the same in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _usable(leaving: Leaving, draft: Draft) -> Draft | None:
    """Return a finished draft as it can be used now, in less room if need be; None if it cannot."""
    limit = leaving.sizes.hard_limit
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
    sizes = leaving.sizes
    with observing("step", name="check", by=draft.by) as observation:
        text = framed_body(draft.body)
        tokens = leaving.summary_size(text)
        replaced = sizes.most_for(draft.by)
        reasons = rejection_reasons(
            draft, leaving.evicted, tokens=tokens, replaced=replaced, limit=sizes.hard_limit
        )
        outcome = "refused" if reasons else "ok"
        observation.add(problems=len(reasons), tokens_after=tokens, outcome=outcome)
    if reasons:
        raise rejection(draft, reasons)
    return replace(draft, body=text, tokens=tokens)


# Summarisers, asked in turn


async def _write(leaving: Leaving, attempts: Attempts | None = None) -> WrittenDraft:
    """Ask each summariser in turn, up to three times where its failure may pass.

    `attempts` are those before.
    """
    attempts = attempts or Attempts()
    error = SummaryError("no summariser was given")
    try:
        for by in _summarizers_in_turn(leaving):
            smallest = request_for(leaving, by) if by != EMBEDDED else None
            cached = _cached_request(leaving, by, smallest, attempts)
            # A failed cached request is followed by the smallest one.
            for request, wait in zip(
                (cached, smallest, smallest), (*RETRY_AFTER, None), strict=True
            ):
                try:
                    with observing("step", name="summarize", by=by):
                        draft = await _ask(leaving, by, request)
                    draft = check_draft(leaving, draft)
                    return WrittenDraft(draft, attempts.with_cost(draft.cost))
                except SummaryError as failure:
                    error = failure
                except RedactionError as failure:
                    failure.attempts = attempts.with_cost(attempts_of(failure).spent)
                    raise
                attempts = attempts.with_failure(by, error)
                await leaving.engine.notify(
                    leaving.view.history.scope,
                    "attempt_failed",
                    leaving.redaction,
                    by=by,
                    reason=str(error),
                )
                if wait is None or not _may_be_tried_again(error, request):
                    break
                if error.transient or error.retry_after:
                    await pause(max(wait, error.retry_after or 0.0))
        error.attempts = attempts
        raise error
    finally:
        del error  # its traceback holds this frame: a cycle


def _cached_request(
    leaving: Leaving, by: str, smallest: SummaryRequest | None, attempts: Attempts
) -> SummaryRequest | None:
    """Return the request behind the agent's last one, where that may be; else the smallest."""
    last_request = leaving.view.history.memory.last_request
    if smallest is None or not leaving.engine.cached:
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
    # One that was too late would be so again.
    return error.transient and not isinstance(error, SummarizerTimeout)


def _summarizers_in_turn(leaving: Leaving) -> list[str]:
    """Return the names of the summarisers to ask, the embedded one as the last resort."""
    engine = leaving.engine
    if window_alone_asks(leaving) or _only_shortens_notes(leaving):
        return [EMBEDDED]
    names = [*engine.summarizers]
    is_last_resort = engine.settings.on_failure == "degrade" and EMBEDDED not in names
    if is_last_resort and _must_become_smaller(leaving):
        names.append(EMBEDDED)
    return names


def _only_shortens_notes(leaving: Leaving) -> bool:
    """Tell whether nothing leaves, so that there is nothing for a summariser to read."""
    is_all_noted = not leaving.evicted and not leaving.foreign_summaries
    return leaving.engine.settings.notes and is_all_noted


def _must_become_smaller(leaving: Leaving) -> bool:
    """Tell whether a history cannot stay as it is until a summariser succeeds."""
    plan = leaving.plan
    if plan.budget is not None:
        return plan.tokens > plan.budget
    # The trigger alone bounds a history whose window nobody knows: even half of it would be due.
    history = leaving.view.history
    half = divide_size(history.trigger_size or leaving.view.size, 2.0)
    return history.engine.policy.fired(half, None) is not None


def window_alone_asks(leaving: Leaving) -> bool:
    """Tell whether a compaction is due by the window alone, so that no model is asked for it.

    With a trigger of 100,000 tokens, a system prompt of 60,000 and a window of 128,000, messages of
    68,000 fill the window before the trigger has fired. A trigger in tokens says how often a model
    is asked, so the notes on what leaves are then made by rules. A model is asked again, and reads
    these notes, once all that has come since its last summary reaches the trigger.

    That is so where the trigger has a count of its own (`history.trigger_size`). Where it counts
    what the window counts, no compaction would ever be the trigger's; a model is asked for each.
    """
    history = leaving.view.history
    engine = history.engine
    is_asked_for = leaving.plan.cause != "window" or engine.preview is not None
    if is_asked_for or not engine.settings.notes or history.limit is None:
        return False
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

    `size` is the size of the view, counted likewise.
    """
    view = leaving.view
    evicted = evicted_since_model(view.head)
    # The trigger may count in its own way.
    trigger_share = size.tokens / max(1, view.size.tokens)
    tokens = size.tokens + int(evicted.tokens * trigger_share)
    return Size(tokens, size.messages + evicted.messages)


async def _ask(leaving: Leaving, by: str, request: SummaryRequest | None) -> Draft:
    """Have one summariser answer, by its own steps where it has some, and make notes of it.

    Without a request, the notes are made of the messages alone.

    Raises:
        SummaryError: that failed.
        RedactionError: secrets could not be taken out of the answer.
    """
    if request is None:
        return notes_by_rules(leaving)
    engine = leaving.engine
    summarizer = engine.summarizers[by]
    steps = engine.traits_of(by).summarize_flow
    try:
        if steps is not None:  # it sets a time for each of its calls, and reports them
            answer = await steps(request)
        else:
            answer = await _call(summarizer, by, request, engine.settings.summarizer_timeout)
    except Exception as error:
        if isinstance(error, (SummaryError, RedactionError)) or is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {safe_text(error)}") from error
    cost = name_cost(by, answer.cost)
    with attach_attempts(Attempts(cost)):  # the call is paid for, whatever is left of its answer
        text = await leaving.clean(answer.text)
    draft = Draft(text, by, answer.read, cost, request_kind=answer.request_kind, cut=answer.cut)
    return merge_answer(leaving, draft, request)


async def _call(summarizer: Any, by: str, request: SummaryRequest, timeout: float | None) -> Any:
    """Call a summariser of the caller's own within its time; return its `Summary`."""
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
            # The calls of a summariser of ours that it uses have events of their own.
            cost = Cost() if observation.spent.calls else spent
            observation.add(cost=cost, name=", ".join(spent.models) or by)
