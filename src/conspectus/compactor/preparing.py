"""The next notes prepared beside the agent, from a snapshot, and swapped in at the trigger.

What is prepared writes originals into the archive and a draft, and nothing else: which draft it is,
and from which history, is noted beside. At the trigger the draft is used only if that history is
still the beginning of this one and the same record is in force.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from conspectus._core.flow import EMBEDDED, Failed
from conspectus._core.given_cut import may_leave, plan_given
from conspectus._core.items import Compact, Keep, Plan, Size, Stuck
from conspectus._core.records import Draft, Record
from conspectus._drive import Flow, pause
from conspectus.compactor.anchors import Anchor, Chain
from conspectus.compactor.background import (
    LOOK_AGAIN,
    Preparation,
    Preparations,
    is_at_work,
    owner_of,
)
from conspectus.compactor.memory import Remembered
from conspectus.compactor.observed import whose_of
from conspectus.compactor.redacting import told_flow
from conspectus.compactor.result import CompactionResult
from conspectus.compactor.view import History
from conspectus.compactor.waiting import LONGEST_LOOK
from conspectus.compactor.work import Work, identity_of
from conspectus.errors import ConspectusError
from conspectus.events import Preparing, heard_by, observing, tell
from conspectus.events.notes import noted

if TYPE_CHECKING:
    from conspectus.compactor.session import Session

logger = logging.getLogger("conspectus")

VERSION = 1
LEASE = LONGEST_LOOK
"""Seconds for which another machine's worker is believed to be at a draft."""

LOOK_THERE = 0.2
"""Seconds between two looks at a draft that another process is writing."""

SETTLES = 0.1
"""Seconds after which a worker looks whether another one has begun at the same moment."""

GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Which draft is being prepared, or has been, and from which history.

    Attributes:
        plan: names the draft.
        covers: keys of the messages that it stands for.
        count: messages of the history that it was made from.
        seen: hash of their keys.
        identity: hash of all else that would change it.
        owner: who is at it, or was; see `is_at_work`.
        until: seconds since 1970 after which nobody is believed to be at it any more.
    """

    plan: str
    covers: tuple[str, ...]
    count: int
    seen: str
    identity: str
    owner: Sequence[Any]
    until: float

    @property
    def under_way(self) -> bool:
        """Whether somebody may still be at it."""
        return time.time() < self.until and is_at_work(self.owner)

    @classmethod
    def read(cls, data: Mapping[str, Any] | None) -> Prepared | None:
        """What was written; None for nothing, or what cannot be read: it only saves money."""
        if not data or data.get("v") != VERSION:
            return None
        try:
            found = cls(**{k: v for k, v in data.items() if k != "v"})
            return replace(found, covers=tuple(found.covers), until=float(found.until))
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Aside:
    """An anchor beside which drafts are made, and that puts nothing in force."""

    anchor: Anchor

    @property
    def knows(self) -> bool:
        return self.anchor.knows

    def chain_flow(self) -> Flow[Chain]:
        return (yield from self.anchor.chain_flow())

    def named_flow(self, name: str) -> Flow[Chain]:
        return (yield from self.anchor.named_flow(name))

    def moved_flow(self, chain: Chain) -> Flow[None]:
        yield from ()

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        yield from ()
        raise AssertionError("what is prepared is not put in force")

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        return (yield from self.anchor.find_draft_flow(plan))

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        yield from self.anchor.save_draft_flow(plan, draft)


# Beside the agent


def begin_flow(
    session: Session, look: Callable[[Session], Flow[History]], head: str = ""
) -> Flow[Preparation]:
    """Prepare a session's next notes beside the caller, if its history nears its trigger.

    Args:
        session: whose.
        look: reads and folds the history.
        head: id of the record in force, where that is known already.
    """
    return (yield from _begin(session, look, head, session.asked))


def soon_flow(session: Session, history: History) -> Flow[None]:
    """Prepare the next notes of a history that nears its trigger, unless that is done already."""
    jobs, size = _jobs(session), session.asked or history.size
    near = jobs.setting.near(session.policy, size, session.room)
    if near and jobs.wanted(session.scope, _head(history), size):
        yield from _begin(session, _seen(history), _head(history), size)


def _seen(history: History) -> Callable[[Session], Flow[History]]:
    def look(session: Session) -> Flow[History]:
        yield from ()
        return history

    return look


def _begin(
    session: Session,
    look: Callable[[Session], Flow[History]],
    head: str,
    size: Size | None,
) -> Flow[Preparation]:
    # Nobody of this run is told or asked: it may be over before the notes are there.
    tools = replace(session.tools, on_event=None, preview=None, hooks=())
    beside = replace(session, tools=tools, anchor=Aside(session.anchor))

    def make(job: Preparation) -> Flow[None]:
        return heard_by(tools.listeners, _prepare(beside, look, job))

    return (yield from _jobs(session).begin(session.scope, head, size, make))


def _prepare(
    session: Session, look: Callable[[Session], Flow[History]], job: Preparation
) -> Flow[None]:
    whose = whose_of(session.scope)
    tell(Preparing, whose, step="began")
    with observing(Preparing, whose, step="finished") as seen:
        if session.tools.redaction is not None:
            seen.withhold()
        try:
            covers = yield from _made(session, look, job)
            seen.tell(messages=covers, reason=job.reason)
        except ConspectusError as error:
            why = (yield from told_flow(session.tools.redaction, [str(error)]))[0]
            job.ended("failed", why)
            seen.tell(outcome="failed", reason=why, error_type=type(error).__qualname__)
        if job.outcome == "failed":
            seen.tell(outcome="failed")
            logger.warning(
                "the next notes could not be prepared: %s", job.reason, extra=noted("not_prepared")
            )


def _made(
    session: Session, look: Callable[[Session], Flow[History]], job: Preparation
) -> Flow[int]:
    session, history = session.corrected((yield from look(session)))
    job.head, job.size = _head(history), job.size or session.asked or history.size
    history, decided = session.foresees(history, _jobs(session).setting.prepare)
    if not isinstance(decided, Compact) or not decided.evict:
        why = "messages are only shown short" if isinstance(decided, Compact) else decided.reason
        job.ended("nothing", why)
        return 0
    work = Work(session.tools, session.scope, session.anchor, history, decided, "")
    order = yield from work.ordered_flow()
    known = yield from _find(session, history)
    if known is not None and not _unfit(session, known, history):
        if (yield from session.anchor.find_draft_flow(known.plan)) is not None:
            job.ended("ready")
            return len(known.covers)
        if known.under_way:
            job.ended("elsewhere")
            return 0
    keys = _keys(history)
    mark = Prepared(
        order.hash,
        order.keys,
        len(keys),
        _hash(keys),
        _identity(session),
        owner_of(job),
        time.time() + LEASE,
    )
    if not (yield from _claimed(session, history, mark)):
        job.ended("elsewhere")
        return 0
    found = yield from work.prepared_flow(order)
    if isinstance(found, Failed):
        yield from _save(session, history, replace(mark, until=0.0))
        why = (yield from told_flow(work.material.redaction, [found.reason]))[0]
        job.ended("failed", why)
        return 0
    job.ended("ready")
    return len(mark.covers)


def _claimed(session: Session, history: History, mark: Prepared) -> Flow[bool]:
    """Take a draft upon oneself, unless another worker does at the same moment: stores cannot
    compare and set, so the one who wrote last has it."""
    yield from _save(session, history, mark)
    if session.tools.archive is None:
        return True
    yield pause(SETTLES)
    found = yield from _find(session, history)
    return found is None or list(found.owner) == list(mark.owner) or not found.under_way


# At the trigger


def met_flow(
    session: Session, history: History, decided: Plan, remembered: Remembered
) -> Flow[CompactionResult | None]:
    """What comes of a history for which notes are prepared; None to go on as without."""
    if isinstance(decided, Stuck):
        return None
    if isinstance(decided, Keep):
        yield from soon_flow(session, history)
        return None
    if not decided.summary_tokens:
        return None
    over, waited, expired = session.over(history), 0.0, False
    known, draft = yield from _ready(session, history)
    if draft is None and (over or _has_failed(session, history)):
        begun = time.monotonic()
        expired = yield from _waited(session, history, known)
        waited = time.monotonic() - begun
        known, draft = yield from _ready(session, history)
    whose = whose_of(session.scope)
    if known is not None and draft is not None:
        found = yield from _swapped(session, history, decided, remembered, known, draft, waited)
        if found is not None:
            return found
    if waited >= LOOK_AGAIN:
        tell(Preparing, whose, step="waited", waited=waited)
    if expired and session.tools.on_failure == "degrade":
        # Its time is over: it is not asked for as long once more.
        hurried = replace(session, tools=replace(session.tools, order=(EMBEDDED,)))
        return (yield from hurried.carried_out(history, decided, remembered))
    if over or _has_failed(session, history):
        return None
    if known is None or not known.under_way:
        size = session.asked or history.size
        job = yield from _begin(session, _seen(history), _head(history), size)
        job.due = True
    tell(Preparing, whose, step="went_on")
    kept = session.unchanged(history, Keep(GOES_ON, history.size.tokens))
    return replace(kept, preparing=True)


def _has_failed(session: Session, history: History) -> bool:
    """Whether this history was tried to prepare, and could not be."""
    job = _jobs(session).latest(session.scope)
    if job is None or job.head != _head(history):
        return False
    return job.outcome == "failed" or (job.due and job.outcome == "nothing")


def _ready(session: Session, history: History) -> Flow[tuple[Prepared | None, Draft | None]]:
    """What was prepared for the record in force, if it fits this history; and its draft."""
    known = yield from _find(session, history)
    if known is None:
        return None, None
    if why := _unfit(session, known, history):
        yield from _drop(session, history, known, why)
        return None, None
    return known, (yield from session.anchor.find_draft_flow(known.plan))


def _unfit(session: Session, known: Prepared, history: History) -> str:
    """Why a draft does not belong to a history; empty if it does."""
    if known.identity != _identity(session):
        return "it was made with other settings"
    keys = _keys(history)
    if len(keys) < known.count:
        return "the history has gone back"
    if _hash(keys[: known.count]) != known.seen:
        return "the history that it was made from was changed"
    covers = set(known.covers)
    if any(p.item.summary and p.entry and p.item.key not in covers for p in history.places):
        return "a summary of another library has come"
    if not may_leave(history.items, _leaving(known, history)):
        return "something that it stands for must stay now"
    return ""


def _waited(session: Session, history: History, known: Prepared | None) -> Flow[bool]:
    """Wait for what is under way, within a summariser's time; whether that was too short."""
    until = time.monotonic() + (session.tools.timeout or LONGEST_LOOK)
    job = _jobs(session).latest(session.scope)
    if job is not None and job.head == _head(history):
        while job.under_way:
            if time.monotonic() > until:
                return True
            if not (yield job.looked_at()):
                return False
        if job.outcome != "elsewhere":
            return False
        known = yield from _find(session, history)
    while known is not None and known.under_way:
        if (yield from session.anchor.find_draft_flow(known.plan)) is not None:
            return False
        if time.monotonic() > until:
            return True
        yield pause(LOOK_THERE)
        known = yield from _find(session, history)
    return False


def _swapped(
    session: Session,
    history: History,
    decided: Compact,
    remembered: Remembered,
    known: Prepared,
    draft: Draft,
    waited: float,
) -> Flow[CompactionResult | None]:
    leaving, where = _leaving(known, history), session.tools.where
    given = plan_given(
        history.items,
        session.policy,
        session.room,
        decided,
        leaving,
        session.message_size(draft.text),
        asked=session.asked,
        clip=where is not None,
        words=session.tools.archive is not None,
    )
    topped = given is None
    if topped and not set(leaving) <= set(decided.evicted):
        why = "without all that it stands for, more stays than fits"
        yield from _drop(session, history, known, why)
        return None
    result = yield from session.carried_out(history, given or decided, remembered, draft)
    if result.record is None:
        if result.failed != "archive":
            yield from _drop(session, history, known, result.reason)
        return result
    _jobs(session).forget(session.scope)
    step = "topped_up" if topped else "swapped_in"
    whose = whose_of(session.scope)
    tell(Preparing, whose, step=step, waited=waited, messages=len(known.covers))
    return replace(result, cost=result.cost + draft.cost)


def _drop(session: Session, history: History, known: Prepared, why: str) -> Flow[None]:
    _jobs(session).forget(session.scope)
    yield from _save(session, history, None)
    whose, count = whose_of(session.scope), len(known.covers)
    tell(Preparing, whose, step="dropped", outcome="dropped", reason=why, messages=count)


# What is noted of it


def _name(history: History) -> str:
    return f"prepared\0{_head(history)}"


def _find(session: Session, history: History) -> Flow[Prepared | None]:
    archive, scope = session.tools.archive, session.scope
    if archive is None:
        found = session.tools.memory.of(scope).prepared.get(_name(history))
    else:
        found = yield from archive.find_prepared_flow(scope, _name(history))
    return Prepared.read(found)


def _save(session: Session, history: History, mark: Prepared | None) -> Flow[None]:
    archive, scope = session.tools.archive, session.scope
    data = {} if mark is None else {"v": VERSION, **asdict(mark)}
    if archive is None:
        session.tools.memory.save_prepared(scope, _name(history), data)
    else:
        yield from archive.save_prepared_flow(scope, _name(history), data)


def _head(history: History) -> str:
    return history.head.id if history.head is not None else ""


def _keys(history: History) -> list[str]:
    return [place.item.key for place in history.places if not place.item.summary]


def _leaving(known: Prepared, history: History) -> list[int]:
    covers = set(known.covers)
    return [
        i
        for i, place in enumerate(history.places)
        if place.item.key in covers and not place.item.summary
    ]


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:32]


def _identity(session: Session) -> str:
    return _hash([identity_of(session.tools, "")])


def _jobs(session: Session) -> Preparations:
    assert session.tools.background is not None
    return session.tools.background
