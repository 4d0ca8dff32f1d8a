"""The messages of a chain in their order, and which of them follow which.

Distances go by who speaks. An agent often answers after several rounds of tool calls: its answer
follows the user's question, however long it worked; each round follows the one before it, and a
result follows its own call. In a talk without tools a message follows the one before it; but a long
message is stepped over, as the talk continues after it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from conspectus._newest import Newest
from conspectus.archive.backend import Listed
from conspectus.archive.values import one_line

BEFORE, AFTER = 5, 2  # Steps before and after a message from which it borrows words
BORROWED = {d: 0.7**d for d in range(BEFORE + 1)} | {-1: 0.3, -2: 0.1}
"""Weight of a word by the steps to its message; negative steps are later."""

WORK = 2  # Most steps over which calls of tools and their results borrow words
FAR = 400  # Messages of work over which what was said is looked for
WORDS = 100  # In a passage, to guess how many the last message has
REMEMBERED = 20_000  # Messages whose surroundings are in memory
COMMON = 1_000_000  # Passages that the words in memory have together
NEXT = 24  # Messages among which one that follows another is looked for


Lenders = tuple[tuple[int, tuple[int, ...]], ...]
"""From which passages a message borrows, by steps."""


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

    Passages are numbered; `total` counts them, `size` is the number of words in one on average;
    `common` keeps those that hold common words.
    """

    def __init__(self, keys: Sequence[str], listed: Iterable[Listed]) -> None:
        self.keys = keys
        known = {one[0]: one for one in listed}
        self._listed = [known.get(key) for key in keys]
        numbered = sorted((one[1], at) for at, one in enumerate(self._listed) if one)
        self._firsts = array("q", [number for number, _ in numbered])
        self._places = array("q", [place for _, place in numbered])
        self._starts = array("q", sorted([one[1] for one in known.values()]))
        last = max(known.values(), key=itemgetter(1), default=("", 0, 0, ""))
        self.total = last[1] + 1 + last[2] // WORDS
        self.size = sum([one[2] for one in known.values()]) / self.total or 1.0
        self.common: Newest[str, frozenset[int]] = Newest(REMEMBERED, COMMON, len)
        self._facts: dict[int, Fact] = {}
        self._before: dict[int, tuple[int, ...]] = {}
        self._near: dict[int, dict[int, int]] = {}
        self._lenders: dict[int, tuple[float, Lenders]] = {}

    def place_of(self, number: int) -> int:
        """Return the place of a passage's message; -1 if that is not of this chain."""
        at = bisect_right(self._firsts, number) - 1
        start = self._starts[bisect_right(self._starts, number) - 1] if at >= 0 else -1
        return self._places[at] if at >= 0 and self._firsts[at] == start else -1

    def first(self, place: int) -> int:
        """Return the number of a message's first passage; -1 if it is not to be found."""
        one = self._listed[place]
        return -1 if one is None or one[3].startswith("x") else one[1]

    def count(self, place: int) -> int:
        """Return the number of a message's passages, as far as it is known."""
        one = self._listed[place]
        if one is None:
            return 0
        after = bisect_right(self._starts, one[1])
        return self._starts[after] - one[1] if after < len(self._starts) else 1 + one[2] // WORDS

    def passages(self, names: Iterable[str]) -> frozenset[int]:
        """Return the passages of the messages with these ids."""
        keys = {key for name in names for key in self.named(name)}
        found = frozenset[int]()
        for one in self._listed:
            if one is not None and one[0] in keys:
                after = bisect_right(self._starts, one[1])
                open_end = one[1] + 1 + one[2]  # a passage holds a word at least
                end = self._starts[after] if after < len(self._starts) else open_end
                found |= frozenset(range(one[1], end))
        return found

    def length(self, place: int) -> float:
        """Return the words of one passage of a message."""
        one = self._listed[place]
        return one[2] / max(1, self.count(place)) if one else 0.0

    def fact(self, place: int) -> Fact:
        """Return what is known of a message."""
        fact = self._facts.get(place)
        if fact is None:
            one = self._listed[place]
            kind, *rest = one[3].split("\t") if one else ["s?"]
            act = kind[0].lower().replace("x", "r")
            given, speaker, *links = (*rest, "", "")[: max(2, len(rest))]
            fact = Fact(act, kind[0] == "S", kind[1:] == "u", given, speaker, tuple(links))
            self._facts[place] = fact
        return fact

    def named(self, name: str) -> list[str]:
        """Return the keys of the messages that an id, a citation or the start of a key names."""
        start = len(name) >= 8 and all(c in "0123456789abcdef" for c in name)
        wanted = one_line(name)
        return [
            key
            for key, one in zip(self.keys, self._listed, strict=True)
            if (start and key.startswith(name))
            or key == name
            or (one and wanted in one[3] and one[3].split("\t")[1:2] == [wanted])
        ]

    def before(self, place: int) -> tuple[int, ...]:
        """Return the places one step before a message."""
        found = self._before.get(place)
        if found is None:
            found = self._before[place] = self._steps(place)
        return found

    def _steps(self, place: int) -> tuple[int, ...]:
        work: list[int] = []  # the round before it: results, then their call
        act, at = self.fact(place).act, place - 1
        while at >= 0 and self.fact(at).act == "r":
            work.append(at)
            at -= 1
        called = at >= 0 and self.fact(at).act == "c"
        if act == "r" and called:
            return (at,)
        if not called:
            # Results without a call count as speech.
            said = place - 1
            return self._said(said) if said >= 0 else ()
        if act == "c":
            return (at, *reversed(work))
        said = at
        while said >= 0 and place - said < FAR and self.fact(said).act != "s":
            said -= 1
        return (*(self._said(said) if said >= 0 else ()), *(reversed(work) if work else (at,)))

    def _said(self, place: int) -> tuple[int, ...]:
        """Return a message that was said, and that before it, over which the talk goes on."""
        if self.count(place) > 1 and place and self.fact(place - 1).act == "s":
            return (place - 1, place)
        return (place,)

    def near(self, place: int) -> dict[int, int]:
        """Return the places from which a message borrows, with their steps; later ones negative."""
        if place not in self._near:
            found = {place: 0}
            for ways, most, sign in ((self.before, BEFORE, 1), (self._followers, AFTER, -1)):
                edge: Iterable[int] = [place]
                for distance in range(1, most + 1):
                    reached = {
                        other: sign * distance
                        for one in edge
                        for other in ways(one)
                        if other not in found
                        and not (distance > WORK and self.fact(other).act != "s")
                    }
                    found |= reached
                    edge = reached
            self._near[place] = found
        return self._near[place]

    def _followers(self, place: int) -> list[int]:
        near = range(place + 1, min(place + NEXT, len(self.keys)))
        return [other for other in near if place in self.before(other)][:4]

    def lenders(self, place: int) -> tuple[float, Lenders]:
        """Return from which passages a message borrows, by steps, and the size of all of them.

        The size is weighted like the words; 1 is that of a passage on average.
        """
        if place not in self._lenders:
            if len(self._lenders) > REMEMBERED:
                self._lenders.clear()
            fact, size, found = self.fact(place), self.length(place), []
            answers = fact.links if fact.act == "r" else ()
            for other, distance in self.near(place).items():
                lent = self._lends(other) if distance else []
                own = [number for number, call in lent if call and call in answers]
                if numbers := own or [number for number, _ in lent]:
                    found.append((distance, tuple(numbers)))
                    size += BORROWED[distance] * self.length(other) * len(numbers)
            self._lenders[place] = size / self.size, tuple(found)
        return self._lenders[place]

    def _lends(self, place: int) -> list[tuple[int, str]]:
        """Return the passages of a message whose words others may borrow, and the call of each.

        These are a short message, and the start of each call and of a result. A long text of a
        speaker is about everything around it, so it lends nothing.
        """
        first, fact = self.first(place), self.fact(place)
        if first < 0:
            return []
        if fact.act == "c" and fact.links:
            pairs = (link.partition(":") for link in fact.links)
            return [(first + int(at), call) for at, _, call in pairs if at.isdigit()]
        return [] if fact.act == "s" and self.count(place) > 1 else [(first, "")]
