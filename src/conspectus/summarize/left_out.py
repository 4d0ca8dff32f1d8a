"""The line on steps that stand in the notes no more: how many they were, and of which tools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from conspectus.summarize import journal

NAMED = 8
"""Tools that are named, those that made most of the steps."""

OTHERS = ("others", "looks")
"""Stand for steps of tools that are not named, and for folded looks."""

_TOLD = re.compile(r"\((\d+) earlier steps, (.*)")
_TIMES_OF = re.compile(r"([^\s,:()]+) (\d+)")


def line_on(gone: Counter[str], archived: bool) -> str:
    """Return the line on steps left out: their number, and the tools of most, changes first.

    Example:
        >>> line_on(Counter({"book_train": 2, "pytest": 1}), archived=False)
        '(3 earlier steps, left out: book_train 2, pytest 1)'
    """
    order = sorted(
        gone.items(), key=lambda one: (one[0] in OTHERS or journal.looked(f"{one[0]}("), -one[1])
    )
    names = [f"{name} {times}" for name, times in order[:NAMED]]
    away = "one recall away" if archived else "left out"
    return f"({gone.total()} earlier steps, {away}: {', '.join(names)})"


def counts(line: str) -> bool:
    """Return whether a line tells of steps left out."""
    return _TOLD.match(line) is not None


def counted(lines: Iterable[str]) -> Counter[str]:
    """Return the steps that such lines count, by tool.

    Example:
        >>> counted(["(3 earlier steps, left out: book_train 2)", "edit(a.py) → ok [m9]"])
        Counter({'book_train': 2, 'others': 1})
    """
    gone = Counter[str]()
    for line in lines:
        if found := _TOLD.match(line):
            named = Counter({name: int(times) for name, times in _TIMES_OF.findall(found[2])})
            gone += named + Counter({OTHERS[0]: max(int(found[1]) - named.total(), 0)})
    return gone


def tool(line: str) -> str:
    """Return the name of the tool, or the program, that a line tells of."""
    if line.startswith(journal.LOOKED):
        return OTHERS[1]
    return re.split(r"[(\s]", line.removeprefix("$ "), maxsplit=1)[0][:24]
