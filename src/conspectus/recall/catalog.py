"""The messages of a chain in their order, and which of them follow which.

An agent often answers after several rounds of tool calls: its answer follows the user's question,
however long it worked, and a result follows its own call. In a talk without tools a message follows
the one before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from conspectus._newest import Newest
from conspectus.archive.passages import one_line
from conspectus.archive.values import Listed

BEFORE, AFTER = 5, 2  # Steps before and after a message from which it borrows words
BORROWED = {step: 0.7**step for step in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

WORK = 2  # Most steps over which calls of tools and their results lend words
FAR = 400  # Messages of work over which what was said is looked for
NEXT = 24  # Messages among which one that follows another is looked for
COMMON = 1_000_000  # Passages that the words in memory have together

Lenders = tuple[tuple[int, tuple[int, ...]], ...]
"""The passages from which a message borrows, by steps."""


class Fact(NamedTuple):
    """What is known of a message without reading it.

    `act` is `s` for speech, `c` for calls, `r` for results alone; `links` are the calls that it
    answers, or that it makes with the passage of each.
    """

    act: str
    asks: bool
    user: bool
    id: str
    speaker: str
    links: tuple[str, ...]


class Catalog:
    """The searchable messages of a chain; a place is a position in the conversation.

    `total` counts their passages, `size` is the number of words in one on average; `common` keeps
    those that hold common words.
    """

    def __init__(self, keys: Sequence[str], listed: Iterable[Listed]) -> None:
        self.keys = keys
        known = {row[0]: row for row in listed}
        self._rows = [known.get(key) for key in keys]
        rows = sorted((row[1], at) for at, row in enumerate(self._rows) if row)
        self._firsts, self._places = [first for first, _ in rows], [place for _, place in rows]
        self.total = sum([row[2] for row in self._rows if row]) or 1
        self.size = sum([row[3] for row in self._rows if row]) / self.total or 1.0
        self.common: Newest[str, frozenset[int]] = Newest(COMMON, COMMON, len)
        self._facts: dict[int, Fact] = {}
        self._lenders: dict[int, tuple[float, Lenders]] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def place_of(self, number: int) -> int:
        """Return the place of a passage's message; -1 if that is not of this chain."""
        at = bisect_right(self._firsts, number) - 1
        inside = at >= 0 and number < self._firsts[at] + self.count(self._places[at])
        return self._places[at] if inside else -1

    def first(self, place: int) -> int:
        """Return the number of a message's first passage; -1 if it is not to be found."""
        row = self._rows[place]
        return -1 if row is None or row[4].startswith("x") else row[1]

    def count(self, place: int) -> int:
        """Return the number of a message's passages."""
        row = self._rows[place]
        return row[2] if row else 0

    def length(self, place: int) -> float:
        """Return the words of one passage of a message."""
        row = self._rows[place]
        return row[3] / row[2] if row else 0.0

    def passages(self, names: Iterable[str]) -> frozenset[int]:
        """Return the passages of the messages with these ids."""
        hidden = {key for name in names for key in self.named(name)}
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
            row = self._rows[place]
            kind, given, speaker, *links = f"{row[4] if row else 's?'}\t\t".split("\t")
            act = kind[0].lower().replace("x", "r")
            links = [link for link in links if link]
            fact = Fact(act, kind[0] == "S", kind[1:] == "u", given, speaker, tuple(links))
            self._facts[place] = fact
        return fact

    def before(self, place: int) -> tuple[int, ...]:
        """Return the places one step before a message."""
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

    def lenders(self, place: int) -> tuple[float, Lenders]:
        """Return from which passages a message borrows, by steps, and the size of all of them.

        The size is weighted like the words; 1 is that of a passage on average.
        """
        if place not in self._lenders:
            fact, size, lenders = self.fact(place), self.length(place), []
            answers = fact.links if fact.act == "r" else ()
            for other, step in self.near(place).items():
                lent = self._lends(other) if step else []
                own = [number for number, call in lent if call and call in answers]
                if numbers := own or [number for number, _ in lent]:
                    lenders.append((step, tuple(numbers)))
                    size += BORROWED[step] * self.length(other) * len(numbers)
            self._lenders[place] = size / self.size, tuple(lenders)
        return self._lenders[place]

    def _lends(self, place: int) -> list[tuple[int, str]]:
        """Return the passages of a message whose words others may borrow, and the call of each.

        These are a short message, and the start of each call and of a result. A long text of a
        speaker is about everything around it, so it lends nothing.
        """
        first, fact = self.first(place), self.fact(place)
        if fact.act == "c" and fact.links and first >= 0:
            pairs = (link.partition(":") for link in fact.links)
            return [(first + int(at), call) for at, _, call in pairs if at.isdigit()]
        long = fact.act == "s" and self.count(place) > 1
        return [] if first < 0 or long else [(first, "")]
