"""A text as what it has in common with the one before it, and what it has not.

A record repeats most of the facts of its parent, and a good part of its summary.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

_PIECE = re.compile(r"(?s).+?(?:\\n|[}\]],|\Z)")
"""Of the JSON of a record: a line of a text in it, a fact, or an item of a list."""

LEAST = 24
"""Characters of a piece that is worth pointing to."""

Delta = list[str | list[int]]
"""Text of its own, or the first piece of the base and how many: `["new", [12, 40], "new"]`."""


def digest(text: str) -> str:
    """What tells one base from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def delta(base: str, text: str) -> Delta:
    """What makes a text of a base.

    Example:
        >>> delta('{"facts":[{"quote":"one is here"},{"quote":"two"}]}',
        ...       '{"facts":[{"quote":"one is here"},{"quote":"three"}]}')
        [[0, 1], '{"quote":"three"}]}']
    """
    pieces = _PIECE.findall(base)
    place: dict[str, int] = {}
    for at, piece in enumerate(pieces):
        place.setdefault(piece, at)
    made: Delta = []
    for piece in _PIECE.findall(text):
        last = made[-1] if made else None
        following = last[0] + last[1] if isinstance(last, list) else len(pieces)
        if isinstance(last, list) and following < len(pieces) and pieces[following] == piece:
            last[1] += 1
        elif len(piece) >= LEAST and piece in place:
            made.append([place[piece], 1])
        elif isinstance(last, str):
            made[-1] = last + piece
        else:
            made.append(piece)
    return made


def applied(base: str, made: Sequence[Any]) -> str:
    """The text that a delta makes of its base.

    Raises:
        ValueError: it is no delta of this base.
    """
    pieces = _PIECE.findall(base)
    parts: list[str] = []
    for one in made:
        if isinstance(one, str):
            parts.append(one)
            continue
        start, count = one
        if not 0 <= start < start + count <= len(pieces):
            raise ValueError("it points beyond its base")
        parts += pieces[start : start + count]
    return "".join(parts)
