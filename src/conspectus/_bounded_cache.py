"""A dictionary that keeps only its newest values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The newest values by their keys: limited, and safe to share between workers.

    Args:
        max_values: how many values are kept.
        max_size: with `size_of`, the oldest values are dropped while all sizes together exceed
            this. The newest always stays.
        size_of: the size of a value. Default: values have none.
    """

    def __init__(
        self, max_values: int, max_size: int = 0, size_of: Callable[[V], int] | None = None
    ) -> None:
        self._max_values = max_values
        self._max_size = max_size
        self._size_of = size_of
        self._values: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self._total_size = 0
        self._lock = threading.RLock()
        # Returns the value of a key, or None; its age stays the same. It is an attribute, not a
        # method, because it is called often.
        self.get: Callable[[K], V | None] = self._values.get

    def put(self, key: K, value: V) -> None:
        """Keep a value as the newest. If a value grows, put it again, so that it is measured."""
        with self._lock:
            self.drop(key)
            self._values[key] = value
            if self._size_of is not None:
                self._sizes[key] = self._size_of(value)
                self._total_size += self._sizes[key]
            while len(self._values) > 1 and self._is_too_large():
                oldest = next(iter(self._values))
                self.drop(oldest)

    def _is_too_large(self) -> bool:
        return len(self._values) > self._max_values or self._total_size > self._max_size

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, as the newest; make it if there is none."""
        with self._lock:
            value = self._values.get(key)
            if value is None:
                value = make()
            self.put(key, value)
            return value

    def drop(self, key: K) -> None:
        """Drop the value of a key, if there is one."""
        with self._lock:
            self._values.pop(key, None)
            self._total_size -= self._sizes.pop(key, 0)

    def values(self) -> list[V]:
        """Return all values, the oldest first."""
        with self._lock:
            return list(self._values.values())

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
            self._sizes.clear()
            self._total_size = 0
