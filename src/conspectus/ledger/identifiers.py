"""Identifiers in texts, as the embedded summariser weighs them: looked for once a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from conspectus.ledger.scanning import starting
from conspectus.messages import Entry

Kind = Literal[
    "rule",
    "preference",
    "decision",
    "task",
    "delegation",
    "skill",
    "path",
    "url",
    "symbol",
    "error",
    "id",
    "number",
    "date",
    "command",
]
"""What a fact can be."""

DATA = 20_000
"""Characters of one line that are looked through for identifiers."""

_EXTENSION = (
    r"(?:pyi?|jsx?|tsx?|jsonl?|md|txt|rst|html?|css|ya?ml|toml|cfg|ini|sh|cpp|cc|hpp|java|kt|go|rs"
    r"|rb|php|sql|xml|csv|png|jpe?g|pdf|ipynb|lock|log|diff|patch|c|h)"
)
_PATH = re.compile(
    r"(?<![\w/.-])(?:~|\.{1,2})?/?(?:[\w@+.-]+/)+[\w@+-][\w@+.-]*"
    rf"|(?<![\w/.-])/[\w@+-][\w@+.-]*|(?<![\w/.-])[\w-]+\.{_EXTENSION}\b"
)
_ID = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
    r"|\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9][A-Z0-9-]{3,}[A-Z0-9]\b"
    r"|\b[a-z]+(?:_[a-z]+)*_\d{3,}\b|[\w.+-]+@[\w-]+\.\w[\w.]*"
)
_SYMBOL = re.compile(
    r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b|\b_*[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+_*\b|\b__\w+__\b"
    r"|\b(?:[A-Z][a-z0-9]+){2,}\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"
)
_NUMBER = re.compile(
    r"(?<![\w.])\d{4}-\d{2}-\d{2}(?!\w)|(?<![\w.])\d+(?:\.\d+)+(?!\w)"
    r"|(?<![\w.-])\d{4,}(?![\w.])|(?<![\w.])\d+(?:[.,]\d+)?\s?(?:%|€|\$|£|¥|元|ms|kB|MB|GB)"
)
_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Fault)\b")
_IDENTIFIERS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("url", re.compile(r"https?://[^\s\"'<>)\]}\\`]+")),
    ("path", _PATH),
    ("error", _ERROR),
    ("id", _ID),
    ("symbol", _SYMBOL),
    ("number", _NUMBER),
)
_BORDER = r"(?<![0-9A-Za-z_])"
_BARE_ID = starting(
    rf"{_BORDER}(?=\d[\d-]{{0,79}}[A-Za-z]|\d{{8}}-|[\d-]{{80}}"
    r"|[A-Z][A-Z-]{0,79}\d|[A-Z-]{80}|[a-f]+\d|[a-z]+_)",
    _ID,
)


def _ids(text: str) -> Iterator[re.Match[str]]:
    """Ids; an address of mail may start anywhere, so it is tried only where a line has one."""
    return (_ID if "@" in text else _BARE_ID).finditer(text)


_Finds = Callable[[str], Iterator[re.Match[str]]]
_QUICK: dict[re.Pattern[str], tuple[Callable[[str], object], _Finds]] = {
    _PATH: (
        re.compile("[/.]").search,
        starting(r"(?<![0-9A-Za-z_/.-])(?=[\w@+~-]{0,79}[/.]|[\w@+~-]{80})", _PATH).finditer,
    ),
    _ERROR: (re.compile("Error|Exception|Warning|Fault").search, _ERROR.finditer),
    _ID: (re.compile(r"[\d@]").search, _ids),
    _SYMBOL: (
        re.compile("[_.A-Z]").search,
        starting(r"(?<![0-9A-Za-z])(?=_|[^\W_]+[._]|[A-Za-z][a-z0-9]*[A-Z])", _SYMBOL).finditer,
    ),
    _NUMBER: (
        re.compile(r"\d").search,
        starting(
            r"(?=\d)(?<![0-9A-Za-z_.])(?=\d{4}|\d+(?:[.,]\d|\s?[%€$£¥元mkMG]))", _NUMBER
        ).finditer,
    ),
}
"""Of a pattern, what a line must have to hold any, and how to find them where they can start: tried
at every character, the patterns take three times as long. One that is not here is just tried."""
_KINDS: tuple[tuple[Kind, Callable[[str], object], _Finds], ...] = tuple(
    (kind, *_QUICK.get(pattern, (bool, pattern.finditer))) for kind, pattern in _IDENTIFIERS
)
_NOT_FACTS = frozenset({"utf-8", "e.g", "i.e", "a.m", "p.m", "and/or", "either/or", "N/A"})


def identifiers(text: str) -> Iterator[tuple[Kind, str, int]]:
    """Identifiers in a text with their kind and place; what an earlier kind claims stays its own.

    Example:
        >>> [value for _, value, _ in identifiers("see src/app.py, ValueError at 2024-05-01")]
        ['src/app.py', 'ValueError', '2024-05-01']
    """
    for kind, hint, finds in _KINDS:
        if not hint(text):
            continue
        claimed: list[tuple[int, int]] = []
        for match in finds(text):
            value = match.group().rstrip(".,:;")
            if len(value) >= 3 and value not in _NOT_FACTS:
                claimed.append(match.span())
                yield kind, value, match.start()
        for start, end in claimed:
            text = text[:start] + " " * (end - start) + text[end:]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a message with the identifiers in it.

    Attributes:
        line: the line, as it stands.
        holds: kind, value and place of each.
        call: it is part of a tool call.
    """

    line: str
    holds: tuple[tuple[Kind, str, int], ...]
    call: bool = False


def identified(entry: Entry) -> tuple[Line, ...]:
    """The lines of a message that hold identifiers; looked for once and remembered."""
    if entry.found is None:
        lines = [(line, False) for line in entry.text.split("\n")]
        lines += [(line, True) for call in entry.calls for line in call.reading.split("\n")]
        entry.found = tuple(
            Line(line, holds, call)
            for line, call in lines
            # Of a line that is nothing but data, the start: the rest is found by recall.
            if (holds := tuple(identifiers(line[:DATA])))
        )
    found: tuple[Line, ...] = entry.found
    return found
