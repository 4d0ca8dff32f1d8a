"""Tokens of messages and tools: an estimate by family of tokenizers, or a counter."""

from conspectus.tokens.estimate import estimate
from conspectus.tokens.families import FAMILIES, KNOWN, Family, family_of
from conspectus.tokens.media import PER_MEDIA, media_tokens
from conspectus.tokens.meter import PER_CALL, PER_MESSAGE, TokenCounter, TokenMeter
from conspectus.tokens.usage import Report, correction

__all__ = [
    "FAMILIES",
    "KNOWN",
    "PER_CALL",
    "PER_MEDIA",
    "PER_MESSAGE",
    "Family",
    "Report",
    "TokenCounter",
    "TokenMeter",
    "correction",
    "estimate",
    "family_of",
    "media_tokens",
]
