"""Texts cut to a length, visibly, and a length divided among texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from conspectus.notes.segment import GAP

BREAK = " ⏎ "
"""Stands for the end of a line inside a line of the notes."""

LEAST = 24
"""Characters below which a part of a text says nothing."""

_ENDS = ("\n", BREAK, ". ", "。", "! ", "? ", "！", "？", "; ", ", ", "、", "，", " ")
"""Where a text may be cut, the best places first."""

UNSPACED = 0x0E00
"""The first character of the scripts that are written without spaces, from Thai on."""

_TERM = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n\s*")
_SPACES = re.compile(r"[ \t]*\n\s*")


def terms(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    found: list[str] = []
    for word in _TERM.findall(text.casefold()):
        pairs = not word.isascii() and len(word) > 2 and ord(max(word)) >= UNSPACED
        found += [word[n : n + 2] for n in range(len(word) - 1)] if pairs else [word]
    return found


def one_line(text: str) -> str:
    """Return a text in one line, the ends of its own lines marked."""
    return _SPACES.sub(BREAK, text.strip()) if "\n" in text else text.strip()


def shared(sizes: Iterable[int], room: float) -> float:
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


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return [one for one in _SENTENCE.split(text.strip()) if one]


def _back(text: str, end: int) -> int:
    """Return a good place to end a beginning, at most a third before `end`."""
    for mark in _ENDS:
        if (at := text.rfind(mark, end - end // 3, end)) >= 0:
            return at + len(mark)
    return end


def _forth(text: str, start: int) -> int:
    """Return a good place to begin an end, at most a third behind `start`."""
    for mark in _ENDS:
        if (at := text.find(mark, start, start + (len(text) - start) // 3)) >= 0:
            return at + len(mark)
    return start


def chosen(
    pieces: Sequence[str], named: Sequence[int], room: float, joint: str, *, tail: bool = True
) -> list[str]:
    """Return the pieces that say most, in their order, with a mark where others are left out.

    The first and the last come first, then those whose identifiers were named later, then the rest
    from both ends.

    Args:
        pieces: lines, fields or rows.
        named: for each, how many of its identifiers later messages name.
        room: characters of all together.
        joint: what is put between two.
        tail: whether the end says as much as the beginning, as in what a program prints.
    """
    step, last = len(joint), len(pieces) - 1
    if sum(map(len, pieces)) + step * last <= room:
        return list(pieces)
    first = (0, last) if tail else (0,)
    order = sorted(range(last + 1), key=lambda n: min(n, last - n) if tail else n)
    order.sort(key=lambda n: (0, 0) if n in first else (1 if named[n] else 2, -named[n]))
    kept: dict[int, str] = {}
    left, most = room, room / len(first) if last else room
    for place in order:
        piece, takes = pieces[place], len(pieces[place]) + step
        important = place in first or named[place]
        if takes > left or (important and takes > most):
            small = important and left > LEAST and (tail or place)  # a table's columns stay whole
            piece = cut(piece, min(left - step, most)) if small else ""
        if piece:
            kept[place] = piece
            left -= len(piece) + step
        elif not (important or place in first):
            break
    result: list[str] = []
    before = -1
    for place in sorted(kept):
        if place > before + 1 and (not result or result[-1] != GAP):
            result.append(GAP)
        result.append(kept[place])
        before = place
    if before < last and (not result or result[-1] != GAP):
        result.append(GAP)
    return result
