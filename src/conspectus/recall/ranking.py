"""Rank passages for a query: BM25 over a passage and its surroundings, and who speaks.

The index says which passages hold a word, and nothing else: so a word counts once in a passage,
and how rare it is, is known for the history that is asked. A message that answers often holds no
word of the question: "It is 5433." So it borrows words of those said before it, and a little of
those after it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from conspectus.recall.catalog import BACK, ON, Rows

CANDIDATES = 40  # Passages with words of a query that are ranked with their surroundings
POOL = 160  # Passages that hold most of the words by rarity, among which the candidates are
SURROUNDED = 12  # Candidates, the best, whose short neighbours are ranked too
K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5  # Weight of the share of the query, by rarity, that stands in or around the message
ANSWER = 0.06  # Bonus of what is said after a question, in a talk
STATED = 0.1
"""Bonus of a user's short statement: an assistant elaborates on it at length in the same words."""

ADVICE, BRIEF = 0.65, 2
"""Share that stays of the score of a long answer, which says something about each word of a talk,
and of a user's text of more passages than that, which is pasted. Where calls are near, a long text
is an agent's own reasoning, or its task, and yields to nothing."""

DIRECT = 0.3  # Share of a query, by rarity, from which on a message is no mere neighbour
WEAK = 0.2  # Share of the best score below which nothing is shown

Held = Mapping[str, Collection[int]]  # The passages that hold a word, or a name as it stands


class Match(NamedTuple):
    """A passage that fits: its message's place, its number in that message, its score.

    `direct`: it holds a good part of the query itself.
    """

    place: int
    passage: int
    score: float
    direct: bool


def ranked(rows: Rows, query: Mapping[str, float], total: int, held: Held) -> list[Match]:
    """Return what fits a query, best first, of equals the later.

    `total` is the number of the history's passages.
    """
    sets = {word: numbers for word, numbers in held.items() if numbers}
    rarity = {word: math.log(1 + total / (len(one) + 0.5)) for word, one in sets.items()}
    unknown = math.log(2 + 2 * total)  # of a word that nothing holds
    whole = sum(weight * rarity.get(word, unknown) for word, weight in query.items())
    worth = [query[word] * rarity[word] for word in sets]
    masks = dict[int, int]()  # which of the words a passage holds, as bits
    for at, numbers in enumerate(sets.values()):
        bit = 1 << at
        for number in numbers:
            masks[number] = masks.get(number, 0) | bit
    words = {one: [at for at in range(len(worth)) if one >> at & 1] for one in {*masks.values(), 0}}
    found = _candidates(rows, masks, {one: sum(worth[at] for at in words[one]) for one in words})
    rows.load(found.values())
    around = {other for place in [*found.values()][:SURROUNDED] for other in rows.near(place)}
    # A call without a word of the query says less than what came of it.
    short = [at for at in around if len(rows[at].numbers) == 1 and rows[at].act != "c"]
    found |= {rows[at].numbers[0]: at for at in short}
    rows.load(found.values())
    mean = sum(rows[place].length for place in found.values()) / max(1, len(found))
    scores = dict[int, float]()
    for number, place in found.items():
        row, near = rows[place], rows.near(place)
        lent, size, weight = [(masks.get(number, 0), 1.0)], row.length, 1.0
        answers = row.links if row.act == "r" else ()
        for other, share in near.items():
            if passages := rows[other].lent(answers):
                lent += [(masks[one], share) for one in passages if one in masks]
                size += share * rows[other].length * len(passages)
                weight += share
        held_by = [(words[mask], share) for mask, share in lent]
        if fit := _fit(held_by, size / weight / mean, worth):
            share, more = _bonus(rows, place, near)
            scores[number] = share * (fit / whole + more)
    least, rare = WEAK * max(scores.values(), default=0.0), [*rarity.values()]
    matches = list[Match]()
    for number, score in scores.items():
        if score >= least:
            own = sum(rare[at] for at in words[masks.get(number, 0)])
            passage = number - rows[found[number]].numbers[0]
            matches.append(Match(found[number], passage, score, own >= DIRECT * sum(rare)))
    return sorted(matches, key=lambda one: (-one.score, -one.place, one.passage))


def _candidates(
    rows: Rows, masks: Mapping[int, int], values: Mapping[int, float]
) -> dict[int, int]:
    """Return the passages that hold most of the words, by rarity, with their messages' places.

    Of passages with the same words the shorter one is more about them, then the later one.
    """
    alike: dict[int, list[int]] = {}
    for number, mask in masks.items():
        alike.setdefault(mask, []).append(number)
    best = list[int]()
    for mask in sorted(alike, key=lambda mask: -values[mask]):
        best += heapq.nlargest(POOL - len(best), alike[mask])
        if len(best) >= POOL:
            break
    places = rows.at(best)
    sizes = {number: rows[place].length for number, place in places.items()}
    mean = sum(sizes.values()) / max(1, len(sizes))
    fits = {n: values[masks[n]] / (1 + K1 * _norm(size / mean)) for n, size in sizes.items()}
    chosen = heapq.nlargest(CANDIDATES, fits, key=lambda number: (fits[number], number))
    return {number: places[number] for number in chosen}


def _norm(size: float) -> float:
    return 1 - B + B * size


def _fit(lent: Iterable[tuple[Sequence[int], float]], size: float, worth: Sequence[float]) -> float:
    """Return the fit with words that a passage has or borrows, each with a share: saturated.

    `size` is that of the passage, 1 on average.
    """
    much, most = dict[int, float](), dict[int, float]()
    for words, share in lent:
        for word in words:
            much[word] = much.get(word, 0.0) + share
            most[word] = max(most.get(word, 0.0), share)
    norm = K1 * _norm(size)
    return sum(
        worth[word] * (sum_ / (sum_ + norm) + COVERED * math.sqrt(most[word]))
        for word, sum_ in much.items()
    )


def _bonus(rows: Rows, place: int, near: Iterable[int]) -> tuple[float, float]:
    """Return what a message's score is multiplied with, and what is added, by who says it."""
    row = rows[place]
    if row.act not in "sS":
        return 1.0, 0.0
    short = len(row.numbers) == 1
    more = STATED * (row.users and short and row.act == "s")
    around = range(place - BACK, place + ON + 1)
    if any(rows[at].act in "crx" for at in around if at in rows):
        return 1.0, more
    before = next((rows[at].act for at in near if at < place), "")
    brief = short or (row.users and len(row.numbers) <= BRIEF)
    return 1.0 if brief else ADVICE, more + ANSWER * (before == "S")
