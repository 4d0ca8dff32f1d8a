"""Summarise a growing history in LangChain middleware."""

from conspectus.compactor.hooks import SummarizationEvent
from conspectus.middleware.api import SummarizationMiddleware
from conspectus.middleware.preserved import PreservedState
from conspectus.notes.skills import Skills

__all__ = ["PreservedState", "Skills", "SummarizationEvent", "SummarizationMiddleware"]
