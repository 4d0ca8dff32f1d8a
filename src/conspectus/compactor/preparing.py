"""Prepare the next notes in the background, from a snapshot of the history.

A preparation archives originals, and writes a draft and a mark of it: which draft, from which
history, by which worker. It puts nothing in force: `swapping` does, at the trigger.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from conspectus._core.given_cut import may_leave
from conspectus._core.items import Compact
from conspectus.bridge import pause
from conspectus.compactor.background import Preparations
from conspectus.compactor.checking import hash_of
from conspectus.compactor.compaction import Compaction
from conspectus.compactor.memory import LONGEST_LOOK
from conspectus.compactor.preparation import (
    Preparation,
    is_at_work,
    owner_of,
    undone_flow,
)
from conspectus.compactor.redacting import redacted_texts_flow
from conspectus.compactor.result import Failed
from conspectus.compactor.session import Session
from conspectus.compactor.view import History
from conspectus.errors import ConspectusError
from conspectus.observe import emit, heard_by, observing

LEASE = LONGEST_LOOK
"""Seconds for which another host's worker is taken to be at a draft."""

SETTLES = 0.1
"""Seconds after which a worker checks whether another has claimed the same draft."""


Given = History | Callable[[Session], Awaitable[History]]
"""A history that is read and counted, or the way to read it in the background."""


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

    return await jobs_of(session).begin(session.scope, head, size, make)


async def _prepare(session: Session, given: Given, job: Preparation) -> None:
    scope, redaction = session.scope, session.engine.redaction
    emit("preparation", scope, name="began")
    with observing("preparation", scope, name="finished", waited=0.0) as seen:
        if redaction is not None:
            seen.hide_errors()
        try:
            if not isinstance(given, History):
                session, given = session.corrected(await given(session))
            covers = await _made(session, given, job)
            seen.add(messages=covers, reason=job.reason if job.outcome == "nothing" else "")
        except ConspectusError as error:
            job.ended("failed", (await redacted_texts_flow(redaction, [str(error)]))[0])
            seen.add(error=type(error).__qualname__)
        if job.outcome == "failed":
            seen.add(outcome="failed", error_message=job.reason)


async def _made(session: Session, history: History, job: Preparation) -> int:
    """Make the draft; return the number of its messages, or 0."""
    job.notes, job.size = notes_in_force(history), job.size or session.asked or history.size
    history, decided = session.foresees(history, jobs_of(session).setting.prepare)
    if not isinstance(decided, Compact) or not decided.evict:
        why = "messages are only shown short" if isinstance(decided, Compact) else decided.reason
        job.ended("nothing", why)
        return 0
    compaction = Compaction(session, history, decided)

    async def claim(name: str, keys: tuple[str, ...]) -> bool:
        known = await find_mark_flow(session, history)
        if known is not None and not unfit(session, known, history):
            if (await session.anchor.find_draft_flow(known.plan)) is not None:
                job.ended("ready")
                return False
            if known.under_way:
                job.ended("elsewhere")
                return False
        job.undo = lambda: _unclaimed(session, history, job)
        view, who, until = keys_of(history), owner_of(job), time.time() + LEASE
        count, seen, identity = len(view), hash_of(view), identity_of(session)
        mark = PreparationMark(name, keys, count, seen, identity, who, until)
        if await _claimed(session, history, mark):
            return True
        job.undo = None
        job.ended("elsewhere")
        return False

    found = await compaction.prepared_flow(claim)
    if found is None:
        return 0
    if isinstance(found, Failed):
        await undone_flow(job)
        why = (await redacted_texts_flow(compaction.material.redaction, [found.reason]))[0]
        job.ended("failed", why)
        return 0
    job.undo = None
    job.ended("ready")
    return len(compaction.material.keys)


async def _unclaimed(session: Session, history: History, job: Preparation) -> None:
    known = await find_mark_flow(session, history)
    if known is None or list(known.owner) != owner_of(job):
        return
    if (await session.anchor.find_draft_flow(known.plan)) is None:
        await save_mark_flow(session, history, None)


async def _claimed(session: Session, history: History, mark: PreparationMark) -> bool:
    """Claim a draft, unless another worker does so at the same moment.

    Stores cannot compare and set, so the last writer has it.
    """
    await save_mark_flow(session, history, mark)
    if session.engine.archive is None:
        return True
    await pause(SETTLES)
    found = await find_mark_flow(session, history)
    return found is None or list(found.owner) == list(mark.owner) or not found.under_way


VERSION = 1
"""Form of the mark; one of another form is not read."""


@dataclass(frozen=True, slots=True)
class PreparationMark:
    """The draft of a preparation and the history that it was made from.

    Attributes:
        plan: name of the draft.
        covers: keys of the messages that it stands for.
        count: number of messages in that history.
        seen: hash of their keys.
        identity: hash of all else that would change it.
        until: seconds since 1970 after which its worker is taken to be gone.
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
        """Whether its worker may still be preparing."""
        return time.time() < self.until and is_at_work(self.owner)

    @classmethod
    def read(cls, data: Mapping[str, Any] | None) -> PreparationMark | None:
        """Read a mark; None for none, or one that cannot be read."""
        if not data or data.get("v") != VERSION:
            return None
        try:
            found = cls(**{k: v for k, v in data.items() if k != "v"})
            return replace(found, covers=tuple(found.covers), until=float(found.until))
        except (TypeError, ValueError):
            return None


def mark_name(history: History) -> str:
    return f"prepared\0{notes_in_force(history)}"


async def find_mark_flow(session: Session, history: History) -> PreparationMark | None:
    archive, scope = session.engine.archive, session.scope
    if archive is None:
        found = session.engine.memory.of(scope).prepared.get(mark_name(history))
    else:
        name = mark_name(history)
        notes = await archive.flow(archive.notes, scope, "prepared", [name])
        found = notes.get(name)
    return PreparationMark.read(found)


async def save_mark_flow(session: Session, history: History, mark: PreparationMark | None) -> None:
    archive, scope = session.engine.archive, session.scope
    data = {} if mark is None else {"v": VERSION, **asdict(mark)}
    if archive is None:
        session.engine.memory.of(scope).prepared.put(mark_name(history), data)
    else:
        await archive.flow(archive.note, scope, "prepared", {mark_name(history): data})


def notes_in_force(history: History) -> str:
    """Return the id of the last record with which messages left; empty for none.

    A record that only clips messages does not change a draft.
    """
    return next((record.id for record in reversed(history.chain) if record.covers), "")


def keys_of(history: History) -> list[str]:
    return [place.item.key for place in history.places if not place.item.summary]


def leaving_of(known: PreparationMark, history: History) -> list[int]:
    covers = set(known.covers)
    return [
        i
        for i, place in enumerate(history.places)
        if place.item.key in covers and not place.item.summary
    ]


def written_since(known: PreparationMark | None, history: History) -> frozenset[int]:
    own = [i for i, place in enumerate(history.places) if not place.item.summary]
    later = [] if known is None else own[known.count :]
    return frozenset(i for i in later if history.places[i].item.role == "assistant")


def identity_of(session: Session) -> str:
    return hash_of([session.engine.identity("")])


def unfit(session: Session, known: PreparationMark, history: History) -> str:
    """Return why a draft does not belong to a history, or an empty text."""
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


def jobs_of(session: Session) -> Preparations:
    assert session.engine.background is not None
    return session.engine.background
