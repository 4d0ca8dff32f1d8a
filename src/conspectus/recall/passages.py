"""Divide a long text into passages at the ends of paragraphs, lines and sentences.

A passage is the unit that is found and shown of a long message. A short message is one passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PASSAGE = 480  # Bytes of a passage, about 120 tokens in any script: a few sentences
SHORT = 1.5  # Passages up to whose size a message stays whole, as a rest of a few words says little
MOST = 2_000  # Most passages of one message; those of a larger one are longer

_ENDS = tuple(re.compile(form) for form in (r"\n\s*\n", r"\n", r"[.!?;]\s|[。！？；…]", r"\s"))
"""Where a text divides: after a paragraph, or else a line, a sentence, a word."""


def passages(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield start and end of each passage, in characters; together they cover the text.

    `start` is added to each position.

    Example:
        >>> list(passages("Short."))
        [(0, 6)]
    """
    size = len(text.encode("utf-8", "surrogatepass")) or 1
    room = max(1, int(max(PASSAGE, size / MOST) * len(text) / size))
    at = 0
    while len(text) - at > SHORT * room:
        end = _end(text, at + room // 2, at + room)
        yield start + at, start + end
        at = end
    yield start + at, start + len(text)


def _end(text: str, least: int, most: int) -> int:
    """Return the last best end between two positions."""
    for form in _ENDS:
        ends = [match.end() for match in form.finditer(text, least, most)]
        if ends:
            return ends[-1]
    return most
