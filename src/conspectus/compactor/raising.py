"""Raise a model's own error as one of ours, so that callers can catch either."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from conspectus.errors import ConspectusError, SummaryError


def as_the_models(error: SummaryError) -> Exception:
    """Make an error of both our class and the model's own.

    `except RuntimeError` or `except ContextOverflowError` then catches it, with the attributes of
    the model's error. If no class can be both, return the model's error with ours as a note.

    Example:
        >>> try:
        ...     raise SummaryError("no summary was made") from RuntimeError("429")
        ... except SummaryError as failure:
        ...     made = as_the_models(failure)
        >>> isinstance(made, RuntimeError), isinstance(made, SummaryError), str(made)
        (True, True, 'no summary was made')
    """
    cause = error.__cause__
    while isinstance(cause, ConspectusError):
        cause = cause.__cause__
    if not isinstance(cause, Exception) or type(cause) is Exception:
        return error
    try:
        ours: Any = type(error)
        theirs: Any = type(cause)
        kind = _both(ours, theirs)
        made: Exception = kind.__new__(kind, *cause.args)
        made.__dict__.update({**vars(cause), **vars(error)})
        made.args = error.args
    except Exception:  # a class that cannot be inherited from, or made without its own words
        cause.add_note(f"{type(error).__qualname__}: {error}")
        return cause
    made.__cause__ = cause
    return made.with_traceback(error.__traceback__)


@lru_cache(maxsize=64)
def _both(ours: Any, theirs: Any) -> type[Exception]:
    def said(self: Exception) -> str:
        return str(self.args[0]) if self.args else ""

    def plain(self: Exception) -> tuple[object, ...]:  # no other process knows this class
        return ours, self.args

    about = {
        "__doc__": ours.__doc__,
        "__module__": ours.__module__,
        "__qualname__": ours.__qualname__,
        "__str__": said,
        "__reduce__": plain,
    }
    return type(ours.__name__, (ours, theirs), about)
