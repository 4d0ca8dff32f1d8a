"""Rank passages for a query: BM25 over a passage and its surroundings, and who speaks.

The index says which passages hold a word, and nothing else: so a word counts once in a passage,
and how rare it is, is known for the history that is asked. A message that answers often holds no
word of the question: "It is 5433." So it borrows words of those said before it, and a little of
those after it. Distances count in steps: an agent's answer follows the user's question, however
long it worked, and a result follows its own call.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conspectus._newest import Newest
from conspectus.archive.passages import one_line
from conspectus.archive.values import Listed
from conspectus.recall.words import Query

BEFORE, AFTER = 5, 2  # Steps before and after a message from which it borrows words
BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

CLOSE = {step: math.sqrt(share) for step, share in BORROWED.items()}  # for covering the query
USUAL = sum(BORROWED.values())

WORK = 2  # Most steps over which calls of tools and their results lend words
FAR = 400  # Messages of work over which what was said is looked for
NEXT = 24  # Messages among which one that follows another is looked for
HELD = 1_000_000  # Passages that the words in memory have together
CANDIDATES = 56  # Passages with words of a query that are ranked with their surroundings
SURROUNDED = 24  # Candidates, the best, whose short neighbours are ranked too
COMMON = 20_000  # Passages with rarer words after which a common word finds no others
K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

COVERED = 0.5  # Weight of the share of the query, by rarity, that stands in or around the message
NAMED = 0.2  # Bonus if the query names one speaker, and the message is by that speaker
ANSWER = 0.06  # Bonus of what is said after a question
STATED = 0.1
"""Bonus of a user's short statement: an assistant elaborates on it at length in the same words."""

WHOLE = 0.8  # Weight of a long query as a whole, beside each of its sentences
DIRECT = 0.1  # Share of the findable words, by rarity, above which a message is no mere neighbour
WEAK = 0.35  # Share of the best score below which a passage is not shown

Held = Mapping[str, frozenset[int]]
"""The passages that hold a word."""


class Fact(NamedTuple):
    """What is known of a message without reading it.

    `first` is its first passage (-1: not to be found), of `passages` with `length` words each.
    `act` is `s` for speech, `c` for calls, `r` for results alone; `links` are the calls that it
    answers, or that it makes with the passage of each.
    """

    first: int = -1
    passages: int = 0
    length: float = 0.0
    act: str = "s"
    asks: bool = False
    user: bool = False
    speaker: str = ""
    links: tuple[str, ...] = ()


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

    `held` keeps the passages that hold common words.
    """

    def __init__(self, keys: Sequence[str], listed: Iterable[Listed]) -> None:
        known = {row[0]: row for row in listed}
        self.keys, self._rows = keys, [known.get(key) for key in keys]
        rows = [row for row in self._rows if row]
        self.total = sum([row[2] for row in rows]) or 1
        self.size = sum([row[3] for row in rows]) / self.total or 1.0
        places = {row[1]: at for at, row in enumerate(self._rows) if row}
        self._firsts = sorted(places)
        self._places = [places[first] for first in self._firsts]
        self.held: Newest[str, frozenset[int]] = Newest(HELD, HELD, len)
        self._facts: dict[int, Fact] = {}
        self._before: dict[int, tuple[int, ...]] = {}
        self._lenders: dict[int, tuple[float, list[tuple[int, list[int]]]]] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def place_of(self, number: int) -> int:
        """Return the place of a passage's message; -1 if that is not of this chain."""
        at = bisect_right(self._firsts, number) - 1
        inside = at >= 0 and number < self._firsts[at] + self.fact(self._places[at]).passages
        return self._places[at] if inside else -1

    def passages(self, names: Iterable[str]) -> frozenset[int]:
        """Return the passages of the messages with these ids."""
        if not (hidden := {key for name in names for key in self.named(name)}):
            return frozenset()
        rows = [row for row in self._rows if row and row[0] in hidden]
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
            or (row and wanted in row[4] and row[4].split("\t")[1:2] == [wanted])
        ]

    def fact(self, place: int) -> Fact:
        """Return what is known of a message."""
        if (fact := self._facts.get(place)) is None:
            fact = Fact()
            if row := self._rows[place]:
                _, first, count, words, about = row
                kind, _, speaker, *links = f"{about}\t\t".split("\t")
                act, links = kind[0].lower().replace("x", "r"), [link for link in links if link]
                first = -1 if kind[0] == "x" else first
                said = (kind[0] == "S", kind[1:] == "u", speaker, tuple(links))
                fact = Fact(first, count, words / count, act, *said)
            self._facts[place] = fact
        return fact

    def before(self, place: int) -> tuple[int, ...]:
        """Return the places one step before a message."""
        if place not in self._before:
            self._before[place] = self._steps_back(place)
        return self._before[place]

    def _steps_back(self, place: int) -> tuple[int, ...]:
        at, act = place - 1, self.fact(place).act
        if at < 0 or act == "c":  # rounds of work follow each other
            return (at,) if at >= 0 else ()
        passed = "r" if act == "r" else "rc"
        while at > 0 and place - at < FAR and self.fact(at).act in passed:
            at -= 1
        return (at, place - 1) if act == "s" and at < place - 1 else (at,)

    def near(self, place: int) -> dict[int, int]:
        """Return the places from which a message borrows, with their steps; later ones negative."""
        steps = {place: 0}
        for ways, most, sign in ((self.before, BEFORE, 1), (self._after, AFTER, -1)):
            edge: Iterable[int] = [place]
            for step in range(1, most + 1):
                edge = {
                    to: sign * step
                    for one in edge
                    for to in ways(one)
                    if to not in steps and (step <= WORK or self.fact(to).act == "s")
                }
                steps |= edge
        return steps

    def _after(self, place: int) -> list[int]:
        near = range(place + 1, min(place + NEXT, len(self.keys)))
        return [other for other in near if place in self.before(other)][:4]

    def lenders(self, place: int) -> tuple[float, list[tuple[int, list[int]]]]:
        """Return from which passages a message borrows, by steps, and the size of all of them.

        The size is weighted like the words; 1 is that of a passage on average.
        """
        if place not in self._lenders:
            fact = self.fact(place)
            size, lenders = fact.length, list[tuple[int, list[int]]]()
            answers = fact.links if fact.act == "r" else ()
            for other, step in self.near(place).items():
                lent = self._lends(other) if step else []
                own = [number for number, call in lent if call and call in answers]
                if numbers := own or [number for number, _ in lent]:
                    lenders.append((step, numbers))
                    size += BORROWED[step] * self.fact(other).length * len(numbers)
            self._lenders[place] = size / self.size, lenders
        return self._lenders[place]

    def _lends(self, place: int) -> list[tuple[int, str]]:
        """Return the passages of a message whose words others may borrow, and the call of each.

        These are a short message, and the start of each call and of a result. A long text of a
        speaker is about everything around it, so it lends nothing.
        """
        fact = self.fact(place)
        if fact.act == "c" and fact.links and fact.first >= 0:
            pairs = (link.partition(":") for link in fact.links)
            return [(fact.first + int(at), call) for at, _, call in pairs if at.isdigit()]
        long = fact.act == "s" and fact.passages > 1
        return [] if fact.first < 0 or long else [(fact.first, "")]


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
            passage = number - catalog.fact(place).first
            matches.append(Match(place, passage, score, own >= DIRECT * total))
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
    wanted, fact = _candidates(catalog, worth, sets), catalog.fact
    for near in {at for place in list(wanted.values())[:SURROUNDED] for at in catalog.near(place)}:
        if fact(near).passages == 1 and fact(near).first >= 0:
            wanted[fact(near).first] = near
    speakers = {fact(place).speaker for place in wanted.values()} - {""}
    named = [one for one in speakers if query.names.intersection(one.casefold().split())]
    scores: dict[int, float] = {}
    for number, place in wanted.items():
        if fit := _fit(catalog, number, place, worth, sets):
            one = fact(place)
            follows = any(fact(at).asks for at in catalog.before(place))
            scores[number] = (
                fit / total
                + NAMED * (named == [one.speaker])
                + ANSWER * (one.act == "s" and follows)
                + STATED * (one.act == "s" and one.user and one.passages == 1 and not one.asks)
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
            size = catalog.fact(place).length / catalog.size
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
