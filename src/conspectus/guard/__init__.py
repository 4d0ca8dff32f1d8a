"""Middleware that stands last: what is really sent is measured, fitted and rescued."""

from conspectus.guard.api import ContextGuard

__all__ = ["ContextGuard"]
