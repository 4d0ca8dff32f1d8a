"""Summarise a growing history in LangChain middleware."""

from conspectus.compactor.hooks import SummarizationEvent
from conspectus.ledger.skills import Skills
from conspectus.middleware.api import SummarizationMiddleware
from conspectus.middleware.preserved import PreservedState

__all__ = ["PreservedState", "Skills", "SummarizationEvent", "SummarizationMiddleware"]
