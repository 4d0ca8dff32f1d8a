"""Estimate a text's tokens without a vocabulary, from the classes of its characters.

Each character costs a weight that depends on its class and on those of the characters before it: a
letter that begins a word costs most of a token, one inside a usual pair of letters little, a digit
among letters much. The weights are data, fitted to real tokenizers. None is negative, so
that a longer text never counts less.

A view codes each character and its neighbours in one byte, for a whole text at once: tables turn
bytes into classes, and a shift of one large integer moves each class to the next character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from operator import mul
from typing import Any
from zlib import adler32

from conspectus.tokens.families import Family

UNIT = 0.01  # Tokens of one step of a weight, which is a byte
BLOCK = 1 << 16  # Characters coded at once, so that memory stays bounded


def estimate(text: str, family: Family = "unknown") -> int:
    """Estimate the tokens of a text; 0 for an empty text only.

    `unknown` is fitted to 3 % above the family that takes most, so that no model takes noticeably
    more.

    Example:
        >>> estimate("The tokens of a text are estimated without a vocabulary.", "o200k")
        11
    """
    if not text:
        return 0
    tables, per_rare = _weights(family)
    steps = 0
    for start in range(0, len(text), BLOCK):
        views, rare = coded(text[start : start + BLOCK])
        costs = b"".join(map(bytes.translate, views, tables))
        # Half of adler32 is one more than the sum of at most 256 bytes, and faster than sum().
        for at in range(0, len(costs), 256):
            steps += (adler32(costs[at : at + 256]) & 0xFFFF) - 1
        steps += sum(map(mul, rare, per_rare))
    return max(1, round(steps * UNIT))


def coded(text: str) -> tuple[list[bytes], list[int]]:
    """Return the views of a text, and its numbers of rare Han and Hangul characters."""
    raw = text.encode("latin-1", "ignore")
    views = [_view(raw, tables) for tables in _latin()]
    if len(raw) == len(text):
        return views, []
    wide = text.encode("utf-16-le", "surrogatepass")
    high, here, before = wide[1::2], _table("script", 4), _table("script")
    column = int.from_bytes(wide[::2].translate(_table("column")), "little")
    column |= int.from_bytes(high.translate(here), "little")
    views += [column.to_bytes(len(high), "little"), _view(high, (here, before))]
    scripts, rare = high.translate(before), []
    for number, common in _common():
        count = scripts.count(number)
        rare.append(count and count - sum(map(len, common.findall(text))))
    return views, rare


def _view(raw: bytes, tables: Sequence[bytes]) -> bytes:
    """Code each byte by a table, and those before it by the next tables, the nearest first."""
    number = shift = 0
    for table in tables:
        number |= int.from_bytes(raw.translate(table), "little") << shift
        shift += 8
    return number.to_bytes(len(raw) + 4, "little")[: len(raw)]


@cache
def _latin() -> list[list[bytes]]:
    kinds, shapes = [_table("kind", n) for n in (0, 4)], [_table("shape", n) for n in (0, 2, 4, 6)]
    return [kinds, shapes, *([_table("letter"), _table(f"left{n}", 5)] for n in range(4))]


@cache
def _table(classes: str, shift: int = 0) -> bytes:
    """Map each byte to its class, moved to its bits."""
    return bytes(int(digit, 36) << shift for digit in _data()["classes"][classes])


@cache
def _common() -> list[tuple[int, re.Pattern[str]]]:
    """Return twice for Han and for Hangul: the class of the script, and its common characters."""
    return [(number, re.compile(f"[{some}]+")) for number, some in _data()["common"]]


@cache
def _weights(family: Family) -> tuple[list[bytes], list[int]]:
    """Return the weights of a family: a table for each view, and those of rare characters."""
    row = _data()["families"][family]
    return [*map(bytes, row["views"])], row["rare"]


@cache
def _data() -> Any:
    file = resources.files("conspectus.tokens").joinpath("weights.json")
    return json.loads(file.read_text(encoding="utf-8"))
