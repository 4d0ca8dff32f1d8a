"""How much of the notes' lines is shown within a room.

Nothing is cut while all fits. When it does not, one measure, the characters that a line of usual
weight may take, is lowered until the text fits; `WEIGHTS` says how much a line may take of it. What
falls below a useful length is counted, and the text says so. The user's words have a share of their
own, in which the longest are cut first; then those are left out that say least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import fsum, log

from conspectus.notes.cutting import LEAST, shared
from conspectus.notes.lines import ALL, counted, section, text_of
from conspectus.notes.segment import Line

SAID, DONE, FOUND = "Said by the user", "Done", "Found and decided"

SHARE, TYPED = 0.5, 0.6
"""The share of the room that the user's words may take where other lines need the rest, and the
share that they may take with no message of more than `SHORTEST`."""

SHORTEST = 240
"""Characters to which words of the user are cut before some are left out, if half of their
room is as much."""

BRIEF, USEFUL = 150, 0.6
"""Characters below which a line is counted and not shown; of a shorter line, this share of it."""

AGAIN = 24
"""Characters of "said again", up to which words are said again."""

RECENT = 24
"""Lines from the newest to the one that has seven tenths of its weight: 1 / sqrt(1 + age / RECENT).
"""

PART = 12
"""Lines that a part shows at least, once lines are cut."""

FILLED = 0.94
"""The share of a room that a text is to fill where something is cut."""

STEPS = 14
"""Halvings by which the measure is found: to a character where lines have up to 16,000."""

CHARACTERS, FAR, TRIES = 3.2, 8, 10
"""Characters of a token that are tried first, and at most; and how often a text is measured."""

SHORT, LONG = 2, 12
"""Pieces of an outcome below which a call of an unknown tool counts as a change, as programs that
change something say little, and above which it counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], bool], float], ...] = (
    (lambda line: line.model, 50.0),
    (lambda line: line.kind == "found", 2.5),
    (lambda line: line.again and not line.effect, 0.35),
    (lambda line: line.effect is False, 0.6),
    (lambda line: line.effect is None and len(line.outcome) > LONG, 0.7),
    (lambda line: line.effect or len(line.outcome) < SHORT, 1.5),
    (lambda line: True, 1.0),
)
"""How much of the measure a line may take, by the first test that it passes. So what gives way
first are looks that were repeated, then looks, calls, changes, what the agent said to the user, and
last a model's findings."""

Count = Callable[[str], int]


class Region:
    """Segments that share one room.

    Args:
        segments: their lines.
        archived: whether originals can be recalled.
        before: what stands before them.

    Attributes:
        number: of their last part.
        cut: whether something is cut or left out.
        gone: whether words of the user are left out.
        measure: characters of a line of usual weight.
        room: characters of all.
        token: characters of a token, as measured; 0 where nothing is cut.
        rooms: characters of each line, by its `id()`; 0 for one that is left out.
    """

    def __init__(
        self, segments: Sequence[Sequence[Line]], archived: bool, before: Region | None = None
    ) -> None:
        self._segments, self._archived = segments, archived
        lines = [line for one in segments for line in one if not line.times]
        self._first = dict(before.whole()) if before else {}
        self._newest: Line | None = None
        for line in lines:
            if line.kind == "said":
                self._first.setdefault(line.words, line)
                self._newest = self._first[line.words]
        self._words = [line for line in lines if self._first.get(line.words) is line]
        self._works = [line for line in lines if line.kind != "said"]
        self._sizes = {id(line): line.size for line in lines}
        self._weights = {
            id(line): _weight(line, len(self._works) - n) for n, line in enumerate(self._works)
        }
        known = {id(line) for line in (*self._words, *self._works)}
        self._again = sum(AGAIN + line.cites for line in lines if id(line) not in known)
        self._full = sum(self._sizes[key] for key in known) + self._again
        self.rooms: dict[int, float] = {}
        self._begin: int = before.number if before else 0
        self.number: int = 0
        self.room: int = 0
        self.token = 0.0
        self.measure, self.gone, self.cut = float(ALL), False, False

    def whole(self) -> dict[str, Line]:
        """Return the user's words that are shown whole, each with its first line."""
        rooms, sizes = self.rooms, self._sizes
        return {one.words: one for one in self._words if rooms[id(one)] >= sizes[id(one)]}

    def within(self, room: int, count: Count, token: float = 0.0) -> list[str]:
        """Return the parts in so many tokens, or as near to it as can be.

        `token` are the characters that a token has had in such parts, if that is known.
        """
        least, most = 0, self._full + 1
        aim = int(room * (token or CHARACTERS) * (1 + FILLED) / 2)
        far = room * (2 * token if token else FAR)  # never so many, so all of it need not be tried
        chars = self._full if self._full < far else aim
        groups = None
        for number in range(2 * TRIES):
            if number == TRIES:  # one more part may take more than is left
                self.parts(least)
                groups, most = self._groups(), self._full + 1
            parts = self.parts(chars, groups)
            size = count("\n".join(parts))
            self.token = chars / max(size, 1) if self.cut else 0.0
            if size <= room and (not self.cut or size >= FILLED * room):
                return parts
            least, most = (max(least, chars), most) if size <= room else (least, min(most, chars))
            guess = int(chars * room * (1 + FILLED) / 2 / max(size, 1))
            chars = guess if least < guess < most else (least + most) // 2
        return self.parts(least, groups)

    def parts(self, room: int, groups: list[list[Line]] | None = None) -> list[str]:
        """Return the parts in so many characters; with `groups`, of these lines."""
        self._put(room - self._again)
        self.room, self.number = room, self._begin
        text: list[str] = []
        for group in groups or self._groups():
            self.number += 1
            text.append(f"# Part {self.number}")
            for name, kind in ((SAID, "said"), (DONE, "done"), (FOUND, "found")):
                text += section(name, self._shown([one for one in group if one.kind == kind]))
        return text

    def _groups(self) -> list[list[Line]]:
        """Return the lines of each part: a segment's, or those of several that show few lines."""
        if not self.cut:
            return [list(lines) for lines in self._segments if lines]
        groups: list[list[Line]] = []
        shown = PART
        for lines in self._segments:
            if shown >= PART:
                groups.append([])
                shown = 0
            groups[-1] += lines
            shown += sum(map(self._shows, lines))
        if shown < PART and len(groups) > 1:
            groups[-2:] = [[*groups[-2], *groups[-1]]]
        return [group for group in groups if group]

    def _shown(self, lines: Sequence[Line]) -> list[str]:
        """Return the lines of one kind in a part, those left out counted before them."""
        left = [line for line in lines if not self._shows(line)]
        text = [counted(left, self._archived)] if left else []
        for line in lines:
            first = self._first.get(line.words, line) if line.kind == "said" else line
            if self._shows(line) and first is not line and len(line.text) > AGAIN:
                ids = f": {first.ids[0]}" if first.ids and self._archived else ""
                again = replace(line, text=f"(said again{ids})", quotes=())
                text.append(text_of(again, archived=self._archived))
            elif self._shows(line):
                room = self.rooms.get(id(line), ALL)
                text.append(text_of(line, room, archived=self._archived))
        return text

    def left(self) -> set[int]:
        """Return the lines that are not shown, by their `id()`."""
        return {id(line) for one in self._segments for line in one if not self._shows(line)}

    def _shows(self, line: Line) -> bool:
        if line.times:
            return False
        first = self._first.get(line.words, line) if line.kind == "said" else line
        return self.rooms.get(id(first), ALL) > 0

    def _put(self, room: int) -> None:
        """Give each line its room: the words their share, the others what is left, and back."""
        works = sum(self._sizes[id(line)] for line in self._works)
        typed = sum(min(self._sizes[id(line)], SHORTEST) for line in self._words)
        share = max(room * SHARE, min(typed, room * TYPED), room - works)
        words = self._put_words(share)
        left = room - self._put_works(room - words)
        if left > words:
            self._put_words(left)
        rooms, sizes = self.rooms, self._sizes
        self.cut = any(rooms[id(one)] < sizes[id(one)] for one in (*self._words, *self._works))
        self.gone = not all(rooms[id(one)] for one in self._words)

    def _put_words(self, room: float) -> float:
        """Cut the longest to one length; where that is too short, leave out what says least."""
        words, sizes = self._words, [self._sizes[id(line)] for line in self._words]
        most, kept = shared(sizes, room), set(range(len(words)))
        short = min(SHORTEST, max(LEAST, room / 2))
        if most < short:
            left, kept = room, set()
            always = {0, *(n for n, one in enumerate(words) if one.quotes or one is self._newest)}
            for place in sorted(self._telling, key=lambda place: place not in always):
                if place in always or min(sizes[place], short) <= left:
                    left -= min(sizes[place], short)
                    kept.add(place)
            most = max(LEAST, shared([sizes[place] for place in kept], room))
        for place, line in enumerate(words):
            self.rooms[id(line)] = min(most, ALL) if place in kept else 0
        return sum(min(sizes[place], most) for place in kept)

    @cached_property
    def _telling(self) -> list[int]:
        """Return the places of the words, those first whose terms stand in fewest others.

        Each term counts by its inverse document frequency (Spärck Jones, 1972), for the length of
        the words: what is said once would be lost, what is said often stands elsewhere, too.
        """
        bags = [line.terms for line in self._words]
        times = Counter(word for bag in bags for word in bag)
        tells = [
            fsum(log(len(bags) / times[word]) for word in bag)
            / (min(len(line.text), 2 * SHORTEST) + 20)
            * _named(line)
            for bag, line in zip(bags, self._words, strict=True)
        ]
        return sorted(range(len(bags)), key=lambda place: (-tells[place], -place))

    def _put_works(self, room: float) -> float:
        """Find the largest measure at which the lines fit, then give them what it leaves over."""
        keys, sizes, weights = list(self._weights), self._sizes, self._weights
        full = sum(sizes[key] for key in keys)
        self.measure = float(ALL)
        self.rooms.update(dict.fromkeys(keys, self.measure))
        if full <= max(room, 0):
            return full
        lines = [(sizes[key], weights[key], min(BRIEF, USEFUL * sizes[key])) for key in keys]
        low, high = 0.0, max(size / weight for size, weight, _ in lines)
        for _ in range(STEPS):
            middle, taken = (low + high) / 2, 0.0
            for size, weight, least in lines:  # as `_useful`, which is too slow to be called here
                share = weight * middle
                if share >= least:
                    taken += size if size <= share or size <= 2 * LEAST else share
            low, high = (middle, high) if taken <= room else (low, middle)
        self.measure = low
        rooms = {key: _useful(sizes[key], weights[key] * low) for key in keys}
        left = room - sum(rooms.values())
        for key in sorted(keys, key=lambda key: -weights[key]):
            if not rooms[key] and (least := min(sizes[key], BRIEF)) <= left:
                rooms[key], left = least, left - least
        lacking = {key: sizes[key] - rooms[key] for key in keys if rooms[key]}
        more = shared(lacking.values(), max(left, 0))
        rooms |= {key: rooms[key] + min(size, more) for key, size in lacking.items()}
        self.rooms.update(rooms)
        return sum(rooms.values())


def _useful(full: int, room: float) -> float:
    """Return what a line takes of a room; nothing where so little of it would say nothing.

    A line too short to be cut takes all of it wherever it is shown.
    """
    if room < min(BRIEF, USEFUL * full):
        return 0.0
    return full if full <= 2 * LEAST else min(full, room)


def _weight(line: Line, age: int) -> float:
    factor = next(factor for test, factor in WEIGHTS if test(line))
    recent = 1.0 if line.model else (1.0 + age / RECENT) ** -0.5
    return factor * recent * _named(line)


def _named(line: Line) -> float:
    """Return how much more a line is worth whose identifiers later messages name."""
    return 1.0 + 0.25 * min(line.worth, 4)
