"""Texts cut to a length, visibly, and a length divided among texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

GAP = "…"
"""Marks what is left out of a text."""

BREAK = " ⏎ "
"""Stands for the end of a line inside a line of the notes."""

LEAST = 24
"""Characters below which a part of a text says nothing."""

FAR = 80
"""Characters by which a text may be cut shorter than it must be, to end in a better place."""

NEAR = 3
"""Lines at the end of what a program printed that most often say how it ended."""

_ENDS = ("\n", BREAK, ". ", "。", "! ", "? ", "！", "？", "; ", ", ", "、", "，", " ")
"""Where a text may be cut, the best places first."""

UNSPACED = 0x0E00
"""The first character of the scripts that are written without spaces, from Thai on."""

_TERM = re.compile(r"[^\W_]+")
_SPACES = re.compile(r"(?<![ \t])[ \t]*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


def one_line(text: str) -> str:
    """Return a text in one line, the ends of its own lines marked."""
    return _SPACES.sub(BREAK, text.strip())


def terms(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    words: list[str] = []
    for word in _TERM.findall(text.casefold()):
        pairs = not word.isascii() and len(word) > 2 and ord(max(word)) >= UNSPACED
        words += [word[n : n + 2] for n in range(len(word) - 1)] if pairs else [word]
    return words


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

    Args:
        text: the text; one that fits comes back as it is.
        room: characters of the result at most.
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
    first = int(most * head)
    last = len(text) - (most - first)
    begin = first - min(FAR, first // 3)
    for mark in _ENDS:
        if (at := text.rfind(mark, begin, first)) >= 0:
            first = at + len(mark)
            break
    end = last + min(FAR, (len(text) - last) // 3)
    for mark in _ENDS:
        if (at := text.find(mark, last, end)) >= 0:
            last = at + len(mark)
            break
    return f"{text[:first].rstrip()} {GAP} {text[last:].lstrip()}".rstrip()


def chosen(
    pieces: Sequence[str], worth: Sequence[int], room: float, joint: str, *, tail: bool = True
) -> list[tuple[str, int]]:
    """Return the pieces that say most, in their order, with a mark where others are left out.

    The first and the last come first, then those that are worth most, the end of what a program
    printed, and the rest from both sides.

    Args:
        pieces: lines, fields or rows.
        worth: for each, how much of it later messages name; -1 for what is known already.
        room: characters of all together.
        joint: what is put between two.
        tail: whether the end says as much as the beginning, as in what a program prints.

    Returns:
        Each piece with its worth.
    """
    step, last = len(joint), len(pieces) - 1
    if sum(map(len, pieces)) + step * last <= room:
        return list(zip(pieces, worth, strict=True))
    new = [place for place, one in enumerate(worth) if one >= 0] or [0, last]
    ends = {new[0], new[-1]} if tail else {0}
    near = set(new[-NEAR:]) if tail else set()

    def rank(place: int) -> tuple[int, int]:
        if place in ends:
            return 0, 0
        late = place in near and worth[place] < 2
        return (1 if late else 2) - worth[place], min(place, last - place) if tail else place

    kept: dict[int, tuple[str, int]] = {}
    left = room
    for place in sorted(range(last + 1), key=rank):
        piece = pieces[place]
        if len(piece) + step > left and (place in ends or left > 4 * LEAST):
            piece = cut(piece, min(left - step, room / len(ends)))
        if len(piece) + step <= left:
            kept[place] = (piece, worth[place])
            left -= len(piece) + step
        if left <= LEAST:
            break
    result: list[tuple[str, int]] = []
    before = -1
    for place in [*sorted(kept), last + 1]:
        if place > before + 1:
            result.append((GAP, 0))
        result += [kept[place]] if place in kept else []
        before = place
    return result
