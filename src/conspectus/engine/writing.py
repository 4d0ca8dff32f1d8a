"""Write the summary of one compaction: ask summarisers in turn, put the answer into the notes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.archive import Scope
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
from conspectus.model.provider_errors import is_way_out
from conspectus.observe import log, observing

RETRY_AFTER = (0.5, 2.0)
"""Seconds before the second and the third try of one summariser, unless its provider asks for
more."""

LONGEST_WAIT = 20.0
"""Most seconds to wait on a provider's request; if it asks for more, its summariser is not tried
again."""

LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two looks at a draft that another worker is writing, and until its task is taken
to be lost."""

_WRITING: dict[tuple[int, Scope, str], tuple[int, object]] = {}
"""The drafts that workers of this process are writing, each with the thread that it needs."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WRITING.clear)


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
    thread, start, paid = material.thread, time.monotonic(), Cost()
    # By this name of all that would change it, any process finds the draft.
    identity = thread.engine.identity(material.focus)
    named = [material.history.head_id, material.keys, material.asked, identity, material.standing]
    plan = hash_of(named)
    async with alone(thread, plan):
        draft = material.ready or await thread.find_draft(plan)
        if draft is not None:
            draft, wrong = checked(material, draft)
            if not wrong:
                material.spent = Cost() if material.ready is None else draft.cost
                return draft, True
            paid = draft.cost
        draft = await _written(material)
        # Tries that failed were paid for too; the record is all that says so.
        seconds = round(time.monotonic() - start, 3)
        draft = replace(draft, cost=paid + material.spent, seconds=seconds)
        await thread.save_draft(plan, draft)
    return draft, False


async def _written(material: Material) -> Draft:
    """Ask each summariser in turn, up to three times where its failure may pass."""
    thread, engine, plan = material.thread, material.thread.engine, material.plan
    over = plan.budget is not None and plan.tokens > plan.budget
    resort = {EMBEDDED} if over and engine.on_failure == "degrade" else set[str]()
    error = SummaryError("no summariser was given")
    try:
        for by in (*engine.order, *(resort - {*engine.order})):
            last = engine.memory.of(thread.scope).last_request
            rest = engine.memory.rests(by)
            for wait in (*RETRY_AFTER, None):
                cached = False
                try:
                    with observing("step", name="summarize", by=by):
                        if rest:
                            raise _resting(by, rest)
                        request = request_of(material, by)
                        if engine.cached and (last is not None or not material.failures):
                            request = riding(material, by, request, last)
                        cached, last = request.last is not None, None
                        draft = await _answer(material, by, request)
                        draft = in_notes(material, by, draft, request)
                    draft, wrong = checked(material, draft)
                    if not wrong:
                        material.spent += draft.cost
                        return draft
                    raise refused(by, draft, wrong)
                except SummaryError as failure:
                    error = failure
                material.spent += _cost_by(by, getattr(error, "cost", Cost()))
                reason, asked = str(error), _pause_asked(error)
                material.failures += (reason if f"{by} " in reason else f"{by}: {reason}",)
                await tell(material, "attempt_failed", by=by, reason=reason)
                if wait is None or not (cached or error.transient) or asked > LONGEST_WAIT:
                    break
                if error.transient or asked:
                    await pause(max(wait, asked))
                    rest = 0.0  # the pause that was asked for here is over
        raise error
    finally:
        del error  # it holds this frame


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


@asynccontextmanager
async def alone(thread: Thread, name: str) -> AsyncIterator[None]:
    """Wait until no other worker of this process writes a draft of this name.

    Nobody waits for work that needs the thread which would wait.
    """
    engine, until = thread.engine, time.monotonic() + LONGEST_LOOK
    key = (id(engine.memory if engine.archive is None else engine.archive), thread.scope, name)
    mine = (home(), object())

    def look(needs: int) -> bool:
        if needs == home():
            return False
        time.sleep(LOOK_AGAIN)
        return True

    while (writer := _WRITING.setdefault(key, mine)) is not mine and time.monotonic() < until:
        if not await io(partial(look, writer[0]), partial(asyncio.sleep, LOOK_AGAIN, True)):
            break
    try:
        yield
    finally:
        if _WRITING.get(key) is mine:
            del _WRITING[key]


async def _answer(material: Material, by: str, request: SummaryRequest) -> Draft:
    """Ask a summariser, by its own steps where it has some, else by one call, within its time.

    Raises:
        SummaryError: it failed.
        RedactionError: nothing is left of its answer.
    """
    engine = material.thread.engine
    summarizer = engine.summarizers[by]
    if isinstance(summarizer, EmbeddedSummarizer):  # the notes are written from messages alone
        return Draft("", by, tuple(entry.key for entry in request.entries))
    steps = getattr(summarizer, "summarize_flow", None)
    try:
        if steps is not None:  # it sets a time for each of its calls, and reports them
            answer = await steps(request)
        else:
            answer = await _call(summarizer, by, request, engine.timeout)
    except SummaryError as error:
        if asked := _pause_asked(error):
            engine.memory.rest(by, asked)
        raise
    except Exception as error:
        if isinstance(error, RedactionError) or is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {error}") from error
    text = await clean_summary(material, answer.text)
    return Draft(text, by, answer.read, _cost_by(by, answer.cost), request=answer.request)


async def _call(summarizer: Any, by: str, request: SummaryRequest, timeout: float | None) -> Any:
    """Call a summariser of the caller's own within its time; return its `Summary`."""
    ask, aask = partial(summarizer.summarize, request), partial(summarizer.asummarize, request)
    with observing("model_call", name=by, summarizer=by) as seen:
        spent = Cost(1).asked_of(by)
        try:
            answer = await io(ask, aask, timeout)
            parts = (("text", str), ("read", tuple), ("cost", Cost), ("request", str))
            if not isinstance(answer, Summary) or not all(
                isinstance(getattr(answer, name), kind) for name, kind in parts
            ):
                seen.add(outcome="rejected")
                raise SummaryError(
                    f"{by} must answer with a Summary(text, read: tuple of keys, cost), and "
                    f"answered with {answer!r:.200}"
                )
            spent = _cost_by(by, answer.cost) if answer.cost.calls else spent
            return answer
        except StepTimeout as error:
            seen.add(outcome="timeout")
            late = f"{by} did not answer within {timeout:g} seconds"
            raise SummarizerTimeout(late) from error
        finally:  # the calls of a summariser of ours that it uses have events of their own
            seen.add(cost=Cost() if seen.calls else spent, name=", ".join(spent.models) or by)


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
