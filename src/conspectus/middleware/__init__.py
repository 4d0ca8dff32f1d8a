"""LangChain middleware that summarises when a history grows."""

from conspectus.middleware.api import SummarizationMiddleware

__all__ = ["SummarizationMiddleware"]
