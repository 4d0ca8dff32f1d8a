"""Keep finds in JSON within one string, and off half an escape."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from conspectus_secrets.ends import Found

_STRINGS = re.compile(r'"((?:[^"\\]|\\.)*+)"')


def within_strings(text: str, found: Sequence[Found]) -> list[Found]:
    """Cut the finds in a JSON text to the string in which they begin; leave them in other texts.

    A private key may be divided into several strings; a number stands in none.

    Example:
        >>> within_strings('["ab", "c"]', [(2, 9, "password", "")])
        [(2, 4, 'password', '')]
    """
    if not found or text.lstrip()[:1] not in ("{", "[") or not _is_json(text):
        return list(found)
    spans = [match.span(1) for match in _STRINGS.finditer(text)]
    ends = [end for _, end in spans]
    return [
        piece for one in found for piece in _pieces(text, one, spans, bisect_right(ends, one[0]))
    ]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _pieces(text: str, one: Found, spans: Sequence[tuple[int, int]], first: int) -> Iterator[Found]:
    begin, end, kind, quotes = one
    if quotes:
        yield one
        return
    for place in range(first, len(spans)):
        left, right = max(begin, spans[place][0]), min(end, spans[place][1])
        if spans[place][0] >= end or (begin < spans[place][0] and kind != "private-key"):
            break
        left -= _half(text, left, spans[place][0])
        right -= _half(text, right, left) if right < spans[place][1] else 0
        if left < right:
            yield left, right, kind, ""
        if kind != "private-key":
            break


def _half(text: str, at: int, least: int) -> int:
    """Return 1 if this place lies within an escape, behind its backslash."""
    run = 0
    while at - run > least and text[at - run - 1] == "\\":
        run += 1
    return run % 2
