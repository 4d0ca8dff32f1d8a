"""Swap prepared notes in at the trigger; continue, or wait, if they are not finished.

A draft is used only if the history that it was made from is the beginning of this one, and the
same notes are in force.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from conspectus._core.choices import EMBEDDED
from conspectus._core.given_cut import only_clipped, plan_given
from conspectus._core.items import Compact, Keep, Plan
from conspectus._core.records import Draft
from conspectus.bridge import pause
from conspectus.compactor.memory import LONGEST_LOOK, LOOK_AGAIN
from conspectus.compactor.preparing import (
    PreparationMark,
    begin_flow,
    find_mark_flow,
    jobs_of,
    leaving_of,
    notes_in_force,
    save_mark_flow,
    unfit,
    written_since,
)
from conspectus.compactor.result import Done, Failed
from conspectus.compactor.session import Session
from conspectus.compactor.view import History, with_floors
from conspectus.errors import ArchiveError
from conspectus.observe import emit

LOOK_THERE = 0.2
"""Seconds between two reads of a draft that another process is writing."""

GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The decision about a history.

    Attributes:
        known: the mark of the draft.
        topped: later messages leave as well.
        goes_on: the agent continues while its notes are being prepared.
        order: the summarisers to use; None for the usual ones.
        waited: seconds that the agent waited.
        view: the history that was planned for, if it was measured anew.
    """

    plan: Plan
    draft: Draft | None = None
    known: PreparationMark | None = None
    topped: bool = False
    goes_on: bool = False
    order: tuple[str, ...] | None = None
    waited: float = 0.0
    view: History | None = None


async def chosen_flow(session: Session, history: History, decided: Plan) -> Chosen:
    """Decide about a history whose notes are prepared; `decided` is the plan without them."""
    usual = Chosen(decided)
    if not isinstance(decided, Compact):
        jobs, size = jobs_of(session), session.asked or history.size
        near = isinstance(decided, Keep) and session.nears(size, jobs.setting)
        if near and jobs.wanted(session.scope, history.head_id or "", size):
            await begin_flow(session, history)
        return usual
    if not decided.summary_tokens:
        return usual
    found = await _ready(session, history, decided)
    if isinstance(found, Chosen):
        return found
    if jobs_of(session).closed:
        return usual
    over, failed, begun = session.over(history), _has_failed(session, history), time.monotonic()
    short = _shown_short(session, history, decided, found) if over and not failed else None
    if not failed and (not over or short is not None):
        if found is None or not found.under_way:
            (await begin_flow(session, history)).due = True
        emit("preparation", session.scope, name="went_on")
        if short is not None:
            return Chosen(short[1], view=short[0], goes_on=True)
        return Chosen(Keep(GOES_ON, history.size.tokens), goes_on=True)
    expired = await _waited(session, history, found)
    waited = time.monotonic() - begun
    found = await _ready(session, history, decided)
    if isinstance(found, Chosen):
        return replace(found, waited=waited)
    if waited >= LOOK_AGAIN:
        emit("preparation", session.scope, name="waited", waited=waited)
    if expired and session.engine.on_failure == "degrade":
        # Its time is over: it is not asked for as long once more.
        return replace(usual, order=(EMBEDDED,), waited=waited)
    return replace(usual, waited=waited)


async def settled_flow(
    session: Session, history: History, chosen: Chosen, outcome: Done | Failed
) -> None:
    """Report a draft that was put in force, and drop one that was refused."""
    if chosen.known is None or chosen.draft is None:
        return
    if isinstance(outcome, Failed):
        if not isinstance(outcome.error, ArchiveError):
            await _drop(session, history, chosen.known, "it was refused")
        return
    jobs_of(session).forget(session.scope)
    step, count = "topped_up" if chosen.topped else "swapped_in", len(chosen.known.covers)
    emit("preparation", session.scope, name=step, waited=chosen.waited, messages=count)


async def _ready(
    session: Session, history: History, decided: Compact
) -> Chosen | PreparationMark | None:
    """Return the plan that puts a finished draft in force.

    For an unfinished draft return its mark, and for none None. Drop a draft that does not fit.
    """
    known = await find_mark_flow(session, history)
    if known is None:
        return None
    if why := unfit(session, known, history):
        await _drop(session, history, known, why)
        return None
    draft = await session.anchor.find_draft_flow(known.plan)
    if draft is None:
        return known
    leaving = leaving_of(known, history)
    given = plan_given(
        history.items,
        session.engine.policy,
        session.room,
        decided,
        leaving,
        session.message_size(draft.text),
        asked=session.asked,
        clip=session.engine.where is not None,
        words=session.engine.archive is not None,
        written=written_since(known, history),
    )
    if given is not None:
        return Chosen(given, draft, known)
    if set(leaving) <= set(decided.evicted):
        return Chosen(decided, draft, known, topped=True)
    await _drop(session, history, known, "less may leave now than it stands for")
    return None


def _shown_short(
    session: Session, history: History, decided: Compact, known: PreparationMark | None
) -> tuple[History, Compact] | None:
    """Plan to show messages short, so that the agent can continue.

    Return the history with the least sizes of its messages, and the plan, or None if it does not
    fit.
    """
    engine, room = session.engine, session.room
    if engine.where is None or room is None:
        return None
    history = with_floors(history, engine, engine.policy.clip_to)
    leaving = () if known is None else leaving_of(known, history)
    words, written = engine.archive is not None, written_since(known, history)
    items, policy = history.items, engine.policy
    plan = only_clipped(items, policy, room, decided, leaving, words=words, written=written)
    return None if plan is None else (history, plan)


def _has_failed(session: Session, history: History) -> bool:
    job = jobs_of(session).latest(session.scope)
    if job is None or job.notes != notes_in_force(history):
        return False
    return job.outcome == "failed" or (job.due and job.outcome == "nothing")


async def _waited(session: Session, history: History, known: PreparationMark | None) -> bool:
    """Wait for a draft within a summariser's time; return True if that has run out."""
    until = time.monotonic() + (session.engine.timeout or LONGEST_LOOK)
    job = jobs_of(session).latest(session.scope)
    if job is not None and job.notes in (None, notes_in_force(history)):
        while job.under_way:
            if time.monotonic() > until:
                return True
            if not (await job.looked_at()):
                return False
        if job.outcome != "elsewhere":
            return False
        known = await find_mark_flow(session, history)
    while known is not None and known.under_way:
        if (await session.anchor.find_draft_flow(known.plan)) is not None:
            return False
        if time.monotonic() > until:
            return True
        await pause(LOOK_THERE)
        known = await find_mark_flow(session, history)
    return False


async def _drop(session: Session, history: History, known: PreparationMark, why: str) -> None:
    jobs_of(session).forget(session.scope)
    await save_mark_flow(session, history, None)
    facts = {"reason": why, "messages": len(known.covers)}
    emit("preparation", session.scope, name="dropped", outcome="dropped", **facts)
