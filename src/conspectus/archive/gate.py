"""Gate the calls of a store: of stopped background work, and of a store that timed out.

A store's owner may close its connections. A thread that uses one then would crash the interpreter
(SQLite), so the gate of the work is shut first: running calls end, and no other begins.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

from conspectus.archive.trouble import late
from conspectus.bridge import StepTimeout, within
from conspectus.errors import ArchiveError

T = TypeVar("T")


class Stopped(BaseException):
    """Background work came to a closed gate. A `BaseException`: no handler may catch it."""


class Gate:
    """Lets calls of a store through until it is shut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside, self._shut = 0, False

    @property
    def is_shut(self) -> bool:
        return self._shut

    @property
    def is_idle(self) -> bool:
        """Whether no call is running."""
        return not self._inside

    def shut(self) -> None:
        """Let no further call through; running calls end."""
        with self._lock:
            self._shut = True

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Make one call, or raise `Stopped` if the gate is shut."""
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
"""The gate of the current work; None if the work is never stopped."""


LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("conspectus loop", default=None)
"""The event loop that waits for the current work, which runs in a thread; None without one."""


@contextmanager
def inside() -> Iterator[None]:
    """Make one call of a store through the gate of the current work, if any."""
    gate = GATE.get()
    with nullcontext() if gate is None else gate.inside():
        yield


class Patience:
    """Wait for a store that may hang, and spare others the wait.

    For `seconds` after a time-out no call is made; then one caller tries, and the others are told
    at once. Any answer, an error too, ends this. None: wait for ever.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._until: float | None = None
        self._lock = threading.Lock()

    def wait_for(self, work: Callable[[], T]) -> T:
        """Return what a call returns.

        Raises:
            ArchiveTimeout: it does not answer in time, or another has just not done so.
        """
        if self.seconds is None:
            return work()
        if left := self.left():
            raise late(self.seconds, left)
        try:
            answer = within(work, self.seconds)
        except StepTimeout as error:
            self._set(monotonic() + self.seconds)
            raise late(self.seconds) from error
        except ArchiveError:
            self._set(None)
            raise
        self._set(None)
        return answer

    def left(self) -> int:
        """Return the whole seconds left to wait; 0 if the caller may ask the store now."""
        with self._lock:
            if self._until is None or self.seconds is None:
                return 0
            now = monotonic()
            if now < self._until:
                return max(1, math.ceil(self._until - now))
            self._until = now + self.seconds  # this caller tries, and may never come back
            return 0

    def _set(self, until: float | None) -> None:
        with self._lock:
            self._until = until
