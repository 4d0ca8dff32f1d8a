"""Asking a corpus: the passages that hold what is asked for, and those near them, ranked."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conspectus.recall.corpus import Corpus
from conspectus.recall.index import WHOLE
from conspectus.recall.rank import Asked, holding_enough, merged, plain, scores, strong
from conspectus.recall.words import Ask, Query

CANDIDATES = 120
"""Passages holding terms of a query, around which is looked; for each of several sentences half."""

EXACT = 2.0
"""Weight of an identifier that stands in a message as it stands in the query."""


@dataclass(frozen=True, slots=True)
class Match:
    """One passage found.

    Attributes:
        key: of its message.
        place: where that stands in the history.
        score: how well it fits, higher is better.
        direct: it holds a good part of what is asked for itself, and is no mere neighbour.
        follows: places of those that its message follows by one step.
        start, end: characters of the message that it is; no end for all of it.
    """

    key: str
    place: int
    score: float
    direct: bool
    follows: tuple[int, ...] = ()
    start: int = 0
    end: int | None = None


def look_up(corpus: Corpus, query: Query) -> list[Match]:
    """Passages that fit a query, the best first."""
    found = _ranked(corpus, (query.whole, *query.parts))
    if not found and query.single:
        names = query.whole.names
        found = _ranked(corpus, (Ask(dict.fromkeys(query.single, 1.0), (), names),))
    return found


def _ranked(corpus: Corpus, asks: Sequence[Ask]) -> list[Match]:
    weights = [{**ask.words, **dict.fromkeys(_exact(ask), EXACT)} for ask in asks]
    terms = {term for one in weights for term in one}
    held = {term: found for term in terms if (found := corpus.holding(term))}
    if not held:
        return []
    asked = [
        Asked(weight, ask.names, _exact(ask), held, corpus)
        for ask, weight in zip(asks, weights, strict=True)
    ]
    each, direct = [], set[int]()
    for number, one in enumerate(asked):
        most = CANDIDATES // (2 if number else 1)
        fits = plain(one)
        hits = _best(fits, most, corpus.place)
        each.append(scores(one, hits))
        direct.update(holding_enough(one, each[-1]))
    best = merged(each[0], each[1:])
    holding_any = {number for found in held.values() for number in found}
    matches = []
    for number in strong(best, holding_any, corpus.place):
        place = corpus.place[number]
        end = None if len(corpus.numbers[place]) == 1 else corpus.ends[number]
        matches.append(
            Match(
                corpus.covered[place],
                place,
                best[number],
                number in direct,
                corpus.steps.follows(place),
                corpus.starts[number],
                end,
            )
        )
    return matches


def _best(fits: Mapping[int, float], most: int, place: Sequence[int]) -> list[int]:
    """The passages that fit best, the later of two that fit as well first."""
    least = min(heapq.nlargest(most, fits.values()), default=0.0)
    among = [number for number, fit in fits.items() if fit >= least]
    return heapq.nlargest(most, among, key=lambda number: (fits[number], place[number]))


def _exact(ask: Ask) -> list[str]:
    return [WHOLE + whole for whole in ask.wholes]
