"""Estimate a text's tokens without a vocabulary, from the classes of its characters.

Each character costs a weight that depends on its class and on those of the characters before it: a
letter that begins a word costs most of a token, one inside a usual pair of letters little, a digit
among letters much, the twentieth of the same signs next to nothing. The weights are data, fitted to
real tokenizers so that an estimate is rather too high than too low, for any kind of text
(`benchmarks/fit_tokens.py`). None is negative, so that a longer text never counts less.

A view codes each character and its neighbours in one byte, for a whole text at once: tables turn
bytes into classes, and a shift of one large integer moves each class to the next character.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal, NamedTuple, get_args
from zlib import adler32

from conspectus.tokens import classes

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

MAY_BE_LOW, MAY_BE_HIGH = 0.05, 0.40
"""How far an estimate is off in nearly all kinds of text, as a share of what the model counts:
below and above it, in kinds that the weights were not fitted to (`make bench ONLY=tokens`)."""

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

    `unknown` is fitted to the tokenizer that takes most of each text, among those of the other
    families and of open models, so that no model takes noticeably more.

    Example:
        >>> estimate("The tokens of a text are estimated without a vocabulary.", "o200k")
        12
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
    """Return what the characters of a text weigh in all views, and rare ones of Han and Hangul."""
    if len(text) > BLOCK:
        blocks = (text[at : at + BLOCK] for at in range(0, len(text), BLOCK))
        return sum(_steps(block, family) for block in blocks)
    weights = _weights()[family]
    views, scripts = coded(text)
    steps = 0
    for view, table, most in zip(views, weights.views, weights.most, strict=False):
        costs = view.translate(table)
        # Half of adler32 is one more than the sum of bytes that stays below 65,521.
        for at in range(0, len(costs), most):
            steps += (adler32(costs[at : at + most]) & 0xFFFF) - 1
    if scripts:
        rare = zip(rare_characters(text, scripts), weights.rare, strict=True)
        steps += sum(count * weight for count, weight in rare)
    return steps


_remembered = lru_cache(maxsize=128)(_steps)


def coded(text: str) -> tuple[list[bytes], bytes]:
    """Code the characters of a text of at most `BLOCK`: a byte for each, in each view.

    A text in Latin-1 has the first views alone. Beside them stand the classes of the scripts of the
    characters; none for a text in Latin-1.
    """
    try:
        row = text.encode("latin-1")
    except UnicodeEncodeError:
        return _coded_wide(text)
    size = len(row)
    each = _EACH >> 8 * (BYTES - size)  # One in each byte of the row
    characters = _number(row)
    same = _where_zero(characters ^ characters << 8, each)
    return _rows(_latin_views(row, same), size), b""


def _coded_wide(text: str) -> tuple[list[bytes], bytes]:
    wide = text.encode("utf-16-le", "surrogatepass")
    low, high = _number(wide[::2]), wide[1::2]
    size = len(high)
    each = _EACH >> 8 * (BYTES - size)
    scripts = high.translate(classes.SCRIPT)
    script = _number(scripts)
    latin = _number(high.translate(classes.IS_LATIN))
    is_wide = latin & each ^ each
    characters = latin & low | script | is_wide << 7  # Stand-ins are 0x80 and the script
    same = _where_zero(characters ^ characters << 8 | low ^ low << 8, each)
    views = _latin_views(characters.to_bytes(size, "little"), same)
    in_twos = same & same << 8
    run = same + in_twos + (in_twos & in_twos << 16)
    goes_on = _where_zero(script ^ script << 8, each) & is_wide
    in_twos = goes_on & goes_on << 8
    word = goes_on + in_twos + (in_twos & in_twos << 16)
    block = _number(high.translate(classes.BLOCK))
    views += [
        block << 1 | low >> 7 & is_wide,
        script | low & _HIGH_4,
        script | (low & _LOW_4) << 4,
        script | script << 12,
        script | run << 4 | word << 6,
    ]
    return _rows(views, size), scripts


def _rows(views: list[int], size: int) -> list[bytes]:
    """Return views as rows of bytes, without what was moved behind their ends."""
    return [view.to_bytes(size + SPARE, "little")[:size] for view in views]


def _latin_views(row: bytes, same: int) -> list[int]:
    """Return the views of a row of characters, of which stand-ins are those beyond Latin-1.

    `same` has a one for each character that the one before it is, too.
    """
    run = same
    for bits in (8, 16, 32, 64):  # two, three, five, nine, seventeen and more
        same &= same << bits
        run += same
    packed = _number(row.translate(classes.KIND_AND_SHAPE))
    kind, shape, space_before = packed & _LOW_4, packed >> 4 & _LOW_2, packed >> 6 & _LOW_2
    packed = _number(row.translate(classes.LETTER_AND_SPACE))
    letter, space = packed & _LOW_5, packed >> 5 & _LOW_3
    before = _number(row.translate(classes.LETTERS_BEFORE))
    more_before = _number(row.translate(classes.MORE_LETTERS_BEFORE))
    sign = _number(row.translate(classes.SIGN))
    before_sign = _number(row.translate(classes.BEFORE_SIGN))
    capital = _number(row.translate(classes.CAPITAL))
    alphanumeric = word = before >> 6 & _EACH
    for bits in (8, 16, 32, 64, 128):
        alphanumeric &= alphanumeric << bits
        word += alphanumeric
    shapes = shape | shape << 10
    return [
        kind | kind << 12,
        shapes | shapes << 20,
        letter | (before & _LOW_3) << 13,
        letter | (before & _NEXT_3) << 10,
        letter | (more_before & _LOW_3) << 13,
        letter | (more_before & _NEXT_3) << 10,
        kind | run << 4,
        sign | (before_sign & _LOW_3) << 13,
        sign | (before_sign & _NEXT_3) << 10,
        capital & _LOW_5 | (capital & _HIGH_3) << 8,
        word | shape << 3 | shape << 13,
        space | space << 11 | space_before << 22,
    ]


def _number(row: bytes) -> int:
    """Return a row of bytes as one number, the first byte the lowest."""
    return int.from_bytes(row, "little")


def _where_zero(row: int, each: int) -> int:
    """Return a one in each byte that is zero in a row."""
    some = row | row >> 4
    some |= some >> 2
    some |= some >> 1
    return some & each ^ each


def rare_characters(text: str, scripts: bytes) -> list[int]:
    """Count the characters of Han and Hangul outside of four sets of common ones."""
    counts: list[int] = []
    for script, common in _common():
        count = scripts.count(script)
        counts.append(count - sum(map(len, common.findall(text))) if count else 0)
    return counts


SPARE = 8  # Bytes behind a row into which shifts move its last characters
BYTES = 2 * BLOCK  # A character outside of the first plane takes two
_EACH = _number(b"\x01" * BYTES)
_LOW_2, _LOW_3, _LOW_4, _LOW_5 = (_EACH * bits for bits in (0x03, 0x07, 0x0F, 0x1F))
_NEXT_3, _HIGH_3, _HIGH_4 = _EACH * 0x38, _EACH * 0xE0, _EACH * 0xF0


class Weights(NamedTuple):
    """What each code weighs in each view, and each rare character, for one family.

    `most` has the codes of each view whose weights are added up at once.
    """

    views: list[bytes]
    most: list[int]
    rare: list[int]


@cache
def _data() -> dict[str, Any]:
    file = resources.files("conspectus.tokens").joinpath("weights.json")
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


@cache
def _weights() -> dict[Family, Weights]:
    made: dict[Family, Weights] = {}
    for name, stored in _data()["families"].items():
        views = [*map(bytes, stored["views"])]
        most = [65_520 // max(1, *view) for view in views]
        made[name] = Weights(views, most, stored["rare"])
    return made


@cache
def _common() -> list[tuple[int, re.Pattern[str]]]:
    """Return the common characters by the class of their script: two sets for each, one in one."""
    return [(script, re.compile(f"[{some}]+")) for script, some in _data()["common"]]
