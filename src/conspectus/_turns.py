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

giving_up_turn: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar(
    "conspectus giving up the turn", default=nullcontext
)
"""How the work here gives up its turn for a while; by default it has none."""


def others_may_compute() -> AbstractContextManager[None]:
    """Let others compute in a `with` block, around what the work here waits for."""
    return giving_up_turn.get()()


class Turn:
    """The turn of the threads beside one loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder = 0  # the thread whose turn it is; 0 for none

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Compute, while no other thread does."""
        self._take()
        try:
            yield
        finally:
            self._give_up()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Let others compute; a thread that has no turn has none to give up."""
        if self._holder != threading.get_ident():
            yield
            return
        self._give_up()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def _give_up(self) -> None:
        self._holder = 0
        self._lock.release()
