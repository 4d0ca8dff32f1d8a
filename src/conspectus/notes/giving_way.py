"""How much of each line is shown where not all of them fit.

Lines get shorter by half at each step, and at last are counted; `WEIGHTS` says which kind takes its
next step first. The user's words have a share of their own, in which the longest are cut first;
then those are left out that say least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from math import fsum, log

from conspectus.notes.cutting import LEAST, shared
from conspectus.notes.segment import Line

SHARE, TYPED, FIRST = 0.5, 0.6, 0.5
"""The share of the room that the user's words may take where other lines need the rest; the share
with no message of more than `SHORTEST`; and the first one's share of theirs before it is cut."""

SHORTEST = 240
"""Characters to which words of the user are cut before some are left out."""

BRIEF, USEFUL = 120, 0.6
"""Characters below which a line is counted and not shown; of a shorter line, this share of it."""

LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)
"""The characters of a line, step by step."""

NAMED, OUTLASTS = 80, 2.0
"""The last characters of a call that changes something, and by how much it outlasts others."""

RECENT = 24
"""Lines from the newest to the one that has seven tenths of its weight: 1 / sqrt(1 + age / RECENT).
"""

LONG = 12
"""Pieces of an outcome above which a call of an unknown tool counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], bool], float], ...] = (
    (lambda line: line.kind == "found", 50.0),
    (lambda line: line.kind == "agent", 2.5),
    (lambda line: line.effect is False, 0.6),
    (lambda line: line.effect is None and len(line.outcome) > LONG, 0.7),
    (lambda line: line.effect is True or len(line.outcome) < 2, 1.5),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So looks give way
first, then calls, changes, what the agent said, and last a model's findings."""


class GivingWay:
    """Lines that share one room.

    Attributes:
        sizes: the characters of each line when nothing of it is cut.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self.sizes = [line.size for line in lines]
        places = [place for place, line in enumerate(lines) if not line.times]
        self._words = [place for place in places if lines[place].kind == "said"]
        self._works = [place for place in places if lines[place].kind != "said"]
        self._size = sum(self.sizes[place] for place in self._works)
        self._steps: list[tuple[float, int, int]] = []
        for age, place in enumerate(reversed(self._works)):
            line = lines[place]
            weight = next(weight for test, weight in WEIGHTS if test(line)) * _named(line)
            weight *= 1.0 if line.kind == "found" else (1.0 + age / RECENT) ** -0.5
            levels = [level for level in LEVELS if level < line.size]
            last = min(BRIEF, USEFUL * line.size)
            if line.acts:
                levels += [NAMED] if line.size > NAMED else []
                last = min(NAMED, last) / OUTLASTS
            self._steps += [(-level / weight, place, level) for level in levels]
            self._steps.append((-last / weight, place, 0))
        self._steps.sort()

    def rooms(self, room: float) -> list[float]:
        """Return the characters of each line so that all take so many; 0 for one that is counted.

        The user's words take their share, the others what is left, and the words what these leave.
        """
        words = [self.sizes[place] for place in self._words]
        typed = min(sum(min(size, SHORTEST) for size in words), room * TYPED)
        taken = min(sum(words), max(room * SHARE, typed, room - self._size))
        rooms = [*map(float, self.sizes)]
        left = room - taken - self._size
        for _, place, level in self._steps:
            if left >= 0:
                break
            left += rooms[place] - level
            rooms[place] = level + left if level and left > 0 else level
            left = min(left, 0) if level else left
        self._cut_words(rooms, taken + max(left, 0))
        return rooms

    def _cut_words(self, rooms: list[float], room: float) -> None:
        """Cut the longest to one length; where that is too short, leave out what says least."""
        lines = {place: self._lines[place] for place in self._words}
        if not lines or sum(line.size for line in lines.values()) <= room:
            return
        first, *others = (line.size for line in lines.values())
        most = shared([first, *others], room)
        spare = room - sum(min(size, SHORTEST) for size in others)
        if most < (first := int(min(first, max(most, min(room * FIRST, spare))))):
            most = shared(others, room - first)
        kept = {place for place, line in lines.items() if not line.like}
        short = min(SHORTEST, max(LEAST, room / 2))
        if most < short and kept:
            left, kept = room - first, {self._words[0]}
            for place, always in self._telling:
                takes = min(lines[place].size, short)
                if always or takes <= left:
                    left -= takes
                    kept.add(place)
            rest = [lines[place].size for place in kept if place != self._words[0]]
            first = max(first, int(room) - sum(rest))
            most = max(LEAST, shared(rest, room - first))
        names = {name for place in kept for name in lines[place].ids[:1]}
        for place, line in lines.items():
            rooms[place] = most if line.like in names or place in kept else 0.0
        rooms[self._words[0]] = max(first, most)

    @cached_property
    def _telling(self) -> list[tuple[int, bool]]:
        """Return the words after the first, and whether they always stay; those that do come first.

        Of the others those come first that say most.

        Each term counts by its inverse document frequency (Spärck Jones, 1972), for the length of
        the words: what is said once would be lost, what is said often stands elsewhere, too.
        """
        firsts = [place for place in self._words if not self._lines[place].like]
        newest = self._lines[self._words[-1]]
        bags = [self._lines[place].terms for place in firsts]
        weights = {
            word: log(len(bags) / times)
            for word, times in Counter(chain.from_iterable(bags)).items()
        }
        order: list[tuple[bool, float, int]] = []
        for place, bag in zip(firsts, bags, strict=True):
            if place == self._words[0]:
                continue
            line = self._lines[place]
            always = bool(line.quotes) or line is newest or newest.like in line.ids[:1]
            tells = fsum(map(weights.__getitem__, bag)) * _named(line)
            order.append((not always, -tells / (min(len(line.text), 2 * SHORTEST) + 20), -place))
        return [(-place, not rest) for rest, _, place in sorted(order)]


def _named(line: Line) -> float:
    """Return how much more a line is worth whose identifiers later messages name."""
    return 1.0 + 0.25 * min(line.worth, 4)
