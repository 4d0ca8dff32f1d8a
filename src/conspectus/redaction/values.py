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
    pieces = _PIECE.findall(plain)
    longest = _Values(sought).longest(pieces)
    parts: list[str] = []
    done = at = number = 0  # of the text, of the plain text, of its pieces
    while number < len(pieces):
        count, kind = longest[number]
        if not count:
            at += len(pieces[number])
            number += 1
            continue
        size = sum(map(len, pieces[number : number + count]))
        begin, end = (at, at + size) if places is None else (places[at], places[at + size])
        parts += [text[done:begin], MARK.format(kind=kind)]
        counts[kind] += 1
        done, at, number = end, at + size, number + count
    return ("".join([*parts, text[done:]]) if parts else text), counts


class _Values:
    """An automaton of all values, piece by piece, so that one pass finds all of them.

    Text and values are read from their ends, so that the state gives the longest value that begins
    here. On a mismatch it continues with the longest matching beginning of another value (Aho and
    Corasick 1975).
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._steps: list[dict[str, int]] = [{}]
        self._best: list[tuple[int, str]] = [(0, "")]
        for value, kind in values.items():
            at, pieces = 0, _PIECE.findall(value)
            for piece in reversed(pieces):
                if piece not in self._steps[at]:
                    self._steps[at][piece] = len(self._steps)
                    self._steps.append({})
                    self._best.append((0, ""))
                at = self._steps[at][piece]
            self._best[at] = (len(pieces), kind)
        self._else = [0] * len(self._steps)
        places = list(self._steps[0].values())
        for place in places:  # it grows: nearest to the root first
            for piece, further in self._steps[place].items():
                self._else[further] = self._step(self._else[place], piece)
                places.append(further)
            self._best[place] = max(self._best[place], self._best[self._else[place]])

    def _step(self, at: int, piece: str) -> int:
        while at and piece not in self._steps[at]:
            at = self._else[at]
        return self._steps[at].get(piece, 0)

    def longest(self, pieces: list[str]) -> list[tuple[int, str]]:
        """Return for each piece the length and kind of the longest value from there; 0 for none."""
        found = [self._best[0]] * len(pieces)
        at = 0
        for number in range(len(pieces) - 1, -1, -1):
            at = self._step(at, pieces[number])
            found[number] = self._best[at]
        return found


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
