"""Rank passages for a query: BM25 over a passage and its surroundings, and who speaks.

The index says which passages hold a word, and nothing else: so a word counts once in a passage,
and how rare it is, is known for the history that is asked. A message that answers often holds no
word of the question: "It is 5433." Its words were said before, so a message borrows words of those
before it, and a little of those after it. Distances count in steps (`catalog.py`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass

from conspectus.recall.catalog import BORROWED, Catalog
from conspectus.recall.words import Ask, Query

CANDIDATES = 56
"""Passages with words of a query that are ranked with their surroundings; half for a sentence."""

SURROUNDED = 24  # Candidates, the best, whose short neighbours are ranked too

COMMON = 20_000
"""Passages with rarer words after which a common word finds no others, and only adds to these."""

CLOSE = {distance: math.sqrt(share) for distance, share in BORROWED.items()}
"""Weight of a borrowed word for covering the query."""

USUAL = sum(BORROWED.values())

K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5
"""Weight of the share of the query, by rarity, that stands in the message or around it."""

NAMED = 0.2  # Bonus if the query names one speaker, and the message is by that speaker

QUESTION, ANSWER = -0.1, 0.06
"""A message that ends in a question seldom answers one; the message after it often does."""

STATED = 0.1
"""Bonus of a user's short statement: an assistant elaborates on it at length in the same words."""

WHOLE = 0.8  # Weight of a long query as a whole, beside each of its sentences
DIRECT = 0.1  # Share of the findable words, by rarity, above which a message is no mere neighbour
WEAK, WEAK_NEAR = 0.25, 0.4
"""Share of the best score below which a passage is not shown; of one with no word of the query."""


@dataclass(frozen=True, slots=True)
class Match:
    """One found passage: its message's place, its number in that message, the words it holds.

    `direct`: it holds a good part of the query itself.
    """

    place: int
    passage: int
    score: float
    direct: bool
    words: frozenset[str]


def ranked(
    catalog: Catalog,
    query: Query,
    held: Mapping[str, frozenset[int]],
) -> list[Match]:
    """Return the passages that fit a query, best first; of equals the later first."""
    sets = {word: numbers for word, numbers in held.items() if numbers}
    rarity = {
        word: math.log(1 + (max(0, catalog.total - len(one)) + 0.5) / (len(one) + 0.5))
        for word, one in sets.items()
    }
    if not sets:
        return []
    asks = (query.whole, *query.parts)
    each = [
        _scores(catalog, ask, sets, rarity, CANDIDATES // (2 if at else 1))
        for at, ask in enumerate(asks)
    ]
    best = dict(each[0])
    if query.parts:
        best = {}
        for at, found in enumerate(each):
            top = max(found.values(), default=0.0)
            for number, score in found.items() if top > 0 else ():
                share = score / top * (1.0 if at else WHOLE)
                best[number] = max(best.get(number, 0.0), share)
    top = max(best.values(), default=0.0)
    total = sum(rarity.values())
    made = []
    for number, score in best.items():
        own = frozenset(word for word, one in sets.items() if number in one)
        if score <= 0 or score < top * (WEAK if own else WEAK_NEAR):
            continue
        place = catalog.place_of(number)
        direct = sum(rarity[word] for word in own) >= DIRECT * total
        made.append(Match(place, number - catalog.first(place), score, direct, own))
    return sorted(made, key=lambda one: (-one.score, -one.place, one.passage))


def _scores(
    catalog: Catalog,
    ask: Ask,
    sets: Mapping[str, frozenset[int]],
    rarity: Mapping[str, float],
    most: int,
) -> dict[int, float]:
    """Return the fit (about 0 to 1.5) of the best passages, and of short messages near them."""
    worth = {word: weight * rarity[word] for word, weight in ask.words.items() if word in sets}
    unknown = math.log(1 + 2 * catalog.total + 1)  # a word that nothing holds
    total = sum(worth.get(word, weight * unknown) for word, weight in ask.words.items())
    if not worth:
        return {}
    wanted = _candidates(catalog, worth, sets, most)
    best = list(wanted.values())[:SURROUNDED]
    around = {near for place in best for near in catalog.near(place)}
    short = {place for place in around if catalog.count(place) == 1}
    wanted |= {number: place for place in short if (number := catalog.first(place)) >= 0}
    speaker = _speaker(catalog, set(wanted.values()), ask.names)
    fits, found = _Fits(catalog, worth, sets), {}
    for number, place in wanted.items():
        if fit := fits.of(number, place):
            fact = catalog.fact(place)
            asked = any(catalog.fact(at).asks for at in catalog.before(place))
            stated = fact.user and fact.act == "s" and not fact.asks and catalog.count(place) == 1
            found[number] = (
                fit / total
                + NAMED * (bool(speaker) and fact.speaker == speaker)
                + QUESTION * fact.asks
                + ANSWER * (fact.act == "s" and asked)
                + STATED * stated
            )
    return found


def _candidates(
    catalog: Catalog, worth: Mapping[str, float], sets: Mapping[str, frozenset[int]], most: int
) -> dict[int, int]:
    """Return the passages that hold most of the words, by rarity, with their messages' places.

    Once there are enough, a common word only adds to them.
    """
    fits: dict[int, float] = {}
    for word in sorted(worth, key=lambda word: len(sets[word])):
        value, holding = worth[word], sets[word]
        if len(fits) + len(holding) > COMMON and len(fits) > 2 * most:
            for number in fits.keys() & holding:
                fits[number] += value
            continue
        get = fits.get
        for number in holding:
            fits[number] = get(number, 0.0) + value
    # Of passages with the same words the shorter one is more about them.
    norms: dict[int, float] = {}
    places: dict[int, int] = {}
    least = heapq.nlargest(4 * most, fits.values())[-1]
    among = [number for number, fit in fits.items() if fit >= least]
    for number in heapq.nlargest(4 * most, among, key=lambda number: (fits[number], number)):
        if (place := catalog.place_of(number)) >= 0:
            places[number] = place
            size = catalog.length(place) / catalog.size
            norms[number] = fits[number] / (1 + K1 * (1 - B + B * size))
    best = heapq.nlargest(most, norms, key=lambda number: (norms[number], number))
    return {number: places[number] for number in best}


class _Fits:
    """How well passages fit the words of one sentence."""

    def __init__(
        self, catalog: Catalog, worth: Mapping[str, float], sets: Mapping[str, frozenset[int]]
    ) -> None:
        self._catalog, self._worth = catalog, worth
        self._words = [(word, sets[word]) for word in worth]
        self._held: dict[int, tuple[str, ...]] = {}

    def _holds(self, number: int) -> tuple[str, ...]:
        found = tuple([word for word, holding in self._words if number in holding])
        self._held[number] = found
        return found

    def of(self, number: int, place: int) -> float:
        """Return the fit with the words that a passage borrows: saturated, and by its length."""
        held, holds = self._held, self._holds
        size, lenders = self._catalog.lenders(place)
        much, close, weight = {}, {}, 1.0
        for word in held[number] if number in held else holds(number):
            much[word] = close[word] = 1.0
        for distance, numbers in lenders:
            share = BORROWED[distance]
            weight += share
            for one in numbers:
                for word in held[one] if one in held else holds(one):
                    much[word] = much.get(word, 0.0) + share
                    if CLOSE[distance] > close.get(word, 0.0):
                        close[word] = CLOSE[distance]
        if not much:
            return 0.0
        # Missing lenders count as of mean size.
        norm = K1 * (1 - B + B * (size + max(0.0, USUAL - weight)) / max(USUAL, weight))
        worth = self._worth
        return sum(
            worth[word] * (count / (count + norm) + COVERED * close[word])
            for word, count in much.items()
        )


def _speaker(catalog: Catalog, places: set[int], names: frozenset[str]) -> str:
    """Return the one speaker whom a query names; empty for none or several."""
    speakers = {catalog.fact(place).speaker for place in places} - {""}
    named = [one for one in speakers if names.intersection(one.casefold().split())]
    return named[0] if len(named) == 1 else ""
