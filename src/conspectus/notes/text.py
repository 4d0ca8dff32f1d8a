"""Texts cut to a length, visibly; a line of the notes as such a text, or counted with others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from conspectus.notes.data import Line

GAP = "…"  # Marks what is left out of a text
# Stand for the end of a line inside a line of the notes, and between fields and rows of data.
BREAK, FIELD = " ⏎ ", "; "
LEAST_PIECE = 24  # Characters below which a part of a text says nothing
# Characters from which on a text keeps both its ends: shorter pieces of it say nothing.
BOTH_ENDS = 64
LEAST_ITEM = (
    40  # Characters below which a line of a list is not cut: it would lose what it is about
)
FAR = 80  # Characters by which a text may be cut shorter than it must be, to end in a better place
TEXTS = 8  # Texts of one line, each of another length, that are in memory at most
# Of calls that are counted: the tools that are named, the newest calls that changed something,
# which are named too, and the characters of what each was about.
TOOLS, ABOUT, NAME = 12, 8, 40
NAMED = 12  # Messages of the user that are left out and still named one by one
# Where a text may be cut, the best places first.
_ENDS = ("\n", BREAK, ". ", "。", "! ", "? ", "！", "？", "; ", ", ", "、", "，", " ")

_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/=_-])"
    r"(?:[A-Za-z0-9+/=_-]{400,}+|(?:[A-Za-z0-9+/=_-]{60,}+(?:\s|\\[rn]){1,4}){6,}+[A-Za-z0-9+/=_-]*+)"
)
"""Base64 or hexadecimal digits in one line, or in lines of one length, as programs write them."""
LEAST_DIGITS = 16  # Different characters that encoded bytes have at least; a rule of signs has one


def without_encoded(text: str) -> str:
    """Return a text with its long encoded bytes described, as no reader learns from them.

    Example:
        >>> without_encoded("key: " + "iVBORw0KGgoAAAANSUhEUgAB" * 20)
        'key: [480 characters of encoded bytes]'
    """
    return _ENCODED.sub(_described, text)


def _described(run: re.Match[str]) -> str:
    found = run[0]
    if len(set(found[:400])) < LEAST_DIGITS:
        return found
    return f"[{len(found):,} characters of encoded bytes]"


def one_line(text: str) -> str:
    """Return a text in one line, the ends of its own lines marked."""
    return BREAK.join(filter(None, map(str.strip, text.splitlines())))


def shared(sizes: Iterable[float], room: float) -> float:
    """Return the largest size up to which all fit when the larger ones are cut to it.

    Example:
        >>> shared([10, 100, 200], 110)
        50.0
    """
    ordered, left = sorted(sizes), float(room)
    for place, size in enumerate(ordered):
        each = left / (len(ordered) - place)
        if size > each:
            return max(each, 0.0)
        left -= size
    return float(ordered[-1]) if ordered else left


def cut(text: str, room: float, head: float = 0.6) -> str:
    """Return the beginning and the end of a text with a mark between them.

    In little room only the beginning is left; with a `head` of half or less, only the end.

    Args:
        text: the text; one that fits comes back as it is.
        room: characters of the result at most.
        head: share of the beginning.

    Example:
        >>> cut("one two three four five six seven", 20)
        'one two three …'
        >>> cut("one two three four five six seven", 20, 0.5)
        '… five six seven'
        >>> cut("ends of a text, " * 9, 64)
        'ends of a text, ends of a text, … a text, ends of a text,'
    """
    if len(text) <= room:
        return text
    most = int(room) - len(GAP) - 2
    if most < LEAST_PIECE // 3:
        return (text[: max(most, 0)].rstrip() + GAP)[: int(room)] if room >= 1 else ""
    first = int(most * (head if room >= BOTH_ENDS else head > 0.5))
    last = len(text) - (most - first)
    begin, end = first - min(FAR, first // 3), last + min(FAR, (len(text) - last) // 3)
    first = next((p + len(m) for m in _ENDS if (p := text.rfind(m, begin, first)) >= 0), first)
    last = next((p + len(m) for m in _ENDS if (p := text.find(m, last, end)) >= 0), last)
    whole = f"{text[:first].rstrip()} {GAP} {text[last:].lstrip()}"
    return whole.rstrip() if first else whole.strip()


def cut_lines(text: str, room: float) -> str:
    """Return a text cut as `cut` does it; of some lines, as of a list, the long ones by their ends.

    Example:
        >>> cut_lines(f"Rules:\\n1. Never push to main\\n2. Wait for {'anybody ' * 9}", 80)
        'Rules:\\n1. Never push to main\\n2. Wait for anybody anybody anybody anybody …'
    """
    lines = text.split("\n")
    each = shared(map(len, lines), room - len(lines))
    if len(text) <= room or len(lines) < 3 or each < LEAST_ITEM:
        return cut(text, room)
    return "\n".join(cut(line, each, 1.0) for line in lines)


def section(name: str, lines: Sequence[str]) -> list[str]:
    """Return a heading with lines below it; nothing without lines."""
    if not lines:
        return []
    return [f"## {name}", *("- " + "\n  ".join(line.splitlines()) for line in lines)]


def shown(line: Line, room: float, archived: bool) -> str:
    """Return a line as text of so many characters, or little more."""
    key = (min(room, line.size), archived)
    if (text := line.texts.get(key)) is None:
        if len(line.texts) >= TEXTS:  # a line that stands for long is cut to ever other lengths
            line.texts.clear()
        text = line.texts[key] = text_of(fitted(line, room), archived)
    return text


def fitted(line: Line, room: float) -> Line:
    """Return a line with its parts cut so that it takes so many characters, or little more.

    Its reason, its arguments and its outcome share the room. Of data the beginning stays, of other
    texts both ends.
    """
    if line.size <= room or line.times:
        return line
    room -= sum(map(len, line.cites)) + 2 * len(line.cites) + 4
    if line.kind != "done":
        shorter = cut_lines if line.kind == "said" else cut  # the end of a report is its result
        return replace(line, text=shorter(line.text, room - len(line.by)))
    room -= len(line.call) + 5 + sum(len(name) + 3 for name, _ in line.args)
    sizes = [len(line.text), len(line.outcome), *(len(value) for _, value in line.args)]
    each = max(shared(sizes, room), LEAST_PIECE)
    args = _changed(line.args) if len(line.args) > 1 else line.args
    args = tuple((name, cut(value, each)) for name, value in args)
    outcome = cut(line.outcome, each, 1.0 if line.fields else 0.5)
    return replace(line, text=cut(line.text, each), args=args, outcome=outcome)


def _changed(args: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Leave out of an edit what its old and its new text have in common at both ends.

    The old one keeps the end of what both begin with, which says where the change is.
    """
    changed = [*args]
    for at, ((old, before), (new, after)) in enumerate(pairwise(args)):
        if before != after and old.lower().startswith("old") and new.lower().startswith("new"):
            head = before.rfind(" ", 0, _alike(before, after)) + 1
            ends = before[head:][::-1], after[head:][::-1]
            tail = ends[0].rfind(" ", 0, _alike(*ends)) + 1
            where, left = before[: max(head - 1, 0)], GAP * bool(tail)
            where = cut(where[::-1], BOTH_ENDS, 1.0)[::-1] + before[head - 1 : head]
            changed[at] = old, f"{where}{before[head : len(before) - tail]}{left}"
            changed[at + 1] = new, f"{GAP * bool(head)}{after[head : len(after) - tail]}{left}"
    return tuple(changed)


def _alike(one: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def text_of(line: Line, archived: bool = True) -> str:
    """Return a line as text: words, or a call with its reason and its outcome.

    Example:
        >>> text_of(Line("done", ("m2",), call="read", args=(("path", "a.py"),), outcome="ok"))
        'read(a.py) → ok [m2]'
    """
    if line.times:
        return counted(line, archived)
    if line.kind == "done":
        many = len(line.args) > 1
        args = (f"{name}={value}" if many and name else value for name, value in line.args)
        outcome = f"{'failed: ' * line.failed}{line.outcome}" if line.outcome else "(no result)"
        why = f"{one_line(line.text)} " if line.text else ""
        text = f"{why}{line.call}({', '.join(args)}) → {outcome}"
    else:
        missing = (quote for quote in line.quotes if quote not in line.text)
        text = f" {GAP} ".join([f"{line.by}: {line.text}" if line.by else line.text, *missing])
    return f"{text} [{', '.join(line.cites)}]" if archived and line.ids else text


def counted(line: Line, archived: bool) -> str:
    """Return what stands for lines that are only counted: calls by tool, others by their number."""
    each, ids = len(line.ids) > 2, dict.fromkeys(line.ids)
    which = ", ".join(ids) if each else f"range {' to '.join(ids)}"
    where = f"; recall {which}" if ids and archived else ""
    if line.kind != "done":
        many = "s" if line.times > 1 else ""
        what = f"message{many} of the user" if line.kind == "said" else f"line{many}"
        return f"({line.times} {what} left out{where})"
    calls = Counter({name: int(count) for name, count in line.args}).most_common()
    rest = sum(count for _, count in calls[TOOLS:])
    named = [*calls[:TOOLS], *([("others", rest)] if rest else [])]
    tools = ", ".join(f"{name} {count}" for name, count in named)
    among = f"; among them {', '.join(line.about)}" if line.about else ""
    failed = f"; {line.failures} of them failed" if line.failures else ""
    return f"({line.times} more calls: {tools}{among}{failed}{where})"


def tallied(lines: Sequence[Line]) -> Line:
    """Return the one line that stands for lines of one kind that are only counted any more."""
    calls, about = Counter[str](), dict[str, None]()
    for line in lines:
        if line.times:
            calls.update({name: int(count) for name, count in line.args})
            about |= dict.fromkeys(line.about)
            continue
        calls[line.call] += 1
        if line.acts:
            what = "".join(value for _, value in line.args[:1])
            if "/" in what[:-NAME] and " " not in what:  # of a path the end tells it from others
                what = GAP + what[1 - NAME :]
            about[f"{line.call} {cut(what, NAME)}".strip()] = None
    first, last = min(lines, key=lambda one: one.span), max(lines, key=lambda one: one.span[-1])
    ids = tuple(dict.fromkeys((*first.ids[:1], *last.ids[-1:])))
    times = sum(line.times or 1 for line in lines)
    if first.kind == "said" and 2 < times <= NAMED:
        ordered = sorted(lines, key=lambda one: one.span)
        each = tuple(name for line in ordered for name in line.ids)
        ids = each if len(each) == times else ids
    return Line(
        first.kind,
        () if first.kind == "found" else ids,  # findings cite messages in any order
        args=tuple((name, str(count)) for name, count in calls.items()),
        about=tuple(about)[-ABOUT:],
        span=(first.span[0], last.span[-1]),
        times=times,
        failures=sum(line.failures if line.times else line.failed for line in lines),
    )
