"""Names of LangChain's module that users import, with the same meaning."""

from __future__ import annotations

from typing import Literal, TypedDict

from conspectus.model.prompts import DEFAULT_SUMMARY_PROMPT
from conspectus.tokens import TokenCounter

__all__ = [
    "DEFAULT_SUMMARY_PROMPT",
    "ContextFraction",
    "ContextMessages",
    "ContextSize",
    "ContextTokens",
    "TokenCounter",
    "TriggerClause",
]

ContextFraction = tuple[Literal["fraction"], float]
"""A share of the model's window, such as `("fraction", 0.8)`."""

ContextTokens = tuple[Literal["tokens"], int]
"""A number of tokens, such as `("tokens", 4_000)`."""

ContextMessages = tuple[Literal["messages"], int]
"""A number of messages, such as `("messages", 50)`."""

ContextSize = ContextFraction | ContextTokens | ContextMessages
"""A size for `trigger` or `keep`, in one of the three forms."""


class TriggerClause(TypedDict, total=False):
    """Sizes that must all be reached, such as `{"tokens": 4_000, "messages": 10}`."""

    tokens: int
    messages: int
    fraction: float
