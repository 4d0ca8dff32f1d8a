"""Estimate a text's tokens without a vocabulary, from the classes of its characters.

Each character costs a weight that depends on its class and on those of the characters before it: a
letter that begins a word costs most of a token, one inside a usual pair of letters little, a digit
among letters much, the twentieth of the same signs next to nothing. `layers` codes each character
with its neighbours, in some fifteen ways, and an estimate adds up what the codes weigh. The
weights are data, fitted to real tokenizers so that an estimate is rather too high than too low, for
any kind of text (`benchmarks/fit_tokens.py`). None is negative, so that a longer text never counts
less.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal, NamedTuple, get_args
from zlib import adler32

from conspectus.tokens.layers import MOST_CHARACTERS, coded, tables

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

MAY_BE_LOW = 0.05
"""How far an estimate is below what the model counts, as a share of that, in nearly all kinds of
text that the weights were not fitted to (`make bench ONLY=tokens`)."""

MAY_BE_HIGH = 0.40
"""How far it is above that, likewise."""

STEP_TOKENS = 0.01
"""Tokens of one step of a weight, which is a byte."""

REMEMBERED_CHARACTERS = range(4_001, 40_000)
"""Sizes of texts whose sections are remembered: most of a summary comes again with the next one,
and with each try to make it fit."""

SECTION_START = "\n## "
"""How a section of such a text begins."""


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
    if len(text) in REMEMBERED_CHARACTERS:
        first, *others = text.split(SECTION_START)
        sections = [first, *(f"{SECTION_START}{section}" for section in others)]
        steps = sum(_remembered_steps(section, family) for section in sections)
    else:
        steps = _steps(text, family)
    return max(1, round(steps * STEP_TOKENS))


def _steps(text: str, family: Family) -> int:
    """Return what the characters of a text weigh in all layers, and rare ones of Han and Hangul."""
    if len(text) > MOST_CHARACTERS:
        starts = range(0, len(text), MOST_CHARACTERS)
        return sum(_steps(text[at : at + MOST_CHARACTERS], family) for at in starts)
    weights = _weights()[family]
    layers, scripts = coded(text)
    weighed = b"".join(map(bytes.translate, layers, weights.layers))
    steps = 0
    # Half of adler32 is one more than the sum of bytes, if that stays below 65,521.
    at_once = weights.added_at_once
    for at in range(0, len(weighed), at_once):
        steps += (adler32(weighed[at : at + at_once]) & 0xFFFF) - 1
    if scripts:
        rare = zip(rare_characters(text, scripts), weights.rare, strict=True)
        steps += sum(count * weight for count, weight in rare)
    return steps


_remembered_steps = lru_cache(maxsize=128)(_steps)


def rare_characters(text: str, scripts: bytes) -> list[int]:
    """Count the characters of Han and Hangul outside of four sets of common ones."""
    counts: list[int] = []
    for script, common in _common():
        count = scripts.count(script)
        counts.append(count - sum(map(len, common.findall(text))) if count else 0)
    return counts


class Weights(NamedTuple):
    """What the codes of each layer weigh for one family of tokenizers, in hundredths of a token."""

    layers: list[bytes]
    """Of each layer, the weight of each code."""

    added_at_once: int
    """Codes whose weights are added up at once."""

    rare: list[int]
    """Of the characters that `rare_characters` counts."""


@cache
def _weights() -> dict[Family, Weights]:
    of_families: dict[Family, Weights] = {}
    for name, stored in tables()["families"].items():
        layers = [bytes(layer) for layer in stored["layers"]]
        added_at_once = 65_520 // max(map(max, layers))
        of_families[name] = Weights(layers, added_at_once, stored["rare"])
    return of_families


@cache
def _common() -> list[tuple[int, re.Pattern[str]]]:
    """Return two sets of common characters for each of two scripts: usual, and less usual ones."""
    return [(script, re.compile(f"[{characters}]+")) for script, characters in tables()["common"]]
