"""Find the end of a value, at its quote or at the end of an unbroken run."""

from __future__ import annotations

import re

Found = tuple[int, int, str, str]
"""Begin, end and kind of a secret, and the quotes that its replacement needs."""

LONGEST = 4_096
"""Maximum characters of a line or a tag that are read for a value."""

LONGEST_QUOTED = 40_000
"""Maximum characters of a value in quotes, as of a private key."""

JUDGED = 512
"""Characters of a bare value that are judged; an unbroken rest belongs to it."""

QUOTE = re.compile(r"""[bBrRfFuU]{0,2}(?P<quote>\\{0,8}(?:\"\"\"|'''|["'`]))""")
_LINE_ENDS = re.compile(r"\\++[nrt]")
RUN = re.compile(r"[^\s\"'`<>]*+")


def closing(text: str, start: int, quote: str) -> int | None:
    """Return the end of a value in quotes, within `LONGEST_QUOTED` characters and one line."""
    limit = min(len(text), start + LONGEST_QUOTED)
    line = text.find("\n", start, limit)
    limit = limit if line < 0 else line
    at = start
    mark, escaped = quote[-1:], quote.count("\\")
    while True:
        at = text.find(quote, at, limit)
        if at < 0:
            return None
        backslashes = 0
        while at - 1 - backslashes >= start and text[at - 1 - backslashes] == "\\":
            backslashes += 1
        if (not escaped and backslashes % 2 == 0) or (escaped and backslashes == 0) or not mark:
            return at
        at += len(quote)


def cut(text: str, at: int, stop: int) -> int:
    """Move the end of a bare value before a backslash and before an escaped line end.

    The backslash may belong to the quote of a JSON string.
    """
    if (line := _LINE_ENDS.search(text, at, stop)) is not None:
        stop = line.start()
    while stop > at and text[stop - 1] == "\\":
        stop -= 1
    return stop


def whole(text: str, at: int, stop: int, rest: re.Pattern[str]) -> int:
    """Extend the end of a bare value of which only `JUDGED` characters were read, by `rest`."""
    if stop - at < JUDGED or (more := rest.match(text, stop)) is None:
        return stop
    return cut(text, at, more.end())
