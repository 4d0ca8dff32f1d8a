"""Make one pattern of lists of phrases; it looks at each character a bounded number of times.

Phrases are divided by ` / `. In one of them `*` is the rest of a word, `…` up to 24 characters of
the same clause, `^` where a clause begins, and `#` a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

WIDE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Characters of scripts in which words are not told apart by blanks, or carry their endings."""

_NUMBER = (
    r"(?:[€$£¥]\s?)?(?:\d[\d.,]*|a couple of|half|two|three|four|five|six|seven|eight|nine|ten"
    r"|zwei|drei|vier|fünf|dos|tres|cuatro|cinco|deux|trois|quatre|cinq|[一二两三四五六七八九十百千万]+)"
)
_PARTS = {
    "*": r"[\w'’-]{0,24}",
    "…": r"[^.!?;。！？；\n]{0,24}?",
    "^": r"(?:(?<=^)|(?<=[,:;，、：；(\"“„«「–—-] )|(?<=[，、：；(\"“„«「]))",
    "#": _NUMBER,
}


class Phrases:
    """All phrases of some lists, for texts in lower case; made a pattern when first looked for.

    Args:
        lists: of phrases.

    Example:
        >>> Phrases(["never / at most #"]).search("use at most 3 of them").group()
        'at most 3'
    """

    def __init__(self, lists: Iterable[str]) -> None:
        self._lists = lists

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return pattern(self._lists)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first of them in a text."""
        return self._pattern.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """Return the one that a text begins with."""
        return self._pattern.match(text)

    def findall(self, text: str) -> list[str]:
        """All of them in a text."""
        return self._pattern.findall(text)

    def sub(self, other: str, text: str) -> str:
        """Return a text with something else in their places."""
        return self._pattern.sub(other, text)


def pattern(lists: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of all phrases of some lists, for texts in lower case.

    Example:
        >>> pattern(["never / at most #"]).findall("use at most 3 of them")
        ['at most 3']
    """
    spaced: dict[str, Any] = {}
    wide: dict[str, Any] = {}
    for phrase in " / ".join(lists).replace("\n", " / ").split(" / "):
        phrase = " ".join(phrase.replace(" … ", "…").split())
        node = wide if re.search(f"[{WIDE}]", phrase) else spaced
        for letter in phrase:
            node = node.setdefault(letter, {})
        if phrase:
            node[""] = {}
    words = rf"(?<![\w-]){_branch(spaced)}(?!\w)"
    return re.compile("|".join(p for p in (words if spaced else "", _branch(wide)) if p))


def _branch(node: dict[str, Any]) -> str:
    ways = [_PARTS.get(a) or (re.escape(a) if a != " " else r"\s+") for a in node if a]
    ways = [
        way + _branch(rest)
        for way, rest in zip(ways, (r for a, r in node.items() if a), strict=True)
    ]
    if not ways:
        return ""
    whole = ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"
    return f"(?:{whole})?" if "" in node else whole
