"""A store that is in trouble for a while, as a world asks for it."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from langgraph.store.memory import InMemoryStore


class TroubledStore(InMemoryStore):
    """A store in memory that fails for some of its operations.

    Attributes:
        fine: operations that still succeed before it fails.
        failing: operations that fail then; after those it works again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fine = self.failing = self.failed = 0

    def fails(self, after: int, times: int) -> None:
        """Be in trouble: after so many operations, for so many."""
        self.fine = after
        self.failing = times

    def recovers(self) -> None:
        """Be in no trouble any more."""
        self.fine = self.failing = 0

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        self._trouble()
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        self._trouble()
        return await super().abatch(ops)

    def search(self, *given: Any, **more: Any) -> Any:
        """Look in from outside, whatever trouble it is in: an archive asks in batches."""
        trouble = self.fine, self.failing
        self.recovers()
        try:
            return super().search(*given, **more)
        finally:
            self.fine, self.failing = trouble

    def _trouble(self) -> None:
        if self.fine > 0:
            self.fine -= 1
        elif self.failing > 0:
            self.failing -= 1
            self.failed += 1
            raise sqlite3.OperationalError("database or disk is full")

    def held(self, kind: str) -> dict[tuple[Any, ...], str]:
        """All values of a kind (`messages`, `records`, `head`), by where they are."""
        return {
            (*namespace, key): repr(item.value)
            for namespace, items in self._data.items()
            if kind in namespace
            for key, item in items.items()
        }
