"""Replace a recognised secret in all other places.

Plain words are not replaced: a password `postgres` must not remove the name of the database
everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

_ESCAPE = (
    r"\\u00(?P<low>[2-7][0-9a-fA-F])|\\x(?P<hex>[2-7][0-9a-fA-F])|\\(?P<slash>/)"
    r"|\\{1,8}u(?P<wide>(?:0[1-9a-fA-F]|[1-9a-cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
    r"|00[a-fA-F][0-9a-fA-F])"
)
_INVISIBLE = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"  # invisible signs
_ESCAPE_OR_INVISIBLE = re.compile(f"{_ESCAPE}|{_INVISIBLE}++")
_IS_INVISIBLE = re.compile(_INVISIBLE)
_ENDS_A_TEXT = "\"'\\\n"  # escapes of these signs are not decoded

MARK = "[redacted: {kind}]"
"""The text that replaces a secret: only its kind, without length or hash."""

_ANY_MARK = "[redacted: "
MIN_LENGTH = 6  # fewest characters of a value that is replaced elsewhere
MAX_LENGTH = 512  # longer ones are private keys
FEW_VALUES = 64  # if there are no more, each is searched for before a text is cut into pieces
_PIECE = re.compile(r"\[redacted: [^\[\]\n]{1,60}\]|\\[nrt]|[A-Za-z0-9]+|[^\W_A-Za-z0-9]+|[\W_]")
"""A mark, the end of a line in JSON, a word, or one sign. A value consists of whole pieces."""


def is_distinctive(value: str) -> bool:
    """Tell whether a value is no plain word, so that it is the secret in every place.

    It has letters with a digit or a sign, or capitals inside, and 6 to 512 characters.
    """
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH or "\n" in value or _ANY_MARK in value:
        return False
    if value.isalpha():
        has_capitals_inside = value[1:] != value[1:].lower()
        return has_capitals_inside and value != value.upper()
    if value.isascii():
        return value.lower() != value.upper()
    return any(map(str.isalpha, value))


def without_values(text: str, values: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """Replace values that are whole words, and count them by kind.

    Example:
        >>> without_values("tried Zx9abc. again, not xZx9abc", {"Zx9abc": "password"})
        ('tried [redacted: password]. again, not xZx9abc', Counter({'password': 1}))
    """
    distinctive = {value: values[value] for value in values if is_distinctive(value)}
    return without_distinctive_values(text, distinctive)


def without_distinctive_values(text: str, values: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """Do what `without_values` does, for values that are all distinctive; see `is_distinctive`."""
    counts: Counter[str] = Counter()
    if not values or not text:
        return text, counts
    plain, positions = unescaped(text)
    if len(values) <= FEW_VALUES:
        values = {value: kind for value, kind in values.items() if value in plain}
        if not values:
            return text, counts
    pieces = _PIECE.findall(plain)
    lengths = _lengths_by_first_piece(values)
    if lengths.keys().isdisjoint(pieces):
        return text, counts

    ends = list(accumulate(map(len, pieces)))
    every_end = set(ends)
    parts: list[str] = []
    replaced_end = 0  # the end of the newest value, in the plain text
    copied_end = 0  # the same in the text
    for end, piece in zip(ends, pieces, strict=True):
        begin = end - len(piece)
        if piece not in lengths or begin < replaced_end:
            continue
        for length in sorted(lengths[piece], reverse=True):
            value_end = begin + length
            kind = values.get(plain[begin:value_end])
            if kind is None or value_end not in every_end:
                continue
            text_begin = begin if positions is None else positions[begin]
            text_end = value_end if positions is None else positions[value_end]
            parts += [text[copied_end:text_begin], MARK.format(kind=kind)]
            counts[kind] += 1
            replaced_end = value_end
            copied_end = text_end
            break
    return "".join([*parts, text[copied_end:]]), counts


def _lengths_by_first_piece(values: Iterable[str]) -> dict[str, set[int]]:
    lengths: dict[str, set[int]] = {}
    for value in values:
        first_piece = _PIECE.match(value)
        if first_piece is not None:
            lengths.setdefault(first_piece[0], set()).add(len(value))
    return lengths


def unescaped(text: str) -> tuple[str, list[int] | None]:
    """Return a text without escapes and invisible signs, and a map of its characters.

    The map has the position of each character, and of the end, in the original text. It is None if
    the text is the same.

    Example:
        >>> unescaped("a\\\\u0062c")
        ('abc', [0, 1, 7, 8])
    """
    if ("\\" not in text and text.isascii()) or not _ESCAPE_OR_INVISIBLE.search(text):
        return text, None
    parts: list[str] = []
    positions: list[int] = []
    copied_end = 0
    for match in _ESCAPE_OR_INVISIBLE.finditer(text):
        code = match["low"] or match["hex"] or match["wide"]
        sign = chr(int(code, 16)) if code else match["slash"] or ""
        if _IS_INVISIBLE.match(sign):
            sign = ""
        elif sign and sign in _ENDS_A_TEXT:
            continue
        parts += [text[copied_end : match.start()], sign]
        positions.extend(range(copied_end, match.start() + len(sign)))
        copied_end = match.end()
    positions.extend(range(copied_end, len(text) + 1))
    return "".join([*parts, text[copied_end:]]), positions
