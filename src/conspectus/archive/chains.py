"""Read chains of records from a store, and remember them."""

from __future__ import annotations

from dataclasses import replace

from conspectus._bounded_cache import BoundedCache
from conspectus.archive.store import ArchiveStore
from conspectus.archive.values import Scope, parse_record
from conspectus.core.records import Chain, Record

CACHED_CHAINS = 256
"""The most chains in memory."""

CACHED_RECORDS = 10_000
"""The most records of all chains in memory."""


class ChainReader:
    """Reads chains of records, and remembers the latest ones lean (see `Chain`).

    Args:
        backend: the store.
    """

    def __init__(self, backend: ArchiveStore) -> None:
        self._backend = backend
        # By scope and head; each has its newest record as it is stored.
        self._remembered = BoundedCache[tuple[Scope, str], tuple[bytes, Chain]](
            CACHED_CHAINS, CACHED_RECORDS, lambda cached: len(cached[1])
        )

    def read(self, scope: Scope, head_id: str) -> Chain:
        """Return the chain up to a record; empty if one of its records is missing or damaged."""
        # The newest record is always read from the store. The others expire with it.
        newest_body = self.record_body(scope, head_id)
        cached = self._remembered.get((scope, head_id))
        if cached and cached[0] == newest_body:
            self._remembered.put((scope, head_id), cached)  # it is the latest again
            return cached[1]
        later: list[Record] = []
        record_id = head_id
        body = newest_body
        while True:
            record = parse_record(record_id, body)
            if record is None or any(record.id == other.id for other in later):
                return ()
            later.insert(0, record)
            if record.parent is None:
                return self.remember(scope, newest_body, tuple(later))
            earlier = self._remembered.get((scope, record.parent))
            if earlier:
                return self.remember(scope, newest_body, (*earlier[1], *later))
            record_id = record.parent
            body = self.record_body(scope, record_id)

    def record_body(self, scope: Scope, record_id: str) -> bytes:
        """Return a record as it is stored; empty if it is not there."""
        stored = self._backend.read(scope, "records", [record_id])
        return stored.get(record_id, b"")

    def remember(self, scope: Scope, newest_body: bytes, chain: Chain) -> Chain:
        """Remember a chain as it was read, and return it.

        In memory only the newest records have notes and summaries. Each record has all notes so
        far, so those of earlier records are seldom read.
        """
        positions = [at for at, record in enumerate(chain) if record.notes]
        newest_notes = positions[-1] if positions else 0
        lean = [
            replace(record, notes={}, summary="") if record.summary else record
            for record in chain[:newest_notes]
        ]
        chain = (*lean, *chain[newest_notes:])
        self._remembered.put((scope, chain[-1].id), (newest_body, chain))
        return chain

    def replace_parent(self, scope: Scope, newest_body: bytes, chain: Chain) -> None:
        """Remember a chain that was just committed instead of the one that it continues."""
        self._remembered.drop((scope, chain[-1].parent or ""))
        self.remember(scope, newest_body, chain)

    def clear(self) -> None:
        """Forget all chains."""
        self._remembered.clear()
