"""What an archive asks of the place where its values are kept.

`Tables` are such a place in SQL, and `LangGraphStore` is one in any LangGraph store. A store of
another kind extends `KeyValueStore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol

from conspectus.archive.values import ItemsByKind, Scope, SearchRow, ValueKind


class SearchIndex(Protocol):
    """The words of originals, as a search asks for them. Each passage has a number."""

    def passages_holding(
        self, scope: Scope, words: Sequence[str]
    ) -> tuple[int, dict[str, set[int]]]:
        """Return how many passages a history has, and for each word the numbers of those with it.

        A word may also be the beginning of one, `word*`, or several that stand together.
        """

    def rows_of(self, scope: Scope, keys: Sequence[str]) -> list[SearchRow]:
        """Return what a search knows of originals, without those that are not there."""

    def rows_holding(self, scope: Scope, numbers: Sequence[int]) -> list[SearchRow]:
        """Return the same of the originals that have these passages."""

    def keys_named(self, scope: Scope, name: str) -> list[str]:
        """Return the keys of the originals to which their caller gave this id."""


class ArchiveStore(ABC):
    """Keeps the values of an archive: bytes by name, in a scope, as one of four kinds; and a head.

    An archive calls it from several threads at once. Whatever a method raises reaches the caller
    as an `ArchiveError`, and the conversation stays as it was.

    Attributes:
        ttl: seconds after which values expire; None if they never do.
        may_hang: whether a call may take for ever, as those of a network may. Such calls are made
            in threads that are left behind after the time-out of the archive.
    """

    ttl: float | None = None
    may_hang: bool = True

    @abstractmethod
    def read(self, scope: Scope, kind: ValueKind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return values by name, without those that are missing or expired.

        Without `names` it returns all values of the kind in the scope.
        """

    @abstractmethod
    def head(self, scope: Scope) -> str | None:
        """Return the head of a scope, which is the id of the record in force.

        It is empty if the history was taken back to its beginning, and None if it had no head yet,
        or that has expired.
        """

    @abstractmethod
    def write(
        self,
        scope: Scope,
        items: ItemsByKind,
        *,
        head: str | None = None,
        expected_head: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        """Keep values and a new head: all of them, or none.

        Args:
            scope: the history to which the values belong.
            items: by kind. A value of a name that is there takes the place of the one before.
            head: the id of the record in force from now on; empty for no record, None to leave it.
            expected_head: the head of which the caller knows, empty for none. If there is another
                one, and it is not `head`, nothing is written. None writes in any case.
            durable: False if the values may be lost where the machine fails, though not where the
                process does.
            renewed: names of records that expire as late as values that are written now.

        Returns:
            The head after the call, empty for no record or if the scope has no head. If nothing was
            written, that is the head of another writer.
        """

    @abstractmethod
    def search_index(self, scope: Scope, keys: Collection[str]) -> SearchIndex:
        """Return an index that has the words of these originals."""

    @abstractmethod
    def scopes(self, tenant: str) -> list[Scope]:
        """Return the scopes of a tenant into which something was written."""

    @abstractmethod
    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete all values of some scopes, and the scopes.

        Returns the number of deleted originals, records and drafts.
        """

    def discard(self, scopes: Sequence[Scope]) -> int:
        """Delete as `forget` does; what else reminds of the values may stay until the next one."""
        return self.forget(scopes)

    def sweep(self) -> None:
        """Delete what has expired. A store that does so by itself has nothing to do here."""
        return

    def check(self) -> str:
        """Return what is wrong with the store itself; empty if nothing is known to be."""
        return ""

    def close(self) -> None:
        """Give back what the store has opened for this archive."""
        return
