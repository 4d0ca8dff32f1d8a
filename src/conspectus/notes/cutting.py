"""Texts cut to a length, visibly, and a length divided among texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

GAP = "…"
"""Marks what is left out of a text."""

BREAK = " ⏎ "
"""Stands for the end of a line inside a line of the notes."""

FEW = 8
"""Lines from which on a text is cut between them."""

STRESS = 0.65
"""The share of a cut text that stressed lines may take."""

FAR = 80
"""Characters by which a text may be cut shorter than it must be, to end in a better place."""

NEAR = 3
"""Lines at the end of what a program printed that most often say how it ended."""

LEAST = 24
"""Characters below which a part of a text says nothing."""

_ENDS = ("\n", BREAK, ". ", "。", "! ", "? ", "！", "？", "; ", ", ", "、", "，", " ")
"""Where a text may be cut, the best places first."""

UNSPACED = 0x0E00
"""The first character of the scripts that are written without spaces, from Thai on."""

_TERM = re.compile(r"[^\W_]+")
_STRESSED = re.compile(r"\*\*|__|\b[A-Z]{2,}[ :]+[A-Z]{2,}\b|[【「]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n\s*")
_SPACES = re.compile(r"(?<![ \t])[ \t]*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


def terms(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    found: list[str] = []
    for word in _TERM.findall(text.casefold()):
        pairs = not word.isascii() and len(word) > 2 and ord(max(word)) >= UNSPACED
        found += [word[n : n + 2] for n in range(len(word) - 1)] if pairs else [word]
    return found


def one_line(text: str) -> str:
    """Return a text in one line, the ends of its own lines marked."""
    return _SPACES.sub(BREAK, text.strip())


def shared(sizes: Iterable[float], room: float) -> float:
    """Return the largest size up to which all fit when the larger ones are cut to it.

    Args:
        sizes: what each wants.
        room: what there is for all.

    Example:
        >>> shared([10, 100, 200], 110)
        50.0
    """
    ordered = sorted(sizes)
    left = float(room)
    for place, size in enumerate(ordered):
        each = left / (len(ordered) - place)
        if size > each:
            return max(each, 0.0)
        left -= size
    return float(ordered[-1]) if ordered else float(room)


def cut(text: str, room: float, head: float = 0.6) -> str:
    """Return the beginning and the end of a text with a mark between them.

    Args:
        text: the text.
        room: characters of the result at most; a text that fits comes back as it is.
        head: share of the beginning.

    Example:
        >>> cut("one two three four five six seven eight nine ten", 30)
        'one two three … nine ten'
    """
    most = max(int(room), 0)
    if len(text) <= most:
        return text
    most -= len(GAP) + 2
    if most < LEAST // 3:
        return (text[: max(most, 0)].rstrip() + GAP)[: int(room)] if room >= 1 else ""
    first = _back(text, int(most * head))
    last = _forth(text, len(text) - (most - int(most * head)))
    return f"{text[:first].rstrip()} {GAP} {text[last:].lstrip()}".rstrip()


def cut_lines(text: str, room: float) -> str:
    """Return a text of many lines without those in its middle that nobody has stressed.

    Bold type and words in capitals are how a writer stresses a line. A text of few lines is cut as
    one.
    """
    parts: list[list[str]] = []
    for line in text.split("\n"):
        if parts and not line.strip():
            parts[-1].append(line)  # a blank line goes with the one before it
        else:
            parts.append([line])
    lines = ["\n".join(part) for part in parts]
    if len(text) <= room or len(lines) < FEW:
        return cut(text, room)
    worth, left = [0] * len(lines), room * STRESS
    for place, line in enumerate(lines):
        if len(line) <= left and _STRESSED.search(line):
            worth[place] = 2
            left -= len(line)
    return "\n".join(chosen(lines, worth, room, "\n"))


def differing(one: str, other: str) -> tuple[str, str]:
    """Return two texts without what both begin or end with, a mark in its place."""
    begin = _alike(one, other)
    end = _alike(one[begin:][::-1], other[begin:][::-1])
    begin = max(one.rfind(" ", 0, begin), 0) if begin > LEAST else 0
    end = end - max(one[len(one) - end :].find(" "), 0) if end > LEAST else 0
    head, tail = GAP if begin else "", f" {GAP}" if end else ""
    return (
        f"{head}{one[begin : len(one) - end]}{tail}",
        f"{head}{other[begin : len(other) - end]}{tail}",
    )


def _alike(one: str, other: str) -> int:
    """Return the number of characters that two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return [one for one in _SENTENCE.split(text.strip()) if one]


def _back(text: str, end: int) -> int:
    """Return a good place to end a beginning, not far before `end`."""
    for mark in _ENDS:
        if (at := text.rfind(mark, end - min(FAR, end // 3), end)) >= 0:
            return at + len(mark)
    return end


def _forth(text: str, start: int) -> int:
    """Return a good place to begin an end, not far behind `start`."""
    for mark in _ENDS:
        if (at := text.find(mark, start, start + min(FAR, (len(text) - start) // 3))) >= 0:
            return at + len(mark)
    return start


def chosen(
    pieces: Sequence[str], named: Sequence[int], room: float, joint: str, *, tail: bool = True
) -> list[str]:
    """Return the pieces that say most, in their order, with a mark where others are left out.

    The first and the last come first, then those whose identifiers were named later, the end of
    what a program printed, and the rest from both sides.

    Args:
        pieces: lines, fields or rows.
        named: for each, how much of it later messages name; -1 for what is known already.
        room: characters of all together.
        joint: what is put between two.
        tail: whether the end says as much as the beginning, as in what a program prints.
    """
    step, last = len(joint), len(pieces) - 1
    if sum(map(len, pieces)) + step * last <= room:
        return list(pieces)
    new = [place for place, worth in enumerate(named) if worth >= 0] or [0, last]
    first = (new[0], new[-1]) if tail else (0,)
    near = new[-NEAR:] if tail else []

    def rank(place: int) -> tuple[int, int]:
        if place in first:
            return 0, 0
        return (
            (1, -named[place])
            if named[place] > 1
            else (2 if place in near else 4 - named[place], 0)
        )

    order = sorted(range(last + 1), key=lambda n: min(n, last - n) if tail else n)
    kept: dict[int, str] = {}
    left, most = room, room / len(first) if last else room
    for place in sorted(order, key=rank):
        piece, takes = pieces[place], len(pieces[place]) + step
        important = place in first or named[place] > 0
        if takes > left or (important and takes > most):
            # Columns of a table stay whole, and what nobody names is cut where there is much room.
            small = left > LEAST * (1 if important and tail else 4) and (tail or place)
            piece = cut(piece, min(left - step, most)) if small else ""
        if piece:
            kept[place] = piece
            left -= len(piece) + step
        if left <= LEAST:
            break
    result: list[str] = []
    before = -1
    for place in [*sorted(kept), last + 1]:
        if place > before + 1:
            result.append(GAP)
        result += [kept[place]] if place in kept else []
        before = place
    return result
