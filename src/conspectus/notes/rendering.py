"""Render the notes within their room.

Segments that were cut once keep their text while what came after them fits beside it without being
cut shorter, so that a provider's cache of the request stays good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conspectus._newest import Newest
from conspectus.notes.cutting import cut
from conspectus.notes.lines import ALL, counted, section, tallied, text_of, trimmed
from conspectus.notes.room import DONE, FOUND, SAID, TRIES, Count, Region
from conspectus.notes.segment import Line, Segment

OPEN, GOAL, NEXT, SUMMARY, SKILLS = "Open", "Goal", "Next", "Summary", "Skills read"
NOW = "# Now, before the messages below"

OLD = 0.7
"""The share of the room in which older segments are put when they are cut anew, where the newest
one needs the rest."""

FULL = 0.92
"""The share of a room that two regions fill at least to be used in the place of one."""

MORE = 2
"""How much more than it shows of a line a record keeps."""

KINDS = ("said", "done", "found")

MANY = 64
"""Lines that are left out of older segments before they are counted for good."""

TEXTS = 0.6
"""The share of the room that texts of a caller's own may take."""


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
        self._rooms: dict[int, float] = {}
        self._earlier: tuple[Segment, ...] = ()

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
            lines = [
                [one for one in some if one.model or one.kind == "said"] for some in self._lines
            ]
        last = max((at for at, one in enumerate(self.segments) if one.summary), default=-1)
        texts = "\n".join(
            one.text
            for at, one in enumerate(self.segments)
            if one.text and not (one.summary or (one.alone and at < last))
        )
        summary = next((s.text for s in reversed(self.segments) if s.summary), "")
        most = int(room * TEXTS) if any(lines) else room
        before = [_within(texts, most, count)] if texts else []
        end = self._open()
        if summary:
            end.append(f"## {SUMMARY}\n{_within(summary, most, count)}")
        left = room - (count("\n".join([*before, *end])) if before or end else 0)
        for _ in range(TRIES):
            text = "\n".join([*before, *self._body(lines, left, count, archived), *end])
            if (over := count(text) - room) <= 0:
                return text
            left -= over
        return _smallest(lines, [*before, *end], room, count, archived)

    def kept(self) -> Segment:
        """Return the newest segment with no more of its lines than the text shows of them.

        What is shown of a line only becomes less, so a record need not hold the rest.
        """
        newest = self.segments[-1]
        lines = tuple(trimmed(one, MORE * self._rooms.get(id(one), ALL)) for one in newest.lines)
        segment = replace(newest, lines=lines, held=self.held)
        return replace(segment, alone=True, earlier=self._earlier) if self._earlier else segment

    def _condensed(self, gone: set[int]) -> tuple[Segment, ...]:
        """Return the earlier segments with the lines of these identities counted for good.

        So a long session does not read all of its lines again and again.
        """
        made: list[Segment] = []
        left: dict[str, list[Line]] = {kind: [] for kind in KINDS}
        for one, lines in zip(self.segments[:-1], self._lines, strict=False):
            kept = [line for line in lines if id(line) not in gone]
            for line in lines:
                if id(line) in gone:
                    left[line.kind].append(line)
            if not kept and not (one.text or one.skills or one.goal or one.todo or one.anew):
                continue  # what it left out is counted with the next one
            counts = [tallied(some) for some in left.values() if some]
            made.append(replace(one, lines=(*counts, *kept), alone=False, earlier=()))
            left = {kind: [] for kind in KINDS}
        counts = [tallied(some) for some in left.values() if some]
        return (*made, Segment(tuple(counts))) if counts else tuple(made)

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
    ) -> list[str]:
        """Return the parts, those cut before as they were if what came since fits beside them."""
        self.held, self._earlier = 0, ()
        begin = max((n for n, one in enumerate(self.segments) if one.held), default=0)
        if begin and (parts := self._as_before(lines, begin, room, count, archived)):
            return parts
        every = Region(lines, archived)
        parts = every.within(room, count)
        self._rooms = every.rooms
        if not every.cut or len(lines) == 1:
            return parts
        whole = count("\n".join(Region(lines[-1:], archived).parts(ALL)))
        share = max(int(room * OLD), room - whole)
        old = Region(lines[:-1], archived)
        front = old.within(share, count, every.token)
        if lines is self._lines and not old.gone and len(gone := old.left()) >= MANY:
            self._earlier = self._condensed(gone)
            old = Region([one.lines for one in self._earlier], archived)
            front = old.within(share, count, every.token)
        new = Region(lines[-1:], archived, old)
        back = new.within(room - count("\n".join(front)), count, every.token)
        if _filled(old, new, [*front, *back], room, count):
            self.held, self._rooms = old.room, old.rooms | new.rooms
            return [*front, *back]
        self._earlier = ()
        older = {id(line) for one in lines[:-1] for line in one}
        if lines is self._lines and len(gone := every.left() & older) >= MANY:
            self._earlier = self._condensed(gone)
        return parts

    def _as_before(
        self, lines: Sequence[Sequence[Line]], begin: int, room: int, count: Count, archived: bool
    ) -> list[str]:
        """Return the parts before `begin` as they were cut, and the newer ones beside them.

        Nothing if the newer ones would be cut shorter than those, or if too much room stays free.
        """
        held = self.segments[begin].held
        name = (held, archived, *(id(line) for one in lines[:begin] for line in one))
        known = _CUT.get(name)
        if known is None:
            old = Region(lines[:begin], archived)
            known = old, old.parts(held)
            _CUT.put(name, known)
        old, front = known
        new = Region(lines[begin:], archived, old)
        taken = count("\n".join(front))
        back = new.within(room - taken, count, held / max(taken, 1))
        if new.measure < old.measure or not _filled(old, new, [*front, *back], room, count):
            return []
        self._rooms = old.rooms | new.rooms
        return [*front, *back]


_CUT: Newest[tuple[object, ...], tuple[Region, list[str]]] = Newest(32)
"""Parts that were cut once, by the room and the identities of their lines, which they hold."""


def _filled(old: Region, new: Region, parts: list[str], room: int, count: Count) -> bool:
    """Tell whether two regions leave no more free than one, and out no words of the user."""
    fits = FULL * room <= count("\n".join(parts)) <= room
    return fits and not old.gone and not new.gone


def _smallest(
    segments: Sequence[Sequence[Line]],
    texts: Sequence[str],
    room: int,
    count: Count,
    archived: bool,
) -> str:
    """Return what the user said first and last, and how much is left out, where no more fits."""
    lines = [line for one in segments for line in one]
    said, done, found = ([line for line in lines if line.kind == kind] for kind in KINDS)
    whole = [line for line in said if not line.times]
    ends = (*whole[:1], *whole[1:][-1:])
    words = [text_of(replace(line, ids=()), room * 2) for line in ends]
    others = [line for line in said if all(line is not end for end in ends)]
    between = [counted(others, archived)] if others else []
    rest = [*section(DONE, _counted(done, archived)), *section(FOUND, _counted(found, archived))]
    shown = [*section(SAID, between), *rest, *texts]
    left = room - count("\n".join(shown)) - len(words)
    if words and left > 0:
        words = [_within(one, left // len(words), count) for one in words]
    parts = [*section(SAID, [*words[:1], *between, *words[1:]]), *rest, *texts]
    return _within("\n".join(parts).strip(), room, count)


def _counted(lines: Sequence[Line], archived: bool) -> list[str]:
    return [counted(lines, archived)] if lines else []


def _within(text: str, room: int, count: Count) -> str:
    """Return as much of a text as fits, its beginning and its end."""
    size, shown = len(text), text
    while shown and (tokens := count(shown)) > room:
        size = min(size - 1, int(size * max(room, 0) / tokens))
        shown = cut(text, size)
    return shown
