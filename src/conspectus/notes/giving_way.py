"""How much of each line is shown where not all of them fit.

Lines get shorter by half at each step, and at last are counted; `WEIGHTS` says which kind takes its
next step first. The user's words have a share of their own, in which the longest are cut first;
then those are left out that say least.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
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

_TERM = re.compile(r"[^\W_]+")
UNSPACED = 0x0E00
"""The first character of the scripts that are written without spaces, from Thai on."""

Rooms = dict[int, float]
"""Characters of each line, by its `id()`; 0 for one that is only counted."""


def give_way(lines: Sequence[Line], room: float) -> Rooms:
    """Return the characters of each line so that all take so many.

    The user's words take their share, the other lines what is left, and the words what these leave.
    """
    words = [line for line in lines if line.kind == "said"]
    works = [line for line in lines if line.kind != "said"]
    typed = min(sum(min(line.size, SHORTEST) for line in words), room * TYPED)
    beside = room - sum(line.size for line in works)
    rooms, taken = _words(words, max(room * SHARE, typed, beside))
    others, left = _works(works, room - taken)
    if left > 0:
        rooms, _ = _words(words, taken + left)
    return rooms | others


def _works(lines: Sequence[Line], room: float) -> tuple[Rooms, float]:
    """Let lines take their steps, the lightest first, until they fit; return what is left, too."""
    rooms: Rooms = {id(line): line.size for line in lines}
    left = room - sum(rooms.values())
    steps: list[tuple[float, int, int]] = []
    for age, line in enumerate(reversed(lines)):
        weight = next(weight for test, weight in WEIGHTS if test(line)) * _named(line)
        weight *= 1.0 if line.model else (1.0 + age / RECENT) ** -0.5
        steps += [(level / weight, id(line), level) for level in LEVELS if level < line.size]
        steps.append((min(BRIEF, USEFUL * line.size) / weight, id(line), 0))
    steps.sort(key=lambda step: -step[0])
    for _, name, level in steps:
        if left >= 0:
            break
        left += rooms[name] - level
        rooms[name] = level
    lacking = {id(one): one.size - rooms[id(one)] for one in lines if 0 < rooms[id(one)] < one.size}
    more = shared(lacking.values(), max(left, 0)) if lacking else 0.0
    for name, size in lacking.items():
        rooms[name] += min(size, more)
        left -= min(size, more)
    return rooms, left


def _words(lines: Sequence[Line], room: float) -> tuple[Rooms, float]:
    """Cut the longest to one length; where that is too short, leave out what says least."""
    firsts = [line for line in lines if not line.like]
    most, kept = shared([line.size for line in lines], room), firsts
    short = min(SHORTEST, max(LEAST, room / 2))
    if most < short and firsts:
        newest, left, kept = lines[-1], room, list[Line]()
        always = {id(one) for one in firsts if one.quotes or one is firsts[0] or one is newest}
        always |= {id(one) for one in firsts if newest.like in one.ids[:1]}
        for line in sorted(_telling(firsts), key=lambda one: id(one) not in always):
            takes = min(line.size, short)
            if id(line) in always or takes <= left:
                left -= takes
                kept.append(line)
        most = max(LEAST, shared([line.size for line in kept], room))
    names = {id(line) for line in kept} | {name for line in kept for name in line.ids[:1]}
    rooms = {id(one): most if (one.like or id(one)) in names else 0.0 for one in lines}
    return rooms, sum(min(one.size, rooms[id(one)]) for one in lines)


def _telling(lines: Sequence[Line]) -> list[Line]:
    """Return lines, those first whose terms stand in fewest others; of equal ones the newest.

    Each term counts by its inverse document frequency (Spärck Jones, 1972), for the length of the
    words: what is said once would be lost, what is said often stands elsewhere, too.
    """
    bags = [frozenset(_terms(line.text)) for line in lines]
    times = Counter(word for bag in bags for word in bag)
    tells = [
        fsum(log(len(bags) / times[word]) for word in bag)
        / (min(len(line.text), 2 * SHORTEST) + 20)
        * _named(line)
        for bag, line in zip(bags, lines, strict=True)
    ]
    return [lines[n] for n in sorted(range(len(lines)), key=lambda n: (-tells[n], -n))]


def _terms(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    terms: list[str] = []
    for word in _TERM.findall(text.casefold()):
        pairs = not word.isascii() and len(word) > 2 and ord(max(word)) >= UNSPACED
        terms += [word[n : n + 2] for n in range(len(word) - 1)] if pairs else [word]
    return terms


def _named(line: Line) -> float:
    """Return how much more a line is worth whose identifiers later messages name."""
    return 1.0 + 0.25 * min(line.worth, 4)
