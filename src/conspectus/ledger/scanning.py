"""Patterns made quick: one of many words, and a pattern that is tried only where it can start."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any


def one_of(words: Iterable[str]) -> str:
    """A pattern for the longest of these words that stands there, in any case.

    One alternative for each word would be tried one after the other; here words with the same
    start share it, and one character is enough to leave a branch out.

    Example:
        >>> re.fullmatch(one_of(["min", "minute", "hour"]), "Minute") is not None
        True
    """
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for letter in word.lower():
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branch(root)


def _branch(node: dict[str, Any]) -> str:
    ways = [_letter(one) + _branch(rest) for one, rest in sorted(node.items()) if one]
    if not ways:
        return ""
    optional = "?" if "" in node else ""
    return ways[0] if len(ways) == 1 and not optional else f"(?:{'|'.join(ways)}){optional}"


def _letter(letter: str) -> str:
    upper = letter.upper()
    if upper == letter or len(upper) > 1:
        return re.escape(letter)
    return f"[{letter}{upper}]"


def starting(start: str, pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The pattern, tried only where it can start: at other places its forms only cost time.

    Args:
        start: what holds wherever it can start; it takes up no character and has no group.
        pattern: what is looked for.

    Example:
        >>> starting("(?=[0-9])", re.compile("[0-9]+ (?:ms|kB)")).search("after 20 ms")[0]
        '20 ms'
    """
    return re.compile(f"{start}(?:{pattern.pattern})", pattern.flags)
