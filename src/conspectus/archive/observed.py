"""Report operations of the archive as events."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from conspectus.archive.scope import Scope
from conspectus.observe import observing

P = ParamSpec("P")
T = TypeVar("T")


def observed(operation: str, *, counts: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Report each call of a method of an archive as an event.

    With `counts`, the event counts the method's second argument, the originals.
    """

    def around(method: Callable[P, T]) -> Callable[P, T]:
        @wraps(method)
        def done(*args: P.args, **kwargs: P.kwargs) -> T:
            given: tuple[Any, ...] = args
            items = len(given[2]) if counts and len(given) > 2 else None
            scope = next((one for one in given if isinstance(one, Scope)), None)
            with observing("archive", scope, name=operation, messages=items):
                return method(*args, **kwargs)

        return done

    return around
