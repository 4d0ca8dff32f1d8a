"""Mark which draft was prepared, from which history, and by which worker."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from conspectus._core.given_cut import may_leave
from conspectus._drive import Flow
from conspectus.compactor.background import Preparations
from conspectus.compactor.preparation import is_at_work
from conspectus.compactor.session import Session
from conspectus.compactor.view import History

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


def find_mark_flow(session: Session, history: History) -> Flow[PreparationMark | None]:
    archive, scope = session.engine.archive, session.scope
    if archive is None:
        found = session.engine.memory.of(scope).prepared.get(mark_name(history))
    else:
        found = yield from archive.find_prepared_flow(scope, mark_name(history))
    return PreparationMark.read(found)


def save_mark_flow(session: Session, history: History, mark: PreparationMark | None) -> Flow[None]:
    archive, scope = session.engine.archive, session.scope
    data = {} if mark is None else {"v": VERSION, **asdict(mark)}
    if archive is None:
        session.engine.memory.of(scope).prepared.put(mark_name(history), data)
    else:
        yield from archive.save_prepared_flow(scope, mark_name(history), data)


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
    """Return the places of the agent's own messages since a draft was begun."""
    own = [i for i, place in enumerate(history.places) if not place.item.summary]
    later = [] if known is None else own[known.count :]
    return frozenset(i for i in later if history.places[i].item.role == "assistant")


def hash_of(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:32]


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
