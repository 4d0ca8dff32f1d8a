"""Prepare the next notes in the background, from a snapshot of the history.

A preparation archives originals, and writes a draft and its mark. It puts nothing in force:
`swapping` does, at the trigger.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from conspectus._core.items import Compact, Size
from conspectus._drive import Flow, pause
from conspectus.compactor.compaction import Compaction
from conspectus.compactor.observed import whose_of
from conspectus.compactor.preparation import Preparation, owner_of
from conspectus.compactor.prepared import (
    PreparationMark,
    find_mark_flow,
    hash_of,
    identity_of,
    jobs_of,
    keys_of,
    notes_in_force,
    save_mark_flow,
    unfit,
)
from conspectus.compactor.redacting import redacted_texts_flow
from conspectus.compactor.result import Failed
from conspectus.compactor.session import Session
from conspectus.compactor.view import History
from conspectus.compactor.waiting import LONGEST_LOOK
from conspectus.errors import ConspectusError
from conspectus.events import Preparing, heard_by, observing, tell
from conspectus.events.notes import noted

logger = logging.getLogger("conspectus")

LEASE = LONGEST_LOOK
"""Seconds for which another host's worker is taken to be at a draft."""

SETTLES = 0.1
"""Seconds after which a worker checks whether another has claimed the same draft."""


def begin_flow(
    session: Session, fold: Callable[[Session], Flow[History]], head: str = ""
) -> Flow[Preparation]:
    """Prepare a session's next notes in the background; `head` is the record in force, if known."""

    def look(own: Session) -> Flow[tuple[Session, History]]:
        return own.corrected((yield from fold(own)))

    return (yield from _begun(session, look, head, session.asked))


def begin_on_flow(session: Session, history: History) -> Flow[Preparation]:
    """Prepare the next notes of a history that is already read and counted."""

    def look(own: Session) -> Flow[tuple[Session, History]]:
        yield from ()
        return own, history

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

    return (yield from jobs_of(session).begin(session.scope, head, size, make))


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
            job.ended("failed", (yield from redacted_texts_flow(redaction, [str(error)]))[0])
            seen.tell(error_type=type(error).__qualname__)
        if job.outcome == "failed":
            seen.tell(outcome="failed", error_message=job.reason)
            logger.warning(
                "the next notes could not be prepared: %s", job.reason, extra=noted("not_prepared")
            )


def _made(session: Session, history: History, job: Preparation) -> Flow[int]:
    """Make the draft; return the number of its messages, or 0."""
    job.notes, job.size = notes_in_force(history), job.size or session.asked or history.size
    history, decided = session.foresees(history, jobs_of(session).setting.prepare)
    if not isinstance(decided, Compact) or not decided.evict:
        why = "messages are only shown short" if isinstance(decided, Compact) else decided.reason
        job.ended("nothing", why)
        return 0
    compaction = Compaction(session, history, decided)

    def claim(name: str, keys: tuple[str, ...]) -> Flow[bool]:
        known = yield from find_mark_flow(session, history)
        if known is not None and not unfit(session, known, history):
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
        why = (yield from redacted_texts_flow(compaction.material.redaction, [found.reason]))[0]
        job.ended("failed", why)
        return 0
    job.ended("ready")
    return len(compaction.material.keys)


def _mark(
    session: Session, history: History, name: str, keys: tuple[str, ...], job: Preparation
) -> PreparationMark:
    view, until = keys_of(history), time.time() + LEASE
    return PreparationMark(
        name, keys, len(view), hash_of(view), identity_of(session), owner_of(job), until
    )


def _claimed(session: Session, history: History, mark: PreparationMark) -> Flow[bool]:
    """Claim a draft, unless another worker does so at the same moment.

    Stores cannot compare and set, so the last writer has it.
    """
    yield from save_mark_flow(session, history, mark)
    if session.engine.archive is None:
        return True
    yield pause(SETTLES)
    found = yield from find_mark_flow(session, history)
    return found is None or list(found.owner) == list(mark.owner) or not found.under_way
