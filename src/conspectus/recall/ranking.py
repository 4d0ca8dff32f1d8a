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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conspectus.archive.passages import one_line
from conspectus.archive.values import Listed
from conspectus.recall.words import Query

BEFORE, AFTER = 5, 2  # Messages before and after one from which it borrows words
BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

CLOSE = {step: math.sqrt(share) for step, share in BORROWED.items()}  # for covering the query

WORK = 2  # Steps over which calls of tools and their results lend words
RESULTS = 4  # Messages after a call that lend to it
ROUND = 100  # Results of one round among which that of a call is looked for
CANDIDATES = 56  # Passages with words of a query that are ranked with their surroundings
SURROUNDED = 24  # Candidates, the best, whose short neighbours are ranked too
ENOUGH = 4_000  # Passages with rarer words after which a common word brings no others
K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5  # Weight of the share of the query, by rarity, that stands in or around the message
NAMED = 0.2  # Bonus if the query names one speaker, and the message is by that speaker
ANSWER = 0.06  # Bonus of what is said after a question
STATED = 0.1
"""Bonus of a user's short statement: an assistant elaborates on it at length in the same words."""

ADVICE = 0.65
"""Share that stays of the score of a long answer: it says something about each word of a talk."""

WHOLE = 0.8  # Weight of a long query as a whole, beside each of its sentences
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
        inside = place >= 0 and number < self._rows[place][1] + self._rows[place][2]
        return place if inside and self.acts[place] != "x" else -1

    def first(self, place: int) -> int:
        """Return the number of a message's first passage."""
        return self._rows[place][1]

    def is_short(self, place: int) -> bool:
        """Return whether a message has one passage, which can be found."""
        return self._rows[place][2] == 1 and self.acts[place] != "x"

    def length(self, place: int) -> float:
        """Return the words of a message's passages, on average."""
        return self._rows[place][3] / max(1, self._rows[place][2])

    def passages(self, names: Iterable[str]) -> frozenset[int]:
        """Return the passages of the messages with these ids."""
        if not (keys := {key for name in names for key in self.named(name)}):
            return frozenset()
        rows = [row for key, row in zip(self.keys, self._rows, strict=True) if key in keys]
        return frozenset(number for row in rows for number in range(row[1], row[1] + row[2]))

    def named(self, name: str) -> list[str]:
        """Return the keys of the messages that an id, a citation or the start of a key names."""
        start = len(name) >= 8 and all(c in "0123456789abcdef" for c in name)
        wanted = one_line(name)
        return [
            key
            for key, row in zip(self.keys, self._rows, strict=True)
            if (start and key.startswith(name))
            or key == name
            or (wanted in row[4] and row[4].split("\t")[1:2] == [wanted])
        ]

    def speaker(self, place: int) -> str:
        """Return the name of a message's speaker, if it is known."""
        return "".join(self._rows[place][4].split("\t")[2:3])

    def states(self, place: int) -> bool:
        """Return whether a message is a user's short statement."""
        return self._rows[place][4][:2] == "su" and self.is_short(place)

    def advises(self, place: int) -> bool:
        """Return whether a message is a long answer of the assistant's."""
        _, _, count, _, about = self._rows[place]
        return count > 1 and about[:1] in "sS" and about[1:2] != "u"

    def links(self, place: int) -> list[str]:
        """Return the calls that a message answers, or that it makes (`0:call_7`)."""
        return self._rows[place][4].split("\t")[3:]

    def before(self, place: int) -> tuple[int, ...]:
        """Return the places that a message follows: of speech, and of the work between."""
        if place == 0 or self.acts[place] not in "sS":
            return (self._call(place),) if place else ()
        at = bisect_left(self._said, place)
        return tuple({*self._said[max(0, at - 1) : at], place - 1})

    def _call(self, place: int) -> int:
        """Return the place before a message; of a result that of the calls of its round."""
        at = place - 1
        while self.acts[place] in "rx" and at > max(0, place - ROUND) and self.acts[at] in "rx":
            at -= 1
        return at

    def near(self, place: int) -> dict[int, int]:
        """Return the places from which a message borrows, with their steps; later ones negative."""
        act, steps = self.acts[place], dict[int, int]()
        if act in "sS":
            at, said = bisect_left(self._said, place), self._said
            steps |= {said[at - n]: n for n in range(1, min(BEFORE, at) + 1)}
            steps |= {said[at + n]: -n for n in range(1, min(AFTER, len(said) - 1 - at) + 1)}
        call, later = self._call(place), RESULTS if act == "c" else AFTER
        around = [(call + 1 - n, n) for n in range(1, min(WORK, call + 1) + 1)]
        for at in range(place + 1, min(place + 1 + later, len(self.keys))):
            around.append((at, -1 if act == "c" else place - at))
        for other, step in around:
            steps.setdefault(other, step)
        return steps

    def lenders(self, place: int) -> list[tuple[int, list[int], float]]:
        """Return the steps to the messages from which one borrows, their passages and lengths.

        A short message lends its words, and the start of each call and of a result. A long text of
        a speaker is about everything around it, so it lends nothing. A result has its own call.
        """
        lenders = list[tuple[int, list[int], float]]()
        answers = self.links(place) if self.acts[place] == "r" else ()
        for other, step in self.near(place).items():
            _, first, count, words, _ = self._rows[other]
            act = self.acts[other]
            if act == "x" or not count or (count > 1 and act in "sS"):
                continue
            numbers = [first]
            if act == "c":
                calls = [link.partition(":") for link in self.links(other)]
                lent = [(first + int(at), call) for at, _, call in calls if at.isdigit()]
                own = [number for number, call in lent if call in answers]
                numbers = own or [number for number, _ in lent] or numbers
            lenders.append((step, numbers, words / count * len(numbers)))
        return lenders


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
            passage, direct = number - catalog.first(place), own >= DIRECT * total
            matches.append(Match(place, passage, score, direct))
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
    words = sorted(worth, key=lambda word: len(sets[word]))
    values = [worth[word] for word in words]
    masks = _masks([sets[word] for word in words])
    wanted = _candidates(catalog, masks, values)
    best = list(wanted.values())[:SURROUNDED]
    around = {other for place in best for other in catalog.near(place)}
    wanted |= {catalog.first(place): place for place in around if catalog.is_short(place)}
    speakers = {catalog.speaker(place) for place in wanted.values()} - {""}
    named = [one for one in speakers if query.names.intersection(one.casefold().split())]
    scores: dict[int, float] = {}
    for number, place in wanted.items():
        if fit := _fit(catalog, number, place, masks, values):
            follows = any(catalog.acts[at] == "S" for at in catalog.before(place))
            score = (
                fit / total
                + NAMED * (named == [catalog.speaker(place)])
                + ANSWER * (follows and catalog.acts[place] in "sS")
                + STATED * catalog.states(place)
            )
            scores[number] = score * ADVICE if catalog.advises(place) else score
    return scores


def _masks(holding: Sequence[frozenset[int]]) -> dict[int, int]:
    """Return the passages that hold any of the words, with a bit for each; rare words first."""
    masks: dict[int, int] = {}
    for at, numbers in enumerate(holding):
        bit = 1 << at
        for number in numbers & masks.keys() if len(masks) > ENOUGH else numbers:
            masks[number] = masks.get(number, 0) | bit
    return masks


def _candidates(
    catalog: Catalog, masks: Mapping[int, int], values: Sequence[float]
) -> dict[int, int]:
    """Return the passages that hold most of the words, by rarity, with their messages' places."""
    sums = {mask: sum(_worth(mask, values)) for mask in set(masks.values())}
    counts, enough, room = Counter(masks.values()), set[int](), 4 * CANDIDATES
    for mask in sorted(sums, key=lambda mask: -sums[mask]):
        if room <= 0:
            break
        enough.add(mask)
        room -= counts[mask]
    # Of passages with the same words the shorter one is more about them, then the later one.
    fits: dict[int, float] = {}
    places: dict[int, int] = {}
    best = (number for number, mask in masks.items() if mask in enough)
    for number in heapq.nlargest(4 * CANDIDATES, best, key=lambda n: (sums[masks[n]], n)):
        if (place := catalog.place_of(number)) >= 0:
            places[number] = place
            size = catalog.length(place) / catalog.size
            fits[number] = sums[masks[number]] / (1 + K1 * (1 - B + B * size))
    chosen = heapq.nlargest(CANDIDATES, fits, key=lambda number: (fits[number], number))
    return {number: places[number] for number in chosen}


def _worth(mask: int, values: Sequence[float]) -> Iterable[float]:
    return (value for at, value in enumerate(values) if mask >> at & 1)


def _fit(
    catalog: Catalog, number: int, place: int, masks: Mapping[int, int], values: Sequence[float]
) -> float:
    """Return the fit with the words that a passage borrows: saturated, and by its length."""
    much, close = [0.0] * len(values), [0.0] * len(values)
    size, weight = 0.0, 0.0
    own = [(0, [number], catalog.length(place))]
    for step, numbers, length in own + catalog.lenders(place):
        share, near = BORROWED[step], CLOSE[step]
        size, weight = size + share * length, weight + share
        for one in numbers:
            mask = masks.get(one, 0)
            while mask:
                at = (mask & -mask).bit_length() - 1
                mask &= mask - 1
                much[at] += share
                close[at] = max(close[at], near)
    mean = size / catalog.size / weight
    norm = K1 * (1 - B + B * mean)
    return sum(
        value * (count / (count + norm) + COVERED * near)
        for value, count, near in zip(values, much, close, strict=True)
    )
