"""Identifiers in texts: paths, ids, symbols and the like, each looked for by one pattern.

The ledger of the time when the session was recorded had this module; the library has it no more.
The recorder puts it into the copy that the agent works on, so that its tasks can be done again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_IDENTIFIERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("url", re.compile(r"https?://[^\s\"'<>)\]}\\`]+")),
    ("path", _PATH),
    ("error", _ERROR),
    ("id", _ID),
    ("symbol", _SYMBOL),
    ("number", _NUMBER),
)
_NOT_FACTS = frozenset({"utf-8", "e.g", "i.e", "a.m", "p.m", "and/or", "either/or", "N/A"})


def identifiers(text: str) -> Iterator[tuple[str, str, int]]:
    """Identifiers in a text with their kind and place; what an earlier kind claims stays its own.

    Example:
        >>> [value for _, value, _ in identifiers("see src/app.py, ValueError at 2024-05-01")]
        ['src/app.py', 'ValueError', '2024-05-01']
    """
    for kind, pattern in _IDENTIFIERS:
        claimed: list[tuple[int, int]] = []
        for match in pattern.finditer(text):
            value = match.group().rstrip(".,:;")
            if len(value) >= 3 and value not in _NOT_FACTS:
                claimed.append(match.span())
                yield kind, value, match.start()
        for start, end in claimed:
            text = text[:start] + " " * (end - start) + text[end:]
