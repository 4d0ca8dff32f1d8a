"""Whether a store that hung is asked again: not at once, and then by one caller first."""

from __future__ import annotations

import math
import threading
from time import monotonic


class Breaker:
    """Spares callers the wait for a store that has just not answered in time.

    For `seconds` after a time-out nobody asks it; then one caller does, and the others wait for
    what comes of it, or for as long again. Any answer ends this, also one that is an error.

    Args:
        seconds: how long it is left alone; None where it has no time in which to answer.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._until: float | None = None
        self._lock = threading.Lock()

    def left(self) -> int:
        """Whole seconds for which it is not asked; 0 where the caller may ask it now."""
        with self._lock:
            if self._until is None or self._seconds is None:
                return 0
            now = monotonic()
            if now < self._until:
                return max(1, math.ceil(self._until - now))
            self._until = now + self._seconds  # this caller tries, and may never come back
            return 0

    def hung(self) -> None:
        """It did not answer in time."""
        if self._seconds is not None:
            with self._lock:
                self._until = monotonic() + self._seconds

    def answered(self) -> None:
        """It did."""
        with self._lock:
            self._until = None
