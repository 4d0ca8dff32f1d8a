"""Find identifiers: exact strings that an agent cannot guess and must have kept.

Six kinds are searched in order: addresses, paths, names of errors, opaque ids, symbols, numbers; a
later kind does not see the text of an earlier one. The definitions are deliberately not those of
the notes: a compactor must not judge itself.
"""

from __future__ import annotations

import re
from functools import lru_cache

SHORTEST = 4
"""Minimum characters of an identifier."""

REMEMBERED = 100_000
"""Texts whose identifiers are cached: each line is read once for each system and cut."""

_ENDINGS = "|".join(
    """c cfg cpp css csv diff go h html ini ipynb java jpeg jpg js json jsonl jsx lock log md mp4
    patch png po py pyi rs rst sh sql svg toml ts tsx txt xml yaml yml""".split()
)
_STEP = r"[\w@+-][\w.@+-]*"
"""One step of a path."""

_PATTERNS = {
    "url": (r"https?://[^\s\"'<>)\]}\\`]+",),
    "path": (
        rf"(?<![\w/.@+-])(?:\.{{0,2}}/)?(?:{_STEP}/)+{_STEP}",
        rf"(?<![\w/.-])/{_STEP}(?:/{_STEP})*",
        rf"(?<![\w/.-])[\w-]+\.(?:{_ENDINGS})\b",
    ),
    "error": (r"\b[A-Z]\w*(?:Error|Exception|Warning)\b",),
    "opaque": (
        r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b",  # a hash or a part of one
        r"\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{5,12}\b",  # a booking code
        r"\b[a-z]+(?:_[a-z]+)*_\d{3,}\b",  # user_1234
        r"(?<![\w.+-])[\w.+-]++@[\w-]+\.\w+",  # a mail address
        r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b",  # a UUID
    ),
    "symbol": (
        r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b",  # a.dotted.name
        r"\b_*[a-z0-9]+(?:_[a-z0-9]+)+_*\b",  # snake_case
        r"\b__\w+__\b",
        r"\b[A-Z]+(?:_[A-Z0-9]+)+\b",  # A_CONSTANT
        r"\b(?:[A-Z][a-z0-9]+){2,}\b",  # ClassName
        r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b",  # camelCase
    ),
    "number": (
        r"(?<![\w.])\d{4}-\d{2}-\d{2}(?![\w])",  # a date
        r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?![\w])",  # a version or a price
        r"(?<![\w.-])\d{4,}(?![\w.])",
    ),
}
_COMPILED = {kind: re.compile("|".join(forms)) for kind, forms in _PATTERNS.items()}
_ENDS_LIKE_A_FILE = re.compile(rf"\.(?:{_ENDINGS})$")
_EDIT_COMMAND = re.compile(r"\d*(?:,\d+)?s/")
"""A `sed` command such as `s/old/new/`, which looks like a path."""

_SAY_NOTHING = frozenset({"returncode", "output", "stdout", "stderr", "utf-8", "e.g", "i.e"})
_LETTER_OR_DIGIT = re.compile(r"[A-Za-z0-9]")


@lru_cache(maxsize=REMEMBERED)
def identifiers(text: str) -> frozenset[str]:
    """Find the identifiers in a text.

    Example:
        >>> sorted(identifiers("see src/app.py:12, ValueError on 2024-05-01"))
        ['2024-05-01', 'ValueError', 'src/app.py']
    """
    found: set[str] = set()
    for kind, pattern in _COMPILED.items():
        values = [match.group().rstrip(".,:;") for match in pattern.finditer(text)]
        if values:
            text = pattern.sub(" ", text)
        found.update(map(_path, values) if kind == "path" else values)
    return frozenset(
        value
        for value in found
        if len(value) >= SHORTEST
        and value.lower() not in _SAY_NOTHING
        and _LETTER_OR_DIGIT.search(value)
    )


def _path(value: str) -> str:
    """Normalise a path; return nothing if it is none."""
    if not value.startswith("/"):
        value = value.lstrip("./")
    if _EDIT_COMMAND.match(value):
        return ""
    if value.count("/") < 2 and not _ENDS_LIKE_A_FILE.search(value):
        return ""  # and/or
    return value.rstrip("/")
