"""A gate before the store: work beside the agent goes through it, and it can be shut.

A store's owner closes its connections when he is done. A thread that is using one then would take
the interpreter down (SQLite), so whoever ends the work shuts its gate first: calls that are inside
come to their end, and no other begins.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar


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


@contextmanager
def inside() -> Iterator[None]:
    """Make one call of a store, through the gate of the work that it is made for.

    Raises:
        Stopped: the gate is shut.
    """
    gate = GATE.get()
    with nullcontext() if gate is None else gate.inside():
        yield
