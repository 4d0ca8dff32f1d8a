"""How well messages fit a query: BM25 over a message and what was said around it, and who says it.

A message that answers often holds no word of the question: "It is 5433." Its words are in what was
said before, so a message borrows the words of those before it, and a little of those after it,
before they are weighed. How far it stands from them goes by steps (`steps.py`), so that an answer
borrows from its question however many tools were called between. The weights were chosen on English
and Chinese conversations, each left out in turn; anything near them does as well
(`docs/benchmarks.md`).
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from conspectus.archive.steps import BEFORE, Kind, Steps

_BORROWED = {d: 0.7**d for d in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""How much a word counts that was said so many steps earlier (negative: later)."""

_CLOSE = {distance: math.sqrt(share) for distance, share in _BORROWED.items()}
"""How much it counts for covering the query."""

_USUAL = sum(_BORROWED.values())

K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5
"""Weight of the share of the query, by rarity, that stands in the message or around it."""

NAMED = 0.2
"""Bonus where the query names one speaker, and this is who speaks."""

QUESTION, ANSWER = -0.1, 0.06
"""A message that ends in a question seldom answers one; the message after it often does."""

EXACT = 0.3
"""Bonus of a message that holds all identifiers asked for as they stand; less for some of them."""

WHOLE = 0.8
"""Weight of a long query as a whole, beside each of its sentences."""

DIRECT = 0.1
"""Share of what can be found, by rarity, that a message holds itself if it is no mere neighbour."""

WEAK = 0.25
"""A message that fits less than this share of how well the best one does is not shown."""

WEAK_NEAR = 0.4
"""The same for one that holds no word asked for, and only stands near."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one message of the history.

    Attributes:
        counts: how often it holds each term asked for.
        size: how many terms it has in all.
        speaker: terms of the name of who speaks.
        asks: it ends in a question.
        kind: what it does.
        answers: names of the calls whose results it holds.
        calls: where it makes several calls at once, how often each holds each term asked for.
    """

    counts: Mapping[str, int]
    size: int
    speaker: frozenset[str]
    asks: bool
    kind: Kind = Kind.SAYS
    answers: frozenset[str] = frozenset()
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def lent(self, term: str, count: int, to: Seen) -> int:
        """How much of its count of a term it lends. To a result only its own call lends any."""
        if to.answers.isdisjoint(self.calls):
            return count
        others = [said for name, said in self.calls.items() if name not in to.answers]
        return max(0, count - sum(said.get(term, 0) for said in others))


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known of all messages: how many, their mean size, and how many hold each term."""

    messages: int
    mean: float
    holding: Mapping[str, int]

    def rarity(self, term: str) -> float:
        """Inverse document frequency, never negative."""
        holding = self.holding.get(term, 0)
        return math.log(1 + (self.messages - holding + 0.5) / (holding + 0.5))


def scores(
    seen: Mapping[int, Seen],
    weights: Mapping[str, float],
    names: frozenset[str],
    exact: Sequence[str],
    totals: Totals,
    steps: Steps,
) -> dict[int, float]:
    """How well each message fits one sentence of a query, about 0 to 1.5; those that do at all.

    Args:
        seen: messages by their place in the history; around each that holds a term, those that may
            borrow it. Places that are not there are taken to hold no term.
        weights: the terms asked for, each with its weight.
        names: all words of the sentence, among which may be a speaker's name.
        exact: those of the terms that are whole identifiers.
        totals: of the whole history.
        steps: which of these messages follow which.

    Example:
        >>> said = {0: Seen({"port": 1}, 4, frozenset(), True), 1: Seen({}, 3, frozenset(), False)}
        >>> steps = Steps({0: Kind.SAYS, 1: Kind.SAYS})
        >>> totals = Totals(100, 5.0, {"port": 2})
        >>> found = scores(said, {"port": 1.0}, frozenset(), (), totals, steps)
        >>> [place for place, score in found.items() if score > 0.5]
        [0, 1]
    """
    worth = {term: weight * totals.rarity(term) for term, weight in weights.items()}
    total = sum(worth.values())
    if not total:
        return {}
    mean = totals.mean or 1.0
    weights_of, sizes_of = dict.fromkeys(seen, 0.0), dict.fromkeys(seen, 0.0)
    borrowed: dict[str, dict[int, float]] = {term: {} for term in worth}
    nearest: dict[str, dict[int, float]] = {term: {} for term in worth}
    for place, one in seen.items():
        held = [(t, n, borrowed[t], nearest[t]) for t, n in one.counts.items() if t in worth]
        for target, distance in steps.around(place).items():
            if target not in seen:
                continue
            share, close = _BORROWED[distance], _CLOSE[distance]
            weights_of[target] += share
            sizes_of[target] += share * one.size / mean
            for term, count, much, closest in held:
                if one.calls:
                    count = one.lent(term, count, seen[target])
                if count:
                    much[target] = much.get(target, 0.0) + share * count
                    if close > closest.get(target, 0.0):
                        closest[target] = close
    norms = {place: _norm(weight, sizes_of[place]) for place, weight in weights_of.items()}
    fits = dict.fromkeys(seen, 0.0)
    for term, value in worth.items():
        closest = nearest[term]
        for place, lent in borrowed[term].items():
            fits[place] += value * (lent / (lent + norms[place]) + COVERED * closest[place])
    speaker = _named([one.speaker for one in seen.values()], names)
    found = {}
    for place, fit in fits.items():
        if fit:
            one = seen[place]
            before = [seen[at] for at in steps.follows.get(place, ()) if at in seen]
            found[place] = (
                fit / total
                + NAMED * (speaker is not None and one.speaker == speaker)
                + EXACT * sum(term in one.counts for term in exact) / max(1, len(exact))
                + QUESTION * one.asks
                + ANSWER * (one.kind == Kind.SAYS and any(other.asks for other in before))
            )
    return found


def holding_enough(
    seen: Mapping[int, Seen], weights: Mapping[str, float], totals: Totals
) -> list[int]:
    """Places of messages that hold a good part of what is asked for themselves."""
    worth = {term: weight * totals.rarity(term) for term, weight in weights.items()}
    least = DIRECT * sum(worth.get(term, 0.0) for term in totals.holding)
    return [
        place
        for place, one in seen.items()
        if one.counts and sum(worth.get(term, 0.0) for term in one.counts) >= least
    ]


def _norm(weight: float, size: float) -> float:
    """What the count of a term is weighed against: more in a long message, and in one that borrows
    from long ones. What it could borrow from and is not there is of mean size.

    Args:
        weight: of all that it borrows from, itself included.
        size: theirs as shares of the mean, each by its weight.
    """
    return K1 * (1 - B + B * (size + max(0.0, _USUAL - weight)) / max(_USUAL, weight))


def merged(whole: Mapping[int, float], parts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """One ranking of a query and its sentences: a message counts by what it fits best.

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


def strong(found: Mapping[int, float], holding: Container[int]) -> list[int]:
    """Places by score, without the weak ones; of two that fit equally well, the later first.

    Args:
        found: how well each fits.
        holding: those that hold some of what is asked for themselves.
    """
    best = max(found.values(), default=0.0)

    def fits(place: int) -> bool:
        least = best * (WEAK if place in holding else WEAK_NEAR)
        return found[place] > 0 and found[place] >= least

    return sorted(filter(fits, found), key=lambda place: (-found[place], -place))


def fused(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Several rankings of the same messages as one, by reciprocal ranks.

    The score is the sum of `1 / (60 + rank)` (Cormack, Clarke and Büttcher 2009), as scores of
    different kinds cannot be added.

    Example:
        >>> found = fused([[7, 8], [8, 9]])
        >>> sorted(found, key=found.get, reverse=True)
        [8, 7, 9]
    """
    found: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            found[place] = found.get(place, 0.0) + 1 / (60 + rank)
    return found


def _named(speakers: Sequence[frozenset[str]], names: frozenset[str]) -> frozenset[str] | None:
    """The one speaker that a query names; None where it names none, or several."""
    named = {speaker for speaker in speakers if speaker & names}
    return named.pop() if len(named) == 1 else None
