"""Render the notes within their room.

Nothing is cut while all fits. When it does not, one measure, the characters that a line of usual
weight may take, is lowered until the text fits; `WEIGHTS` says how much a line may take of it. What
falls below a useful length is counted, and the text says so. The user's words have a share of their
own, in which the longest are cut first; then those are left out that say least.

Segments that were cut once keep their text while what came after them fits beside it without being
cut shorter, so that a provider's cache of the request stays good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log

from conspectus.notes.cutting import cut, shared, terms
from conspectus.notes.lines import ALL, cites_size, counted, section, size_of, text_of
from conspectus.notes.segment import Line, Segment

SAID, DONE, FOUND, OPEN = "Said by the user", "Done", "Found and decided", "Open"
GOAL, NEXT, SUMMARY, SKILLS = "Goal", "Next", "Summary", "Skills read"
NOW = "# Now, before the messages below"

SHARE = 0.5
"""The share of the room that the user's words may take where other lines need the rest."""

SHORTEST = 240
"""Characters to which words of the user are cut before some are left out."""

BRIEF = 180
"""Characters below which a line is counted and not shown."""

RECENT = 24
"""Lines from the newest that keep all their weight; older ones lose it by their distance."""

PART = 12
"""Lines that a part shows at least, once lines are cut."""

OLD = 0.7
"""The share of the room in which older segments are put when they are cut anew, where the newest
one needs the rest."""

FILLED, SPARE = 0.93, 0.97
"""Share of a room from which on it counts as filled, and the share that is aimed at."""

CHARACTERS, TRIES = 3.2, 8
"""Characters of a token that are tried first, and how often a text is measured."""

LONG = 12
"""Pieces of an outcome from which on a call of an unknown tool counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], bool], float], ...] = (
    (lambda line: line.model, 12.0),
    (lambda line: line.kind == "found", 2.5),
    (lambda line: line.again and not line.effect, 0.35),
    (lambda line: line.effect is False, 0.6),
    (lambda line: line.effect is None and len(line.outcome) > LONG, 0.7),
    (lambda line: True, 1.0),
)
"""How much of the measure a line may take, by the first test that it passes. So what gives way
first are looks that were repeated, then looks, calls, what the agent said to the user, and last a
model's findings."""

Count = Callable[[str], int]


class Notes:
    """The notes of a chain of records.

    Args:
        segments: those of the chain, oldest first.

    Attributes:
        segments: those in force.
        held: after `render`, the characters in which all segments before the newest were put, if
            they were cut anew; else 0. The newest segment keeps it.

    Example:
        >>> Notes([Segment((Line("said", ("m2",), "Be brief."),))]).render(100, len)
        '# Part 1\\n## Said by the user\\n- Be brief. [m2]'
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        begin = max((n for n, one in enumerate(segments) if one.alone), default=0)
        self.segments = tuple(s for one in segments[begin:] for s in (*one.earlier, one))
        anew = max((n for n, one in enumerate(self.segments) if one.anew), default=0)
        self._lines = [
            [line for line in one.lines if number >= anew or not line.model]
            for number, one in enumerate(self.segments)
        ]
        self.held = 0

    @property
    def findings(self) -> list[Line]:
        """The findings of models that are in force."""
        return [line for lines in self._lines for line in lines if line.model]

    @property
    def summary(self) -> str:
        """The newest summary by a prompt or a function of the caller's; empty for none."""
        return next((one.text for one in reversed(self.segments) if one.summary or one.alone), "")

    def render(self, room: int, count: Count, *, archived: bool = True, deeds: bool = True) -> str:
        """Return the text.

        Args:
            room: tokens that it may take.
            count: tokens of a text.
            archived: whether originals can be recalled; otherwise nothing is cited.
            deeds: whether calls and the agent's own words are shown, beside the user's and a
                model's findings.
        """
        lines = [
            [
                line if archived else replace(line, ids=())
                for line in one
                if deeds or line.model or line.kind == "said"
            ]
            for one in self._lines
        ]
        before = [one.text for one in self.segments if one.text and not one.summary]
        end = self._end()
        fixed = count("\n".join([*before, *end])) if before or end else 0
        if fixed >= room:
            return _within("\n".join([*before, *end]), room, count)
        body = self._body(lines, room - fixed, count, archived)
        return _within("\n".join([*before, *body, *end]), room, count)

    def _end(self) -> list[str]:
        """Return what is shown once, at the end: the goal, what is open, a summary."""
        newest = self.segments[-1] if self.segments else Segment()
        todo = next((s.todo for s in reversed(self.segments) if s.todo is not None), ())
        goal = next((s.goal for s in reversed(self.segments) if s.goal), ())
        skills = tuple(dict.fromkeys(name for one in self.segments for name in one.skills))
        summary = next((s.text for s in reversed(self.segments) if s.summary), "")
        sections = ((GOAL, goal), (OPEN, todo), (NEXT, newest.next), (SKILLS, skills))
        lines = [line for name, part in sections for line in section(name, part)]
        return [
            *([NOW] if lines else []),
            *lines,
            *([f"## {SUMMARY}\n{summary}"] if summary else []),
        ]

    def _body(
        self, lines: Sequence[Sequence[Line]], room: int, count: Count, archived: bool
    ) -> list[str]:
        every = _Region(lines, archived)
        parts = every.within(room, count)
        if not every.cut or len(lines) == 1:
            return parts
        begin = max((n for n, one in enumerate(self.segments) if one.held), default=0)
        if begin:
            old, new = _Region(lines[:begin], archived), _Region(lines[begin:], archived)
            front = old.parts(self.segments[begin].held)
            left = room - count("\n".join(front))
            back = new.within(left, count, old.number) if left > 0 else []
            if back and new.measure >= old.measure and not new.gone:
                return [*front, *back]
        old, newest = _Region(lines[:-1], archived), _Region(lines[-1:], archived)
        whole = count("\n".join(newest.parts(ALL)))
        front = old.within(max(int(room * OLD), room - whole), count)
        self.held = old.room
        return [*front, *newest.within(room - count("\n".join(front)), count, old.number)]


class _Region:
    """Segments that are put in one room.

    Attributes:
        number: of their last part.
        cut: whether something is cut or left out.
        measure: characters of a line of usual weight.
        room: characters of all.
    """

    def __init__(self, segments: Sequence[Sequence[Line]], archived: bool) -> None:
        self._segments, self._archived = segments, archived
        lines = [line for one in segments for line in one]
        self._words = _Words([line for line in lines if line.kind == "said"])
        self._works = _Works([line for line in lines if line.kind != "said"])
        self.number, self.room, self.cut = 0, ALL, False

    @property
    def measure(self) -> float:
        return self._works.measure

    @property
    def gone(self) -> bool:
        """Whether words of the user are left out."""
        return bool(self._words.gone)

    def within(self, room: int, count: Count, number: int = 0) -> list[str]:
        """Return the parts in so many tokens, or the nearest to it.

        Args:
            room: tokens of all.
            count: tokens of a text.
            number: of the part before them.
        """
        best: list[str] = []
        most, chars = -1, int(room * CHARACTERS)
        for _ in range(TRIES):
            parts = self.parts(chars, number)
            size = count("\n".join(parts))
            if most < size <= room:
                best, most, kept = parts, size, chars
            if size <= room and (not self.cut or size >= FILLED * room):
                return parts
            chars = int(chars * min(max(room * SPARE / max(1, size), 0.2), 4.0))
        return self.parts(kept, number) if best else parts

    def parts(self, room: int, number: int = 0) -> list[str]:
        """Return the parts in so many characters."""
        words, works = self._words, self._works
        share = max(room * SHARE, room - works.full)
        words.fit(share)
        works.fit(room - min(words.size, share))
        self.room, self.cut, self.number = room, words.cut or works.cut, number
        text: list[str] = []
        for group in self._groups():
            kinds = {
                SAID: [line for line in group if line.kind == "said"],
                DONE: [line for line in group if line.kind == "done"],
                FOUND: [line for line in group if line.kind == "found"],
            }
            self.number += 1
            text.append(f"# Part {self.number}")
            for name, lines in kinds.items():
                shown = words.shown if name == SAID else works.shown
                text += section(name, list(shown(lines, self._archived)))
        return text

    def _groups(self) -> Iterator[list[Line]]:
        """Yield the lines of each part: a segment's, or those of several with few lines to show."""
        group: list[Line] = []
        shown = 0
        for lines in self._segments:
            group = [*group, *lines]
            shown += sum(self._words.shows(one) or self._works.shows(one) for one in lines)
            if group and (not self.cut or shown >= PART):
                yield group
                group, shown = [], 0
        if group:
            yield group


class _Words:
    """The user's words within their share."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._first: dict[str, Line] = {}
        for line in lines:
            self._first.setdefault(line.text, line)
        self._alone = list(self._first.values())
        self._sizes = [len(line.text) + cites_size(line) for line in self._alone]
        self._again = sum(24 + cites_size(line) for line in lines[len(self._alone) :])

    def fit(self, room: float) -> None:
        """Cut the longest to one length; where that is too short, leave out what says least."""
        sizes, room = self._sizes, room - self._again
        self.gone: set[str] = set()
        self._most, self.size = float(ALL), sum(sizes) + self._again
        self.cut = sum(sizes) > room
        if not self.cut:
            return
        self._most = shared(sizes, room)
        if self._most < SHORTEST:
            size = sum(min(size, SHORTEST) for size in sizes)
            for place in self._least_telling():
                if size > room and 0 < place < len(sizes) - 1 and not self._alone[place].quotes:
                    size -= min(sizes[place], SHORTEST)
                    self.gone.add(self._alone[place].text)
            pairs = zip(self._alone, sizes, strict=True)
            self._most = max(16.0, shared([n for one, n in pairs if self.shows(one)], room))
        self.size = int(min(room, sum(min(size, self._most) for size in sizes))) + self._again

    def _least_telling(self) -> list[int]:
        """Return the places of the words, those first whose terms stand in most others.

        Each term counts by its inverse document frequency (Spärck Jones, 1972), for the length of
        the words: what is said once would be lost, what is said often stands elsewhere, too.
        """
        bags = [frozenset(terms(line.text)) for line in self._alone]
        times = Counter(word for bag in bags for word in bag)
        tells = [
            sum(log(len(bags) / times[word]) for word in bag) / (size + 20)
            for bag, size in zip(bags, self._sizes, strict=True)
        ]
        return sorted(range(len(bags)), key=lambda place: (tells[place], place))

    def shows(self, line: Line) -> bool:
        """Tell whether a line is among the words and not left out."""
        return line.kind == "said" and line.text not in self.gone

    def shown(self, lines: Sequence[Line], archived: bool) -> Iterator[str]:
        """Yield the words of one part, what is left out named before them."""
        if gone := [line for line in lines if not self.shows(line)]:
            yield counted(gone, archived)
        for line in lines:
            first = self._first[line.text]
            if self.shows(line) and first is not line and len(line.text) > 24:
                again = f": {first.ids[0]}" if first.ids else ""
                yield text_of(replace(line, text=f"(said again{again})", quotes=()))
            elif self.shows(line):
                yield text_of(line, self._most)


class _Works:
    """Calls and findings within the rest of the room."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._sizes = {id(line): size_of(line) for line in lines}
        self.full = sum(self._sizes.values())
        self._weights = {
            id(line): _weight(line, len(lines) - place) for place, line in enumerate(lines)
        }

    def fit(self, room: float) -> None:
        """Find the largest measure at which all fits."""
        self.measure, self.cut = float(ALL), self.full > max(room, 0)
        if not self.cut:
            return
        pairs = [(self._sizes[key], weight) for key, weight in self._weights.items()]
        low, high = 0.0, max(size / weight for size, weight in pairs)
        for _ in range(24):
            measure = (low + high) / 2
            size = sum(_takes(full, weight * measure) for full, weight in pairs)
            low, high = (measure, high) if size <= room else (low, measure)
        self.measure = low

    def shows(self, line: Line) -> bool:
        """Tell whether a line is shown and not counted."""
        weight = self._weights.get(id(line), 0.0)
        return bool(weight) and bool(_takes(self._sizes[id(line)], weight * self.measure))

    def shown(self, lines: Sequence[Line], archived: bool) -> Iterator[str]:
        """Yield the lines of one part and kind, what is left out counted before them."""
        if left := [line for line in lines if not self.shows(line)]:
            yield counted(left, archived)
        for line in lines:
            if self.shows(line):
                yield text_of(line, self._weights[id(line)] * self.measure)


def _takes(full: int, room: float) -> float:
    if full <= room:
        return full
    return room if room >= BRIEF else 0.0


def _weight(line: Line, age: int) -> float:
    factor = next(factor for test, factor in WEIGHTS if test(line))
    recent = 1.0 if line.model else min(1.0, (RECENT / max(age, 1)) ** 0.5)
    return factor * recent * (1.0 + 0.25 * min(line.worth, 4))


def _within(text: str, room: int, count: Count) -> str:
    """Return as much of a text as fits, its beginning and its end."""
    size, shown = len(text), text
    while shown and (tokens := count(shown)) > room:
        size = min(size - 1, int(size * room / tokens))
        shown = cut(text, size)
    return shown
