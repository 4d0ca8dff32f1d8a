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
from conspectus.tokens.meter import TokenCounter, TokenMeter, UsageReport, correction

__all__ = ["FAMILIES", "KNOWN", "Family", "TokenCounter", "TokenMeter", "UsageReport"]
__all__ += ["MAY_BE_HIGH", "MAY_BE_LOW", "correction", "estimate", "family_of"]
