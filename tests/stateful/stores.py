"""A store that is in trouble for a while, as a world asks for it."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from langgraph.store.memory import InMemoryStore


class TroubledStore(InMemoryStore):
    """A store in memory that fails for some of its operations.

    Attributes:
        successes_left: operations that still succeed before it fails.
        failures_left: operations that fail then; after those it works again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.successes_left = self.failures_left = self.failed = 0

    def fail_after(self, successes: int, times: int) -> None:
        """Be in trouble: after so many operations, for so many."""
        self.successes_left = successes
        self.failures_left = times

    def recover(self) -> None:
        """Be in no trouble any more."""
        self.successes_left = self.failures_left = 0

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        self._trouble()
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        self._trouble()
        return await super().abatch(ops)

    def search(self, *arguments: Any, **options: Any) -> Any:
        """Look in from outside, whatever trouble it is in: an archive asks in batches."""
        trouble = self.successes_left, self.failures_left
        self.recover()
        try:
            return super().search(*arguments, **options)
        finally:
            self.successes_left, self.failures_left = trouble

    def _trouble(self) -> None:
        if self.successes_left > 0:
            self.successes_left -= 1
        elif self.failures_left > 0:
            self.failures_left -= 1
            self.failed += 1
            raise sqlite3.OperationalError("database or disk is full")

    def values_of(self, part: str) -> dict[tuple[Any, ...], str]:
        """All values of a kind (`messages`, `records`, `head`), by where they are."""
        return {
            (*namespace, key): repr(item.value)
            for namespace, items in self._data.items()
            if part in namespace
            for key, item in items.items()
        }
