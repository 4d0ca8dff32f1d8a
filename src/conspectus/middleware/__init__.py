"""LangChain middleware that summarises when a history grows."""

from conspectus.middleware.api import SummarizationMiddleware
from conspectus.middleware.preserved import PreservedState

__all__ = ["PreservedState", "SummarizationMiddleware"]
