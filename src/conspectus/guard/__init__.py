"""Middleware that stands last: it measures, fits and rescues requests."""

from conspectus.guard.api import ContextGuard

__all__ = ["ContextGuard"]
