"""Compaction in LangChain's agents: the summarising middleware, and the guard of requests."""

from conspectus.engine.hooks import SummarizationEvent
from conspectus.langchain.guard import ContextGuard
from conspectus.langchain.middleware import SummarizationMiddleware
from conspectus.langchain.state import PreservedState
from conspectus.notes.tools import Skills

__all__ = [
    "ContextGuard",
    "PreservedState",
    "Skills",
    "SummarizationEvent",
    "SummarizationMiddleware",
]
