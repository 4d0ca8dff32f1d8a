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
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, get_args
from zlib import adler32

Family = Literal["o200k", "cl100k", "deepseek", "claude", "unknown"]
Maker = Literal["openai", "anthropic", "google", "unknown"]

FAMILIES: tuple[Family, ...] = get_args(Family)
KNOWN: tuple[Family, ...] = FAMILIES[:-1]

_OPENAI = r"o200k|gpt-?4o|gpt-?4[.-]1|gpt-?4\.5|gpt-?5|gpt-oss|chatgpt|\bo[1-9](?![0-9a-z])"
MODELS: tuple[tuple[str, Family, Maker], ...] = (
    (r"deepseek", "deepseek", "unknown"),
    (r"claude|anthropic", "claude", "anthropic"),
    (_OPENAI, "o200k", "openai"),
    (r"cl100k|gpt-?4|gpt-?3\.?5|text-embedding-(?:3|ada)", "cl100k", "openai"),
    (r"gemini|gemma|google|vertex", "unknown", "google"),
    (r"", "unknown", "unknown"),
)
"""Patterns of models' names, tried in turn: the family of the tokenizer, and whose rules count
media. Those of OpenAI follow its list of models and encodings."""

UNIT = 0.01  # Tokens of one step of a weight, which is a byte
BLOCK = 1 << 16  # Characters coded at once, so that memory stays bounded
# Characters of a text of which sections are remembered: most of a summary comes again with the next
# one, and with each try to make it fit.
LONG, VERY_LONG, SECTION = 4_000, 40_000, "\n## "


def family_of(name: str) -> tuple[Family, Maker]:
    """Return the family of a model, and the maker whose rules count the tokens of media.

    Example:
        >>> family_of("openai:gpt-4.1-mini"), family_of("llama3")
        (('o200k', 'openai'), ('unknown', 'unknown'))
    """
    return next(row[1:] for row in MODELS if re.search(row[0], name.lower()))


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
    if LONG < len(text) < VERY_LONG:
        first, *rest = text.split(SECTION)
        parts = [first, *(f"{SECTION}{part}" for part in rest)]
        steps = sum(_remembered(part, family) for part in parts)
    else:
        steps = _steps(text, family)
    return max(1, round(steps * UNIT))


def _steps(text: str, family: Family) -> int:
    """Return what the characters of a text weigh in all views, and the rare ones of Han and Hangul.

    A table of weights may be for bytes of a text in Latin-1, or for those of all characters.
    """
    if len(text) > BLOCK:
        blocks = (text[at : at + BLOCK] for at in range(0, len(text), BLOCK))
        return sum(_steps(block, family) for block in blocks)
    tables, common, families = _data()
    weights, per_rare = families[family]
    raw, number, steps = text.encode("latin-1", "ignore"), int.from_bytes, 0
    kind, shape, letter, one, two = [number(raw.translate(t), "little") for t in tables[:5]]
    shape |= shape << 10
    low, high = _MASKS
    views = (
        kind | kind << 12,
        shape | shape << 20,
        letter | (one & low) << 13,  # two classes of the character before, three bits each
        letter | (one & high) << 10,
        letter | (two & low) << 13,
        letter | (two & high) << 10,
    )
    size = len(raw)
    coded = [view.to_bytes(size + 4, "little")[:size] for view in views]
    costs = b"".join(map(bytes.translate, coded, weights))
    if size < len(text):
        wide, (column, script) = text.encode("utf-16-le", "surrogatepass"), tables[5:]
        scripts = wide[1::2].translate(script)
        here, above = number(scripts, "little"), number(wide[::2].translate(column), "little")
        for view, table in ((above | here << 4, weights[6]), (here << 4 | here << 8, weights[7])):
            costs += view.to_bytes(len(wide), "little")[: len(wide) // 2].translate(table)
        for (group, some), weight in zip(common, per_rare, strict=True):
            if count := scripts.count(group):
                steps += weight * (count - sum(map(len, some.findall(text))))
    # Half of adler32 is one more than the sum of at most 256 bytes, and faster than sum().
    for at in range(0, len(costs), 256):
        steps += (adler32(costs[at : at + 256]) & 0xFFFF) - 1
    return steps


_remembered = lru_cache(maxsize=128)(_steps)
_MASKS = [int.from_bytes(bits * BLOCK, "little") for bits in (b"\x07", b"\x38")]

Weights = tuple[list[bytes], list[int]]


@cache
def _data() -> tuple[list[bytes], list[tuple[int, re.Pattern[str]]], dict[Family, Weights]]:
    """Return the tables, the common characters and the weights.

    A table has the class of each byte; two of them have two classes of three bits. The common
    characters stand by the class of their script, twice for Han and for Hangul. A family has a
    table of weights for each view, and those of rare characters.
    """
    file = resources.files("conspectus.tokens").joinpath("weights.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    return (
        [bytes.fromhex(table) for table in data["tables"].values()],
        [(number, re.compile(f"[{some}]+")) for number, some in data["common"]],
        {name: ([*map(bytes, f["views"])], f["rare"]) for name, f in data["families"].items()},
    )
