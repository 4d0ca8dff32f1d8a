"""Write the summary of one compaction: ask summarisers in turn, put the answer into the notes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.bridge import StepTimeout, home, io, pause
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Cost, Draft
from conspectus.engine.drafts import checked, clean_summary, in_notes, refused, request_of
from conspectus.engine.material import Material
from conspectus.engine.riding import riding
from conspectus.engine.thread import Thread
from conspectus.errors import (
    ArchiveUnconfirmed,
    RedactionError,
    SummarizerTimeout,
    SummaryError,
)
from conspectus.model.base import EmbeddedSummarizer, Summary, SummaryRequest
from conspectus.model.calls import outcome_of
from conspectus.model.provider_errors import is_way_out
from conspectus.observe import Observation, emit, log, observing
from conspectus.observe.events import ended_by

RETRY_AFTER = (0.5, 2.0)
"""Seconds before the second and the third try of one summariser, unless its provider asks for
more."""

LONGEST_WAIT = 20.0
"""Most seconds to wait on a provider's request; if it asks for more, its summariser is not tried
again."""

LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two checks of a summary that another worker is writing, and until its task is
taken to be lost."""


async def write(material: Material) -> tuple[Draft, bool]:
    """Take the draft of the plan, if there is one; else ask each summariser in turn.

    What was spent and what failed is added to the material.

    Returns:
        The draft, and whether it was there already.

    Raises:
        SummaryError: no summariser succeeded.
        ArchiveError: a draft could not be read or stored.
        RedactionError: the redactor failed.
    """
    thread, engine = material.thread, material.thread.engine
    start, identity, budget = (
        time.monotonic(),
        engine.identity(material.focus),
        material.plan.budget,
    )
    # By this name of all that would change it, any process finds the draft.
    named = [material.history.head_id, material.keys, material.asked, identity, material.standing]
    plan, order = hash_of(named), engine.order
    if budget is not None and material.plan.tokens > budget and engine.on_failure == "degrade":
        order = (*order, *({EMBEDDED} - {*order}))  # the last resort where the window is full
    ready = material.ready
    mine = ready is None and await _claimed(thread, plan)
    error: SummaryError | None = None
    try:
        draft, paid = ready or await thread.find_draft(plan), Cost()
        if draft is not None:
            draft, wrong = checked(material, draft)
            if not wrong:
                material.spent = Cost() if ready is None else draft.cost
                return draft, True
            paid = draft.cost
        for by in order:
            last = engine.memory.of(thread.scope).last_request
            for tries, wait in enumerate((*RETRY_AFTER, None)):
                asked, cached, transient = 0.0, False, False
                try:
                    with observing("step", name="summarize", by=by) as seen:
                        # After a pause asked for here, which has waited, it is tried again.
                        if not tries and (rest := engine.memory.rests(by)):
                            raise _resting(by, rest)
                        request = request_of(material, by)
                        if not material.failures or last is not None:
                            request = riding(material, by, request, last)
                        cached, last = request.last is not None, None
                        draft = await _answer(material, by, request, seen)
                        draft = in_notes(material, by, draft, request)
                    material.spent += draft.cost
                    draft, wrong = checked(material, draft)
                    if not wrong:
                        # Tries that failed were paid for too; the record is all that says so.
                        seconds = round(time.monotonic() - start, 3)
                        draft = replace(draft, cost=paid + material.spent, seconds=seconds)
                        await thread.save_draft(plan, draft)
                        return draft, False
                    error = refused(by, draft, wrong)
                except SummaryError as failure:
                    error, transient, asked = failure, failure.transient, _pause_asked(failure)
                    material.spent += _cost_by(by, getattr(failure, "cost", Cost()))
                reason = str(error)
                material.failures += (reason if f"{by} " in reason else f"{by}: {reason}",)
                await tell(material, "attempt_failed", by=by, reason=reason)
                if wait is None or not (cached or transient) or asked > LONGEST_WAIT:
                    break
                if transient or asked:
                    await pause(max(wait, asked))
        raise error or SummaryError("no summariser was given")
    finally:
        if mine:
            engine.memory.writers.pop((thread.scope, plan), None)
        error = None  # it holds this frame


async def confirm(material: Material) -> None:
    """Archive what leaves or is shown short, and read it back: a store may forget.

    Raises:
        ArchiveError: the archive has not confirmed it.
    """
    archive, scope = material.thread.engine.archive, material.thread.scope
    originals = list(material.originals.values())
    if archive is None or not originals:
        return
    await archive.flow(archive.put, scope, originals)
    if missing := await archive.flow(archive.missing, scope, originals):
        raise ArchiveUnconfirmed(
            f"the store took {len(originals)} messages and did not give {len(missing)} of them "
            "back; check its disk, its quota and its time to live"
        )


def hash_of(parts: Sequence[Any]) -> str:
    """Hash plain data, the same in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


async def _claimed(thread: Thread, plan: str) -> bool:
    """Claim the summary of a plan for this worker, who must then take the claim back.

    If another worker of this process has it, wait and return False: its draft is there then, or it
    has failed. Nobody waits for a thread that has ended, or that waits for this one.
    """
    memory, name = thread.engine.memory, (thread.scope, plan)
    until = time.monotonic() + LONGEST_LOOK
    with memory.lock:
        if name not in memory.writers:
            memory.writers[name] = home()
            return True
    while (owner := memory.writers.get(name)) is not None and time.monotonic() < until:
        lives = any(one.ident == owner for one in threading.enumerate())

        def wait(owner: int = owner, lives: bool = lives) -> bool:
            if owner == home() or not lives:
                return False
            time.sleep(LOOK_AGAIN)
            return True

        if not await io(wait, partial(asyncio.sleep, LOOK_AGAIN, lives)):
            break
    return False


async def _answer(material: Material, by: str, request: SummaryRequest, seen: Observation) -> Draft:
    """Ask a summariser, by its own steps where it has some, else by one call, within its time.

    Raises:
        SummaryError: it failed.
        RedactionError: nothing is left of its answer.
    """
    engine = material.thread.engine
    summarizer, answer = engine.summarizers[by], None
    if isinstance(summarizer, EmbeddedSummarizer):  # the notes are written from messages alone
        return Draft("", by, tuple(entry.key for entry in request.entries))
    start, facts = time.perf_counter(), dict[str, Any]()
    own = getattr(summarizer, "summarize_flow", None)  # it sets a time for each of its own calls
    try:
        if own is not None:
            answer = await own(request)
        else:
            call = partial(summarizer.summarize, request)
            answer = await io(call, partial(summarizer.asummarize, request), engine.timeout)
        if not isinstance(answer, Summary) or not (
            isinstance(answer.text, str)
            and isinstance(answer.read, tuple)
            and isinstance(answer.cost, Cost)
            and isinstance(answer.request, str)
        ):
            facts = {"outcome": "rejected"}
            raise SummaryError(
                f"{by} must answer with a Summary(text, read: tuple of keys, cost), and "
                f"answered with {answer!r:.200}"
            )
        cost = _cost_by(by, answer.cost)
        draft = Draft(answer.text, by, answer.read, cost, request=answer.request)
        facts = {"cost": cost} if cost.calls else {}
        if seen and own is None and not cost.calls:
            read = sum(request.count(entry.reading) for entry in request.entries)
            sent, got = read + request.count(request.notes), request.count(answer.text)
            facts["cost"] = Cost(1, sent, got, estimated_calls=1).asked_of(by)
    except StepTimeout as error:
        facts = {"outcome": "timeout"}
        late = f"{by} did not answer within {engine.timeout:g} seconds"
        raise SummarizerTimeout(late) from error
    except SummaryError as error:
        facts = facts or {**ended_by(error), "outcome": outcome_of(error)}
        if asked := _pause_asked(error):
            engine.memory.rest(by, asked)
        raise
    except BaseException as error:
        facts = ended_by(error)
        if not isinstance(error, Exception) or isinstance(error, RedactionError):
            raise
        if is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {error}") from error
    finally:
        # A summariser that uses one of ours has events of its own.
        if seen and own is None and not seen.calls:
            spent = facts.pop("cost", None) or Cost(1).asked_of(by)
            name, seconds = ", ".join(spent.models) or by, time.perf_counter() - start
            emit("model_call", name=name, summarizer=by, seconds=seconds, cost=spent, **facts)
    return replace(draft, text=await clean_summary(material, draft.text))


def _pause_asked(error: SummaryError) -> float:
    """Return the seconds that a provider asks to wait, or 0."""
    seconds: object = error.retry_after
    return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else 0.0


def _resting(by: str, seconds: float) -> SummaryError:
    """Make the error of a summariser whose provider has asked for a pause."""
    error = SummaryError(
        f"{by} is not asked: its provider wants to be left alone for another "
        f"{math.ceil(seconds)} s; try again then, or give a fallback"
    )
    error.transient, error.retry_after = True, seconds
    return error


def _cost_by(by: str, cost: Cost) -> Cost:
    """Name the summariser in a cost that names no model."""
    return cost.asked_of(by) if cost.calls and not cost.models else cost


async def tell(material: Material, event: str, *, clear: bool = False, **data: Any) -> None:
    """Call the user's `on_event`, without secrets; if it fails, log that and go on."""
    engine, scope = material.thread.engine, material.thread.scope
    if not clear:
        words = {key: value for key, value in data.items() if isinstance(value, str)}
        clean = await engine.redacted(list(words.values()), material.redaction)
        data |= dict(zip(words, clean, strict=True))
    data |= {"thread_id": scope.thread, "session": scope.session}
    log("compaction_progress", "%s %s", event, data, level=10)
    try:
        if engine.on_event is not None:
            engine.on_event(event, data)
    except Exception:
        log("on_event_failed", "on_event failed at %r", event, exc_info=True)
