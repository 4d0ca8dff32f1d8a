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
        self._sizes, self._total = dict[K, int](), 0
        # The value of a key, or None; its age stays the same.
        self.get: Callable[[K], V | None] = self._values.get

    def put(self, key: K, value: V) -> None:
        """Keep a value as the newest; one that grows is measured when it is put again."""
        with self._lock:
            self.drop(key)
            self._values[key] = value
            if self._size is not None:
                self._sizes[key] = self._size(value)
                self._total += self._sizes[key]
            while len(self._values) > 1 and (
                len(self._values) > self._most or self._total > self._largest
            ):
                self.drop(next(iter(self._values)))

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
            self._total -= self._sizes.pop(key, 0)

    def values(self) -> list[V]:
        """Return all values, the oldest first."""
        with self._lock:
            return list(self._values.values())

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
            self._sizes.clear()
            self._total = 0
