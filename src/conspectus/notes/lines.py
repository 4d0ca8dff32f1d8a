"""One line of the notes: cut to a length, as text, or counted with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from conspectus.notes.cutting import BREAK, GAP, LEAST, cited, cut, cut_value, one_line, shared
from conspectus.notes.segment import Line

TEXTS = 16
"""Texts of one line, each of another length, that are in memory at most."""

ENDED = 40
"""Characters of an outcome that any line shows."""

KEY = 60
"""Characters of the argument that names the thing, which are cut last."""

TOOLS, ABOUT, NAME = 8, 8, 40
"""Of calls that are counted: the tools that are named, the newest calls that changed something,
which are named too, and the characters of what each was about."""


def shown(line: Line, room: float, archived: bool) -> str:
    """Return a line as text of so many characters, or little more."""
    if (text := line.texts.get((room, archived))) is None:
        if len(line.texts) >= TEXTS:  # a line that stands for long is cut to ever other lengths
            line.texts.clear()
        text = line.texts[room, archived] = text_of(fitted(line, room), archived)
    return text


def fitted(line: Line, room: float) -> Line:
    """Return a line with its parts cut so that it takes so many characters, or little more.

    Its reason, its call and its outcome share the room; of a call, what names the thing is cut
    last.
    """
    if line.size <= room or line.times:
        return line
    room -= line.cited + 4
    if line.kind != "done":
        return replace(line, text=cut(line.text, room - len(line.by)))
    line = replace(line, args=_changed(line.args))
    joint = len("; " if line.fields else BREAK)
    room = max(room - len(line.call) - 5 - sum(len(name) + 3 for name, _ in line.args), 0)
    outcome = sum(len(piece) + joint for piece in line.outcome)
    each = shared([len(line.text), *(len(value) for _, value in line.args), outcome], room)
    most = [max(each, KEY), *[max(each, LEAST)] * len(line.args)]
    args = tuple(
        (name, cut_value(text, n)) for (name, text), n in zip(line.args, most, strict=False)
    )
    left = room - sum(len(value) for _, value in args)
    pieces = _chosen(line, max(each, ENDED, left - len(line.text)), joint)
    left -= sum(len(piece) + joint for piece in pieces)
    return replace(
        line,
        text=cut(line.text, left) if left > 2 * LEAST else "",
        args=args,
        outcome=tuple(pieces),
    )


def _changed(args: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Leave out of an edit what its old and its new text have in common at both ends.

    The old one keeps the end of what both begin with, which says where the change is.
    """
    changed = [*args]
    for at, ((old, before), (new, after)) in enumerate(pairwise(args)):
        is_edit = old.lower().startswith("old") and new.lower().startswith("new")
        if not is_edit or before == after:
            continue
        head = before.rfind(" ", 0, _alike(before, after)) + 1
        ends = before[head:][::-1], after[head:][::-1]
        tail = ends[0].rfind(" ", 0, _alike(*ends)) + 1
        left = GAP if tail else ""
        where = cut(before[:head][::-1], KEY, 1.0)[::-1]
        changed[at] = old, f"{where}{before[head : len(before) - tail]}{left}"
        changed[at + 1] = new, f"{GAP if head else ''}{after[head : len(after) - tail]}{left}"
    return tuple(changed)


def _alike(one: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _chosen(line: Line, room: float, joint: int) -> list[str]:
    """Return the pieces of an outcome that say most, with a mark where others are left out."""
    if sum(map(len, line.outcome)) + joint * len(line.outcome) <= room:
        return [*line.outcome]
    ends, kept, left = 1 if line.fields else 2, dict[int, str](), room
    for number, place in enumerate(line.order):
        piece = line.outcome[place]
        if len(piece) + joint > left and (number < ends or left > 4 * LEAST):
            each = room / min(ends, len(line.outcome))
            piece = cut_value(piece, min(left - joint, each))
        if len(piece) + joint <= left:
            kept[place] = piece
            left -= len(piece) + joint
        if left <= LEAST:
            break
    pieces, before = list[str](), -1
    for place in sorted(kept):
        pieces += [GAP] if place > before + 1 else []
        pieces.append(kept[place])
        before = place
    return pieces if before == len(line.outcome) - 1 else [*pieces, GAP]


def text_of(line: Line, archived: bool = True) -> str:
    """Return a line as text: words, or a call with its reason and its outcome.

    Example:
        >>> text_of(Line("done", ("m2",), call="read", args=(("path", "a.py"),), outcome=("ok",)))
        'read(a.py) → ok [m2]'
    """
    ids = line.cites if archived else ()
    if line.times:
        return counted(line, archived)
    if line.like:
        return cited(f"(said again{f': {line.like}' if archived else ''})", ids)
    if line.kind != "done":
        missing = (quote for quote in line.quotes if quote not in line.text)
        said = f" {GAP} ".join([line.text, *missing])
        return cited(f"{line.by}: {said}" if line.by else said, ids)
    many = len(line.args) > 1
    args = (f"{name}={value}" if many and name else value for name, value in line.args)
    joint = "; " if line.fields else BREAK
    outcome = joint.join(line.outcome).replace(f"{joint}{GAP}", f" {GAP}").replace(":; ", ": ")
    outcome = f"{'failed: ' * line.failed}{outcome}" if line.outcome else "(no result)"
    why = f"{one_line(line.text)} " if line.text else ""
    return cited(f"{why}{line.call}({', '.join(args)}) → {outcome}", ids)


def counted(line: Line, archived: bool) -> str:
    """Return what stands for lines that are only counted: calls by tool, others by their number."""
    ends = " to ".join(dict.fromkeys((*line.ids[:1], *line.ids[-1:])))
    where = f"; recall range {ends}" if ends and archived else ""
    if line.kind != "done":
        many = "s" if line.times > 1 else ""
        what = f"message{many} of the user" if line.kind == "said" else f"line{many}"
        return f"({line.times} {what} left out{where})"
    calls = Counter({name: int(count) for name, count in line.args}).most_common()
    rest = sum(count for _, count in calls[TOOLS:])
    named = [*calls[:TOOLS], *([("others", rest)] if rest else [])]
    tools = ", ".join(f"{name} {count}" for name, count in named)
    among = f"; among them {', '.join(line.outcome)}" if line.outcome else ""
    failed = f"; {line.failures} of them failed" if line.failures else ""
    return f"({line.times} more calls: {tools}{among}{failed}{where})"


def tallied(lines: Sequence[Line]) -> Line:
    """Return the one line that stands for lines of one kind that are only counted any more."""
    calls, about = Counter[str](), dict[str, None]()
    for line in lines:
        if line.times:
            calls.update({name: int(count) for name, count in line.args})
            about |= dict.fromkeys(line.outcome)
            continue
        calls[line.call] += 1
        if line.acts:
            what = "".join(value for _, value in line.args[:1])
            about[f"{line.call} {cut_value(what, NAME)}".strip()] = None
    first, last = min(lines, key=lambda one: one.span), max(lines, key=lambda one: one.span[-1])
    ends = (*first.ids[:1], *last.ids[-1:])
    return Line(
        first.kind,
        () if first.kind == "found" else ends,  # findings cite messages in any order
        args=tuple((name, str(count)) for name, count in calls.items()),
        outcome=tuple(about)[-ABOUT:],
        span=(first.span[0], last.span[-1]),
        times=sum(line.times or 1 for line in lines),
        failures=sum(line.failures if line.times else line.failed for line in lines),
    )
