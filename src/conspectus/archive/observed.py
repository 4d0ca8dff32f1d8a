"""Operations of the archive as events; with nobody listening, the flow itself and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from conspectus._drive import Flow
from conspectus.archive.scope import Scope
from conspectus.errors import NotFoundError
from conspectus.events import ArchiveOperation, Recall, Whose, listening, observing

P = ParamSpec("P")
T = TypeVar("T")


def observed(
    operation: str, *, counts: bool = False
) -> Callable[[Callable[P, Flow[T]]], Callable[P, Flow[T]]]:
    """Tell of a method of the archive, a flow.

    Args:
        operation: what it is called.
        counts: whether its second argument are the originals that it is about.
    """

    def around(method: Callable[P, Flow[T]]) -> Callable[P, Flow[T]]:
        @wraps(method)
        def flow(*args: P.args, **kwargs: P.kwargs) -> Flow[T]:
            steps = method(*args, **kwargs)
            if not listening():
                return steps
            given: tuple[Any, ...] = args
            items = len(given[2]) if counts and len(given) > 2 else None
            return _observed(operation, _whose(given[1:]), items, steps)

        return flow

    return around


def _observed(operation: str, whose: Whose | None, items: int | None, steps: Flow[T]) -> Flow[T]:
    with observing(ArchiveOperation, whose, operation=operation, items=items):
        return (yield from steps)


def observed_recall(method: Callable[P, Flow[T]]) -> Callable[P, Flow[T]]:
    """Tell of a recall, whatever asked for it."""

    @wraps(method)
    def flow(*args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        steps = method(*args, **kwargs)
        if not listening():
            return steps
        kind = next((one for one in ("query", "id", "range") if kwargs.get(one) is not None), "")
        return _recalled(kind, _whose(args), steps)

    return flow


def _recalled(kind: str, whose: Whose | None, steps: Flow[T]) -> Flow[T]:
    with observing(Recall, whose, kind=kind) as seen:
        try:
            found = yield from steps
        except NotFoundError:
            seen.tell(outcome="not_found")
            raise
        result: Any = found
        seen.tell(results=len(result.hits), tokens=result.tokens, truncated=result.truncated)
        return found


def _whose(args: tuple[Any, ...]) -> Whose | None:
    scope = next((one for one in args if isinstance(one, Scope)), None)
    return Whose(scope.tenant, scope.thread, scope.session) if scope is not None else None
