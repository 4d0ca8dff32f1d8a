"""Search a store that keeps values by name and has no index of words."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from conspectus._bounded_cache import BoundedCache
from conspectus.archive.passages import original_of
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.store import ArchiveStore, SearchIndex
from conspectus.archive.values import Scope, StoredItem, decode_original
from conspectus.errors import ArchiveError

INDEXES = 16
"""The most histories whose words are in memory; another one replaces the oldest."""

READ_AT_ONCE = 200
"""Originals that are read from the store at once for an index."""


@dataclass(slots=True)
class _MemoryIndex:
    """The words of some originals of one history, in memory."""

    tables: SqliteTables = field(default_factory=lambda: SqliteTables(None, None))
    keys: set[str] = field(default_factory=set)
    """The originals that it has."""


class KeyValueStore(ArchiveStore):
    """The base of a store of your own.

    Implement `read`, `head_id`, `write`, `scopes` and `forget`. To search a history, its originals
    are read once, into an index in memory.

    Args:
        ttl: seconds after which values expire; None if they never do.
    """

    def __init__(self, ttl: float | None = None) -> None:
        self.ttl = ttl
        self._indexes: BoundedCache[Scope, _MemoryIndex] = BoundedCache(INDEXES)

    def search_index(self, scope: Scope, keys: Collection[str]) -> SearchIndex:
        """Return an index in memory that has the words of these originals, and of no others."""
        index = self._indexes.get(scope)
        # With originals of a branch that was left, their words would change the ranking.
        if index is None or not index.keys <= {*keys}:
            index = _MemoryIndex()
        self._indexes.put(scope, index)
        new_keys = [key for key in keys if key not in index.keys]
        for start in range(0, len(new_keys), READ_AT_ONCE):
            bodies = self.read(scope, "messages", new_keys[start : start + READ_AT_ONCE])
            items: list[StoredItem] = []
            for key, body in bodies.items():
                with suppress(ArchiveError):  # a damaged original has no words
                    items.append(original_of(decode_original(key, body).message, b""))
            index.tables.write(scope, {"messages": items})
            index.keys.update(bodies)
        return index.tables

    def forget_indexes(self) -> None:
        """Drop the indexes in memory; call it at the end of `forget` and `close`."""
        self._indexes.clear()
