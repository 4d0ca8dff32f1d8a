"""Render the notes within their room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from conspectus.notes.cutting import LEAST, cut, section
from conspectus.notes.giving_way import GivingWay
from conspectus.notes.lines import fitted, shown, tallied
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

CHARACTERS = 4
"""Characters of a token, about; a text of twice as many as its room has is not tried whole."""

AROUND = 0.6
"""The share of the room that texts of a caller's own may take."""

Parts = Sequence[Sequence[tuple[Line, float]]]  # lines, each with its characters
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
        parts = self.segment.each_part()
        if not calls:
            kinds = ("said", "found")
            parts = [tuple(line for line in part if line.kind in kinds) for part in parts]
        lines = [line for part in parts for line in part]
        before, end = self._around(int(room * AROUND) if lines else room, count)
        way, self._rooms = GivingWay(lines), []
        whole = float(sum(way.sizes))
        low, high, best, last = 0.0, whole, None, -1
        chars = whole if whole <= 2 * CHARACTERS * room else CHARACTERS * room
        for _ in range(TRIES):
            rooms = way.rooms(chars) if chars < whole else []
            body = _body(_shared_out(parts, rooms), archived)
            text = "\n".join(filter(None, (before, body, end)))
            size = count(text)
            if size <= room:
                best, self._rooms, low = text, rooms, chars
                if chars == whole or size >= ENOUGH * room:
                    break
            else:
                high = chars
            if high - low < CHARACTERS:
                break
            guess = chars + (FILLED * room - size) * len(text) / max(size, 1)
            is_better = low < guess < high and size != last  # lines get shorter in steps
            chars, last = guess if is_better else (low + high) / 2, size
        return _least(lines, room, count, archived) if best is None else best

    def kept(self) -> Segment:
        """Return the notes with not much more of each line than the text shows of it.

        Where many lines are left out, they are counted for good.
        """
        if not self._rooms:
            return self.segment
        said = [line.kind == "said" for line in self.segment.lines]
        gone = Counter(words for words, room in zip(said, self._rooms, strict=True) if not room)
        stay = {False: gone[False] <= MANY, True: gone[True] <= MANY_WORDS}
        rooms = [room or stay[words] for words, room in zip(said, self._rooms, strict=True)]
        parts = [
            [_stored(line, room) for line, room in part]
            for part in _shared_out(self.segment.each_part(), rooms)
        ]
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


def _stored(line: Line, room: float) -> Line:
    least = max(MORE * room, WORDS_KEPT if line.kind == "said" else KEPT)
    return fitted(line, least) if line.size > MORE * least else line


def _shared_out(parts: Sequence[Sequence[Line]], rooms: Sequence[float]) -> Parts:
    """Return the lines of each part with their rooms, those without any as one line that counts.

    Without rooms all is shown whole. Otherwise parts that show few lines are one.
    """
    if not rooms:
        return [[(line, line.size) for line in part] for part in parts if part]
    groups, each = list[list[tuple[Line, float]]](), iter(rooms)
    for part in filter(None, parts):
        pairs = [(line, next(each)) for line in part]
        few = groups and sum(room > 0 for line, room in groups[-1] if not line.times) < PART
        groups = [*groups[:-1], groups[-1] + pairs] if few else [*groups, pairs]
    shown = list[list[tuple[Line, float]]]()
    for pairs in groups:
        gone = [line for line, room in pairs if line.times or not room]
        kinds = ([line for line in gone if line.kind == kind] for kind in HEADINGS)
        counts = [(tallied(same), 1.0) for same in kinds if same]
        shown.append([*counts, *((line, room) for line, room in pairs if room and not line.times)])
    return shown


def _body(parts: Parts, archived: bool) -> str:
    text: list[str] = []
    for number, part in enumerate(parts, 1):
        text.append(f"# Part {number}")
        for kind, name in HEADINGS.items():
            lines = [shown(line, room, archived) for line, room in part if line.kind == kind]
            text += section(name, lines)
    return "\n".join(text)


def _least(lines: Sequence[Line], room: int, count: Count, archived: bool) -> str:
    """Return the user's first and newest words in a room that not even counted lines fit."""
    words = [line for line in lines if line.kind == "said" and not line.times]
    ends = [*words[:1], *words[1:][-1:]]
    rest = f"({sum(line.times or 1 for line in lines) - len(ends)} lines left out)"
    for size in (2 * room, room, room // 2, LEAST):
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
