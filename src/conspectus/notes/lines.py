"""One line of the notes as text, in a given length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from conspectus.notes.cutting import (
    BREAK,
    LEAST,
    chosen,
    cut,
    cut_lines,
    one_line,
    sentences,
    shared,
)
from conspectus.notes.segment import CITED, GAP, SOURCES, Line

ALL = 10**12
"""Room for any text."""

KEPT, WORDS_KEPT = 300, 8_000
"""Characters of each part of a line, and of the user's words, that a record keeps at least."""

ENDED = 40
"""Characters of an outcome that any line shows."""

TOOLS = 8
"""Tools whose calls are counted by name; those of others are counted together."""

KEY = 80
"""Characters of the argument that names the thing, which are cut last."""


def text_of(line: Line, room: float = ALL, *, archived: bool = True) -> str:
    """Return a line in so many characters: words, or a call with its reason and its outcome.

    Example:
        >>> text_of(Line("done", ("m2",), call="read", args=(("path", "a.py"),), outcome=("ok",)))
        'read(a.py) → ok [m2]'
    """
    ids = line.ids[: SOURCES if line.model else CITED] if archived else ()
    room -= line.cites
    if line.kind == "said":
        text = cut_lines(line.text, room)
        return cited(f" {GAP} ".join([text, *(q for q in line.quotes if q not in text)]), ids)
    if line.kind == "found":
        by = f"{line.by}: " if line.by else ""
        return cited(by + cut(line.text, room - len(by)), ids)
    why = f"{one_line(line.text)} " if line.text else ""
    call, outcome = _call(line, ALL), _outcome(line, ALL)
    sizes = [len(why), len(call), len(outcome)]
    if sum(sizes) > room:
        least = shared(sizes, room)
        call = _call(line, max(least, room - sizes[0] - sizes[2]))
        outcome = _outcome(line, max(least, ENDED, room - len(call) - sizes[0]))
        space = room - len(call) - len(outcome)
        why = _reason(line.text, space) if space > 2 * LEAST else ""
    return cited(f"{why}{call} → {outcome}", ids)


def trimmed(line: Line, room: float) -> Line:
    """Return a line with no more in it than so many characters show.

    Args:
        line: the line.
        room: characters; for few of them what a count and a short form need.
    """
    room = max(room, WORDS_KEPT if line.kind == "said" else KEPT)
    if line.size <= room:
        return line
    shown = chosen(line.outcome, line.named, room, " ", tail=not line.fields)
    worth = dict(zip(line.outcome, line.named, strict=True))
    return replace(
        line,
        text=cut_lines(line.text, room) if line.kind == "said" else cut(line.text, room),
        args=tuple((name, cut(value, room)) for name, value in line.args),
        outcome=tuple(shown),
        named=tuple(worth.get(piece, 0) for piece in shown),
    )


def _reason(text: str, room: float) -> str:
    """Return the first and the last sentences of a reason, as they fit."""
    parts = [one_line(part) for part in sentences(text)]
    return " ".join([*chosen(parts, [0] * len(parts), room - 1, " "), ""])


def _call(line: Line, room: float) -> str:
    """Return the call: what names the thing whole, long values cut first."""
    named = len(line.args) > 1
    room -= len(line.call) + 2 + sum(len(name) + 3 for name, _ in line.args) * named
    key = min(len(line.args[0][1]), KEY) if line.args else 0
    most = max(shared([len(value) for _, value in line.args[1:]], room - key), LEAST)
    rest = [cut(value, most) for _, value in line.args[1:]]
    first = [cut(value, max(key, room - sum(map(len, rest)))) for _, value in line.args[:1]]
    said = [
        f"{name}={value}" if named and name else value
        for (name, _), value in zip(line.args, first + rest, strict=True)
    ]
    return f"{line.call}({', '.join(said)})"


def _outcome(line: Line, room: float) -> str:
    if not line.outcome:
        return "(no result)"
    mark = "failed: " if line.failed else ""
    joint = "; " if line.fields else BREAK
    room -= len(mark)
    pieces = chosen(line.outcome, line.named, room, joint, tail=not line.fields)
    text = joint.join(pieces).replace(f"{joint}{GAP}", f" {GAP}")
    return mark + text.replace(":; ", ": ")


def counted(lines: Sequence[Line], archived: bool) -> str:
    """Return what stands for lines that are not shown: calls by tool, others by their number."""
    first, last = lines[0].ids[:1], lines[-1].ids[-1:]
    ends = " to ".join(dict.fromkeys((*first, *last))) if archived else ""
    number = sum(line.times or 1 for line in lines)
    if lines[0].kind != "done":
        what = "messages of the user" if lines[0].kind == "said" else "lines"
        where = f"; recall range {ends}" if ends else ""
        return f"({number} {what} left out{where})"
    tools = calls_of(lines).most_common()
    failed = _failed(lines)
    others = [("others", sum(count for _, count in tools[TOOLS:]))] if tools[TOOLS:] else []
    said = ", ".join(f"{name} {count}" for name, count in [*tools[:TOOLS], *others])
    some = f"; {failed} of them failed" if failed else ""
    where = f"; recall range {ends}" if ends else ""
    return f"({number} more calls: {said}{some}{where})"


def calls_of(lines: Sequence[Line]) -> Counter[str]:
    """Count the calls of each tool."""
    calls = Counter(line.call for line in lines if not line.times)
    for line in lines:
        if line.times:
            calls.update({name: int(count) for name, count in line.args})
    return calls


def _failed(lines: Sequence[Line]) -> int:
    return sum(line.worth if line.times else line.failed for line in lines)


def tallied(lines: Sequence[Line]) -> Line:
    """Return the one line that stands for lines of one kind that are only counted any more."""
    return Line(
        lines[0].kind,
        (*lines[0].ids[:1], *lines[-1].ids[-1:]),
        args=tuple((name, str(count)) for name, count in calls_of(lines).items()),
        worth=_failed(lines),
        times=sum(line.times or 1 for line in lines),
    )


def cited(text: str, ids: Sequence[str]) -> str:
    """Return a text with the names of the messages that it is about."""
    return f"{text} [{', '.join(ids)}]" if ids else text


def section(name: str, lines: Sequence[str]) -> list[str]:
    """Return a heading with lines below it; nothing without lines."""
    if not lines:
        return []
    return [f"## {name}", *("- " + "\n  ".join(line.splitlines()) for line in lines)]
