"""Classes of characters, as tables for `bytes.translate`, by which tokens are estimated.

A table gives each byte a code that packs one to three classes; `BITS` says where each stands. The
bytes are those of Latin-1. Characters beyond it are coded as bytes that no text uses, one for each
class of scripts (`STAND_INS`), so that all characters of a text stand in one row.
"""

from __future__ import annotations

import string
from typing import NamedTuple

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ACCENTED = "ªµº" + "".join(map(chr, range(0xC0, 0x100)))
LATIN_SIGNS = "".join(chr(code) for code in range(0xA0, 0xC0) if chr(code) not in ACCENTED)
STAND_INS = "".join(map(chr, range(0x80, 0x90)))
CONTROLS = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 0xA0))))

Table = bytes


def _classes(*groups: str) -> Table:
    """Return a table with the place of the group that has a byte's character; 0 for the others."""
    table = bytearray(256)
    for number, group in enumerate(groups, 1):
        for letter in group:
            table[ord(letter)] = number
    return bytes(table)


def _packed(*parts: tuple[Table, int]) -> Table:
    """Return a table that packs classes, each moved up by so many bits."""
    return bytes(sum(table[code] << shift for table, shift in parts) for code in range(256))


# What a character is, finely: it and the one before it share a view.
_KIND = _classes(
    "aeiou", "lnrst", "cdghmp", "bfkvwy", "jqxz", ACCENTED + LATIN_SIGNS + CONTROLS, UPPER, DIGITS,
    "\n\r", "\t", ",.", "\"'`", "():;<>[]{}", "#*+-=_~", "!$%&/?@\\^|",
)  # fmt: skip
# What it is coarsely: four in a row share a view.
_SHAPE = _classes(LOWER + ACCENTED, UPPER, DIGITS)
# Which letter it is, and which stood before it, in four parts of at most seven.
_LETTER = _classes(*LOWER, UPPER, DIGITS, ACCENTED, STAND_INS, LATIN_SIGNS)
_LETTERS_BEFORE = (
    _classes(*"abcdefg"),
    _classes(*"hijklmn"),
    _classes(*"opqrstu"),
    _classes(*"vwxyz", "\t\n ", "-./_"),
)
# Which sign it is, and what stood before it, in two ways.
_SIGN = _classes(*(sign for sign in string.punctuation if sign not in "`~"), "`~" + LATIN_SIGNS)
_BEFORE_SIGN = _classes(" ", "\n\r\t", LOWER + ACCENTED, UPPER, DIGITS, ".,;:!?'\"", "-_/\\=*#")
_SIGN_BEFORE = _classes("\"'`", "([{<", ")]}>", ",.", "-_=~", "/\\|", ":;")
# Which capital it is, and what stood before it.
_CAPITAL = _classes(*UPPER, DIGITS)
_BEFORE_CAPITAL = _classes(
    " ", "\n\r\t([{\"'", "aeioulnrst", "bcdfghjkmpqvwxyz" + ACCENTED, "AEIOU",
    "BCDFGHJKLMNPQRSTVWXYZ", DIGITS + "_-",
)  # fmt: skip
# How whitespace stands around others.
_SPACE = _classes(
    " ", "\n", "\t\r", LOWER + UPPER + ACCENTED, DIGITS, string.punctuation + LATIN_SIGNS, STAND_INS
)  # fmt: skip
_SPACE_BEFORE = _classes(" ", "\n\t\r", LOWER + UPPER + ACCENTED + DIGITS)
_ALPHANUMERIC = _classes(LOWER + UPPER + DIGITS)

KIND_AND_SHAPE = _packed((_KIND, 0), (_SHAPE, 4), (_SPACE_BEFORE, 6))
LETTER_AND_SPACE = _packed((_LETTER, 0), (_SPACE, 5))
LETTERS_BEFORE = _packed((_LETTERS_BEFORE[0], 0), (_LETTERS_BEFORE[1], 3), (_ALPHANUMERIC, 6))
MORE_LETTERS_BEFORE = _packed((_LETTERS_BEFORE[2], 0), (_LETTERS_BEFORE[3], 3))
SIGN = _packed((_SIGN, 0))
BEFORE_SIGN = _packed((_BEFORE_SIGN, 0), (_SIGN_BEFORE, 3))
CAPITAL = _packed((_CAPITAL, 0), (_BEFORE_CAPITAL, 5))


class _Block(NamedTuple):
    """High bytes of code points in UTF-16, and the class of their scripts."""

    first: int
    last: int
    script: int


_BLOCKS = (
    _Block(0x01, 0x02, 1), _Block(0x1E, 0x1E, 1),  # Latin
    _Block(0x03, 0x03, 2), _Block(0x1F, 0x1F, 2),  # Greek
    _Block(0x04, 0x04, 3),  # Cyrillic
    _Block(0x05, 0x05, 4),  # Armenian and Hebrew
    _Block(0x06, 0x07, 5),  # Arabic and Syriac
    _Block(0x09, 0x0D, 6),  # Devanagari to Sinhala
    _Block(0x0E, 0x0F, 7),  # Thai, Lao, Tibetan
    _Block(0x20, 0x24, 9), _Block(0x26, 0x2B, 9),  # punctuation and signs
    _Block(0x25, 0x25, 10),  # boxes, blocks and geometric signs
    _Block(0x30, 0x30, 11),  # kana
    _Block(0x31, 0x9F, 12),  # Han
    _Block(0xAC, 0xD7, 13),  # Hangul
    _Block(0xD8, 0xDB, 14),  # first halves of characters outside of the first plane, as emoji
    _Block(0xDC, 0xDF, 0),  # their second halves
    _Block(0xE0, 0xFF, 15),  # private, compatible and full width
)  # fmt: skip
HAN, HANGUL, OTHER = 12, 13, 8


def _scripts() -> Table:
    table = bytearray([0] + [OTHER] * 255)
    for block in _BLOCKS:
        for high in range(block.first, block.last + 1):
            table[high] = block.script
    return bytes(table)


def _blocks() -> Table:
    """Number the high bytes below 128: those of Han and of Hangul share a number."""
    numbers: list[int] = []
    for high in range(256):
        new = not (0x35 <= high <= 0x4C or 0x4F <= high <= 0x9F or 0xAD <= high <= 0xD7)
        new = new and not 0xE1 <= high <= 0xF8
        numbers.append(numbers[-1] + new if numbers else 0)
    return bytes(numbers)


SCRIPT = _scripts()
BLOCK = _blocks()
IS_LATIN = bytes([0xFF] + [0] * 255)
