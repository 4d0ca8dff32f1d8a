"""What a provider says when a request was too long: the limit, and what it counted."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMPARED = re.compile(r">\s*(\d[\d,_]{2,})")
_LIMIT = re.compile(
    r"(?:maximum|max|limit|window|at most|up to|supports?)\D{0,60}?(\d[\d,_]{2,})"
    r"|(\d[\d,_]{2,})\s*(?:tokens?\s*)?(?:maximum|limit|max)\b",
    re.IGNORECASE,
)
_SENT = re.compile(
    r"(?:resulted in|requested|has|is too long:|contains?|counted|you sent|length of|count of)"
    r"\D{0,40}?(\d[\d,_]{2,})\s*(?:input |prompt )?(?:tokens?)?"
    r"|(\d[\d,_]{2,})\s*(?:tokens?\s*)?>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """What was understood of the error.

    Attributes:
        limit: tokens that the provider takes; None where it does not say.
        sent: tokens that it counted; likewise.
    """

    limit: int | None = None
    sent: int | None = None


def read_overflow(error: BaseException) -> Overflow:
    """The figures in the error of a provider, where they make sense together.

    Example:
        >>> read_overflow(ValueError("prompt is too long: 205371 tokens > 200000 maximum"))
        Overflow(limit=200000, sent=205371)
        >>> read_overflow(ValueError("too long")).limit is None
        True
    """
    text = str(error)
    limits = _numbers(_COMPARED, text) or _numbers(_LIMIT, text)
    sents = _numbers(_SENT, text)
    for limit in limits:
        sent = next((n for n in sents if n > limit), None)
        if sent is not None:
            return Overflow(limit, sent)
    return Overflow(limits[0] if limits else None)


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    found = []
    for match in pattern.finditer(text):
        digits = next(group for group in match.groups() if group)
        found.append(int(digits.replace(",", "").replace("_", "")))
    return [n for n in found if n > 0]
