"""Turns: which worker thread of an event loop may compute.

One thread computes at a time, because the loop would have to wait for all of them. A thread gives
up its turn while it waits for a caller's function, which may take for ever. It never does so inside
a lock, because the next thread may wait for that lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

giving_up_turn: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar(
    "conspectus giving up the turn", default=nullcontext
)
"""How the current work gives up its turn for a while; by default it has no turn."""


def others_may_compute() -> AbstractContextManager[None]:
    """Let other threads compute in a `with` block, while the current work waits for something."""
    return giving_up_turn.get()()


class Turn:
    """The turn of the worker threads of one loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder = 0  # the thread whose turn it is; 0 if none

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and compute in the `with` block."""
        self._take()
        try:
            yield
        finally:
            self._give_up()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Let others compute. A thread without a turn changes nothing."""
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
