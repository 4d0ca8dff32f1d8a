"""A lock for each history."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from conspectus.archive import Scope

LockT = TypeVar("LockT")


class ScopeLocks(Generic[LockT]):
    """A lock for each history, which lives as long as somebody holds it or waits for it.

    So there are never more than are in use, and none that is held is made a second time.

    Args:
        make_lock: makes a lock, as `threading.Lock` does.
    """

    def __init__(self, make_lock: Callable[[], LockT]) -> None:
        self._make_lock = make_lock
        self._locks = WeakValueDictionary[Scope, LockT]()
        self._one_at_a_time = threading.Lock()

    def lock_of(self, scope: Scope) -> LockT:
        """Return the lock of a history; whoever uses it keeps the reference until the end."""
        with self._one_at_a_time:
            return self._locks.setdefault(scope, self._make_lock())
