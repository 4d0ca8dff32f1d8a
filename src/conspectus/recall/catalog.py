"""What the index knows of the messages of a chain that one query asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from conspectus._newest import Newest
from conspectus.archive.store import Archive
from conspectus.archive.values import Listed, Scope, manifest
from conspectus.core.records import Chain

BEFORE = 5  # Messages before one from which it borrows words
LATER = {"s": 2, "S": 2, "c": 4, "r": 0, "x": 0}  # Those after it, by its act
BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1, -3: 0.1, -4: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

BACK, ON = 6, 4  # Places before and after a message among which those are looked for

_ORDERS: Newest[str, tuple[tuple[str, ...], dict[str, int]]] = Newest(
    64, 500_000, lambda order: len(order[0])
)
"""By the id of a record the keys of its chain in order, and the place of each. The id is a hash of
all that the chain covers."""


class Row:
    """One message as the index knows it."""

    __slots__ = ("act", "key", "length", "links", "name", "numbers", "users")

    def __init__(self, listed: Listed) -> None:
        self.key, first, count, words, self.name, about = listed
        self.act, self.users = about[0], about[1] == "u"
        self.links = about.split("\t")[2:]
        # Passages that can be found, and their words on average.
        self.numbers = range(first, first + count * (self.act != "x"))
        self.length = words / max(1, count)

    def lent(self, answers: Collection[str]) -> list[int]:
        """Return the passages that it lends: its first one, and the start of each call.

        A long text of a speaker is about everything around it, so it lends nothing. A result, which
        `answers` calls, has its own.
        """
        numbers = self.numbers
        if self.act != "c":
            return [] if len(numbers) > 1 and self.act in "sS" else [*numbers[:1]]
        calls = [link.partition(":") for link in self.links]
        own = [int(at) for at, _, call in calls if call in answers]
        return [numbers[0] + at for at in own or [int(at) for at, _, _ in calls]]


class Rows(dict[int, Row]):
    """The messages that one query asks for, by their places; those of `without` are left out."""

    def __init__(
        self, archive: Archive, scope: Scope, chain: Chain, without: Collection[str] = ()
    ) -> None:
        head = chain[-1].id if chain else ""
        order = _ORDERS.get(head)
        if order is None:
            keys = manifest(chain)
            order = keys, {key: place for place, key in enumerate(keys)}
            _ORDERS.put(head, order)
        self.keys_in_order, self.places = order
        self.scope, self._without = scope, {*without}
        self.tables: Any = archive.backend.searchable(scope, self.keys_in_order)

    def at(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return the places of the messages that have these passages."""
        found = self.tables.keys_at(self.scope, numbers)
        places = {at: self.places[key] for at, key in found.items() if key in self.places}
        self._read({*places.values()})
        return {
            at: place for at, place in places.items() if place in self and at in self[place].numbers
        }

    def load(self, places: Iterable[int]) -> None:
        """Read the rows of places and of those around them."""
        last = len(self.keys_in_order) - 1
        spans = [range(max(0, at - BACK), min(last, at + ON) + 1) for at in places]
        self._read({at for span in spans for at in span})

    def rows(self, keys: Sequence[str]) -> list[Row]:
        """Return the rows of messages in order, without those that are gone."""
        found = {listed[0]: listed for listed in self.tables.listed(self.scope, keys)}
        return [Row(found[key]) for key in keys if key in found]

    def _read(self, places: set[int]) -> None:
        keys = [self.keys_in_order[place] for place in places - self.keys()]
        for row in self.rows(keys):
            if not {row.key, row.name} & self._without:
                self[self.places[row.key]] = row

    def near(self, place: int) -> dict[int, float]:
        """Return the places from which a message borrows words, with their weights.

        Speech borrows from speech, a call from all around it, its results from what is before them.
        """
        act, first, lent = self[place].act, place, dict[int, float]()
        while act in "rx" and first - 1 in self and self[first - 1].act in "rx":
            first -= 1
        lenders = "sS" if act in "sS" else "sScrx"
        before, after = range(first - 1, place - BACK - 1, -1), range(place + 1, place + ON + 1)
        for side, most, sign in ((before, BEFORE, 1), (after, LATER[act], -1)):
            near = [at for at in side if at in self and self[at].act in lenders]
            lent |= {at: BORROWED[sign * step] for step, at in enumerate(near[:most], 1)}
        return lent
