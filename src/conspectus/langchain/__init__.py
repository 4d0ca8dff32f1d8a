"""Compaction in LangChain's agents: the middleware that summarises, and the guard of requests."""

from conspectus.engine.hooks import SummarizationEvent
from conspectus.langchain.guard import ContextGuard
from conspectus.langchain.middleware import SummarizationMiddleware
from conspectus.langchain.reexports import (
    DEFAULT_SUMMARY_PROMPT,
    ContextFraction,
    ContextMessages,
    ContextSize,
    ContextTokens,
    TokenCounter,
    TriggerClause,
)
from conspectus.langchain.state import PreservedState
from conspectus.notes.skills import Skills

__all__ = [
    "DEFAULT_SUMMARY_PROMPT",
    "ContextFraction",
    "ContextGuard",
    "ContextMessages",
    "ContextSize",
    "ContextTokens",
    "PreservedState",
    "Skills",
    "SummarizationEvent",
    "SummarizationMiddleware",
    "TokenCounter",
    "TriggerClause",
]
