"""The text of the notes: segments that stand, then what is rewritten at each compaction.

The text is the only form of the notes. What another process, a caller's own state or a person at a
preview hands back is read again from it, so nothing beside it has to be kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SAID, DONE, FOUND = "Said by the user", "Done", "Found and decided"
GOAL, OPEN, NEXT, REST = "Goal", "Open", "Next", "In the archive"
SKILLS = "Skills read"
SUMMARY = "Summary"
"""Headings; those of the first line stand in each segment, the others once, at the end."""

SEGMENT_PARTS = (SAID, DONE, FOUND)
NOW_PARTS = (GOAL, OPEN, NEXT, SKILLS, REST)

NOW = "# Now, before the messages below"
"""Heads what stands once, at the end."""

_MARK = re.compile(r"^# (?:Part (\d+)|Now(?:, before the messages below)?)$", re.MULTILINE)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_CITED = re.compile(r"\s*\[([^\[\]\n]{1,200})\]$")
_FALSE_MARK = re.compile(r"^(?=#{1,2} )", re.MULTILINE)

Items = dict[str, list[str]]
"""Lines below each heading, without their dash; a line of the user's may hold several."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes, read from their text.

    Attributes:
        before: a text in front that is no notes: a summary that somebody else has written.
        segments: one text a compaction, oldest first, each with its own first line.
        now: what stands once at the end, by heading.
        summary: the text of a summariser that writes anew all that it wrote before.
    """

    before: str = ""
    segments: tuple[str, ...] = ()
    now: Mapping[str, Sequence[str]] = field(default_factory=dict)
    summary: str = ""

    @classmethod
    def parse(cls, text: str) -> Notes:
        """Read notes; a text of any other form is all `before`.

        Example:
            >>> Notes.parse("# Part 1\\n## Done\\n- wrote a.py [m2]").segments
            ('# Part 1\\n## Done\\n- wrote a.py [m2]',)
        """
        marks = list(_MARK.finditer(text))
        if not marks:
            return cls(before=text.strip())
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        segments, now, summary = [], dict[str, list[str]](), ""
        for mark, end in zip(marks, ends, strict=True):
            if mark[1]:
                segments.append(text[mark.start() : end].rstrip())
                continue
            body, _, summary = text[mark.end() :].partition(f"\n## {SUMMARY}\n")
            now = items(body)
            break
        return cls(text[: marks[0].start()].strip(), tuple(segments), now, summary.strip())

    def render(self) -> str:
        """Return the text; what was read comes back with the same bytes."""
        now = section(NOW_PARTS, self.now)
        if self.summary:
            now = "\n".join(part for part in (now, f"## {SUMMARY}\n{self.summary}") if part)
        parts = [self.before, *self.segments, f"{NOW}\n{now}" if now else ""]
        return "\n".join(part for part in parts if part)


def foreign(text: str) -> str:
    """Return somebody else's text so that no line of it passes for a heading of ours."""
    return _FALSE_MARK.sub("#", text.strip())


def items(text: str) -> Items:
    """Return the lines below each heading of a segment.

    Example:
        >>> items("# Part 1\\n## Done\\n- a\\n  b\\n- c")
        {'Done': ['a\\nb', 'c']}
    """
    found: Items = {}
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)] * bool(headings)
    for heading, end in zip(headings, ends, strict=True):
        below = found.setdefault(heading[1].strip(), [])
        for line in text[heading.end() + 1 : end].rstrip("\n").split("\n"):
            if line.startswith("- "):
                below.append(line[2:])
            elif below and line:
                below[-1] += "\n" + line.removeprefix("  ")
    return {name: lines for name, lines in found.items() if lines}


def section(names: Iterable[str], lines: Mapping[str, Sequence[str]]) -> str:
    """Return headings with their lines, each with its dash; what is empty is left out."""
    parts: list[str] = []
    for name in names:
        if lines.get(name):
            parts.append(f"## {name}")
            parts += ["- " + line.replace("\n", "\n  ") for line in lines[name]]
    return "\n".join(parts)


def segment(number: int, lines: Mapping[str, Sequence[str]]) -> str:
    """Return the text of one segment.

    Args:
        number: its place among all, from 1.
        lines: its lines, by heading.
    """
    body = section(SEGMENT_PARTS, lines)
    return f"# Part {number}\n{body}" if body else ""


def cited(line: str, cites: Sequence[str]) -> str:
    """Return a line with the names of the messages that it rests on."""
    return f"{line} [{', '.join(dict.fromkeys(cites))}]" if cites else line


def apart(line: str) -> tuple[str, list[str]]:
    """Return a line and the names that it cites.

    Example:
        >>> apart("wrote a.py [m2, m3]")
        ('wrote a.py', ['m2', 'm3'])
    """
    found = _CITED.search(line)
    if found is None:
        return line, []
    return line[: found.start()], [name.strip() for name in found[1].split(",")]
