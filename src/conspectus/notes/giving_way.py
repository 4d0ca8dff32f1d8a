"""How much of each line is shown where not all of them fit.

Lines give way step by step: they get shorter by half, and at last are counted. `WEIGHTS` says which
kind takes its next step first. The user's words have a share of their own, in which the longest
are cut first; then those are left out that say least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import sqrt

from conspectus.notes.segment import Line

SHARE, TYPED = 0.5, 0.6
"""The share of the room that the user's words may take where other lines need the rest; and with no
message of more than `SHORTEST`."""

LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)
"""The characters of a line, step by step."""

SHORTEST, ENDS = 300, (150, 75, 40)
"""Characters to which words of the user are cut before some are left out; and those to which the
first and the newest are cut after that, which always stay."""

FEW = 3
"""Words that are added to those of a message, so that one of a few words is no rare one."""

BRIEF = 120
"""Characters below which a line is not cut, but counted."""

OUTLASTS = 3.0
"""By how much a call that changes something outlasts others, in few characters."""

RECENT = 24
"""Lines from the newest to the one that has seven tenths of its weight: 1 / sqrt(1 + age / RECENT).
"""

LONG = 12
"""Pieces of an outcome above which a call of an unknown tool counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], bool], float], ...] = (
    (lambda line: line.kind == "found", 50.0),
    (lambda line: line.kind == "agent", 5.0),
    (lambda line: line.failed, 1.5),
    (lambda line: line.effect is False, 0.6),
    (lambda line: line.effect is None and len(line.outcome) > LONG, 0.7),
    (lambda line: line.effect is True or len(line.outcome) < 2, 1.5),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So looks give way first, then calls, those
that changed something or failed, what the agent said, and last a model's findings."""

Steps = list[tuple[int, int]]  # the place of a line, and the characters that it is left


class GivingWay:
    """Lines that share one room.

    Attributes:
        sizes: the characters of each line when nothing of it is cut.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.sizes = [line.size for line in lines]
        places = [place for place, line in enumerate(lines) if not line.times]
        words = [place for place in places if lines[place].kind == "said"]
        works = [place for place in places if lines[place].kind != "said"]
        self._words, self._works = (sum(self.sizes[p] for p in some) for some in (words, works))
        self._typed = sum(min(self.sizes[place], SHORTEST) for place in words)
        self._word_steps = _steps_of_words({place: lines[place] for place in words})
        self._work_steps = _steps_of_works((place, lines[place]) for place in reversed(works))

    def rooms(self, room: float) -> list[float]:
        """Return the characters of each line so that all take so many; 0 for one that is counted.

        The user's words take their share, the others what is left, and the words what these leave.
        """
        typed = min(self._typed, room * TYPED)
        words = min(self._words, max(room * SHARE, typed, room - self._works))
        rooms = [*map(float, self.sizes)]
        left = self._give_way(rooms, self._work_steps, room - words - self._works)
        self._give_way(rooms, self._word_steps, words + left - self._words)
        return rooms

    def _give_way(self, rooms: list[float], steps: Steps, left: float) -> float:
        """Take steps while too little is left; return what the last lines to give way leave."""
        taken = 0
        while left < 0 and taken < len(steps):
            place, level = steps[taken]
            left += rooms[place] - level
            rooms[place] = level
            taken += 1
        for place, _ in reversed(steps[:taken]):
            if left > 0 and rooms[place]:
                more = min(left, self.sizes[place] - rooms[place])
                rooms[place] += more
                left -= more
        return max(left, 0.0)


def _steps_of_works(lines: Iterable[tuple[int, Line]]) -> Steps:
    """Return the steps of lines that are not the user's, the newest line first."""
    steps = list[tuple[float, int, int]]()
    for age, (place, line) in enumerate(lines):
        weight = next(weight for test, weight in WEIGHTS if test(line))
        weight /= 1.0 if line.kind == "found" else sqrt(1.0 + age / RECENT)
        steps += [(-level / weight, place, level) for level in LEVELS if level < line.size]
        last = min(BRIEF, line.size) / (OUTLASTS if line.acts or line.failed else 1.0)
        steps.append((-last / weight, place, 0))
    return [(place, level) for _, place, level in sorted(steps)]


def _steps_of_words(lines: dict[int, Line]) -> Steps:
    """Return the steps of the user's words: cuts, then of the first, then who is left out.

    Those are left out first whose words most other messages have, too: what is said once would be
    lost, what is said often is still there.
    """
    first, newest = next(iter(lines), 0), next(reversed(lines), 0)
    times = Counter(chain.from_iterable(line.terms for line in lines.values()))
    steps = list[tuple[int, float, int, int]]()
    for place, line in lines.items():
        cuts = [level for level in LEVELS if SHORTEST <= level < line.size]
        steps += [(int(place == first), -level, place, level) for level in cuts]
        again = lines[newest].like in line.ids[:1]  # the newest says the same
        if place in (first, newest) or again or line.quotes:
            steps += [(3, -level, place, level) for level in ENDS if level < line.size]
        else:
            rare = sum(1 / times[term] for term in line.terms) / (len(line.terms) + FEW)
            steps.append((2, rare, place, 0))
    return [(place, level) for *_, place, level in sorted(steps)]
