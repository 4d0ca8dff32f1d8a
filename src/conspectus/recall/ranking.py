"""Rank passages for a query: BM25 over a passage and its surroundings, and who speaks.

The index says which passages hold a word, and nothing else: so a word counts once in a passage,
and how rare it is, is known for the history that is asked. A message that answers often holds no
word of the question: "It is 5433." So it borrows words of those said before it, and a little of
those after it.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conspectus.archive.passages import one_line
from conspectus.archive.values import Listed

BEFORE = 5  # Messages before one from which it borrows words
LATER = {"s": 2, "S": 2, "c": 4, "r": -1, "x": -1}  # Those after it, by its act
BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1, -3: 0.1, -4: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

ROUND = 100  # Results of one round among which that of a call is looked for
CANDIDATES = 56  # Passages with words of a query that are ranked with their surroundings
SURROUNDED = 24  # Candidates, the best, whose short neighbours are ranked too
K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5  # Weight of the share of the query, by rarity, that stands in or around the message
NAMED = 0.2  # Bonus if the query names one speaker, and the message is by that speaker
EXACT = 0.5  # Bonus of a passage that holds a name of several words as the query has it
ANSWER = 0.06  # Bonus of what is said after a question
STATED = 0.1
"""Bonus of a user's short statement: an assistant elaborates on it at length in the same words."""

ADVICE = 0.65
"""Share that stays of the score of a long answer: it says something about each word of a talk."""

DIRECT = 0.1  # Share of the findable words, by rarity, above which a message is no mere neighbour
WEAK = 0.35  # Share of the best score below which a passage is not shown

GONE: Listed = (b"", -1, 0, 0, "s")  # a message that has expired
Held = Mapping[str, frozenset[int]]
"""The passages that hold a word."""


class Match(NamedTuple):
    """A passage that fits: its message's place, its number in that message, its score.

    `direct`: it holds a good part of the query itself.
    """

    place: int
    passage: int
    score: float
    direct: bool


class Catalog:
    """The searchable messages of a chain; a place is a position in the conversation.

    `acts` has a letter for each, as `original_of` writes it. All is texts, arrays and plain rows,
    which the garbage collector does not go through.
    """

    def __init__(self, keys: Sequence[str], listed: Mapping[str, Listed]) -> None:
        self.keys, self._rows = keys, [listed.get(key, GONE) for key in keys]
        self.acts = "".join([row[4][0] for row in self._rows])
        self.total = sum([row[2] for row in self._rows]) or 1
        self.size = sum([row[3] for row in self._rows]) / self.total or 1.0
        firsts = [row[1] for row in self._rows]
        self._places = array("q", sorted(range(len(firsts)), key=firsts.__getitem__))
        self._firsts = array("q", sorted(firsts))
        self._said = array("q", [at for at, act in enumerate(self.acts) if act in "sS"])

    def __len__(self) -> int:
        return len(self.keys)

    def place_of(self, number: int) -> int:
        """Return the place of a passage's message; -1 if that is not of this chain."""
        place = self._places[at] if (at := bisect_right(self._firsts, number) - 1) >= 0 else -1
        return place if place >= 0 and number in self.passages(place) else -1

    def passages(self, place: int) -> range:
        """Return the numbers of the passages of a message that can be found."""
        _, first, count, _, _ = self._rows[place]
        return range(first, first + count * (self.acts[place] != "x"))

    def length(self, place: int) -> float:
        """Return the words of a message's passages, on average."""
        return self._rows[place][3] / max(1, self._rows[place][2])

    def named(self, name: str) -> list[int]:
        """Return the places of the messages that an id, a citation or a key's start names."""
        start = len(name) >= 8 and all(c in "0123456789abcdef" for c in name)
        wanted = one_line(name)
        return [
            at
            for at, (key, row) in enumerate(zip(self.keys, self._rows, strict=True))
            if (start and key.startswith(name))
            or key == name
            or (wanted in row[4] and row[4].split("\t")[1:2] == [wanted])
        ]

    def hidden(self, names: Iterable[str]) -> frozenset[int]:
        """Return the passages of the messages with these ids."""
        places = {place for name in names for place in self.named(name)}
        return frozenset(number for place in places for number in self.passages(place))

    def links(self, place: int) -> list[str]:
        """Return the calls that a message answers, or that it makes (`0:call_7`)."""
        return self._rows[place][4].split("\t")[3:]

    def speaker(self, place: int) -> str:
        """Return the name of a message's speaker, if it is known."""
        return "".join(self._rows[place][4].split("\t")[2:3])

    def bonus(self, place: int) -> tuple[float, float]:
        """Return what a message's score is multiplied with, and what is added, by who says it."""
        if self.acts[place] not in "sS":
            return 1.0, 0.0
        short, users = self._rows[place][2] == 1, self._rows[place][4][1:2] == "u"
        at = bisect_left(self._said, place)
        follows = at > 0 and self.acts[self._said[at - 1]] == "S"
        stated = STATED * (users and short and self.acts[place] == "s")
        return 1.0 if short or users else ADVICE, ANSWER * follows + stated

    def near(self, place: int) -> dict[int, float]:
        """Return the places from which a message borrows words, with their weights.

        Speech borrows from speech, a call from all around it, its results from what is before them.
        """
        line: Sequence[int] = range(len(self.keys))
        at, act = place, self.acts[place]
        if act in "sS":
            line, at = self._said, bisect_left(self._said, place)
        while act in "rx" and at > max(0, place - ROUND) and self.acts[at - 1] in "rx":
            at -= 1
        around = range(max(0, at - BEFORE), min(at + LATER[act] + 1, len(line)))
        return {line[one]: BORROWED[at - one] for one in around if line[one] != place}

    def lenders(self, place: int) -> tuple[list[tuple[int, float]], float]:
        """Return the passages whose words a message borrows, with weights; and a passage's size.

        A message lends its first passage, and the start of each call. A long text of a speaker is
        about everything around it, so it lends nothing. A result has its own call.
        """
        lent, size, weight = list[tuple[int, float]](), self.length(place), 1.0
        answers = self.links(place) if self.acts[place] == "r" else ()
        for other, share in self.near(place).items():
            numbers, act = self.passages(other), self.acts[other]
            if not numbers or (len(numbers) > 1 and act in "sS"):
                continue
            firsts = [numbers[0]]
            if act == "c":
                calls = [link.partition(":") for link in self.links(other)]
                own = [at for at, _, call in calls if call in answers]
                firsts = [numbers[0] + int(at) for at in own or [at for at, _, _ in calls]]
            lent += [(number, share) for number in firsts]
            size += share * self.length(other) * len(firsts)
            weight += share
        return lent, size / weight


def ranked(
    catalog: Catalog, query: Mapping[str, float], held: Held, exact: Mapping[int, int]
) -> list[Match]:
    """Return what fits a query, best first, of equals the later; `exact` passages hold a name."""
    sets = {word: numbers for word, numbers in held.items() if numbers}
    rarity = {word: math.log(1 + catalog.total / (len(one) + 0.5)) for word, one in sets.items()}
    unknown = math.log(2 + 2 * catalog.total)  # of a word that nothing holds
    total = sum(weight * rarity.get(word, unknown) for word, weight in query.items())
    worth = {word: query[word] * rarity[word] for word in sets}
    candidates, scores = _candidates(catalog, sets, worth), dict[int, tuple[float, int]]()
    candidates |= exact
    speakers = {catalog.speaker(place) for place in candidates.values()} - {""}
    named = [one for one in speakers if query.keys() & {*one.casefold().split()}]
    for number, place in candidates.items():
        if fit := _fit(catalog, number, place, sets, worth):
            share, more = catalog.bonus(place)
            more += NAMED * (named == [catalog.speaker(place)]) + EXACT * (number in exact)
            scores[number] = (share * (fit / total + more), place)
    least = WEAK * max((score for score, _ in scores.values()), default=0.0)
    direct, matches = DIRECT * sum(rarity.values()), list[Match]()
    for number, (score, place) in scores.items():
        if score >= least:
            own = sum(rarity[word] for word, one in sets.items() if number in one)
            passage = number - catalog.passages(place)[0]
            matches.append(Match(place, passage, score, own >= direct))
    return sorted(matches, key=lambda one: (-one.score, -one.place, one.passage))


def _candidates(catalog: Catalog, sets: Held, worth: Mapping[str, float]) -> dict[int, int]:
    """Return the passages that hold most of the words, by rarity, and the short ones near them.

    Of passages with the same words the shorter one is more about them, then the later one. Each
    has the place of its message.
    """
    sums: dict[int, float] = {}
    for word, numbers in sets.items():
        value = worth[word]
        for number in numbers:
            sums[number] = sums.get(number, 0.0) + value
    fits: dict[int, tuple[float, int, int]] = {}
    for number in heapq.nlargest(4 * CANDIDATES, sums, key=lambda number: (sums[number], number)):
        if (place := catalog.place_of(number)) >= 0:
            fit = sums[number] / (1 + K1 * _norm(catalog.length(place) / catalog.size))
            fits[number] = (fit, number, place)
    best = {number: place for _, number, place in heapq.nlargest(CANDIDATES, fits.values())}
    around = {other for place in list(best.values())[:SURROUNDED] for other in catalog.near(place)}
    short = {catalog.passages(at)[0]: at for at in around if len(catalog.passages(at)) == 1}
    return best | short


def _norm(size: float) -> float:
    return 1 - B + B * size


def _fit(
    catalog: Catalog, number: int, place: int, sets: Held, worth: Mapping[str, float]
) -> float:
    """Return the fit with the words that a passage borrows: saturated, and by its length."""
    lent, size = catalog.lenders(place)
    lent.append((number, 1.0))
    norm, fit = K1 * _norm(size / catalog.size), 0.0
    for word, value in worth.items():
        held = sets[word]
        if shares := [share for one, share in lent if one in held]:
            much = sum(shares)
            fit += value * (much / (much + norm) + COVERED * math.sqrt(max(shares)))
    return fit
