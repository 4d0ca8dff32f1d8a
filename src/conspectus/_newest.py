"""Keep only the newest values of a dictionary."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(Generic[K, V]):
    """The newest values: bounded, and safe to share between workers.

    With `size`, those beside the newest go, too, while the sizes of all exceed `largest`.
    """

    def __init__(self, most: int, largest: int = 0, size: Callable[[V], int] | None = None) -> None:
        self._most, self._largest, self._size = most, largest, size
        self._values, self._lock = dict[K, V](), threading.RLock()
        # The value of a key, or None; its age stays the same.
        self.get: Callable[[K], V | None] = self._values.get

    def put(self, key: K, value: V) -> None:
        """Keep a value as the newest; all are measured again, as values may grow."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            size, kept = self._size, self._values.values()
            while len(kept) > 1 and (
                len(kept) > self._most or (size and sum(map(size, kept)) > self._largest)
            ):
                del self._values[next(iter(self._values))]

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if there is none, as the newest."""
        with self._lock:
            value = self._values.get(key)
            value = make() if value is None else value
            self.put(key, value)
            return value

    def drop(self, key: K) -> None:
        """Drop the value of a key, if there is one."""
        with self._lock:
            self._values.pop(key, None)

    def values(self) -> list[V]:
        """Return all values, the oldest first."""
        with self._lock:
            return list(self._values.values())

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
