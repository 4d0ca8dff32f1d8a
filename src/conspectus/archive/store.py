"""The methods that a store needs so that an archive can keep its values there.

`Tables` is such a store in SQL, and `LangGraphStore` is one in any LangGraph store. To write a
store of another kind, extend `KeyValueStore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol

from conspectus.archive.values import ItemsByKind, Scope, SearchRow, ValueKind


class SearchIndex(Protocol):
    """An index of the words in originals. Originals are split into passages with numbers."""

    def passages_holding(
        self, scope: Scope, words: Sequence[str]
    ) -> tuple[int, dict[str, set[int]]]:
        """Return the number of passages of a history, and the passages that have each word.

        A word can also be the beginning of words (`word*`), or several words in a row.
        """

    def rows_of(self, scope: Scope, keys: Sequence[str]) -> list[SearchRow]:
        """Return the rows of these originals; missing ones are left out."""

    def rows_holding(self, scope: Scope, numbers: Sequence[int]) -> list[SearchRow]:
        """Return the rows of the originals to which these passages belong."""

    def keys_named(self, scope: Scope, name: str) -> list[str]:
        """Return the keys of the originals that have this id of their caller."""


class ArchiveStore(ABC):
    """A store for the values of an archive.

    A value is bytes with a name. It belongs to a scope, and is of one of four kinds. A scope also
    has a head. An archive calls the methods from several OS threads. If a method raises an
    error, the caller gets an `ArchiveError`, and the conversation does not change.

    Attributes:
        ttl: seconds after which values expire; None if they never expire.
        may_hang: whether a call may never return, such as a call over a network. Such a call is
            made in an OS thread, which is abandoned after the archive's `timeout`.
    """

    ttl: float | None = None
    may_hang: bool = True

    @abstractmethod
    def read(self, scope: Scope, kind: ValueKind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return values by name. Missing and expired ones are left out.

        If `names` is None, return all values of this kind in the scope.
        """

    @abstractmethod
    def head_id(self, scope: Scope) -> str | None:
        """Return the head of a scope: the id of the record in force.

        Return an empty text if the head was set to no record, because the history was rewound to
        its beginning. Return None if the scope has no head, or its head has expired.
        """

    @abstractmethod
    def write(
        self,
        scope: Scope,
        items: ItemsByKind,
        *,
        head_id: str | None = None,
        expected_head_id: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        """Store values and a new head: all of them, or none.

        A store without transactions, such as `LangGraphStore`, writes the head last, so that a
        write that breaks off leaves no new record in force.

        Args:
            scope: the history to which the values belong.
            items: the values by kind. A value replaces an earlier one with the same name.
            head_id: the id of the record in force from now on. An empty text sets the head to no
                record; None does not change it.
            expected_head_id: the head that the caller knows; empty if it knows of none. If the
                scope has another head, and that is not `head_id`, write nothing. A head that is
                empty or has expired is no other head. None: write in any case.
            durable: False if the values may be lost when the machine fails. They must not be lost
                when only the process ends.
            renewed: names of records whose time to live begins again now.

        Returns:
            The head after the call; empty if there is none. If nothing was written, it is the head
            of another writer.
        """

    @abstractmethod
    def search_index(self, scope: Scope, keys: Collection[str]) -> SearchIndex:
        """Return an index of the words in these originals."""

    @abstractmethod
    def scopes(self, tenant: str) -> list[Scope]:
        """Return the scopes of a tenant that have values."""

    @abstractmethod
    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete these scopes with all their values.

        Returns:
            The number of deleted originals, records and drafts.
        """

    def discard(self, scopes: Sequence[Scope]) -> int:
        """Delete as `forget` does, but traces of the values may stay until the next `forget`."""
        return self.forget(scopes)

    def sweep(self) -> None:
        """Delete expired values. A store that deletes them by itself need not implement this."""
        return

    def check(self) -> str:
        """Return what is wrong with the store itself; empty if no problem is known."""
        return ""

    def close(self) -> None:
        """Close what the store has opened for this archive."""
        return
