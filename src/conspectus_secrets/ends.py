"""Where a value ends: at its quote, or where what is written without a break ends."""

from __future__ import annotations

import re

Found = tuple[int, int, str, str]
"""Begin, end and kind of a secret in a text, and the quotes that what replaces it needs."""

LONGEST = 4_096
"""Characters of a line, or of what stands in a tag, that are read for a value at most."""

LONGEST_QUOTED = 40_000
"""Characters of a value in quotes at most: as many as of a private key."""

JUDGED = 512
"""Characters of a bare value by which it is judged; what goes on without a break goes with it."""

QUOTE = re.compile(r"""[bBrRfFuU]{0,2}(?P<quote>\\{0,8}(?:\"\"\"|'''|["'`]))""")
_LINE_ENDS = re.compile(r"\\++[nrt]")
_RUN = re.compile(r"[^\s\"'`<>]*+")


def closing(text: str, start: int, quote: str) -> int | None:
    """Where a value in quotes ends; within `LONGEST_QUOTED` characters, and one line."""
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
    """Where a bare value ends that was read to here: not with a backslash, which may belong to the
    quote of a string of JSON, nor behind the end of a line in such a string."""
    if (line := _LINE_ENDS.search(text, at, stop)) is not None:
        stop = line.start()
    while stop > at and text[stop - 1] == "\\":
        stop -= 1
    return stop


def whole(text: str, at: int, stop: int, rest: re.Pattern[str]) -> int:
    """Where a bare value ends of which at most `JUDGED` characters were read.

    Args:
        text: in which it stands.
        at: where it begins.
        stop: where it was found to end.
        rest: what may follow without a break.
    """
    if stop - at < JUDGED or (more := rest.match(text, stop)) is None:
        return stop
    return cut(text, at, more.end())


class Runs:
    """Where unbroken runs of a text end; a long one is gone over once, however often it is asked.

    Args:
        text: in which they stand.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._last = (0, 0)

    def end(self, at: int) -> int:
        """Where the run from here ends, at a space, a quote or a tag."""
        begin, end = self._last
        if not begin <= at < end:
            match = _RUN.match(self._text, at)
            self._last = begin, end = at, match.end() if match else at
        return end
