"""A secret that was recognised once, wherever else it stands: there nothing may tell what it is.

Only what is no plain word is looked for, so that a password `postgres` does not take the name of
the database out of everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conspectus.archive.secret_escapes import unescaped

MARK = "[redacted: {kind}]"
"""What stands in place of a secret. It says nothing of it but its kind: no length, no hash."""

LEAST, MOST = 6, 512
"""Characters of a value that is looked for elsewhere. Longer ones, as private keys, are told by
their form."""

FEW = 64
"""So many values are each looked for by themselves, before a text is taken to pieces."""

_PIECE = re.compile(r"\[redacted: [^\[\]\n]{1,60}\]|\\[nrt]|[A-Za-z0-9]+|[^\W_A-Za-z0-9]+|[\W_]")
"""A mark, the end of a line in JSON, a word, or one sign. A value is so many whole pieces."""

_Tree = dict[str, Any]
_HERE = ""
"""In a tree, under this stands the kind of the value that ends there; no piece is empty."""


def spreading(value: str, kind: str) -> Iterator[tuple[str, str]]:
    """A value that was recognised, as it is looked for elsewhere, if it is; each with its kind.

    Example:
        >>> list(spreading("tr0ub4dor&3.", "password"))
        [('tr0ub4dor&3.', 'password'), ('tr0ub4dor&3', 'password')]
        >>> list(spreading("postgres", "password"))
        []
    """
    if len(value) > 6 * MOST:  # each character may be an escape
        return
    value = unescaped(value)[0].strip()
    for one in dict.fromkeys((value, value.rstrip(".,:;!?"))):
        if telling(one):
            yield one, kind


def telling(value: str) -> bool:
    """Whether a value is no plain word: a digit or sign beside letters, or capitals inside."""
    if not LEAST <= len(value) <= MOST or "\n" in value or "[redacted: " in value:
        return False
    letters = any(c.isalpha() for c in value)
    inside = value[1:] != value[1:].lower() and value != value.upper()
    return letters and (inside or not value.isalpha())


def without_values(text: str, values: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """A text without these values where they stand as whole words, and how many of each kind.

    Args:
        text: any text.
        values: what is taken out, and of what kind each is.

    Example:
        >>> without_values("tried Zx9abc. again, not xZx9abc", {"Zx9abc": "password"})
        ('tried [redacted: password]. again, not xZx9abc', Counter({'password': 1}))
    """
    counts: Counter[str] = Counter()
    if not values or not text:
        return text, counts
    plain, places = unescaped(text)
    here = [one for one in values if one in plain] if len(values) <= FEW else values
    tree = _tree({one: values[one] for one in here if telling(one)})
    if not tree:
        return text, counts
    pieces = _PIECE.findall(plain)
    parts: list[str] = []
    done = at = number = 0  # of the text, of the plain text, of its pieces
    while number < len(pieces):
        count, kind = _match(pieces, number, tree)
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


def _tree(values: Mapping[str, str]) -> _Tree:
    """All values, piece by piece, so that each place of a text is looked at once for all."""
    root: _Tree = {}
    for value, kind in values.items():
        at = root
        for piece in _PIECE.findall(value):
            at = at.setdefault(piece, {})
        at[_HERE] = kind
    return root


def _match(pieces: list[str], number: int, tree: _Tree) -> tuple[int, str]:
    """How many pieces from here make up the longest value, and its kind; 0 for none."""
    best, kind = 0, ""
    at, count = tree, 0
    while number + count < len(pieces):
        step = at.get(pieces[number + count])
        if step is None:
            break
        at, count = step, count + 1
        if _HERE in at:
            best, kind = count, at[_HERE]
    return best, kind
