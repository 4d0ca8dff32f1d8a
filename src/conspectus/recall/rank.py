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
from conspectus.recall.words import Query

CANDIDATES = 56  # Passages with words of a query that are ranked with their surroundings
SURROUNDED = 24  # Candidates, the best, whose short neighbours are ranked too
COMMON = 20_000
"""Passages with rarer words after which a common word finds no others, and only adds to these."""

CLOSE = {step: math.sqrt(share) for step, share in BORROWED.items()}
"""Weight of a borrowed word for covering the query."""

USUAL = sum(BORROWED.values())
K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5
"""Weight of the share of the query, by rarity, that stands in the message or around it."""

NAMED = 0.2  # Bonus if the query names one speaker, and the message is by that speaker
ANSWER = 0.06  # Bonus of what is said after a question
STATED = 0.1
"""Bonus of a user's short statement: an assistant elaborates on it at length in the same words."""

WHOLE = 0.8  # Weight of a long query as a whole, beside each of its sentences
DIRECT = 0.1  # Share of the findable words, by rarity, above which a message is no mere neighbour
WEAK = 0.35  # Share of the best score below which a passage is not shown

Held = Mapping[str, frozenset[int]]
"""The passages that hold a word."""


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that fits: its message's place, its number in that message, its score.

    `direct`: it holds a good part of the query itself.
    """

    place: int
    passage: int
    score: float
    direct: bool


def ranked(catalog: Catalog, query: Query, held: Held) -> list[Match]:
    """Return the passages that fit a query, best first; of equals the later first."""
    sets = {word: numbers for word, numbers in held.items() if numbers}
    rarity = {word: math.log(1 + catalog.total / (len(one) + 0.5)) for word, one in sets.items()}
    best: dict[int, float] = {}
    for part in (query, *query.parts):
        scores = _scores(catalog, part, sets, rarity)
        share = 1.0
        if query.parts:
            share = (WHOLE if part is query else 1.0) / max(scores.values(), default=1.0)
        for number, score in scores.items():
            best[number] = max(best.get(number, 0.0), share * score)
    least, total = WEAK * max(best.values(), default=0.0), sum(rarity.values())
    matches = []
    for number, score in best.items():
        if score > 0 and score >= least:
            place = catalog.place_of(number)
            own = sum(rarity[word] for word, one in sets.items() if number in one)
            direct = own >= DIRECT * total
            matches.append(Match(place, number - catalog.first(place), score, direct))
    return sorted(matches, key=lambda one: (-one.score, -one.place, one.passage))


def _scores(
    catalog: Catalog, query: Query, sets: Held, rarity: Mapping[str, float]
) -> dict[int, float]:
    """Return the fit (about 0 to 1.5) of the best passages, and of short messages near them."""
    worth = {word: weight * rarity[word] for word, weight in query.words.items() if word in sets}
    unknown = math.log(2 + 2 * catalog.total)  # a word that nothing holds
    total = sum(worth.get(word, weight * unknown) for word, weight in query.words.items())
    if not worth:
        return {}
    wanted = _candidates(catalog, worth, sets)
    around = {near for place in list(wanted.values())[:SURROUNDED] for near in catalog.near(place)}
    short = {place for place in around if catalog.count(place) == 1}
    wanted |= {number: place for place in short if (number := catalog.first(place)) >= 0}
    speakers = {catalog.fact(place).speaker for place in wanted.values()} - {""}
    named = [one for one in speakers if query.names.intersection(one.casefold().split())]
    scores: dict[int, float] = {}
    for number, place in wanted.items():
        if fit := _fit(catalog, number, place, worth, sets):
            fact, short_one = catalog.fact(place), catalog.count(place) == 1
            follows = any(catalog.fact(at).asks for at in catalog.before(place))
            scores[number] = (
                fit / total
                + NAMED * (named == [fact.speaker])
                + ANSWER * (fact.act == "s" and follows)
                + STATED * (fact.act == "s" and fact.user and short_one and not fact.asks)
            )
    return scores


def _candidates(catalog: Catalog, worth: Mapping[str, float], sets: Held) -> dict[int, int]:
    """Return the passages that hold most of the words, by rarity, with their messages' places."""
    fits: dict[int, float] = {}
    for word in sorted(worth, key=lambda word: len(sets[word])):
        value, holding = worth[word], sets[word]
        if len(fits) + len(holding) > COMMON and len(fits) > 2 * CANDIDATES:
            holding = holding & fits.keys()
        for number in holding:
            fits[number] = fits.get(number, 0.0) + value
    # Of passages with the same words the shorter one is more about them.
    norms: dict[int, float] = {}
    places: dict[int, int] = {}
    for number in heapq.nlargest(4 * CANDIDATES, fits, key=lambda number: (fits[number], number)):
        if (place := catalog.place_of(number)) >= 0:
            places[number] = place
            size = catalog.length(place) / catalog.size
            norms[number] = fits[number] / (1 + K1 * (1 - B + B * size))
    best = heapq.nlargest(CANDIDATES, norms, key=lambda number: (norms[number], number))
    return {number: places[number] for number in best}


def _fit(
    catalog: Catalog, number: int, place: int, worth: Mapping[str, float], sets: Held
) -> float:
    """Return the fit with the words that a passage borrows: saturated, and by its length."""
    size, lenders = catalog.lenders(place)
    much: dict[str, float] = {word: 1.0 for word in worth if number in sets[word]}
    close, weight = dict(much), 1.0
    for step, numbers in lenders:
        share, near = BORROWED[step], CLOSE[step]
        weight += share
        for word in worth:
            holding = sets[word]
            for one in numbers:
                if one in holding:
                    much[word] = much.get(word, 0.0) + share
                    close[word] = max(close.get(word, 0.0), near)
    # Missing lenders count as of mean size.
    norm = K1 * (1 - B + B * (size + max(0.0, USUAL - weight)) / max(USUAL, weight))
    return sum(
        worth[word] * (count / (count + norm) + COVERED * close[word])
        for word, count in much.items()
    )
