"""Render the notes within their room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from conspectus.notes.cutting import LEAST, cut, section
from conspectus.notes.giving_way import GivingWay
from conspectus.notes.lines import fitted, shown, tallied, text_of
from conspectus.notes.segment import Kind, Line, Segment

HEADINGS: dict[Kind, str] = {
    "said": "Said by the user",
    "done": "Done",
    "agent": "Said by the agent",
    "found": "Found and decided",
}
NOW = "# Now, before the messages below"

PART = 12
"""Lines that a part shows at least, once lines are cut."""

MORE, KEPT, WORDS_KEPT = 2, 300, 8_000
"""How much more than it shows of a line a record keeps, and the characters of a line, and of one of
the user's words, that it keeps at least."""

MANY, MANY_WORDS = 64, 256
"""Lines that are left out before they are counted for good, and words of the user's."""

FILLED, ENOUGH, TRIES = 0.98, 0.95, 8
"""The share of its room that a text is to fill where something is cut, the share that is enough,
and how often it is tried."""

FIRST_TRY = 1.2
"""The characters of the first try, as lines end at a good place before their room ends."""

CHARACTERS = 4
"""Characters of a token in the longest text that is tried whole."""

TEXTS = 0.6
"""The share of the room that texts of a caller's own may take."""

Count = Callable[[str], int]


class Notes:
    """The notes of a record and what is added to them.

    Args:
        segments: the notes, and what is added, oldest first.

    Attributes:
        segment: all of it.

    Example:
        >>> Notes([Segment((Line("said", ("m2",), "Be brief."),))]).render(100, len)
        '# Part 1\\n## Said by the user\\n- Be brief. [m2]'
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segment = reduce(Segment.with_new, segments, Segment())
        self._parts = self.segment.each_part()
        self._rooms: list[float] = []

    @property
    def findings(self) -> list[Line]:
        """The findings of models that are in force."""
        return [line for line in self.segment.lines if line.kind == "found"]

    @property
    def summary(self) -> str:
        """The newest summary by a prompt or a function of the caller's; empty for none."""
        return self.segment.summary or (self.segment.text if self.segment.edited else "")

    def render(self, room: int, count: Count, *, archived: bool = True, calls: bool = True) -> str:
        """Return the text.

        Args:
            room: tokens that it may take.
            count: tokens of a text.
            archived: whether originals can be recalled; otherwise nothing is cited.
            calls: whether calls and the agent's own words are shown, beside the user's and a
                model's findings.
        """
        parts = self._parts
        if not calls:
            kinds = ("said", "found")
            parts = [tuple(line for line in part if line.kind in kinds) for part in parts]
        lines = [line for part in parts for line in part]
        before, end = self._around(int(room * TEXTS) if lines else room, count)
        self._rooms = []
        way = GivingWay(lines)
        full = sum(way.sizes)
        if full <= 2 * CHARACTERS * room:
            text = "\n".join(filter(None, (before, _body(parts, [], archived), end)))
            if (size := count(text)) <= room:
                return text
        else:
            text = "\n".join(shown(line, 150, archived) for line in lines[:: len(lines) // 16 + 1])
            size = count(text)
        token = len(text) / max(size, 1)
        chars, low, high = FIRST_TRY * room * token - len(before) - len(end), 0.0, float(full)
        text, last = "", -1
        for _ in range(TRIES):
            rooms = way.rooms(max(chars, 0.0))
            tried = "\n".join(filter(None, (before, _body(parts, rooms, archived), end)))
            if (size := count(tried)) <= room:
                text, self._rooms, low = tried, rooms, chars
            else:
                high = chars
            if ENOUGH * room <= size <= room or high - low < CHARACTERS:
                break
            guess = chars + (FILLED * room - size) * len(tried) / max(size, 1)
            is_better = low < guess < high and size != last  # lines get shorter in steps
            chars, last = guess if is_better else (low + high) / 2, size
        return text or _least(lines, room, count, archived)

    def kept(self) -> Segment:
        """Return the notes with not much more of each line than the text shows of it.

        Where many lines are left out, they are counted for good, so that a long session does not
        read all of its lines again and again.
        """
        if not self._rooms:
            return self.segment
        gone = Counter(
            line.kind == "said"
            for line, room in zip(self.segment.lines, self._rooms, strict=True)
            if not room
        )
        most = {False: MANY, True: MANY_WORDS}
        for_good = [kind for kind, number in gone.items() if number > most[kind]]
        parts = []
        for pairs in _grouped(self._parts, self._rooms):
            counted, stay = list[Line](), list[Line]()
            for line, room in pairs:
                if line.times or (not room and (line.kind == "said") in for_good):
                    counted.append(line)
                else:
                    stay.append(_stored(line, room))
            parts.append([*_tallies(counted), *stay])
        lines = tuple(line for part in parts for line in part)
        return replace(self.segment, lines=lines, parts=tuple(map(len, parts)))

    def _around(self, room: int, count: Count) -> tuple[str, str]:
        """Return what stands before the lines, and what is open behind them."""
        own = self.segment
        sections = {
            "Goal": own.goal,
            "Order": tuple(filter(None, [own.ahead])),
            "Open": own.todo or (),
            "Next": own.next,
            "Skills read": own.skills,
        }
        end = "\n".join(line for name, some in sections.items() for line in section(name, some))
        if end:
            end = f"{NOW}\n{_within(end, room, count)}"
        if own.summary:
            end = f"{end}\n## Summary\n{_within(own.summary, room, count)}".lstrip("\n")
        return _within(own.text, room, count), end


Pairs = list[tuple[Line, float]]


def _stored(line: Line, room: float) -> Line:
    least = max(MORE * room, WORDS_KEPT if line.kind == "said" else KEPT)
    return fitted(line, least) if line.size > MORE * least else line


def _grouped(parts: Sequence[Sequence[Line]], rooms: Sequence[float]) -> list[Pairs]:
    """Return the lines of each part, with their rooms; parts that show few lines are one.

    Without rooms all is shown whole, and each part stands alone.
    """
    groups, few, each = list[Pairs](), False, iter(rooms)
    for part in filter(None, parts):
        pairs = [(line, next(each) if rooms else line.size) for line in part]
        groups = [*groups[:-1], groups[-1] + pairs] if few else [*groups, pairs]
        few = bool(rooms) and sum(room > 0 for line, room in groups[-1] if not line.times) < PART
    return groups


def _tallies(lines: Sequence[Line]) -> list[Line]:
    """Return a line for each kind of those that are only counted."""
    kinds = ([line for line in lines if line.kind == kind] for kind in HEADINGS)
    return [tallied(same) for same in kinds if same]


def _body(parts: Sequence[Sequence[Line]], rooms: Sequence[float], archived: bool) -> str:
    """Return the parts as text, what is counted first."""
    text: list[str] = []
    for number, pairs in enumerate(_grouped(parts, rooms), 1):
        text.append(f"# Part {number}")
        left_out = _tallies([line for line, room in pairs if line.times or not room])
        stand = [(line, room) for line, room in pairs if room and not line.times]
        for kind, name in HEADINGS.items():
            same = [text_of(line, archived) for line in left_out if line.kind == kind]
            same += [shown(line, room, archived) for line, room in stand if line.kind == kind]
            text += section(name, same)
    return "\n".join(text)


def _least(lines: Sequence[Line], room: int, count: Count, archived: bool) -> str:
    """Return the user's first and newest words in a room that not even counted lines fit."""
    words = [line for line in lines if line.kind == "said" and not line.times]
    ends = [*words[:1], *words[1:][-1:]]
    rest = f"({sum(line.times or 1 for line in lines) - len(ends)} lines left out)"
    for size in (4 * room, 2 * room, room, room // 2, LEAST):
        said = [shown(line, size, archived) for line in ends]
        text = "\n".join(["# Part 1", *section(HEADINGS["said"], said), f"- {rest}"])
        if count(text) <= room:
            return text
    return _within(rest, room, count)


def _within(text: str, room: int, count: Count) -> str:
    """Return as much of a text as fits, its beginning and its end."""
    size, part = len(text), text
    while part and (tokens := count(part)) > room:
        size = min(size - 1, int(size * max(room, 0) / tokens))
        part = cut(text, size)
    return part
