"""Read what a provider says of a request that was too long, and shrink the next one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from conspectus.observe.observation import safe_text

_COMPARED = re.compile(r">\s*(\d[\d,_]{2,})")
_STATUS = re.compile(r"(?<![\d,_])413 ")  # the status of a request that is too large; not a limit
_LIMIT = re.compile(
    r"(?:maximum|max|limit|window|at most|up to|supports?|context (?:length|size)|n_ctx|less than)"
    r"\D{0,60}?(\d[\d,_]{2,}+)"
    r"|(?<![\d,_])(\d[\d,_]{2,}+)\s*+(?:tokens?\s*+)?(?:maximum|limit|max)\b",
    re.IGNORECASE,
)
_SENT = re.compile(
    r"(?:resulted in|requested|has|is too long:|contains?|counted|you sent|length of|count of|"
    r"count is|the first|n_keep|given|the input|prompt length)"
    r"\D{0,40}?(\d[\d,_]{2,}+)"
    r"|(?<![\d,_])(\d[\d,_]{2,}+)\s*+(?:tokens?\s*+)?>",
    re.IGNORECASE,
)

RETRY_SHARE = 0.8
"""Share of a refused size that messages may take in the next try. The provider counts more tokens
than the estimate."""

SHARES_BY_TRY = (RETRY_SHARE, 0.5, 0.4, 0.3, 0.0)
"""Shares of the refused size for each further try. If an error only says "too long", the limit must
be guessed, and a batch of results may be ten times too large. The last try is as small as
possible."""

FURTHER_TRIES = len(SHARES_BY_TRY)
"""The most further tries."""

LEARNED_SHARE = 0.9
"""Share of the limit named by the provider to which messages may grow again."""


class NamedSizes(NamedTuple):
    """What a provider says of a request that was too long, in its own tokens."""

    limit: int | None
    size: int | None  # of the request


def read_overflow(error: BaseException) -> NamedSizes:
    """Read the limit and the size in the error of a provider, if they agree.

    Example:
        >>> read_overflow(ValueError("prompt is too long: 205371 tokens > 200000 maximum"))
        NamedSizes(limit=200000, size=205371)
        >>> read_overflow(ValueError("too long"))
        NamedSizes(limit=None, size=None)
    """
    text = _STATUS.sub("", safe_text(error))
    limits = _numbers(_COMPARED, text) or _numbers(_LIMIT, text)
    sizes = _numbers(_SENT, text)
    for limit in limits:
        size = next((size for size in sizes if size > limit), None)
        if size is not None:
            return NamedSizes(limit, size)
    return NamedSizes(limits[0] if limits else None, None)


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    """Return the numbers above 0 that the first group of each match has."""
    groups = (next(filter(None, match.groups())) for match in pattern.finditer(text))
    numbers = (int(digits.replace(",", "").replace("_", "")) for digits in groups)
    return [number for number in numbers if number > 0]


@dataclass(frozen=True, slots=True)
class RefusedRequests:
    """Requests that a provider has refused as too long, each smaller than the one before."""

    tries: int = 0
    budget: int = 0  # the most tokens of the messages in the next one
    learned: int = 0  # the most tokens of the messages in later requests
    has_named_limit: bool = False  # the provider has named its limit

    def after_refusal(self, size: int, overhead: int, error: BaseException) -> RefusedRequests:
        """Add a refusal: tokens of the messages, tokens of all else, the provider's error."""
        named = read_overflow(error)
        tries = self.tries + 1
        if tries > FURTHER_TRIES:
            return replace(self, tries=tries)
        budget = int(size * SHARES_BY_TRY[self.tries])
        if named.limit is not None:
            # The provider counts other tokens than we estimate: convert its limit to ours.
            in_ours = named.limit * (size + overhead) // max(named.size or named.limit, 1)
            limit = in_ours - overhead
            # If tools alone seem to exceed the limit, their estimate is wrong.
            below_limit = int(min(limit, size) * RETRY_SHARE) if limit > 0 else size // 2
            budget = below_limit if tries == 1 else min(budget, below_limit)
        return RefusedRequests(tries, max(1, budget), self.learned, named.limit is not None)

    def with_learned_limit(self, budget: int, refused: int) -> RefusedRequests:
        """Learn the limit for later requests.

        Args:
            budget: tokens of the messages that are sent now.
            refused: tokens of those that were refused.
        """
        if self.has_named_limit:
            return replace(self, learned=int(budget / RETRY_SHARE * LEARNED_SHARE))
        is_smallest = self.tries == FURTHER_TRIES or budget > self.budget
        if is_smallest:
            # The smallest request leaves no room for another message, and the real limit may be
            # larger.
            budget = max(budget, int(refused * RETRY_SHARE))
        return replace(self, learned=budget)
