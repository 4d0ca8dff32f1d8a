"""A gate before the store: work beside the agent goes through it, and it can be shut.

A store's owner closes its connections when he is done. A thread that is using one then would take
the interpreter down (SQLite), so whoever ends the work shuts its gate first: calls that are inside
come to their end, and no other begins.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Stopped(BaseException):
    """Work beside the agent has come to a gate that is shut. No `Exception`: nobody mends it."""


class Gate:
    """Lets calls of a store through until it is shut.

    Example:
        >>> gate = Gate()
        >>> with gate.inside():
        ...     gate.is_idle
        False
        >>> gate.shut()
        >>> gate.is_shut, gate.is_idle
        (True, True)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside, self._shut = 0, False

    @property
    def is_shut(self) -> bool:
        """Whether no call goes through any more."""
        return self._shut

    @property
    def is_idle(self) -> bool:
        """Whether no call is inside."""
        return not self._inside

    def shut(self) -> None:
        """Let no further call through; those inside come to their end."""
        with self._lock:
            self._shut = True

    @contextmanager
    def inside(self) -> Iterator[None]:
        """One call.

        Raises:
            Stopped: the gate is shut.
        """
        with self._lock:
            if self._shut:
                raise Stopped("what was prepared in the background was stopped")
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1


GATE: ContextVar[Gate | None] = ContextVar("conspectus gate", default=None)
"""The gate of the work that this is part of; None for work that nobody ends."""


def through_the_gate(call: Callable[P, T]) -> Callable[P, T]:
    """A call of a store that goes through the gate of the work it is made for."""

    @wraps(call)
    def gated(*args: P.args, **kwargs: P.kwargs) -> T:
        gate = GATE.get()
        if gate is None:
            return call(*args, **kwargs)
        with gate.inside():
            return call(*args, **kwargs)

    return gated


def through_the_gate_async(call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """`through_the_gate` for a call on an event loop."""

    @wraps(call)
    async def gated(*args: P.args, **kwargs: P.kwargs) -> T:
        gate = GATE.get()
        if gate is None:
            return await call(*args, **kwargs)
        with gate.inside():
            return await call(*args, **kwargs)

    return gated
