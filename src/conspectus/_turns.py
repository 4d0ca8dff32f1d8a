"""Whose turn it is to compute beside an event loop.

One thread computes at a time, as the loop would have to wait for its own turn behind all of them.
None keeps its turn while a caller's function is waited for, which may take for ever. No turn is
given up inside a lock, as the next thread may wait for that lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

waiting: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar(
    "conspectus waiting", default=nullcontext
)
"""As in `with waiting.get()():`, around what the work here waits for; others compute meanwhile."""


class Turn:
    """The turn of the threads beside one loop."""

    def __init__(self) -> None:
        self._lock, self._holder = threading.Lock(), 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Compute, while no other thread does."""
        self._take()
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def given(self) -> Iterator[None]:
        """Let others compute; a thread that has no turn has none to give."""
        if self._holder != threading.get_ident():
            yield
            return
        self._give()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def _give(self) -> None:
        self._holder = 0
        self._lock.release()
