"""The next notes prepared beside the agent, from a snapshot, and swapped in at the trigger.

What is prepared writes originals into the archive and a draft, and nothing else: which draft it is,
and from which history, is noted beside. At the trigger the draft is used only if that history is
still the beginning of this one and the same record is in force.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from conspectus._core.choices import EMBEDDED
from conspectus._core.given_cut import may_leave, only_clipped, plan_given
from conspectus._core.items import Compact, Keep, Plan, Size
from conspectus._core.records import Draft
from conspectus._drive import Flow, pause
from conspectus.compactor.background import Preparations
from conspectus.compactor.compaction import Compaction
from conspectus.compactor.observed import whose_of
from conspectus.compactor.preparation import LOOK_AGAIN, Preparation, owner_of
from conspectus.compactor.prepared import (
    Prepared,
    find_mark_flow,
    hash_of,
    identity_of,
    keys_of,
    leaving_of,
    notes_in_force,
    save_mark_flow,
)
from conspectus.compactor.redacting import told_flow
from conspectus.compactor.result import CompactionResult, Failed
from conspectus.compactor.session import Session
from conspectus.compactor.view import History, with_floors
from conspectus.compactor.waiting import LONGEST_LOOK
from conspectus.errors import ConspectusError
from conspectus.events import Preparing, heard_by, observing, tell
from conspectus.events.notes import noted

logger = logging.getLogger("conspectus")

LEASE = LONGEST_LOOK
"""Seconds for which another machine's worker is believed to be at a draft."""

LOOK_THERE = 0.2
"""Seconds between two looks at a draft that another process is writing."""

SETTLES = 0.1
"""Seconds after which a worker looks whether another one has begun at the same moment."""

GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be done about a history.

    Attributes:
        plan: the plan to carry out, or why there is none.
        draft: the draft that was prepared for it; None where there is none.
        known: from which history that was made.
        topped: messages that came later leave as well.
        goes_on: the agent goes on while its notes are being prepared.
        order: who writes instead of the usual summarisers; None for those.
        waited: seconds that the agent stood still.
        view: the history as the plan was made for it; None where nothing was measured anew.
    """

    plan: Plan
    draft: Draft | None = None
    known: Prepared | None = None
    topped: bool = False
    goes_on: bool = False
    order: tuple[str, ...] | None = None
    waited: float = 0.0
    view: History | None = None


# Beside the agent


def begin_flow(
    session: Session, fold: Callable[[Session], Flow[History]], head: str = ""
) -> Flow[Preparation]:
    """Prepare a session's next notes beside the caller, if its history nears its trigger.

    Args:
        session: whose.
        fold: reads and folds the history.
        head: id of the record in force, where that is known already.
    """

    def look(own: Session) -> Flow[tuple[Session, History]]:
        return own.corrected((yield from fold(own)))

    return (yield from _begun(session, look, head, session.asked))


def _begin(session: Session, history: History) -> Flow[Preparation]:
    def look(own: Session) -> Flow[tuple[Session, History]]:
        yield from ()
        return own, history  # as they count already

    head = history.head.id if history.head is not None else ""
    return (yield from _begun(session, look, head, session.asked or history.size))


def _begun(
    session: Session,
    look: Callable[[Session], Flow[tuple[Session, History]]],
    head: str,
    size: Size | None,
) -> Flow[Preparation]:
    # Nobody of this run is told or asked: it may be over before the notes are there.
    engine = replace(session.engine, on_event=None, preview=None, hooks=())
    beside = replace(session, engine=engine, anchor=replace(session.anchor, aside=True))

    def make(job: Preparation) -> Flow[None]:
        return heard_by(engine.listeners, _prepare(look(beside), job, beside))

    return (yield from _jobs(session).begin(session.scope, head, size, make))


def _prepare(look: Flow[tuple[Session, History]], job: Preparation, beside: Session) -> Flow[None]:
    whose, redaction = whose_of(beside.scope), beside.engine.redaction
    tell(Preparing, whose, step="began")
    with observing(Preparing, whose, step="finished", waited=0.0) as seen:
        if redaction is not None:
            seen.withhold()
        try:
            session, history = yield from look
            covers = yield from _made(session, history, job)
            seen.tell(messages=covers, reason=job.reason if job.outcome == "nothing" else "")
        except ConspectusError as error:
            job.ended("failed", (yield from told_flow(redaction, [str(error)]))[0])
            seen.tell(error_type=type(error).__qualname__)
        if job.outcome == "failed":
            seen.tell(outcome="failed", error_message=job.reason)
            logger.warning(
                "the next notes could not be prepared: %s", job.reason, extra=noted("not_prepared")
            )


def _made(session: Session, history: History, job: Preparation) -> Flow[int]:
    """How many messages the draft stands for that was made; the preparation says the rest."""
    job.notes, job.size = notes_in_force(history), job.size or session.asked or history.size
    history, decided = session.foresees(history, _jobs(session).setting.prepare)
    if not isinstance(decided, Compact) or not decided.evict:
        why = "messages are only shown short" if isinstance(decided, Compact) else decided.reason
        job.ended("nothing", why)
        return 0
    compaction = Compaction(session, history, decided)

    def claim(name: str, keys: tuple[str, ...]) -> Flow[bool]:
        known = yield from find_mark_flow(session, history)
        if known is not None and not _unfit(session, known, history):
            if (yield from session.anchor.find_draft_flow(known.plan)) is not None:
                job.ended("ready")
                return False
            if known.under_way:
                job.ended("elsewhere")
                return False
        if (yield from _claimed(session, history, _mark(session, history, name, keys, job))):
            return True
        job.ended("elsewhere")
        return False

    found = yield from compaction.prepared_flow(claim)
    if found is None:
        return 0
    if isinstance(found, Failed):
        yield from save_mark_flow(session, history, None)
        why = (yield from told_flow(compaction.material.redaction, [found.reason]))[0]
        job.ended("failed", why)
        return 0
    job.ended("ready")
    return len(compaction.material.keys)


def _mark(
    session: Session, history: History, name: str, keys: tuple[str, ...], job: Preparation
) -> Prepared:
    view, until = keys_of(history), time.time() + LEASE
    return Prepared(
        name, keys, len(view), hash_of(view), identity_of(session), owner_of(job), until
    )


def _claimed(session: Session, history: History, mark: Prepared) -> Flow[bool]:
    """Take a draft upon oneself, unless another worker does at the same moment: stores cannot
    compare and set, so the one who wrote last has it."""
    yield from save_mark_flow(session, history, mark)
    if session.engine.archive is None:
        return True
    yield pause(SETTLES)
    found = yield from find_mark_flow(session, history)
    return found is None or list(found.owner) == list(mark.owner) or not found.under_way


# At the trigger


def chosen_flow(session: Session, history: History, decided: Plan) -> Flow[Chosen]:
    """What to do about a history for which notes are prepared.

    Args:
        session: whose.
        history: as it stands.
        decided: the plan that would be carried out without them.
    """
    usual = Chosen(decided)
    if not isinstance(decided, Compact):
        jobs, size = _jobs(session), session.asked or history.size
        policy, room = session.engine.policy, session.room
        near = isinstance(decided, Keep) and jobs.setting.near(policy, size, room)
        if near and jobs.wanted(session.scope, history.head.id if history.head else "", size):
            yield from _begin(session, history)
        return usual
    if not decided.summary_tokens:
        return usual
    found = yield from _ready(session, history, decided)
    if isinstance(found, Chosen):
        return found
    if _jobs(session).closed:
        return usual
    over, failed, begun = session.over(history), _has_failed(session, history), time.monotonic()
    short = _shown_short(session, history, decided, found) if over and not failed else None
    if not failed and (not over or short is not None):
        if found is None or not found.under_way:
            (yield from _begin(session, history)).due = True
        tell(Preparing, whose_of(session.scope), step="went_on")
        if short is not None:
            return Chosen(short[1], view=short[0], goes_on=True)
        return Chosen(Keep(GOES_ON, history.size.tokens), goes_on=True)
    expired = yield from _waited(session, history, found)
    waited = time.monotonic() - begun
    found = yield from _ready(session, history, decided)
    if isinstance(found, Chosen):
        return replace(found, waited=waited)
    if waited >= LOOK_AGAIN:
        tell(Preparing, whose_of(session.scope), step="waited", waited=waited)
    if expired and session.engine.on_failure == "degrade":
        # Its time is over: it is not asked for as long once more.
        return replace(usual, order=(EMBEDDED,))
    return usual


def ended_flow(
    session: Session, history: History, chosen: Chosen, result: CompactionResult
) -> Flow[CompactionResult]:
    """The result, once what was chosen is carried out."""
    if chosen.known is None or chosen.draft is None:
        return replace(result, preparing=chosen.goes_on)
    if result.record is None:
        if result.failed != "archive":
            yield from _drop(session, history, chosen.known, "it was refused")
        return result
    _jobs(session).forget(session.scope)
    step, count = "topped_up" if chosen.topped else "swapped_in", len(chosen.known.covers)
    tell(Preparing, whose_of(session.scope), step=step, waited=chosen.waited, messages=count)
    return replace(result, cost=result.cost + chosen.draft.cost)


def _ready(session: Session, history: History, decided: Compact) -> Flow[Chosen | Prepared | None]:
    """The plan that puts a finished draft in force; or what is known of one that is not finished,
    and fits; None for neither. A draft that does not belong to the history is dropped."""
    known = yield from find_mark_flow(session, history)
    if known is None:
        return None
    if why := _unfit(session, known, history):
        yield from _drop(session, history, known, why)
        return None
    draft = yield from session.anchor.find_draft_flow(known.plan)
    if draft is None:
        return known
    leaving, where = leaving_of(known, history), session.engine.where
    given = plan_given(
        history.items,
        session.engine.policy,
        session.room,
        decided,
        leaving,
        session.message_size(draft.text),
        asked=session.asked,
        clip=where is not None,
        words=session.engine.archive is not None,
    )
    if given is not None:
        return Chosen(given, draft, known)
    if set(leaving) <= set(decided.evicted):
        return Chosen(decided, draft, known, topped=True)
    yield from _drop(session, history, known, "less may leave now than it stands for")
    return None


def _shown_short(
    session: Session, history: History, decided: Compact, known: Prepared | None
) -> tuple[History, Compact] | None:
    """The plan by which messages are shown short, so that the agent can go on; and the history with
    the least sizes of its messages measured."""
    where, room = session.engine.where, session.room
    if where is None or room is None:
        return None
    history = with_floors(history, session.engine.meter, session.engine.policy.clip_to, where)
    leaving = () if known is None else leaving_of(known, history)
    words = session.engine.archive is not None
    plan = only_clipped(history.items, session.engine.policy, room, decided, leaving, words=words)
    return None if plan is None else (history, plan)


def _has_failed(session: Session, history: History) -> bool:
    """Whether this history was tried to prepare, and could not be."""
    job = _jobs(session).latest(session.scope)
    if job is None or job.notes != notes_in_force(history):
        return False
    return job.outcome == "failed" or (job.due and job.outcome == "nothing")


def _unfit(session: Session, known: Prepared, history: History) -> str:
    """Why a draft does not belong to a history; empty if it does."""
    if known.identity != identity_of(session):
        return "it was made with other settings"
    keys = keys_of(history)
    if len(keys) < known.count:
        return "the history has gone back"
    if hash_of(keys[: known.count]) != known.seen:
        return "the history that it was made from was changed"
    covers = set(known.covers)
    if any(p.item.summary and p.entry and p.item.key not in covers for p in history.places):
        return "a summary of another library has come"
    if not may_leave(history.items, leaving_of(known, history)):
        return "something that it stands for must stay now"
    return ""


def _waited(session: Session, history: History, known: Prepared | None) -> Flow[bool]:
    """Wait for what is under way, within a summariser's time; whether that was too short."""
    until = time.monotonic() + (session.engine.timeout or LONGEST_LOOK)
    job = _jobs(session).latest(session.scope)
    if job is not None and job.notes in (None, notes_in_force(history)):
        while job.under_way:
            if time.monotonic() > until:
                return True
            if not (yield job.looked_at()):
                return False
        if job.outcome != "elsewhere":
            return False
        known = yield from find_mark_flow(session, history)
    while known is not None and known.under_way:
        if (yield from session.anchor.find_draft_flow(known.plan)) is not None:
            return False
        if time.monotonic() > until:
            return True
        yield pause(LOOK_THERE)
        known = yield from find_mark_flow(session, history)
    return False


def _drop(session: Session, history: History, known: Prepared, why: str) -> Flow[None]:
    _jobs(session).forget(session.scope)
    yield from save_mark_flow(session, history, None)
    whose, count = whose_of(session.scope), len(known.covers)
    tell(Preparing, whose, step="dropped", outcome="dropped", reason=why, messages=count)


def _jobs(session: Session) -> Preparations:
    assert session.engine.background is not None
    return session.engine.background
