"""Measure, fit and rescue requests in the last middleware."""

from conspectus.guard.api import ContextGuard

__all__ = ["ContextGuard"]
