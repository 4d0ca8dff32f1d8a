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

BOTH_ENDS = 64
"""Characters from which on a value is cut to both its ends; in less room its beginning says more.
"""

FAR = 80
"""Characters by which a text may be cut shorter than it must be, to end in a better place."""

UNSPACED = 0x0E00
"""The first character of the scripts that are written without spaces, from Thai on."""

_ENDS = ("\n", BREAK, ". ", "。", "! ", "? ", "！", "？", "; ", ", ", "、", "，", " ")
"""Where a text may be cut, the best places first."""

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
    if len(text) <= room:
        return text
    most = int(room) - len(GAP) - 2
    if most < LEAST // 3:
        return (text[: max(most, 0)].rstrip() + GAP)[: int(room)] if room >= 1 else ""
    first = int(most * head)
    last = len(text) - (most - first)
    begin, end = first - min(FAR, first // 3), last + min(FAR, (len(text) - last) // 3)
    first = next((p + len(m) for m in _ENDS if (p := text.rfind(m, begin, first)) >= 0), first)
    last = next((p + len(m) for m in _ENDS if (p := text.find(m, last, end)) >= 0), last)
    return f"{text[:first].rstrip()} {GAP} {text[last:].lstrip()}".rstrip()


def cut_value(text: str, room: float) -> str:
    """Return an argument cut to a length: of a path the end, which names the file.

    Example:
        >>> cut_value("packages/agent/src/core/session.ts", 22)
        '…/src/core/session.ts'
    """
    if len(text) <= room or "/" not in text or "://" in text or len(text.split()) > 1:
        return cut(text, room, 1.0 if room < BOTH_ENDS else 0.6)
    end = text[len(text) - max(int(room) - len(GAP), 0) :]
    return GAP + end[max(end.find("/"), 0) :]


def cited(text: str, ids: Sequence[str]) -> str:
    """Return a text with the names of the messages that it is about."""
    return f"{text} [{', '.join(ids)}]" if ids else text


def section(name: str, lines: Sequence[str]) -> list[str]:
    """Return a heading with lines below it; nothing without lines."""
    if not lines:
        return []
    return [f"## {name}", *("- " + "\n  ".join(line.splitlines()) for line in lines)]
