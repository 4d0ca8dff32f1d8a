"""Replace a recognised secret wherever else it stands.

Plain words are left, so that a password `postgres` does not remove the name of the database
everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_ESCAPES = re.compile(
    r"\\u00([2-7][0-9a-fA-F])|\\x([2-7][0-9a-fA-F])|\\(/)"
    r"|\\{1,8}u((?:0[1-9a-fA-F]|[1-9a-cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
    r"|00[a-fA-F][0-9a-fA-F])"
)
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Invisible signs, which can take a secret apart."""

MARK = "[redacted: {kind}]"  # Replacement of a secret, with its kind only: no length, no hash

LEAST, MOST = 6, 512
"""Characters of a value that is replaced elsewhere. Longer ones, as private keys, have their own
form."""

FEW = 64  # Up to this number of values, each is searched for before a text is cut into pieces

_PIECE = re.compile(r"\[redacted: [^\[\]\n]{1,60}\]|\\[nrt]|[A-Za-z0-9]+|[^\W_A-Za-z0-9]+|[\W_]")
"""A mark, the end of a line in JSON, a word, or one sign. A value consists of whole pieces."""


def telling(value: str) -> bool:
    """Return whether a value is no plain word.

    It has a digit or sign beside letters, or capitals inside.
    """
    if not LEAST <= len(value) <= MOST or "\n" in value or "[redacted: " in value:
        return False
    letters = any(c.isalpha() for c in value)
    inside = value[1:] != value[1:].lower() and value != value.upper()
    return letters and (inside or not value.isalpha())


def without_values(text: str, values: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """Replace values that stand as whole words, and count them by kind.

    Example:
        >>> without_values("tried Zx9abc. again, not xZx9abc", {"Zx9abc": "password"})
        ('tried [redacted: password]. again, not xZx9abc', Counter({'password': 1}))
    """
    counts: Counter[str] = Counter()
    if not values or not text:
        return text, counts
    plain, places = unescaped(text)
    here = [one for one in values if one in plain] if len(values) <= FEW else values
    sought = {one: values[one] for one in here if telling(one)}
    if not sought:
        return text, counts
    wanted = {tuple(_PIECE.findall(value)): kind for value, kind in sought.items()}
    lengths: dict[str, set[int]] = {}  # of values, by their first piece
    for value in wanted:
        lengths.setdefault(value[0], set()).add(len(value))
    longest = {first: sorted(some, reverse=True) for first, some in lengths.items()}
    pieces, parts = _PIECE.findall(plain), []
    done = at = number = 0  # of the text, of the plain text, of its pieces
    while number < len(pieces):
        some = (tuple(pieces[number : number + n]) for n in longest.get(pieces[number], ()))
        match = next(filter(wanted.get, some), None)
        if match is None:
            at += len(pieces[number])
            number += 1
            continue
        size = sum(map(len, match))
        begin, end = (at, at + size) if places is None else (places[at], places[at + size])
        parts += [text[done:begin], MARK.format(kind=wanted[match])]
        counts[wanted[match]] += 1
        done, at, number = end, at + size, number + len(match)
    return ("".join([*parts, text[done:]]) if parts else text), counts


def unescaped(text: str) -> tuple[str, list[int] | None]:
    """Return the text without escapes and invisible signs, and its positions.

    Positions map each character to the original text; None if the text is the same.

    Example:
        >>> unescaped("a\\\\u0062c")
        ('abc', [0, 1, 7, 8])
    """
    if "\\" in text:
        hidden = _HIDDEN.search(text) or _ESCAPES.search(text)
    else:
        hidden = _HIDDEN.search(text) if not text.isascii() else None
    if hidden is None:
        return text, None
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for match in re.finditer(f"{_ESCAPES.pattern}|{_HIDDEN.pattern}", text):
        parts.append(text[at : match.start()])
        places.extend(range(at, match.start()))
        code = match[1] or match[2] or match[4]
        char = chr(int(code, 16)) if code else match[3] or ""
        char = "" if _HIDDEN.match(char) else char
        if char and char in "\"'\\\n":  # it would end a text that goes on
            char = match.group()
            places.extend(range(match.start(), match.end()))
        elif char:
            places.append(match.start())
        parts.append(char)
        at = match.end()
    parts.append(text[at:])
    places.extend(range(at, len(text) + 1))
    return "".join(parts), places
