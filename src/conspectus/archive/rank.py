"""How well messages fit a query: BM25 over a message and what was said around it, and who says it.

A message that answers often holds no word of the question: "It is 5433." Its words are in what was
said before, so a message borrows the words of those before it, and a little of those after it,
before they are weighed. The weights were chosen on English and Chinese conversations, each left out
in turn; anything near them does as well (`docs/benchmarks.md`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BEFORE, AFTER = 5, 2
"""Messages before and after one from which it borrows words."""

_BORROWED = {d: 0.7**d for d in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""How much a word counts that was said so many messages earlier (negative: later)."""

K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5
"""Weight of the share of the query, by rarity, that stands in the message or around it."""

NAMED = 0.2
"""Bonus where the query names one speaker, and this is who speaks."""

QUESTION, ANSWER = -0.1, 0.06
"""A message that ends in a question seldom answers one; the message after it often does."""

WHOLE = 0.8
"""Weight of a long query as a whole, beside each of its sentences."""

WEAK = 0.25
"""A message that fits less than this share of how well the best one does is not shown."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one message of the history.

    Attributes:
        counts: how often it holds each term asked for.
        size: how many terms it has in all.
        speaker: terms of the name of who speaks.
        asks: it ends in a question.
    """

    counts: Mapping[str, int]
    size: int
    speaker: frozenset[str]
    asks: bool


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
    seen: Mapping[int, Seen], weights: Mapping[str, float], names: frozenset[str], totals: Totals
) -> dict[int, float]:
    """How well each message fits one sentence of a query, about 0 to 2; those that do at all.

    Args:
        seen: messages by their place in the history; around each that holds a term, those that may
            borrow it. Places that are not there are taken to hold no term.
        weights: the terms asked for, each with its weight.
        names: all words of the sentence, among which may be a speaker's name.
        totals: of the whole history.

    Example:
        >>> said = {0: Seen({"port": 1}, 4, frozenset(), True), 1: Seen({}, 3, frozenset(), False)}
        >>> found = scores(said, {"port": 1.0}, frozenset(), Totals(100, 5.0, {"port": 2}))
        >>> [place for place, score in found.items() if score > 1]
        [0, 1]
    """
    worth = {term: weight * totals.rarity(term) for term, weight in weights.items()}
    total = sum(worth.values())
    if not total:
        return {}
    borrowed: dict[int, dict[str, float]] = {}
    nearest: dict[int, dict[str, float]] = {}
    for place, one in seen.items():
        for term, count in one.counts.items():
            if term not in worth:
                continue
            for distance, share in _BORROWED.items():
                target = place + distance
                if target in seen:
                    words = borrowed.setdefault(target, {})
                    words[term] = words.get(term, 0.0) + share * count
                    close = nearest.setdefault(target, {})
                    close[term] = max(close.get(term, 0.0), math.sqrt(share))
    speaker = _named([one.speaker for one in seen.values()], names)
    mean = totals.mean * sum(_BORROWED.values())
    found = {}
    for place, words in borrowed.items():
        size = sum(
            share * (seen[place - distance].size if place - distance in seen else totals.mean)
            for distance, share in _BORROWED.items()
        )
        norm = K1 * (1 - B + B * size / mean) if mean else K1
        fit = sum(worth[term] * count / (count + norm) for term, count in words.items())
        near = sum(worth[term] * share for term, share in nearest[place].items())
        before = seen.get(place - 1)
        found[place] = (
            (fit + COVERED * near) / total
            + NAMED * (speaker is not None and seen[place].speaker == speaker)
            + QUESTION * seen[place].asks
            + ANSWER * (before is not None and before.asks)
        )
    return found


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


def strong(found: Mapping[int, float]) -> list[int]:
    """Places by score, without the weak ones; of two that fit equally well, the later first."""
    least = WEAK * max(found.values(), default=0.0)
    return sorted(
        (place for place, score in found.items() if score > 0 and score >= least),
        key=lambda place: (-found[place], -place),
    )


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
