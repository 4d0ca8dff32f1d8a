"""Tokens of messages and tools: an estimate by family of tokenizers, or a counter."""

from conspectus.tokens.estimate import (
    FAMILIES,
    KNOWN,
    MAY_BE_HIGH,
    MAY_BE_LOW,
    Family,
    estimate,
    family_of,
)
from conspectus.tokens.meter import Report, TokenCounter, TokenMeter, correction

__all__ = ["FAMILIES", "KNOWN", "Family", "Report", "TokenCounter", "TokenMeter"]
__all__ += ["MAY_BE_HIGH", "MAY_BE_LOW", "correction", "estimate", "family_of"]
