"""How much of each line is shown where not all of them fit.

Lines get shorter by half at each step, and at last are counted; `WEIGHTS` says which kind takes its
next step first. The user's words have a share of their own, in which the longest are cut first;
then those are left out that say least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from math import fsum, log

from conspectus.notes.cutting import LEAST, shared
from conspectus.notes.segment import Line

SHARE, TYPED = 0.5, 0.6
"""The share of the room that the user's words may take where other lines need the rest, and the
share that they may take with no message of more than `SHORTEST`."""

SHORTEST = 240
"""Characters to which words of the user are cut before some are left out."""

BRIEF, USEFUL = 120, 0.6
"""Characters below which a line is counted and not shown; of a shorter line, this share of it."""

LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)
"""The characters of a line, step by step."""

RECENT = 24
"""Lines from the newest to the one that has seven tenths of its weight: 1 / sqrt(1 + age / RECENT).
"""

SHORT, LONG = 2, 12
"""Pieces of an outcome below which a call of an unknown tool counts as a change, as programs that
change something say little, and above which it counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], bool], float], ...] = (
    (lambda line: line.model, 50.0),
    (lambda line: line.kind == "found", 2.5),
    (lambda line: line.again and not line.effect, 0.35),
    (lambda line: line.effect is False, 0.6),
    (lambda line: line.effect is None and len(line.outcome) > LONG, 0.7),
    (lambda line: line.effect is True or len(line.outcome) < SHORT, 1.5),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So looks that were repeated give way first,
then looks, calls, changes, what the agent said to the user, and last a model's findings."""

Rooms = dict[int, float]
"""Characters of each line, by its `id()`; 0 for one that is only counted."""


class GivingWay:
    """Lines that share one room."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._words = [line for line in lines if line.kind == "said"]
        self._works = [line for line in lines if line.kind != "said"]
        self._steps: list[tuple[float, int, int]] = []
        for age, line in enumerate(reversed(self._works)):
            weight = next(weight for test, weight in WEIGHTS if test(line)) * _named(line)
            weight *= 1.0 if line.model else (1.0 + age / RECENT) ** -0.5
            levels = (level for level in LEVELS if level < line.size)
            self._steps += [(level / weight, id(line), level) for level in levels]
            self._steps.append((min(BRIEF, USEFUL * line.size) / weight, id(line), 0))
        self._steps.sort(key=lambda step: -step[0])

    def rooms(self, room: float) -> Rooms:
        """Return the characters of each line so that all take so many.

        The user's words take their share, the others what is left, and the words what these leave.
        """
        typed = min(sum(min(line.size, SHORTEST) for line in self._words), room * TYPED)
        beside = room - sum(line.size for line in self._works)
        words, taken = self._cut_words(max(room * SHARE, typed, beside))
        works, left = self._cut_works(room - taken)
        return (self._cut_words(taken + left)[0] if left > 0 else words) | works

    def _cut_works(self, room: float) -> tuple[Rooms, float]:
        """Let lines take their steps until they fit; return what is left, too."""
        sizes = {id(line): line.size for line in self._works}
        rooms: Rooms = dict(sizes)
        left = room - sum(sizes.values())
        for _, name, level in self._steps:
            if left >= 0:
                break
            left += rooms[name] - level
            rooms[name] = level
        lacking = {
            name: size - rooms[name] for name, size in sizes.items() if 0 < rooms[name] < size
        }
        more = shared(lacking.values(), max(left, 0)) if lacking else 0.0
        for name, size in lacking.items():
            rooms[name] += min(size, more)
            left -= min(size, more)
        return rooms, left

    def _cut_words(self, room: float) -> tuple[Rooms, float]:
        """Cut the longest to one length; where that is too short, leave out what says least."""
        lines = self._words
        kept = [line for line in lines if not line.like]
        most = shared([line.size for line in lines], room)
        short = min(SHORTEST, max(LEAST, room / 2))
        if most < short and kept and sum(line.size for line in lines) > room:
            left, kept = room, []
            for line, always in self._telling:
                takes = min(line.size, short)
                if always or takes <= left:
                    left -= takes
                    kept.append(line)
            most = max(LEAST, shared([line.size for line in kept], room))
        names = {id(line) for line in kept} | {name for line in kept for name in line.ids[:1]}
        rooms = {id(one): most if (one.like or id(one)) in names else 0.0 for one in lines}
        return rooms, sum(min(one.size, rooms[id(one)]) for one in lines)

    @cached_property
    def _telling(self) -> list[tuple[Line, bool]]:
        """Return the words, and whether they always stand: those first, then those that say most.

        Each term counts by its inverse document frequency (Spärck Jones, 1972), for the length of
        the words: what is said once would be lost, what is said often stands elsewhere, too.
        """
        firsts, newest = [line for line in self._words if not line.like], self._words[-1]
        bags = [line.terms for line in firsts]
        weights = {
            word: log(len(bags) / times)
            for word, times in Counter(word for bag in bags for word in bag).items()
        }
        order: list[tuple[bool, float, int]] = []
        for n, (bag, line) in enumerate(zip(bags, firsts, strict=True)):
            always = bool(line.quotes) or n == 0 or line is newest or newest.like in line.ids[:1]
            tells = fsum(weights[word] for word in bag) * _named(line)
            order.append((not always, -tells / (min(len(line.text), 2 * SHORTEST) + 20), -n))
        return [(firsts[-n], not rest) for rest, _, n in sorted(order)]


def _named(line: Line) -> float:
    """Return how much more a line is worth whose identifiers later messages name."""
    return 1.0 + 0.25 * min(line.worth, 4)
