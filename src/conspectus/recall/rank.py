"""Rank messages for a query: BM25 over a message and its surroundings, and the speaker.

A message that answers often holds no word of the question: "It is 5433." Its words were said
before, so a message borrows words of those before it, and a little of those after it. The distance
counts in steps (`steps.py`), so that an answer borrows from its question over any number of tool
calls. The weights were chosen on English and Chinese conversations, each left out in turn; close
values do as well (`docs/benchmarks.md`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conspectus.recall.corpus import Corpus
from conspectus.recall.steps import BEFORE, Act

_BORROWED = {d: 0.7**d for d in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

_CLOSE = {distance: math.sqrt(share) for distance, share in _BORROWED.items()}
"""Its weight for covering the query."""

_USUAL = sum(_BORROWED.values())

K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5
"""Weight of the share of the query, by rarity, that stands in the message or around it."""

NAMED = 0.2  # Bonus if the query names one speaker, and the message is by that speaker

QUESTION, ANSWER = -0.1, 0.06
"""A message that ends in a question seldom answers one; the message after it often does."""

EXACT = 0.3  # Bonus of a message that holds all identifiers of the query; less for some of them
WHOLE = 0.8  # Weight of a long query as a whole, beside each of its sentences
DIRECT = 0.1  # Share of the findable terms, by rarity, above which a message is no mere neighbour
WEAK = 0.25  # Share of the best score below which a message is not shown
WEAK_NEAR = 0.4  # The same for a message that holds no term of the query


@dataclass(frozen=True, slots=True)
class Asked:
    """One sentence of a query, with the weights of its terms and the passages that hold them.

    `names` are all its words, as any may name a speaker; `exact` are its whole identifiers.
    """

    weights: Mapping[str, float]
    names: frozenset[str]
    exact: Sequence[str]
    held: Mapping[str, Mapping[int, int]]
    corpus: Corpus

    def worth(self, term: str) -> float:
        """Return a term's weight by rarity: inverse document frequency, never negative."""
        holding, passages = len(self.held.get(term, ())), self.corpus.total
        return self.weights[term] * math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def plain(asked: Asked) -> dict[int, float]:
    """Return the BM25 score of each passage that holds a term, without its surroundings."""
    found: dict[int, float] = {}
    sizes, base, slope = asked.corpus.sizes, K1 * (1 - B), K1 * B / asked.corpus.mean
    before = found.get
    for term in asked.weights.keys() & asked.held.keys():
        worth = asked.worth(term)
        for number, count in asked.held[term].items():
            fit = worth * count / (count + base + slope * sizes[number])
            found[number] = before(number, 0.0) + fit
    return found


def scores(asked: Asked, hits: Sequence[int]) -> dict[int, float]:
    """Return the fit (about 0 to 1.5) of the hits, and of short messages near them."""
    corpus = asked.corpus
    total = sum(map(asked.worth, asked.weights))
    if not total:
        return {}
    near = {place for hit in hits for place in corpus.steps.around(corpus.place[hit])}
    wanted = set(hits).union(*(corpus.numbers[at] for at in near if at not in corpus.long))
    lent, norms = _lending(corpus, wanted)
    fits = dict.fromkeys(wanted, 0.0)
    for term in asked.weights.keys() & asked.held.keys():
        borrowed: dict[int, float] = {}
        closest: dict[int, float] = {}
        for number, count in asked.held[term].items():
            for target, distance in lent.get(number, ()):
                borrowed[target] = borrowed.get(target, 0.0) + _BORROWED[distance] * count
                if _CLOSE[distance] > closest.get(target, 0.0):
                    closest[target] = _CLOSE[distance]
        worth = asked.worth(term)
        for target, much in borrowed.items():
            fits[target] += worth * (much / (much + norms[target]) + COVERED * closest[target])
    speaker = _named(
        [frozenset(doc.speaker.split()) for at in near if (doc := corpus.doc(at))], asked.names
    )
    found = {}
    for number, fit in fits.items():
        doc = corpus.doc(place := corpus.place[number])
        if fit and doc is not None:
            before = [corpus.doc(at) for at in corpus.steps.follows(place)]
            exact = sum(number in asked.held.get(term, ()) for term in asked.exact)
            found[number] = (
                fit / total
                + NAMED * (speaker is not None and frozenset(doc.speaker.split()) == speaker)
                + EXACT * exact / max(1, len(asked.exact))
                + QUESTION * doc.asks
                + ANSWER * (doc.kind == Act.SAYS and any(one and one.asks for one in before))
            )
    return found


def _lending(
    corpus: Corpus, wanted: Collection[int]
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, float]]:
    """Return by passage its borrowers with their distance, and each borrower's norm."""
    lent: dict[int, list[tuple[int, int]]] = {number: [(number, 0)] for number in wanted}
    weights = dict.fromkeys(wanted, 1.0)
    sizes = {number: corpus.sizes[number] / corpus.mean for number in wanted}
    targets: dict[int, list[int]] = {}
    for number in wanted:
        targets.setdefault(corpus.place[number], []).append(number)
    lenders = {at for place in targets for at in _reach(corpus, place)}
    for lender in lenders:
        numbers = corpus.lends(lender)
        around = corpus.steps.around(lender)
        for place, distance in around.items():
            if not distance or place not in targets:
                continue
            doc = corpus.doc(place)
            answers = doc.answers if doc else ()
            own = [n for n in numbers if corpus.calls.get(n, "") in answers]
            for number in own or numbers:
                for target in targets[place]:
                    lent.setdefault(number, []).append((target, distance))
                    weights[target] += _BORROWED[distance]
                    sizes[target] += _BORROWED[distance] * corpus.sizes[number] / corpus.mean
    return lent, {number: _norm(weights[number], sizes[number]) for number in wanted}


def _reach(corpus: Corpus, place: int) -> set[int]:
    """Return the places that the message at a place may borrow from."""
    found, edge = {place}, {place}
    for _ in range(BEFORE):
        edge = {at for one in edge for at in corpus.steps.follows(one)} - found
        found |= edge
    return found.union(corpus.steps.around(place))


def holding_enough(asked: Asked, among: Iterable[int]) -> list[int]:
    """Return the passages that hold a good part of the sentence themselves."""
    terms = [term for term in asked.weights if term in asked.held]
    worth = {term: asked.worth(term) for term in terms}
    least = DIRECT * sum(worth.values())
    return [
        number
        for number in among
        if (held := [worth[term] for term in terms if number in asked.held[term]])
        and sum(held) >= least
    ]


def _norm(weight: float, size: float) -> float:
    """Return the norm of a term's count: larger for long messages and lenders.

    Missing lenders count as of mean size. `size` is in shares of the mean, weighted like `weight`.
    """
    return K1 * (1 - B + B * (size + max(0.0, _USUAL - weight)) / max(_USUAL, weight))


def merged(whole: Mapping[int, float], parts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Rank by the best fit to the query or to one of its sentences.

    Each sentence is measured by its own best message, so that none crowds out another.
    """
    if not parts:
        return dict(whole)
    merged: dict[int, float] = {}
    for weight, found in ((WHOLE, whole), *((1.0, part) for part in parts)):
        best = max(found.values(), default=0.0)
        for place, score in found.items():
            if best > 0:
                merged[place] = max(merged.get(place, 0.0), weight * score / best)
    return merged


def strong(
    found: Mapping[int, float], holding: Container[int], places: Sequence[int] | Mapping[int, int]
) -> list[int]:
    """Return passages by score without the weak ones; of equals the later first."""
    best = max(found.values(), default=0.0)

    def fits(number: int) -> bool:
        least = best * (WEAK if number in holding else WEAK_NEAR)
        return found[number] > 0 and found[number] >= least

    return sorted(filter(fits, found), key=lambda number: (-found[number], -places[number]))


def fused(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Fuse rankings of the same messages by reciprocal ranks.

    The score is the sum of `1 / (60 + rank)` (Cormack, Clarke and Büttcher 2009), as scores of
    different kinds cannot be added.
    """
    found: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            found[place] = found.get(place, 0.0) + 1 / (60 + rank)
    return found


def _named(speakers: Sequence[frozenset[str]], names: frozenset[str]) -> frozenset[str] | None:
    """Return the one speaker that a query names; None for none or several."""
    named = {speaker for speaker in speakers if speaker & names}
    return named.pop() if len(named) == 1 else None
