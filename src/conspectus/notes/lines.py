"""One line of the notes: cut to a length, as text, or counted with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from conspectus.notes.cutting import BREAK, GAP, LEAST, chosen, cut, one_line, shared
from conspectus.notes.segment import CITED, SOURCES, Line

ENDED = 40
"""Characters of an outcome that any line shows."""

KEY = 80
"""Characters of the argument that names the thing, which are cut last."""

TOOLS = 8
"""Tools whose calls are counted by name; those of others are counted together."""


def fitted(line: Line, room: float) -> Line:
    """Return a line with its parts cut so that it takes so many characters, or little more.

    Its reason, its call and its outcome share the room; of a call, what names the thing is cut
    last.
    """
    if line.size <= room:
        return line
    room -= line.cites
    if line.kind != "done":
        return replace(line, text=cut(line.text, room - len(line.by)))
    joint = "; " if line.fields else BREAK
    values = [len(value) for _, value in line.args]
    frame = len(line.call) + 5 + sum(len(name) + 3 for name, _ in line.args)
    call, outcome = sum(values), sum(len(piece) + len(joint) for piece in line.outcome)
    room = max(room - frame, 0)
    each = shared([len(line.text), call, outcome], room)
    if call > each:
        call = int(max(each, room - len(line.text) - outcome))
        key = min(values[0], KEY)
        most = max(shared(values[1:], call - key), LEAST)
        rest = sum(min(size, most) for size in values[1:])
        limits = [max(key, call - rest), *(most for _ in values[1:])]
        pairs = zip(line.args, limits, strict=True)
        args = tuple((name, cut(value, limit)) for (name, value), limit in pairs)
        line = replace(line, args=args)
        call = sum(len(value) for _, value in args)
    left = max(each, ENDED, room - call - len(line.text))
    pieces = chosen(line.outcome, line.named, left, joint, tail=not line.fields)
    left = room - call - sum(len(piece) + len(joint) for piece, _ in pieces)
    return replace(
        line,
        text=cut(line.text, left) if left > 2 * LEAST else "",
        outcome=tuple(piece for piece, _ in pieces),
        named=tuple(worth for _, worth in pieces),
    )


def text_of(line: Line, *, archived: bool = True) -> str:
    """Return a line as text: words, or a call with its reason and its outcome.

    Example:
        >>> text_of(Line("done", ("m2",), call="read", args=(("path", "a.py"),), outcome=("ok",)))
        'read(a.py) → ok [m2]'
    """
    ids = line.ids[: SOURCES if line.model else CITED] if archived else ()
    if line.like:
        return cited(f"(said again{f': {line.like}' if archived else ''})", ids)
    if line.kind == "said":
        missing = (quote for quote in line.quotes if quote not in line.text)
        return cited(f" {GAP} ".join([line.text, *missing]), ids)
    if line.kind == "found":
        return cited(f"{line.by}: {line.text}" if line.by else line.text, ids)
    named = len(line.args) > 1
    args = (f"{name}={value}" if named and name else value for name, value in line.args)
    joint = "; " if line.fields else BREAK
    outcome = joint.join(line.outcome).replace(f"{joint}{GAP}", f" {GAP}").replace(":; ", ": ")
    outcome = f"{'failed: ' * line.failed}{outcome}" if line.outcome else "(no result)"
    why = f"{one_line(line.text)} " if line.text else ""
    return cited(f"{why}{line.call}({', '.join(args)}) → {outcome}", ids)


def counted(lines: Sequence[Line], archived: bool) -> str:
    """Return what stands for lines that are not shown: calls by tool, others by their number."""
    total = tallied(lines)
    ends = " to ".join(dict.fromkeys((*total.ids[:1], *total.ids[-1:])))
    where = f"; recall range {ends}" if ends and archived else ""
    if total.kind != "done":
        what = "messages of the user" if total.kind == "said" else "lines"
        return f"({total.times} {what} left out{where})"
    calls = Counter({name: int(count) for name, count in total.args}).most_common()
    rest = sum(count for _, count in calls[TOOLS:])
    named = [*calls[:TOOLS], *([("others", rest)] if rest else [])]
    failed = f"; {total.worth} of them failed" if total.worth else ""
    said = ", ".join(f"{name} {count}" for name, count in named)
    return f"({total.times} more calls: {said}{failed}{where})"


def tallied(lines: Sequence[Line]) -> Line:
    """Return the one line that stands for lines of one kind that are only counted any more."""
    calls: Counter[str] = Counter()
    for line in lines:
        counts = {name: int(count) for name, count in line.args} if line.times else {line.call: 1}
        calls.update(counts)
    return Line(
        lines[0].kind,
        (*lines[0].ids[:1], *lines[-1].ids[-1:]),
        args=tuple((name, str(count)) for name, count in calls.items()),
        worth=sum(line.worth if line.times else line.failed for line in lines),
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
