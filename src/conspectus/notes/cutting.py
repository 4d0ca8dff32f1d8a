"""Texts cut to a length, visibly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

GAP = "…"
"""Marks what is left out of a text."""

BREAK = " ⏎ "
"""Stands for the end of a line inside a line of the notes."""

FIELD = "; "
"""Stands between fields and rows of data."""

SHORTEST_PIECE = 24
"""Characters. A shorter piece of a text says nothing."""

BOTH_ENDS_FROM = 64
"""Characters. A text that is cut to fewer keeps only one of its ends."""

SHORTEST_ITEM = 40
"""Characters. A line of a list is not cut to fewer, as it would lose what it is about."""

FARTHEST_STOP = 80
"""The most characters by which a text is cut shorter than it must be, to end in a better place."""

LONGEST_ID = 40
"""The most characters of a word, such as an id, that is not cut in the middle."""

HEAD_SHARE = 0.6
"""The share of the beginning in a text that keeps both its ends."""

_STOPS = ("\n", BREAK, ". ", "。", "! ", "? ", "！", "？", "; ", ", ", "、", "，", " ")
"""Where a text may be cut, the best places first."""

_ITEM = re.compile(r"\s*(?:[-*•+–—·]|\d{1,3}[.)、]|[A-Za-z][.)]|[\u2460-\u24ff])\s?\S")
"""An item of a list."""

_NAME = re.compile(r"[!-~]")
"""A character of a word, such as an id or a path."""

_NAME_BEFORE = re.compile(r"\s[!-~]{1,40}\Z")
"""The beginning of a word in the middle of which a text would be cut."""

LEAST_ALPHABET = 16
"""The fewest different characters in encoded bytes. A ruled line has one."""

_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/=_-])"
    r"(?:[A-Za-z0-9+/=_-]{400,}+|(?:[A-Za-z0-9+/=_-]{60,}+(?:\s|\\[rn]){1,4}){6,}+[A-Za-z0-9+/=_-]*+)"
)
"""Base64 or hexadecimal digits in one line, or in lines of one length, as programs write them."""

LEAST_ENCODED = 360
"""The fewest characters of encoded bytes."""


def without_encoded(text: str) -> str:
    """Return a text with its long encoded bytes described, because no reader learns from them.

    Example:
        >>> without_encoded("key: " + "iVBORw0KGgoAAAANSUhEUgAB" * 20)
        'key: [480 characters of encoded bytes]'
    """
    return _ENCODED.sub(_describe_bytes, text) if len(text) >= LEAST_ENCODED else text


def _describe_bytes(match: re.Match[str]) -> str:
    encoded = match[0]
    if len(set(encoded[:400])) < LEAST_ALPHABET:
        return encoded
    return f"[{len(encoded):,} characters of encoded bytes]"


def one_line(text: str) -> str:
    """Return a text in one line, the ends of its own lines marked.

    Example:
        >>> one_line("first\\n\\n  second")
        'first ⏎ second'
    """
    return BREAK.join(filter(None, map(str.strip, text.splitlines())))


def common_limit(sizes: Iterable[float], room: float) -> float:
    """Return the largest limit for which all sizes fit the room once larger ones are cut to it.

    Example:
        >>> common_limit([10, 100, 200], 110)
        50.0
    """
    ordered = sorted(sizes)
    left = float(room)
    for position, size in enumerate(ordered):
        limit = left / (len(ordered) - position)
        if size > limit:
            return max(limit, 0.0)
        left -= size
    return float(ordered[-1]) if ordered else left


def cut(text: str, room: float, head: float = HEAD_SHARE) -> str:
    """Return the beginning and the end of a text with a mark between them.

    If the room is small, only the beginning is left, or only the end if `head` is at most a half.

    Args:
        text: the text. One that fits is returned as it is.
        room: the most characters of the result.
        head: the share of the beginning.

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
    kept = int(room) - len(GAP) - 2
    if kept < SHORTEST_PIECE // 3:
        if room < 1:
            return ""
        return (text[: max(kept, 0)].rstrip() + GAP)[: int(room)]
    if room < BOTH_ENDS_FROM:  # one end only
        head = 1.0 if head > 0.5 else 0.0
    head_size = int(kept * head)
    head_end = _stop_before(text, head_size)
    tail_start = _stop_behind(text, len(text) - (kept - head_size))
    shortened = f"{text[:head_end].rstrip()} {GAP} {text[tail_start:].lstrip()}"
    return shortened.rstrip() if head_end else shortened.strip()


def _stop_before(text: str, end: int) -> int:
    """Return the best place to stop, a little before `end`."""
    earliest = end - min(FARTHEST_STOP, end // 3)
    for stop in _STOPS:
        found = text.rfind(stop, earliest, end)
        if found >= 0:
            return found + len(stop)
    name = _NAME_BEFORE.search(text, max(0, end - LONGEST_ID - 1), end)
    return name.start() + 1 if name and _NAME.match(text, end) else end


def _stop_behind(text: str, start: int) -> int:
    """Return the best place to go on, a little behind `start`."""
    latest = start + min(FARTHEST_STOP, (len(text) - start) // 3)
    for stop in _STOPS:
        found = text.find(stop, start, latest)
        if found >= 0:
            return found + len(stop)
    behind = text.find(" ", start, start + LONGEST_ID)
    is_in_name = behind > 0 and text[start - 1 : behind].isascii() and not text[start - 1].isspace()
    return behind + 1 if is_in_name else start


def cut_around(text: str, kept: Sequence[str], room: float) -> str:
    """Return a text cut to a length, in which some of its statements stand whole.

    What stands between them shares the room that they leave. If not even they fit, the last ones
    are left out.

    Args:
        text: the text. One that fits is returned as it is.
        kept: statements in the text, in their order.
        room: the most characters of the result.

    Example:
        >>> cut_around(f"{'On and on. ' * 9}Never push. {'And on. ' * 9}", ["Never push."], 30)
        '… Never push. …'
    """
    if len(text) <= room:
        return text
    spans = _spans_that_fit(text, kept, room)
    if not spans:
        return cut(text, room)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    between = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    size_kept = sum(end - start for start, end in spans)
    marks = (len(GAP) + 2) * len(between)
    limits = _limits_between(between, room - size_kept - marks)
    pieces: list[str] = []
    for number, part in enumerate(between):
        pieces.append(_between(part, limits[number]))
        if number < len(spans):
            start, end = spans[number]
            pieces.append(text[start:end])
    return "".join(pieces).strip()


def _limits_between(parts: Sequence[str], room: float) -> list[float]:
    """Share a room among the parts of a text: its beginning and its end come first."""
    head = min(len(parts[0]), room * HEAD_SHARE)
    tail = min(len(parts[-1]), room - head)
    inner = common_limit(map(len, parts[1:-1]), room - head - tail)
    return [head, *([inner] * (len(parts) - 2)), tail]


def _spans_that_fit(text: str, kept: Sequence[str], room: float) -> list[tuple[int, int]]:
    """Return where statements stand in a text, as many as fit with a mark around each."""
    spans: list[tuple[int, int]] = []
    behind = 0
    left = room - len(GAP) - 2
    for statement in kept:
        start = text.find(statement, behind)
        left -= len(statement) + len(GAP) + 2
        if left < 0:
            break
        if start >= 0:
            behind = start + len(statement)
            spans.append((start, behind))
    return spans


def _between(part: str, limit: float) -> str:
    """Return what stands between two statements, or as much of it as says something."""
    if len(part) <= limit or not part.strip():
        return part
    if limit < SHORTEST_PIECE:
        return f" {GAP} "
    words = part.strip()
    before, behind = part.split(words, 1) if words else (part, "")
    return f"{before}{cut(words, limit)}{behind}"


def common_beginning(text: str, other: str) -> int:
    """Return the characters with which both texts begin, up to a blank; 0 if they are few.

    Example:
        >>> command = "python tools/github_api.py --owner acme "
        >>> common_beginning(f"{command}tree", f"{command}log")
        40
    """
    if text[:SHORTEST_ITEM] != other[:SHORTEST_ITEM] or text == other:
        return 0
    return text.rfind(" ", 0, common_length(text, other)) + 1


def common_length(text: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    common = 0
    differing = min(len(text), len(other)) + 1
    while differing - common > 1:  # halving is faster than a loop over characters
        middle = (common + differing) // 2
        if text[common:middle] == other[common:middle]:
            common = middle
        else:
            differing = middle
    return common


def cut_lines(text: str, room: float) -> str:
    """Return a text cut as `cut` does it. Of a list the long items are cut, each at its end.

    Example:
        >>> cut_lines(f"Rules:\\n1. Never push to main\\n2. Wait for {'anybody ' * 9}", 80)
        'Rules:\\n1. Never push to main\\n2. Wait for anybody anybody anybody anybody …'
    """
    lines = text.split("\n")
    limit = common_limit(map(len, lines), room - len(lines))
    if len(text) <= room or limit < SHORTEST_ITEM or not _is_list(lines):
        return cut(text, room)
    return "\n".join(cut(line, limit, 1.0) for line in lines)


def _is_list(lines: Sequence[str]) -> bool:
    items = sum(_ITEM.match(line) is not None for line in lines)
    return items > 1 and 2 * items >= sum(bool(line.strip()) for line in lines)


def section(name: str, lines: Sequence[str]) -> list[str]:
    """Return a heading with a list below it; nothing without lines.

    Further lines of an item are indented, so that none of them can begin an item or a heading.

    Example:
        >>> section("Open", ["paint\\n# it"])
        ['## Open', '- paint\\n  # it']
    """
    if not lines:
        return []
    return [f"## {name}", *("- " + "\n  ".join(line.splitlines()) for line in lines)]
