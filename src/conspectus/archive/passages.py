"""Divide a text into passages of some 120 tokens, and write its words for an index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

PASSAGE = 480  # Bytes of a passage, about 120 tokens in any script: a few sentences
SHORT = 1.5  # Passages up to whose size a text stays whole, as a rest of a few words says little
MOST = 2_000  # Most passages of one text; those of a larger one are longer
LONGEST = 80  # Characters of a word that an index keeps; a longer one is data

ENDS = (
    ("\n\n",),
    ("\n",),
    (". ", "? ", "! ", "; ", "。", "！", "？", "；", "…"),
    ("}, ", "},", "], ", '",', '", ', ", ", " | "),
    (" ",),
)
"""Where a text divides: after a paragraph, else a line, a sentence, a field, a word."""

# Han, Kana, Hangul; and Thai, Lao, Myanmar and Khmer, which use no spaces either.
DENSE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
PIECE = re.compile(rf"(?P<dense>[{DENSE}]+)|(?P<word>(?:(?![{DENSE}_])\w)+)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def passages(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield start and end of each passage, in characters; together they cover the text.

    `start` is added to each position.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    room = max(1, int(max(PASSAGE, size / MOST) * len(text) / max(1, size)))
    at = 0
    while len(text) - at > SHORT * room:
        end = last_end(text, at + room // 2, at + room)
        yield start + at, start + end
        at = end
    yield start + at, start + len(text)


def last_end(text: str, least: int, most: int) -> int:
    """Return the last place between two where the text divides best."""
    for marks in ENDS:
        found = max(
            (at + len(one) for one in marks if (at := text.rfind(one, least, most)) >= 0), default=0
        )
        if found:
            return found
    return most


def words(text: str) -> str:
    """Return the words of a text for an index, which divides them at spaces.

    A run of a script without spaces becomes its pairs of characters, and its last one alone; an
    identifier is followed by its humps.

    Example:
        >>> words("getUser: 数据库 failed")
        'getUser get User 数据 据库 库 failed'
    """
    longest = max(map(len, text.split()), default=0)
    if text.isascii() and longest <= LONGEST and not _HUMP.search(text):
        return text
    found: list[str] = []
    for match in PIECE.finditer(unicodedata.normalize("NFKC", text)):
        piece = match.group()
        if match.lastgroup == "dense":
            found += [piece[at : at + 2] for at in range(len(piece))]
            continue
        found.append(piece[:LONGEST])
        if not (piece.islower() or piece.istitle() or piece.isupper()) and len(piece) <= LONGEST:
            found += parts if len(parts := _HUMP.split(piece)) > 1 else ()
    return " ".join(found)
