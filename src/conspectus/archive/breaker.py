"""Decide whether a store that timed out is asked again."""

from __future__ import annotations

import math
import threading
from time import monotonic


class Breaker:
    """Spare callers the wait for a store that has just timed out.

    For `seconds` after a time-out no call is made; then one caller tries, and the others wait for
    its outcome, or for as long again. Any answer, an error too, ends this. None: never wait.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._until: float | None = None
        self._lock = threading.Lock()

    def left(self) -> int:
        """Return the whole seconds left to wait; 0 if the caller may ask the store now."""
        with self._lock:
            if self._until is None or self._seconds is None:
                return 0
            now = monotonic()
            if now < self._until:
                return max(1, math.ceil(self._until - now))
            self._until = now + self._seconds  # this caller tries, and may never come back
            return 0

    def hung(self) -> None:
        if self._seconds is not None:
            with self._lock:
                self._until = monotonic() + self._seconds

    def answered(self) -> None:
        with self._lock:
            self._until = None
