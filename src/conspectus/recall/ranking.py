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

from conspectus._newest import Newest
from conspectus.archive.store import Archive
from conspectus.archive.values import Listed, Scope, manifest
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

_ORDERS: Newest[str, tuple[Sequence[str], Mapping[str, int]]] = Newest(
    64, 500_000, lambda order: len(order[0])
)
"""By the id of a record, a hash of all that its chain covers: the keys in order, their places."""


class Row:
    """One message as the index knows it."""

    def __init__(self, listed: Listed) -> None:
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
        self.tables: Any = archive.backend.searchable(scope, self.order)

    def listed(self, keys: Sequence[str]) -> list[Row]:
        """Return the rows of messages in order, without those that are gone."""
        found = {listed[0]: listed for listed in self.tables.listed(self.scope, keys)}
        return [Row(found[key]) for key in keys if key in found]

    def read(self, places: Iterable[int]) -> None:
        """Have the rows of some places here."""
        for row in self.listed([self.order[place] for place in {*places} - self.keys()]):
            if not {row.key, row.name} & self._hidden:
                self[self.places[row.key]] = row

    def surround(self, places: Iterable[int]) -> None:
        """Have the rows around some places here, too."""
        last = len(self.order) - 1
        spans = [range(max(0, at - BACK), min(last, at + ON) + 1) for at in places]
        self.read(at for span in spans for at in span)

    def at(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return the places of the messages that have these passages."""
        keys = self.tables.keys_at(self.scope, numbers)
        places = {at: self.places[key] for at, key in keys.items() if key in self.places}
        self.read(places.values())
        return {n: at for n, at in places.items() if at in self and n in self[at].numbers}

    def near(self, place: int) -> dict[int, float]:
        """Return the places from which a message borrows words, with their weights.

        Speech borrows from speech, a call from all around it, its results from what is before them.
        """
        act, first, lent = self[place].act, place, dict[int, float]()
        while act in "rx" and first - 1 in self and self[first - 1].act in "rx":
            first -= 1
        lenders = "s" if act == "s" else "scrx"
        before, after = range(first - 1, place - BACK - 1, -1), range(place + 1, place + ON + 1)
        for side, most, sign in ((before, BEFORE, 1), (after, LATER[act], -1)):
            near = [at for at in side if at in self and self[at].act in lenders]
            lent |= {at: BORROWED[sign * step] for step, at in enumerate(near[:most], 1)}
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
    rows.surround(found.values())
    around = {at for place in found.values() for at in rows.near(place)}
    # A call without a word of the query says less than what came of it.
    short = [at for at in around if len(rows[at].numbers) == 1 and rows[at].act != "c"]
    found |= {rows[at].numbers[0]: at for at in short}
    rows.surround(found.values())

    @cache
    def words(number: int) -> list[int]:
        return [at for at, (_, numbers) in enumerate(sets) if number in numbers]

    mean = sum(rows[place].length for place in found.values()) / max(1, len(found))
    matches = list[Match]()
    for number, place in found.items():
        row, near = rows[place], rows.near(place)
        lent, size, weight = [(words(number), 1.0)], row.length, 1.0
        answers = row.links if row.act == "r" else ()
        for other, share in near.items():
            lender = rows[other]
            # A result, which `answers` calls, has its own.
            own_call = [lender.calls[call] for call in answers if call in lender.calls]
            if passages := own_call or lender.lends:
                lent += [(words(one), share) for one in passages]
                size += share * rows[other].length * len(passages)
                weight += share
        if fit := _fit(lent, size / weight / mean, worth):
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
    if row.act != "s":
        return 1.0, 0.0
    short = len(row.numbers) == 1
    around = [rows[at] for at in range(place - BACK, place + ON + 1) if at in rows]
    told = any(one.act == "s" and not one.users and len(one.numbers) > 1 for one in around)
    more = STATED * (row.users and short and not row.asks and told)
    if any(one.act != "s" for one in around):
        return 1.0, more
    before = next((rows[at].asks for at in near if at < place), False)
    brief = short or (row.users and len(row.numbers) <= BRIEF)
    return 1.0 if brief else ADVICE, more + ANSWER * before
