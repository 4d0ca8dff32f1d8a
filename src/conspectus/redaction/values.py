"""Replace a recognised secret wherever else it stands.

Plain words are left, so that a password `postgres` does not remove the name of the database
everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

_ESCAPE = (
    r"\\u00(?P<low>[2-7][0-9a-fA-F])|\\x(?P<hex>[2-7][0-9a-fA-F])|\\(?P<slash>/)"
    r"|\\{1,8}u(?P<wide>(?:0[1-9a-fA-F]|[1-9a-cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
    r"|00[a-fA-F][0-9a-fA-F])"
)
_HIDDEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"  # Signs that nobody sees
_CODED = re.compile(f"{_ESCAPE}|{_HIDDEN}++")

MARK = "[redacted: {kind}]"  # Replacement of a secret, with its kind only: no length, no hash
LEAST, MOST = 6, 512  # Characters of a value that is replaced elsewhere; private keys are longer
FEW = 64  # Up to this number of values, each is searched for before a text is cut into pieces
_PIECE = re.compile(r"\[redacted: [^\[\]\n]{1,60}\]|\\[nrt]|[A-Za-z0-9]+|[^\W_A-Za-z0-9]+|[\W_]")
"""A mark, the end of a line in JSON, a word, or one sign. A value consists of whole pieces."""


def telling(value: str) -> bool:
    """Return whether a value is no plain word.

    It has a digit or sign beside letters, or capitals inside.
    """
    if not LEAST <= len(value) <= MOST or "\n" in value or "[redacted: " in value:
        return False
    if value.isalpha():
        return value[1:] != value[1:].lower() and value != value.upper()
    if value.isascii():
        return value.lower() != value.upper()
    return any(map(str.isalpha, value))


def without_values(text: str, values: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """Replace values that stand as whole words, and count them by kind.

    Example:
        >>> without_values("tried Zx9abc. again, not xZx9abc", {"Zx9abc": "password"})
        ('tried [redacted: password]. again, not xZx9abc', Counter({'password': 1}))
    """
    return without_telling(text, {value: values[value] for value in values if telling(value)})


def without_telling(text: str, values: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """Do as `without_values`, with values of which none is a plain word; see `telling`."""
    counts: Counter[str] = Counter()
    if not values or not text:
        return text, counts
    plain, positions = unescaped(text)
    wanted = values
    if len(values) <= FEW:
        wanted = {value: values[value] for value in values if value in plain}
        if not wanted:
            return text, counts
    pieces = _PIECE.findall(plain)
    begins = [_PIECE.match(value)[0] for value in wanted]  # type: ignore[index]
    if set(begins).isdisjoint(pieces):
        return text, counts
    sizes: dict[str, set[int]] = {}  # of values, by their first piece
    for value, begin_of_value in zip(wanted, begins, strict=True):
        sizes.setdefault(begin_of_value, set()).add(len(value))
    ends = list(accumulate(map(len, pieces)))
    every_end = set(ends)
    parts: list[str] = []
    at = 0  # where the newest replaced value ends in the plain text
    done = 0  # and in the text
    for end, piece in zip(ends, pieces, strict=True):
        begin = end - len(piece)
        if piece not in sizes or begin < at:
            continue
        for size in sorted(sizes[piece], reverse=True):
            stop = begin + size
            value = plain[begin:stop]
            if stop not in every_end or value not in wanted:
                continue
            first, last = (positions[begin], positions[stop]) if positions else (begin, stop)
            parts += [text[done:first], MARK.format(kind=wanted[value])]
            counts[wanted[value]] += 1
            at, done = stop, last
            break
    return "".join([*parts, text[done:]]), counts


def unescaped(text: str) -> tuple[str, list[int] | None]:
    """Return the text without escapes and invisible signs, and its positions.

    Positions map each character to the original text; None if the text is the same.

    Example:
        >>> unescaped("a\\\\u0062c")
        ('abc', [0, 1, 7, 8])
    """
    if ("\\" not in text and text.isascii()) or not _CODED.search(text):
        return text, None
    parts: list[str] = []
    positions: list[int] = []
    at = 0
    for match in _CODED.finditer(text):
        code = match["low"] or match["hex"] or match["wide"]
        char = chr(int(code, 16)) if code else match["slash"] or ""
        if re.match(_HIDDEN, char):
            char = ""
        elif char and char in "\"'\\\n":  # it would end a text that goes on
            continue
        parts += [text[at : match.start()], char]
        positions.extend(range(at, match.start() + len(char)))
        at = match.end()
    return "".join([*parts, text[at:]]), [*positions, *range(at, len(text) + 1)]
