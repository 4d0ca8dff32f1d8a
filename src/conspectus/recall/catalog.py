"""What the index knows of the messages of a chain, read when a ranking asks for it, and kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from conspectus.archive.store import Archive
from conspectus.archive.tables import Tables
from conspectus.archive.values import Listed, Scope, manifest
from conspectus.core.records import Chain

BEFORE = 5  # Messages before one from which it borrows words
LATER = {"s": 2, "S": 2, "c": 4, "r": 0, "x": 0}  # Those after it, by its act
BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1, -3: 0.1, -4: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

BACK, ON = 6, 4  # Places before and after a message among which those are looked for


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


class Catalog:
    """The originals of one chain in order; of those that were asked for, what the index knows."""

    def __init__(
        self, head: str, tables: Tables, keys: Sequence[str], before: Catalog | None = None
    ) -> None:
        self.head, self.tables, self.keys = head, tables, keys
        self.places = {key: place for place, key in enumerate(keys)}
        # The number of the history, as a later one of its name has other passages; the rows of
        # messages by their keys; and the keys of the messages that have passages.
        self._number, self._rows, self._holders = 0, dict[str, Row](), dict[int, str]()
        if before is not None and before.tables is tables:
            self._number, self._rows = before._number, before._rows
            self._holders = before._holders

    def __len__(self) -> int:
        return len(self.keys)

    def forget(self) -> None:
        """Read again what is known of messages."""
        self._rows, self._holders = {}, {}

    def holding(self, scope: Scope, words: Sequence[str]) -> tuple[int, dict[str, set[int]]]:
        """Return the number of a history's passages, and those that hold each word."""
        number, total, held = self.tables.holding(scope, words)
        if number != self._number:
            self._number = number
            self.forget()
        return total, held

    def with_passages(self, scope: Scope, numbers: Collection[int]) -> dict[int, Row]:
        """Return the rows of the messages of this chain that have these passages."""
        new = [number for number in numbers if number not in self._holders]
        for number, listed in self.tables.listed_at(scope, new).items():
            self._holders[number] = listed[0]
            self._rows[listed[0]] = Row(listed)  # it may have been archived anew
        rows = {at: self._rows.get(self._holders.get(at, "")) for at in numbers}
        return {at: row for at, row in rows.items() if row and row.key in self.places}

    def rows(self, scope: Scope, keys: Sequence[str]) -> list[Row]:
        """Return the rows of messages; those that are gone are left out."""
        new = [key for key in keys if key not in self._rows]
        for listed in self.tables.listed(scope, new) if new else ():
            self._rows[listed[0]] = Row(listed)
        return [self._rows[key] for key in keys if key in self._rows]


def catalog_of(archive: Archive, scope: Scope, chain: Chain) -> Catalog:
    """Return the catalog of a chain; that of the chain that was asked last is kept."""
    head = chain[-1].id if chain else ""
    known: Catalog | None = archive.catalogs.get(scope)
    keys = known.keys if known and known.head == head else list(manifest(chain))
    tables = archive.backend.searchable(scope, keys) or archive.backend
    if known is None or known.head != head or known.tables is not tables:
        known = Catalog(head, tables, keys, known)
        archive.catalogs.put(scope, known)
    return known


class Rows(dict[int, Row]):
    """The messages that one query asks for, by their places; those of `without` are left out."""

    def __init__(self, catalog: Catalog, scope: Scope, without: Collection[str]) -> None:
        self._catalog, self._scope, self._without = catalog, scope, {*without}

    def at(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the places of the messages that have these passages."""
        found = self._catalog.with_passages(self._scope, numbers)
        places = {at: self._keep(row) for at, row in found.items() if at in row.numbers}
        return {at: place for at, place in places.items() if place in self}

    def load(self, places: Iterable[int]) -> None:
        """Read the rows of places and of those around them."""
        keys, last = self._catalog.keys, len(self._catalog) - 1
        spans = [range(max(0, at - BACK), min(last, at + ON) + 1) for at in places]
        new = {at for span in spans for at in span} - self.keys()
        for row in self._catalog.rows(self._scope, [keys[at] for at in new]):
            self._keep(row)

    def _keep(self, row: Row) -> int:
        place = self._catalog.places[row.key]
        if not {row.key, row.name} & self._without:
            self[place] = row
        return place

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
