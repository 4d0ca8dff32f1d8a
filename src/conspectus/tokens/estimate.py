"""Estimate a text's tokens without a vocabulary.

The text is cut into pieces as tokenizers cut it; each piece costs the sum of the weights of its
traits. The weights were fitted to four tokenizers by ridge regression over texts of many kinds
(software documentation, translations, code, generated data), with other texts held out. Costs of
pieces are cached.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from conspectus.tokens.families import KNOWN, Family
from conspectus.tokens.pieces import COMMON_SIGNS, PIECES, SIGN, traits

CLAUDE = 15 / 11
"""Claude's own tokenizers are not public. The last published one takes a token for every 4.5
characters of English prose, those of today one for about 3.3: the ratio that LangChain measured
by Anthropic's counting API. All counts of the published one are scaled."""

LEAST = 0.02  # Least tokens of a piece: a sum of weights may be negative
REMEMBERED = 20_000  # Costs cached for a family, about 3 MB; then the cache is emptied
LONGEST = 24  # Most characters of a piece that is cached; longer ones seldom repeat
BLOCK = 1 << 16  # Characters cut into pieces at once, so that memory stays bounded


def estimate(text: str, family: Family = "unknown") -> int:
    """Estimate the tokens of a text; 0 for an empty text only.

    With `unknown` each piece costs the most that any family takes, so that no model takes
    noticeably more.

    Example:
        >>> estimate("The tokens of a text are estimated without a vocabulary.", "o200k")
        11
    """
    if not text:
        return 0
    costs = _costs(family)
    cost = costs.__getitem__
    if len(text) <= BLOCK:
        total = sum(map(cost, PIECES.findall(text)))
    else:
        total = 0.0
        for start in range(0, len(text), BLOCK):
            total += sum(map(cost, PIECES.findall(text, start, start + BLOCK)))
    return max(1, round(total))


class _Costs(dict[str, float]):
    """The cost of each piece in one family."""

    def __init__(self, family: Family) -> None:
        super().__init__()
        self._places = range(len(KNOWN)) if family == "unknown" else (KNOWN.index(family),)
        self._weights = _weights()
        self._scale = CLAUDE if family in ("claude", "unknown") else 1.0

    def __missing__(self, piece: str) -> float:
        weights = self._weights
        named = list(traits(piece))
        if named[0][0] == SIGN and piece not in weights:
            cost = self._scale * _unknown(piece)
        else:
            found = [(weights[name], times) for name, times in named if name in weights]
            cost = max(sum(row[place] * times for row, times in found) for place in self._places)
            cost = max(LEAST, cost)
        if len(piece) <= LONGEST:
            if len(self) >= REMEMBERED:
                self.clear()
            self[piece] = cost
        return cost


def _unknown(piece: str) -> float:
    """Estimate the tokens of signs without a weight.

    Tokenizers fall back to bytes for uncommon signs; of symbols and mathematical letters they know
    the first bytes. Repeated lines and boxes take few tokens.
    """
    total, before = 0.0, ""
    for sign in piece:
        common = sign in COMMON_SIGNS
        size = len(sign.encode("utf-8", "surrogatepass"))
        begun = "\u2000" <= sign <= "\u2bff" or "\U0001d400" <= sign <= "\U0001d7ff"
        once = 1.0 if common else float(size - begun)
        total += once if sign != before else (0.1 if common else 0.4)
        before = sign
    return total


_costs = cache(_Costs)


@cache
def _weights() -> dict[str, tuple[float, ...]]:
    """Read the weights of each trait by family, in tokens."""
    file = resources.files("conspectus.tokens").joinpath("weights.json")
    scales = [0.01 * (CLAUDE if family == "claude" else 1.0) for family in KNOWN]
    rows: dict[str, list[int]] = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: tuple(value * scale for value, scale in zip(row, scales, strict=True))
        for name, row in rows.items()
    }
