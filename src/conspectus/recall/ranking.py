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
from functools import cache
from typing import Any, NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus.archive.store import Archive
from conspectus.archive.values import Scope, SearchRow, manifest
from conspectus.core.records import Chain

POOL = 100  # Passages that hold most of the words by rarity, among which the candidates are
CANDIDATES = 30  # Passages that are ranked, with the short messages around them
K1, B = 1.2, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation, and weight of length."""

BACK, ON = 6, 4  # Places before and after a message among which its surroundings are looked for
BEFORE, LATER = 5, {"s": 2, "c": 4, "r": 0, "x": 0}
"""Messages before one from which it borrows words, and those after it, by its act."""

BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1, -3: 0.1, -4: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

COVERED = 0.5  # Weight of the share of the query, by rarity, that stands in or around the message
ANSWER = 0.06  # Bonus of what is said after a question, in a talk
STATED = 0.1
"""Bonus of a user's short statement where an assistant elaborates at length in the same words."""

ADVICE, BRIEF = 0.65, 2
"""Share that stays of the score of a long answer, which says something about each word of a talk,
and of a user's text of more passages than that, which is pasted. Where calls are near, a long text
is an agent's own reasoning, or its task, and yields to nothing."""

WEAK = 0.2  # Share of the best score below which nothing is shown

_ORDERS: BoundedCache[str, tuple[Sequence[str], Mapping[str, int]]] = BoundedCache(
    64, 500_000, lambda order: len(order[0])
)
"""By the id of a record, a hash of all that its chain covers: the keys in order, their places."""


class Row:
    """One message as the index knows it."""

    __slots__ = "key name act asks users links calls numbers length lends".split()

    def __init__(self, listed: SearchRow) -> None:
        self.key, first, count, words, self.name, about = listed
        fields = about.split("\t")
        self.act, self.asks, self.users = about[0].lower(), about[0] == "S", about[1] == "u"
        self.links, self.calls = fields[2:], dict[str, int]()
        # Passages that can be found, and their words on average.
        self.numbers = range(first, first + count * (self.act != "x"))
        self.length = words / max(1, count)
        # It lends its first passage, and the start of each call. A long text of a speaker is about
        # everything around it, so it lends nothing.
        self.lends: Sequence[int] = self.numbers[: self.act != "s" or count == 1]
        if self.act == "c" and self.links:
            calls = (link.partition(":") for link in self.links)
            self.calls = {call: first + int(at) for at, _, call in calls}
            self.lends = [*self.calls.values()]


class Rows(dict[int, Row]):
    """The messages of a chain that one query asks for, by their places, without `hidden` ones."""

    def __init__(
        self, archive: Archive, scope: Scope, chain: Chain, hidden: Collection[str]
    ) -> None:
        head = chain[-1].id if chain else ""
        order = _ORDERS.get(head)
        if order is None:
            keys = manifest(chain)
            order = keys, {key: place for place, key in enumerate(keys)}
            _ORDERS.put(head, order)
        self.order, self.places = order
        self.scope, self._hidden = scope, {*hidden}
        # Places of what is said, of long answers among that, and of calls and results.
        self.speech, self.answers, self.acts = set[int](), set[int](), set[int]()
        self.tables: Any = archive.backend.search_index(scope, self.order)

    def read(self, places: Iterable[int]) -> None:
        """Have the rows of some places here; there is none before the first or after the last."""
        new = {at for at in places if 0 <= at < len(self.order)} - self.keys()
        self._keep(self.tables.rows_of(self.scope, [self.order[at] for at in new]))

    def _keep(self, listed: Iterable[SearchRow]) -> set[int]:
        """Have rows here that are of this chain and not hidden; return their places."""
        kept = set[int]()
        for one in listed:
            at = self.places.get(one[0])
            if at is None or not self._hidden.isdisjoint((one[0], one[4])):
                continue
            kept.add(at)
            self[at] = row = Row(one)
            (self.speech if row.act == "s" else self.acts).add(at)
            if row.act == "s" and not row.users and len(row.numbers) > 1:
                self.answers.add(at)
        return kept

    def at(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the places of the messages that have these passages."""
        kept, asked = self._keep(self.tables.rows_holding(self.scope, [*numbers])), {*numbers}
        return {number: at for at in kept for number in asked.intersection(self[at].numbers)}

    def near(self, place: int) -> dict[int, float]:
        """Return the places from which a message borrows words, with their weights.

        Speech borrows from speech, a call from all around it, its results from what is before them.
        """
        act, first, lent = self[place].act, place, dict[int, float]()
        while act in "rx" and first - 1 in self and self[first - 1].act in "rx":
            first -= 1
        before, after = range(first - 1, place - BACK - 1, -1), range(place + 1, place + ON + 1)
        lenders: Collection[int] = self.speech if act == "s" else self
        for side, most, sign in ((before, BEFORE, 1), (after, LATER[act], -1)):
            for step, at in enumerate([at for at in side if at in lenders][:most], 1):
                lent[at] = BORROWED[sign * step]
        return lent


class Match(NamedTuple):
    """A passage that fits: its message's place, its number in the index, its score."""

    place: int
    number: int
    score: float


def ranked(
    rows: Rows, query: Mapping[str, float], total: int, held: Mapping[str, Collection[int]]
) -> list[Match]:
    """Return what fits the words of a query, with their weights, best first, of equals the later.

    `held` has the passages that hold each word, of `total` passages of the history.
    """
    sets = [(query[word], numbers) for word, numbers in held.items() if numbers]
    worth = [weight * math.log(1 + total / (len(numbers) + 0.5)) for weight, numbers in sets]
    unknown = math.log(2 + 2 * total)  # rarity of a word that nothing holds
    whole = sum(worth) + unknown * sum(query[word] for word in query if not held.get(word))
    found = _candidates(rows, [numbers for _, numbers in sets], worth)
    rows.read(at for place in found.values() for at in range(place - BACK, place + ON + 1))
    around = {at for place in found.values() for at in rows.near(place)}
    # A call without a word of the query says less than what came of it.
    short = [at for at in around if len(rows[at].numbers) == 1 and rows[at].act != "c"]
    found |= {rows[at].numbers[0]: at for at in short}

    @cache
    def words(number: int) -> list[int]:
        return [at for at, (_, numbers) in enumerate(sets) if number in numbers]

    mean = sum(rows[place].length for place in found.values()) / max(1, len(found))
    matches = list[Match]()
    for number, place in found.items():
        row, near = rows[place], rows.near(place)
        shares = dict[int, list[float]]()  # of each word that the passage has or borrows
        size = weight = 0.0
        for other, share in [(place, 1.0), *near.items()]:
            lender, passages = rows[other], rows[other].lends
            if other == place:
                passages = [number]
            elif row.act == "r" and lender.calls:  # the call that `row` answers has its own words
                passages = [lender.calls[one] for one in row.links if one in lender.calls]
                passages = passages or lender.lends
            if passages:
                size += share * lender.length * len(passages)
                weight += share
            for passage in passages:
                for word in words(passage):
                    shares.setdefault(word, []).append(share)
        norm = K1 * _norm(size / weight / mean)
        fit = 0.0
        for word, its in shares.items():
            much = sum(its)
            fit += worth[word] * (much / (much + norm) + COVERED * math.sqrt(max(its)))
        if fit:
            share, more = _bonus(rows, place, near)
            matches.append(Match(place, number, share * (fit / whole + more)))
    least = WEAK * max((one.score for one in matches), default=0.0)
    matches = [one for one in matches if one.score >= least]
    return sorted(matches, key=lambda one: (-one.score, -one.place, one.number))


def _candidates(
    rows: Rows, sets: Sequence[Collection[int]], worth: Sequence[float]
) -> dict[int, int]:
    """Return the passages that hold most of the words, by rarity, with their messages' places.

    Of passages with the same words the shorter one is more about them, then the later one.
    """
    values = dict[int, float]()
    for value, numbers in zip(worth, sets, strict=True):
        for number in numbers:
            values[number] = values.get(number, 0.0) + value
    pool = heapq.nlargest(POOL, zip(values.values(), values, strict=True))
    places = rows.at([number for _, number in pool])
    mean = sum(rows[at].length for at in places.values()) / max(1, len(places))
    fits = [
        (values[number] / (1 + K1 * _norm(rows[at].length / mean)), number)
        for number, at in places.items()
    ]
    return {number: places[number] for _, number in heapq.nlargest(CANDIDATES, fits)}


def _norm(size: float) -> float:
    return 1 - B + B * size


def _bonus(rows: Rows, place: int, near: Iterable[int]) -> tuple[float, float]:
    """Return what a message's score is multiplied with, and what is added, by who says it."""
    row = rows[place]
    if row.act != "s":
        return 1.0, 0.0
    short = len(row.numbers) == 1
    around = range(place - BACK, place + ON + 1)
    told = row.users and short and not row.asks
    more = STATED * (told and not rows.answers.isdisjoint(around))
    if not rows.acts.isdisjoint(around):
        return 1.0, more
    before = next((rows[at].asks for at in near if at < place), False)
    brief = short or (row.users and len(row.numbers) <= BRIEF)
    return 1.0 if brief else ADVICE, more + ANSWER * before
