"""Texts looked through quickly: patterns that share their starts, or are tried only where they can
start, and answers that are remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

SHORT, REMEMBERED = 600, 2_000
"""Characters of texts that are remembered, and how many: a sentence is looked at several times."""

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """What a function of a text gives, remembered for short texts; the others hardly come again."""
    short: Any = lru_cache(REMEMBERED)(function)

    @wraps(function)
    def answer(text: str, /, *args: P.args, **named: P.kwargs) -> R:
        known: R = (short if len(text) <= SHORT else function)(text, *args, **named)
        return known

    answer.cache_clear = short.cache_clear  # type: ignore[attr-defined]
    answer.cache_parameters = short.cache_parameters  # type: ignore[attr-defined]
    return answer


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
