"""Render the notes within their room."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from conspectus.notes.cutting import GAP, cut
from conspectus.notes.giving_way import GivingWay, Rooms
from conspectus.notes.lines import counted, fitted, section, tallied, text_of
from conspectus.notes.segment import Line, Segment

HEADINGS = {"said": "Said by the user", "done": "Done", "found": "Found and decided"}
OPEN, GOAL, NEXT, SUMMARY, SKILLS = "Open", "Goal", "Next", "Summary", "Skills read"
NOW = "# Now, before the messages below"

PART = 12
"""Lines that a part shows at least, once lines are cut."""

MORE, KEPT, WORDS_KEPT = 2, 300, 8_000
"""How much more than it shows of a line a record keeps, and the characters of a line, and of one of
the user's words, that it keeps at least."""

MANY = 64
"""Lines that are left out of older segments before they are counted for good."""

FILLED, TRIES = 0.97, 8
"""The share of a room that a text fills where something is cut, and how often it is tried."""

CHARACTERS = 4
"""Characters of a token, as tried first where there is more than can be tried whole."""

TEXTS = 0.6
"""The share of the room that texts of a caller's own may take."""

AGAIN = 24
"""Characters up to which words are said again as they are."""

Count = Callable[[str], int]


class Notes:
    """The notes of a chain of records.

    Args:
        segments: those of the chain, oldest first.

    Attributes:
        segments: those in force.

    Example:
        >>> Notes([Segment((Line("said", ("m2",), "Be brief."),))]).render(100, len)
        '# Part 1\\n## Said by the user\\n- Be brief. [m2]'
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        begin = max((n for n, one in enumerate(segments) if one.alone), default=0)
        self.segments = tuple(s for one in segments[begin:] for s in (*one.earlier, one))
        anew = max((n for n, one in enumerate(self.segments) if one.anew), default=0)
        self._lines: list[list[Line]] = []
        said: dict[str, Line] = {}
        for number, one in enumerate(self.segments):
            self._lines.append([])
            for line in one.lines:
                first = said.setdefault(line.text, line) if line.kind == "said" else line
                if number < anew and line.model:
                    continue  # the findings were written anew
                if first is not line and len(line.text) > AGAIN and GAP not in line.text:
                    line = replace(line, text="", quotes=(), like=first.ids[0])
                self._lines[-1].append(line)
        self._rooms: Rooms = {}

    @property
    def findings(self) -> list[Line]:
        """The findings of models that are in force."""
        return [line for lines in self._lines for line in lines if line.model]

    @property
    def summary(self) -> str:
        """The newest summary by a prompt or a function of the caller's; empty for none."""
        return next((one.text for one in reversed(self.segments) if one.replaced), "")

    def render(self, room: int, count: Count, *, archived: bool = True, deeds: bool = True) -> str:
        """Return the text.

        Args:
            room: tokens that it may take.
            count: tokens of a text.
            archived: whether originals can be recalled; otherwise nothing is cited.
            deeds: whether calls and the agent's own words are shown, beside the user's and a
                model's findings.
        """
        lines = self._lines
        if not deeds:
            lines = [[one for one in part if one.model or one.kind == "said"] for part in lines]
        texts = "\n".join(one.text for one in self._standing() if not one.summary)
        summary = next((s.text for s in reversed(self.segments) if s.summary), "")
        most = int(room * TEXTS) if any(lines) else room
        before = [_within(texts, most, count)] if texts else []
        end = self._open()
        if summary:
            end.append(f"## {SUMMARY}\n{_within(summary, most, count)}")
        left = room - (count("\n".join([*before, *end])) if before or end else 0)
        for _ in range(TRIES):
            body = self._body(lines, left, count, archived)
            text = "\n".join(filter(None, [*before, body, *end]))
            if (over := count(text) - room) <= 0:
                return text
            left -= over
        return _least(text, room, count)

    def kept(self) -> Segment:
        """Return the newest segment with not much more of its lines than the text shows of them.

        Where many older lines are left out, it takes the place of all before it and holds them
        counted, so that a long session does not read all of its lines again and again.
        """
        newest, rooms = self.segments[-1], self._rooms
        if not rooms:
            return newest
        own = (one if one.times else _stored(one, rooms) for one in self._lines[-1])
        segment = replace(newest, lines=tuple(own))
        gone = (one for some in self._lines[:-1] for one in some if not one.times)
        if sum(not rooms[id(one)] for one in gone) < MANY:
            return segment
        open_ = Segment(
            goal=next((s.goal for s in reversed(self.segments) if s.goal), ()),
            todo=next((s.todo for s in reversed(self.segments) if s.todo is not None), None),
            skills=tuple(dict.fromkeys(name for one in self.segments for name in one.skills)),
            user=next((s.user for s in self.segments if s.user is not None), None),
        )
        apart = bool(newest.text) and not newest.replaced
        texts = [
            replace(one, lines=(), earlier=(), alone=False)
            for one in self._standing()
            if one is not newest or apart
        ]
        parts = _parts(self._lines[:-1], rooms, _stored)
        older = [Segment(tuple(lines)) for lines in parts if lines]
        text = "" if apart else newest.text
        return replace(segment, text=text, anew=False, alone=True, earlier=(open_, *texts, *older))

    def _standing(self) -> list[Segment]:
        """Return the segments whose texts stand."""
        last = max((at for at, one in enumerate(self.segments) if one.summary), default=-1)
        return [
            one
            for at, one in enumerate(self.segments)
            if one.text and (at == last if one.summary else not (one.alone and at < last))
        ]

    def _open(self) -> list[str]:
        """Return what is open: the goal, the newest to-do list, the next step."""
        newest = self.segments[-1] if self.segments else Segment()
        todo = next((s.todo for s in reversed(self.segments) if s.todo is not None), ())
        goal = next((s.goal for s in reversed(self.segments) if s.goal), ())
        skills = tuple(dict.fromkeys(name for one in self.segments for name in one.skills))
        order = [newest.ahead] if newest.ahead else []
        sections = ((GOAL, goal), (OPEN, [*order, *todo]), (NEXT, newest.next), (SKILLS, skills))
        lines = [line for name, part in sections for line in section(name, part)]
        return [NOW, *lines] if lines else []

    def _body(
        self, lines: Sequence[Sequence[Line]], room: int, count: Count, archived: bool
    ) -> str:
        """Return the parts, in as many characters as fit."""
        flat = [line for part in lines for line in part if not line.times]
        full = sum(line.size for line in flat)
        token, text, size, rooms = float(CHARACTERS), "", room + 1, Rooms()
        if full <= 2 * CHARACTERS * room:
            text = _text(lines, archived)
            size = count(text)
            token = len(text) / max(size, 1)
        if size > room:
            chars, low, high = room * token * (1 + FILLED) / 2, 0.0, float(full)
            text, way = "", GivingWay(flat)
            for _ in range(TRIES):
                each = way.rooms(chars)
                tried = _text(_parts(lines, each, _shown), archived)
                size = count(tried)
                low, high = (chars, high) if size <= room else (low, chars)
                if size <= room or not text or not low:
                    text, rooms = tried, each
                if FILLED * room <= size <= room or high - low < AGAIN:
                    break
                guess = chars * room * (1 + FILLED) / 2 / max(size, 1)
                chars = guess if low < guess < high else (low + high) / 2
        if lines is self._lines:
            self._rooms = rooms
        return text


def _shown(line: Line, rooms: Rooms) -> Line:
    return fitted(line, rooms[id(line)])


def _stored(line: Line, rooms: Rooms) -> Line:
    return fitted(line, max(MORE * rooms[id(line)], WORDS_KEPT if line.kind == "said" else KEPT))


def _parts(
    lines: Sequence[Sequence[Line]], rooms: Rooms, cut: Callable[[Line, Rooms], Line]
) -> list[list[Line]]:
    """Return the lines of each part, cut, those that are only counted first.

    Segments that show few lines share a part.
    """
    parts: list[tuple[list[Line], list[Line]]] = []
    for some in lines:
        if not parts or len(parts[-1][1]) >= PART:
            parts.append(([], []))
        for line in some:
            shown = not line.times and rooms[id(line)] > 0
            parts[-1][shown].append(cut(line, rooms) if shown else line)
    return [
        [
            *(tallied(same) for kind in HEADINGS if (same := [o for o in left if o.kind == kind])),
            *shown,
        ]
        for left, shown in parts
    ]


def _text(parts: Sequence[Sequence[Line]], archived: bool) -> str:
    text: list[str] = []
    for number, lines in enumerate(filter(None, parts), 1):
        text.append(f"# Part {number}")
        for kind, name in HEADINGS.items():
            same = [line for line in lines if line.kind == kind]
            shown = [
                counted([line], archived) if line.times else text_of(line, archived=archived)
                for line in same
            ]
            text += section(name, shown)
    return "\n".join(text)


def _least(text: str, room: int, count: Count) -> str:
    """Leave out whole entries until a text fits, the user's first and newest words last.

    A cut through the text could put somebody's words under another's heading.
    """
    entries: list[tuple[str, str]] = []
    heading = ""
    for line in text.split("\n"):
        if line.startswith("# "):
            heading = line
        elif line.startswith("## "):
            heading = f"{heading.partition(chr(10))[0]}\n{line}".lstrip("\n")
        elif line.startswith("- ") or not entries or entries[-1][0] != heading:
            entries.append((heading, line))
        else:
            entries[-1] = heading, f"{entries[-1][1]}\n{line}"
    said = [at for at, (name, _) in enumerate(entries) if name.endswith(HEADINGS["said"])]
    words = [at for at in said if not entries[at][1].startswith("- (")]
    ends = {*words[:1], *words[-1:]}
    others = [at for at in reversed(range(len(entries))) if at not in said]
    order = [*others, *(at for at in said if at not in ends)]

    def without(number: int) -> str:
        gone, lines, last = set(order[:number]), list[str](), ""
        for at, (name, entry) in enumerate(entries):
            if at not in gone:
                lines += [*([name] if name and name != last else []), entry]
                last = name
        return "\n".join([*lines, f"- ({number} lines left out)"])

    number = bisect_left(range(len(order)), True, key=lambda n: count(without(n)) <= room)
    if count(fewest := without(number)) <= room:
        return fewest
    entries = [
        (name, _within(entry, max(1, room // 4), count)) if at in ends else (name, entry)
        for at, (name, entry) in enumerate(entries)
    ]
    return _within(without(len(order)), room, count)


def _within(text: str, room: int, count: Count) -> str:
    """Return as much of a text as fits, its beginning and its end."""
    size, shown = len(text), text
    while shown and (tokens := count(shown)) > room:
        size = min(size - 1, int(size * max(room, 0) / tokens))
        shown = cut(text, size)
    return shown
