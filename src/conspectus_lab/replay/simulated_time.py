"""Run an event loop whose clock jumps to the next due time instead of waiting."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from conspectus.bridge import LEFT_BEHIND

T = TypeVar("T")

WAIT = 0.001
"""Real seconds between two checks of a thread that is still at work."""


class _Selector(selectors.SelectSelector):
    """Wait for threads alone; all other waiting moves the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        while not found and any(t.name == LEFT_BEHIND for t in threading.enumerate()):
            found = super().select(WAIT)
        if not found and timeout is None:
            return super().select(WAIT)
        if not found and timeout:
            self.now += timeout
        return found


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop with its own clock, in seconds since it was made.

    Work for its pool of threads runs at once, as that takes no simulated time.
    """

    def __init__(self) -> None:
        self._own = _Selector()
        super().__init__(self._own)

    def time(self) -> float:
        return self._own.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def simulated(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)
