"""Asking one index: a bounded number of candidates by full-text search, then the real ranking."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.archive.rank import (
    Seen,
    Totals,
    holding_enough,
    merged,
    scores,
    strong,
)
from conspectus.archive.steps import FARTHEST, Kind, Steps, far_enough
from conspectus.archive.words import Ask, Query, Terms

CANDIDATES = 120
"""Messages holding terms of a query, around which is looked; for each of several sentences half."""

EXACT = 2.0
"""Weight of an identifier that stands in a message as it stands in the query."""

AT_ONCE = 500
"""Rows read at a time."""

REACHES = (5, 12, 30, FARTHEST)
"""Places on each side of a candidate in which is looked for those near it, until they are found."""

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
        follows: places of those that it follows by one step.
    """

    key: str
    place: int
    score: float
    direct: bool
    follows: tuple[int, ...] = ()


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
    hits = [
        _candidates(db, [t for t in one if t in holding], place, CANDIDATES // (2 if n else 1))
        for n, one in enumerate(weights)
    ]
    steps = Steps(_kinds(db, covered, set().union(*hits)))
    near = [{one for at in part for one in steps.around(at)} for part in hits]
    seen = _seen(db, covered, sorted(set().union(*near)), frozenset(holding))
    each = [
        scores(
            {at: seen[at] for at in places if at in seen},
            one,
            ask.names,
            _exact(ask),
            totals,
            steps,
        )
        for ask, one, places in zip(asks, weights, near, strict=True)
    ]
    best = merged(each[0], each[1:])
    direct = {
        at
        for one, places in zip(weights, near, strict=True)
        for at in holding_enough({at: seen[at] for at in places if at in seen}, one, totals)
    }
    holding_any = {at for at, one in seen.items() if one.counts}
    return [
        Match(covered[at], at, best[at], at in direct, steps.follows.get(at, ()))
        for at in strong(best, holding_any)
    ]


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
    db: sqlite3.Connection, terms: Sequence[str], place: Mapping[str, int], most: int
) -> list[int]:
    """Places of covered messages that hold some of the terms, by plain BM25; a bounded number."""
    if not terms:
        return []
    wanted = " OR ".join(
        f'wholes : "{term[1:]}"' if term.startswith(_WHOLE) else f'words : "{term}"'
        for term in terms
    )
    rows = db.execute(
        "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rank, rowid DESC", (wanted,)
    )
    found: list[int] = []
    for doc in rows:  # a join would look up all that match before the first is known
        (key,) = db.execute("SELECT key FROM docs WHERE doc = ?", doc).fetchone()
        if key in place:
            found.append(place[key])
            if len(found) == most:
                break
    return found


def _kinds(db: sqlite3.Connection, covered: Sequence[str], hits: Iterable[int]) -> dict[int, Kind]:
    """What the messages around some places do, as far as any of them may follow another."""
    found: dict[int, Kind] = {}
    end = len(covered)
    for reach in REACHES:
        around = {n for hit in hits for n in range(max(0, hit - reach), min(end, hit + reach + 1))}
        at = {covered[place]: place for place in around.difference(found)}
        found.update(dict.fromkeys(at.values(), Kind.SAYS))  # one that is gone was something, too
        for key, kind in _rows(db, "key, kind", list(at)):
            found[at[key]] = Kind(kind)
        hits = [hit for hit in hits if not far_enough(found, hit, reach, end)]
    return found


def _rows(db: sqlite3.Connection, columns: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    if columns == "key, kind":
        table = "docs INDEXED BY docs_kind"  # without a look at the rows themselves
    else:
        table = "docs JOIN terms ON terms.rowid = docs.doc"
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        marks = ",".join("?" * len(part))
        yield from db.execute(f"SELECT {columns} FROM {table} WHERE key IN ({marks})", part)


def _seen(
    db: sqlite3.Connection, covered: Sequence[str], places: Sequence[int], terms: frozenset[str]
) -> dict[int, Seen]:
    """What the index knows of the messages at some places."""
    at = {covered[place]: place for place in places}
    found = {}
    bare = terms.difference(term for term in terms if term.startswith(_WHOLE))
    whole = frozenset(term.removeprefix(_WHOLE) for term in terms - bare)
    columns = "key, size, asks, speaker, kind, answers, calls, words, wholes"
    for row in _rows(db, columns, list(at)):
        key, size, asks, speaker, kind, answers, calls, words, wholes = row
        counts = _counts(words.split(), bare)
        if whole and wholes:
            exact = _counts(wholes.split(), whole)
            counts.update((_WHOLE + term, number) for term, number in exact.items())
        apart = json.loads(calls) if calls and counts else {}
        found[at[key]] = Seen(
            counts,
            size,
            frozenset(speaker.split()),
            bool(asks),
            Kind(kind),
            frozenset(answers.split()),
            {name: _counts(said, terms) for name, said in apart.items()},
        )
    return found


def of_one_call(terms: Terms) -> list[str]:
    """The terms of one of several calls, as they are kept beside those of the whole message."""
    return [*terms.words, *(_WHOLE + whole for whole in terms.wholes)]


def _counts(said: Sequence[str], terms: frozenset[str]) -> dict[str, int]:
    return {term: said.count(term) for term in terms.intersection(said)}
