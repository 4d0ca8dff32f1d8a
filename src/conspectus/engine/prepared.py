"""Prepare the next notes in the background, and swap them in at the trigger.

A preparation archives originals and saves a draft under the name of the notes that it follows; it
puts nothing in force. At the trigger the draft is used if all that it read still stands in the
history and may leave. Two processes may prepare at once: the draft saved last is found, and the
commit decides, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from conspectus.bridge import aside
from conspectus.core.items import Compact, Keep, Plan
from conspectus.core.ladder import CLIP_TO
from conspectus.core.policy import EMBEDDED
from conspectus.core.prepared_cut import may_leave, only_clipped, plan_draft
from conspectus.core.records import Draft
from conspectus.engine.background import Preparations
from conspectus.engine.checking import hash_of
from conspectus.engine.compaction import Compaction
from conspectus.engine.memory import LONGEST_LOOK, LOOK_AGAIN
from conspectus.engine.preparation import Preparation
from conspectus.engine.redacting import redacted_texts_flow
from conspectus.engine.result import Done, Failed
from conspectus.engine.session import Session
from conspectus.engine.view import History, with_floors
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.observe import emit, heard_by, observing

GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"

NOTHING = Draft("", by="", read=())
"""Saved in the place of a draft that must not be used again."""

CHANGED = "the history has gone back, or was changed"
"""Why a draft is of no use to a history."""

Given = History | Callable[[Session], Awaitable[History]]
"""A history that is read and counted, or the way to read it in the background."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The decision about a history.

    Attributes:
        draft: the prepared draft that is put in force; None for none.
        topped: later messages leave as well.
        goes_on: the agent continues while its notes are being prepared.
        order: the summarisers to use; None for the usual ones.
        waited: seconds that the agent waited.
        view: the history that was planned for, if it was measured anew.
    """

    plan: Plan
    draft: Draft | None = None
    topped: bool = False
    goes_on: bool = False
    order: tuple[str, ...] | None = None
    waited: float = 0.0
    view: History | None = None


# Before the trigger


async def begin_flow(session: Session, given: Given, head: str = "") -> Preparation:
    """Prepare a session's next notes in the background; `head` is the record in force, if known."""
    size = session.asked
    if isinstance(given, History):
        head, size = given.head_id or "", size or given.size
    # Nobody of this run is told or asked: it may be over before the notes are there.
    engine = replace(session.engine, on_event=None, preview=None, hooks=())
    beside = replace(session, engine=engine, anchor=replace(session.anchor, aside=True))

    def make(job: Preparation) -> Awaitable[None]:
        return heard_by(engine.listeners, _prepare(beside, given, job))

    place = session.engine.archive or session.engine.memory
    name = (id(place), session.scope, session.engine.identity(""))
    return await jobs_of(session).begin(session.scope, head, size, make, name)


async def _prepare(session: Session, given: Given, job: Preparation) -> None:
    scope, redaction = session.scope, session.engine.redaction
    emit("preparation", scope, name="began")
    with observing("preparation", scope, name="finished", waited=0.0) as seen:
        if redaction is not None:
            seen.hide_errors()
        try:
            covers = await aside(_made(session, given, job))
            seen.add(messages=covers, reason=job.reason if job.outcome == "nothing" else "")
        except ConspectusError as error:
            job.ended("failed", (await redacted_texts_flow(redaction, [str(error)]))[0])
            seen.add(error=type(error).__qualname__)
        if job.outcome == "failed":
            seen.add(outcome="failed", error_message=job.reason)


async def _made(session: Session, given: Given, job: Preparation) -> int:
    """Make the draft; return the number of its messages, or 0."""
    if not isinstance(given, History):
        session, given = session.corrected(await given(session))
    history = given
    job.notes, job.size = notes_in_force(history), job.size or session.asked or history.size
    job.count = sum(not place.item.summary for place in history.places)
    known = await session.anchor.find_draft_flow(_name(session, history))
    why = "" if known is None or not known.read else _unfit(known, history)
    if known is not None and known.read and not why:
        job.ended("ready")
        return 0
    if why == CHANGED:
        job.ended("nothing", "notes are prepared for another branch of the history")
        return 0
    history, decided = session.foresees(history, jobs_of(session).setting.prepare)
    if not isinstance(decided, Compact) or not decided.evicted:
        why = "messages are only shown short" if isinstance(decided, Compact) else decided.reason
        job.ended("nothing", why)
        return 0
    compaction = Compaction(session, history, decided)
    made = await compaction.prepared_flow()
    if isinstance(made, Failed):
        why = (await redacted_texts_flow(compaction.material.redaction, [made.reason]))[0]
        job.ended("failed", why)
        return 0
    await session.anchor.save_draft_flow(_name(session, history), made)
    job.ended("ready")
    return len(compaction.material.keys)


# At the trigger


async def chosen_flow(session: Session, history: History, decided: Plan) -> Chosen:
    """Decide about a history whose notes are prepared; `decided` is the plan without them."""
    usual, jobs = Chosen(decided), jobs_of(session)
    if not isinstance(decided, Compact):
        size = session.asked or history.size
        near = isinstance(decided, Keep) and session.nears(size, jobs.setting)
        if near and jobs.wanted(session.scope, history.head_id or "", size):
            await begin_flow(session, history)
        return usual
    if not decided.summary_tokens:
        return usual
    if (ready := await _ready(session, history, decided)) is not None:
        return ready
    if jobs.closed:
        return usual
    over, failed = session.over(history), _has_failed(session, history)
    short = _shown_short(session, history, decided) if over and not failed else None
    if not failed and (not over or short is not None):
        (await begin_flow(session, history)).due = True
        emit("preparation", session.scope, name="went_on")
        if short is not None:
            return Chosen(short[1], view=short[0], goes_on=True)
        return Chosen(Keep(GOES_ON, history.size.tokens), goes_on=True)
    begun = time.monotonic()
    expired = await _waited(session, history)
    waited = time.monotonic() - begun
    if (ready := await _ready(session, history, decided)) is not None:
        return replace(ready, waited=waited)
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
    if chosen.draft is None:
        return
    if isinstance(outcome, Failed):
        if not isinstance(outcome.error, ArchiveError):
            await _drop(session, history, chosen.draft, "it was refused")
        return
    jobs_of(session).forget(session.scope)
    step, count = "topped_up" if chosen.topped else "swapped_in", len(chosen.draft.read)
    emit("preparation", session.scope, name=step, waited=chosen.waited, messages=count)


async def _ready(session: Session, history: History, decided: Compact) -> Chosen | None:
    """Return the plan that puts a finished draft in force; drop a draft that does not fit."""
    draft = await session.anchor.find_draft_flow(_name(session, history))
    if draft is None or not draft.read:
        return None
    if why := _unfit(draft, history):
        other = why == CHANGED
        await _drop(session, history, draft, why, keep=other)
        # Another branch under the same notes may still want it: this one does not wait for its own.
        return Chosen(decided) if other else None
    leaving = _leaving(draft, history)
    given = plan_draft(
        history.items,
        session.engine.policy,
        session.room,
        decided,
        leaving,
        session.message_size(draft.text),
        asked=session.asked,
        clip=session.engine.where is not None,
        words=session.engine.archive is not None,
        written=_written_since(session, history),
    )
    if given is not None:
        return Chosen(given, draft)
    if set(leaving) <= set(decided.evicted):
        return Chosen(decided, draft, topped=True)
    await _drop(session, history, draft, "less may leave now than it stands for")
    return None


def _shown_short(
    session: Session, history: History, decided: Compact
) -> tuple[History, Compact] | None:
    """Plan to show messages short, so that the agent can continue.

    Return the history with the least sizes of its messages, and the plan, or None if it does not
    fit.
    """
    engine, room = session.engine, session.room
    if engine.where is None or room is None:
        return None
    history = with_floors(history, engine, CLIP_TO)
    job = jobs_of(session).latest(session.scope)
    soon = decided.evicted if job is not None and job.under_way else ()
    words, written = engine.archive is not None, _written_since(session, history)
    plan = only_clipped(history.items, room, decided, soon, words=words, written=written)
    return None if plan is None else (history, plan)


def _has_failed(session: Session, history: History) -> bool:
    """Tell whether the latest preparation for these notes gave nothing, so that none is awaited.

    One that was cancelled, as with the event loop of a request that is over, counts too.
    """
    job = jobs_of(session).latest(session.scope)
    if job is None or job.notes not in (None, notes_in_force(history)):
        return False
    lost = not (job.outcome or job.under_way)
    failed = job.outcome in ("failed", "cancelled")
    return lost or failed or (job.due and job.outcome == "nothing")


async def _waited(session: Session, history: History) -> bool:
    """Wait for a draft within a summariser's time; return True if that has run out."""
    until = time.monotonic() + (session.engine.timeout or LONGEST_LOOK)
    job = jobs_of(session).latest(session.scope)
    if job is None or job.notes not in (None, notes_in_force(history)):
        return False
    while job.under_way:
        if time.monotonic() > until:
            return True
        if not (await job.looked_at()):
            return False
    return False


async def _drop(
    session: Session, history: History, draft: Draft, why: str, *, keep: bool = False
) -> None:
    jobs_of(session).forget(session.scope)
    if not keep:
        await session.anchor.save_draft_flow(_name(session, history), NOTHING)
    emit(
        "preparation",
        session.scope,
        name="dropped",
        outcome="dropped",
        reason=why,
        messages=len(draft.read),
    )


def notes_in_force(history: History) -> str:
    """Return the id of the last record with which messages left; empty for none.

    A record that only clips messages does not change a draft.
    """
    return next((record.id for record in reversed(history.chain) if record.covers), "")


def _name(session: Session, history: History) -> str:
    """Name the draft that follows the notes in force, made with these settings."""
    return hash_of(["prepared", notes_in_force(history), session.engine.identity("")])


def _leaving(draft: Draft, history: History) -> list[int]:
    covers = set(draft.read)
    return [
        i
        for i, place in enumerate(history.places)
        if place.item.key in covers and not place.item.summary
    ]


def _written_since(session: Session, history: History) -> frozenset[int]:
    """Return the places of what the agent has said since its notes were begun here."""
    job = jobs_of(session).latest(session.scope)
    own = [i for i, place in enumerate(history.places) if not place.item.summary]
    later: Sequence[int] = own[job.count :] if job is not None and job.count else ()
    return frozenset(i for i in later if history.places[i].item.role == "assistant")


def _unfit(draft: Draft, history: History) -> str:
    """Return why a draft does not belong to a history, or an empty text."""
    covers = set(draft.read)
    here = [p.item.key for p in history.places if p.item.key in covers and not p.item.summary]
    foreign = [p for p in history.places if p.item.summary and p.entry is not None]
    if not covers:
        return "it is none"
    if any(place.item.key not in covers for place in foreign):
        return "a summary of another library has come"
    if len(here) + sum(place.item.key in covers for place in foreign) < len(covers):
        return CHANGED
    if not may_leave(history.items, _leaving(draft, history)):
        return "something that it stands for must stay now"
    return ""


def jobs_of(session: Session) -> Preparations:
    assert session.engine.background is not None
    return session.engine.background
