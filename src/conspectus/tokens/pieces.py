"""Cut a text into pieces as tokenizers do, and list the traits of each piece.

Byte-pair tokenizers first divide a text by a pattern: words with the space before them, digits in
threes, runs of punctuation, white space. Tokens never cross these borders, so a text costs the sum
of its pieces, and a piece the sum of its traits: its kind and length, and the pairs of letters in
it. English has few rare pairs, random letters have many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise

_FILE = resources.files("conspectus.tokens").joinpath("characters.json")
_SETS: dict[str, str] = json.loads(_FILE.read_text(encoding="utf-8"))

COMMON_HAN = frozenset(_SETS["common_han"])  # One token everywhere
KNOWN_HAN = frozenset(_SETS["known_han"])  # One token for some older tokenizers and two for others
COMMON_HANGUL = frozenset(_SETS["common_hangul"])  # One token for older tokenizers too
KNOWN_HANGUL = frozenset(_SETS["known_hangul"])  # One token since o200k, two or three before

COMMON_SIGNS = frozenset(_SETS["common_signs"])
"""Signs, and letters that stand alone, that are one token almost everywhere."""

_OTHER = (
    "\u0370-\u03ff\u0530-\u05ff\u0700-\u08ff\u0980-\u1fff\ua000-\uabff\ufb00-\ufdff\ufe70-\ufeff"
)

_SPACES = " \t\r\n\u3000"  # White space that tokenizers have in runs

PIECES = re.compile(
    r"[ \t!-/:-@\[-`{-~]?(?:[A-Z]{0,64}[a-z]{1,64}|[A-Z]{1,64})"  # a word, as far as its case goes
    r"|[0-9]{1,3}"
    rf"|[{_SPACES}]*[\r\n]+|[{_SPACES}]+(?![^{_SPACES}])|[{_SPACES}]"
    r"|[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # one Han character
    r"|[\u3041-\u309f]{1,4}|[\u30a0-\u30ff]{1,6}"  # Hiragana, Katakana
    r"| ?[\uac00-\ud7af]{1,8}"  # Hangul
    r"| ?[\u0400-\u052f]{1,32}"  # Cyrillic
    r"| ?[\u0600-\u060b\u060d-\u061a\u061c-\u061e\u0620-\u06ff]{1,32}"  # Arabic
    r"| ?[\u0900-\u0963\u0966-\u097f]{1,32}"  # Devanagari
    r"| ?[\u00c0-\u024f]{1,16}"  # Latin with marks
    rf"| ?[{_OTHER}]{{1,16}}"
    r"|[\u2500-\u259f]{1,16}"  # lines and boxes
    r"| ?[!-/:-@\[-`{-~]{1,80}[\r\n/]*"  # punctuation
    r"|.",
    re.DOTALL,
)

_KINDS = (
    (0x3041, 0x309F, "hira"),
    (0x30A0, 0x30FF, "kata"),
    (0xAC00, 0xD7AF, "hangul"),
    (0x0400, 0x052F, "cyr"),
    (0x0600, 0x06FF, "arab"),
    (0x0900, 0x097F, "deva"),
    (0x00C0, 0x024F, "latin"),
)

SIGN = "sign"  # Trait of a piece that counts only with a weight of its own, from a text of the fit

_STOPS = "\u060c\u061b\u061f\u0964\u0965"
"""Punctuation among the letters of its script, but no part of words."""


def traits(piece: str) -> Iterator[tuple[str, float]]:
    """Yield the traits of a piece with their counts.

    Example:
        >>> [name for name, _ in traits(" cat")]
        ['word', 'word3', 'after ', '^c', 'ca', 'at', 't$']
    """
    last = piece[-1]
    size = len(piece)
    if last.isascii():
        if last.isalpha():
            yield from _word(piece)
        elif last.isdigit():
            yield f"digits{size}", 1.0
        elif last in _SPACES and not piece.strip(_SPACES):
            yield from _space(piece)
        elif piece.isprintable() or size > 1:
            yield from _marks(piece)
        else:
            yield from _sign(piece)
        return
    if last == "\u3000":
        yield from _space(piece)
        return
    code = ord(last)
    if 0x3400 <= code <= 0x9FFF:
        yield ("han1" if last in COMMON_HAN else "han2" if last in KNOWN_HAN else "han3"), 1.0
        return
    for low, high, kind in _KINDS if last not in _STOPS else ():
        if low <= code <= high:
            yield from _script(piece, kind)
            return
    if 0x2500 <= code <= 0x259F:
        yield from _sign(piece)
    elif size > 1:
        yield "other", 1.0
        yield "other+", size - 1.0
    elif 0x1F000 <= code <= 0x1FAFF or 0x2600 <= code <= 0x27BF:
        yield "emoji", 1.0
    else:
        yield from _sign(piece)


def _sign(piece: str) -> Iterator[tuple[str, float]]:
    yield SIGN, 1.0
    yield piece, 1.0


def _word(piece: str) -> Iterator[tuple[str, float]]:
    first, word, before = piece[0], piece, ""
    if not first.isalpha():
        word = piece[1:]
        before = first if first in " _./-\"'($\t" else "?"
    size = len(word)
    if word.isupper() and size > 1:
        kind = "UPPER"
    elif word[-1].isupper():
        kind = "U"
    elif word[0].isupper():
        kind = "Title" if word[1:].islower() else "UPlow"
    else:
        kind = "word"
    if size > 3 and len(set(word)) == 1:  # as in a padded field, and cheaper than any word
        yield "repeat", 1.0
        yield "repeat+", size / 10
        return
    yield from _sized(kind, size, 16)
    yield f"after{before}", 1.0
    if kind in ("word", "Title"):
        yield from _pairs(word.lower())
    elif kind == "UPPER":
        yield from _pairs(word)


def _pairs(word: str) -> Iterator[tuple[str, float]]:
    for letter, following in pairwise(f"^{word}$"):
        yield letter + following, 1.0


def _sized(kind: str, size: int, most: int) -> Iterator[tuple[str, float]]:
    yield kind, 1.0
    yield f"{kind}{min(size, most + 1)}", 1.0
    if size > most:
        yield f"{kind}+", float(size - most)


def _script(piece: str, kind: str) -> Iterator[tuple[str, float]]:
    word = piece.removeprefix(" ")
    yield from _sized(kind, len(word), 12)
    if word == piece:
        yield f"{kind}first", 1.0
    if kind == "hangul":
        for letter in word:
            common, known = letter in COMMON_HANGUL, letter in KNOWN_HANGUL
            yield ("syllable1" if common else "syllable2" if known else "syllable3"), 1.0
    else:
        yield from _pairs(word.lower())


def _space(piece: str) -> Iterator[tuple[str, float]]:
    lines = piece.count("\n")
    size = len(piece)
    if "\r" in piece:
        yield "returns", float(piece.count("\r"))
        size -= piece.count("\r")
    if lines:
        yield f"lines{min(lines, 3)}", 1.0
        if lines > 3:
            yield "lines++", (lines - 3) / 10
        if size > lines:
            yield "lines with spaces", 1.0
            yield "lines+", (size - lines) / 40
        return
    yield "tabs" if "\t" in piece else "spaces", 1.0
    yield f"spaces{size if size <= 8 else 9}", 1.0
    yield "spaces+", size / 40


def _marks(piece: str) -> Iterator[tuple[str, float]]:
    text = piece.rstrip("\r\n")
    if len(text) < len(piece):
        yield "marks before a line", 1.0
        if "\r" in piece:
            yield "marks before a return", 1.0
    if text[:1] == " ":
        text = text[1:]
        yield "marks after a space", 1.0
    size = len(text)
    if size > 2 and text == text[0] * size:
        yield "same", 1.0
        yield f"same{min(size, 9)}", 1.0
        yield "same+", size / 20
        return
    yield f"marks{min(size, 6)}", 1.0
    if size > 6:
        yield "marks+", size - 6.0
    for mark, following in pairwise(text):
        yield mark + following, 1.0
    if size == 1:
        yield text, 1.0
