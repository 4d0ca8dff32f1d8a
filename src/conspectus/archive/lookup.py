"""Asking one index: a bounded number of candidates by full-text search, then the real ranking."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conspectus.archive.rank import (
    AFTER,
    BEFORE,
    Seen,
    Totals,
    holding_enough,
    merged,
    scores,
    strong,
)
from conspectus.archive.words import Ask, Query

CANDIDATES = 120
"""Messages holding terms of one sentence, around which is looked; half of them do as well."""

EXACT = 2.0
"""Weight of an identifier that stands in a message as it stands in the query."""

AT_ONCE = 500
"""Rows read at a time."""

_WHOLE = "="
"""Opens a whole identifier where it stands among words; no word holds it."""


@dataclass(frozen=True, slots=True)
class Match:
    """One message found.

    Attributes:
        key: which.
        place: where it stands among those that are covered.
        score: how well it fits, higher is better.
        direct: it holds a good part of what is asked for itself, and is no mere neighbour.
    """

    key: str
    place: int
    score: float
    direct: bool


def look_up(db: sqlite3.Connection, query: Query, covered: Sequence[str]) -> list[Match]:
    """Messages that fit a query, the best first, and only those that are covered."""
    found = _ranked(db, (query.whole, *query.parts), covered)
    if not found and query.single:
        names = query.whole.names
        found = _ranked(db, (Ask(dict.fromkeys(query.single, 1.0), (), names),), covered)
    return found


def _ranked(db: sqlite3.Connection, asks: Sequence[Ask], covered: Sequence[str]) -> list[Match]:
    place = {key: at for at, key in enumerate(covered)}
    weights = [_weights(ask) for ask in asks]
    holding = _holding(db, {term for one in weights for term in one})
    if not holding:
        return []
    messages, mean = db.execute("SELECT count(*), avg(size) FROM docs").fetchone()
    totals = Totals(messages, mean or 0.0, holding)
    near = [
        {
            at + step
            for at in _candidates(db, [term for term in one if term in holding], place)
            for step in range(-AFTER, BEFORE + 1)
            if 0 <= at + step < len(covered)
        }
        for one in weights
    ]
    seen = _seen(db, covered, sorted(set().union(*near)), frozenset(holding))
    each = [
        scores({at: seen[at] for at in places if at in seen}, one, ask.names, _exact(ask), totals)
        for ask, one, places in zip(asks, weights, near, strict=True)
    ]
    best = merged(each[0], each[1:])
    direct = {
        at
        for one, places in zip(weights, near, strict=True)
        for at in holding_enough({at: seen[at] for at in places if at in seen}, one, totals)
    }
    holding_any = {at for at, one in seen.items() if one.counts}
    return [Match(covered[at], at, best[at], at in direct) for at in strong(best, holding_any)]


def _weights(ask: Ask) -> dict[str, float]:
    return {**ask.words, **dict.fromkeys(_exact(ask), EXACT)}


def _exact(ask: Ask) -> list[str]:
    return [_WHOLE + whole for whole in ask.wholes]


def _holding(db: sqlite3.Connection, terms: Iterable[str]) -> dict[str, int]:
    """How many messages hold each term; those that none holds are left out."""
    found = {}
    for term in terms:
        column, bare = ("wholes", term[1:]) if term.startswith(_WHOLE) else ("words", term)
        asked = "SELECT doc FROM vocabulary WHERE term = ? AND col = ?"
        for (number,) in db.execute(asked, (bare, column)):
            found[term] = number
    return found


def _candidates(
    db: sqlite3.Connection, terms: Sequence[str], place: Mapping[str, int]
) -> list[int]:
    """Places of covered messages that hold some of the terms, by plain BM25; a bounded number."""
    if not terms:
        return []
    wanted = " OR ".join(
        f'wholes : "{term[1:]}"' if term.startswith(_WHOLE) else f'words : "{term}"'
        for term in terms
    )
    rows = db.execute(
        "SELECT docs.key FROM terms JOIN docs ON docs.doc = terms.rowid WHERE terms MATCH ? "
        "ORDER BY terms.rank, terms.rowid DESC",
        (wanted,),
    )
    found: list[int] = []
    for (key,) in rows:
        if key in place:
            found.append(place[key])
            if len(found) == CANDIDATES:
                break
    return found


def _seen(
    db: sqlite3.Connection, covered: Sequence[str], places: Sequence[int], terms: frozenset[str]
) -> dict[int, Seen]:
    """What the index knows of the messages at some places."""
    at = {covered[place]: place for place in places}
    keys, found = list(at), {}
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        rows = db.execute(
            "SELECT docs.key, size, asks, speaker, words, wholes FROM docs "
            f"JOIN terms ON terms.rowid = docs.doc WHERE docs.key IN ({','.join('?' * len(part))})",
            part,
        )
        for key, size, asks, speaker, words, wholes in rows:
            counts: dict[str, int] = {}
            for term in (*words.split(), *(_WHOLE + whole for whole in wholes.split())):
                if term in terms:
                    counts[term] = counts.get(term, 0) + 1
            found[at[key]] = Seen(counts, size, frozenset(speaker.split()), bool(asks))
    return found
