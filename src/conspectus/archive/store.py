"""The archive: originals, drafts and records in any LangGraph store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from conspectus._core.records import Chain, Draft, Record
from conspectus._drive import arun, run
from conspectus._langchain import is_store
from conspectus.archive.backend import Backend, open_backend
from conspectus.archive.flows import TIMEOUT, ArchiveFlows
from conspectus.archive.scope import Scope
from conspectus.archive.trouble import explain
from conspectus.archive.values import Archived
from conspectus.archive.wire import check_ttl
from conspectus.errors import ArchiveError
from conspectus.messages import Entry

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore


class Archive(ArchiveFlows):
    """Originals by content hash, with the drafts and records of their compactions.

    Each method has a twin for event loops, named with an `a` in front. Any failure of the store
    becomes an `ArchiveError` that says what to do; values stored before stay as they were.

    Args:
        store: any LangGraph store. `close` leaves it open: it stays the caller's.
        ttl: seconds after which values expire; None for no end. Originals live that long from when
            they were archived, records from the latest commit of their chain.
        timeout: seconds that the store has for one batch of reads or writes, else `ArchiveTimeout`;
            None for no limit. A SQLite file waits for its own time-out instead. Default: 30.

    Raises:
        PolicyError: the ttl or the timeout is invalid, or the store keeps no ttl.

    Example:
        >>> with Archive.open("memory:") as archive:
        ...     archive.threads("ann")
        ()
    """

    def __init__(
        self, store: BaseStore, *, ttl: float | None = None, timeout: float | None = TIMEOUT
    ) -> None:
        if not is_store(store):
            raise ArchiveError(
                f"An archive needs a LangGraph store, not {type(store).__name__}; for a file or an "
                "address use Archive.open(...)."
            )
        super().__init__(Backend(store), ttl, timeout)

    @classmethod
    def open(
        cls, where: str | Path, *, ttl: float | None = None, timeout: float | None = TIMEOUT
    ) -> Self:
        """Open an archive, and make its tables if needed.

        Args:
            where: a path or `sqlite:///path` (four slashes for an absolute path) for a private file
                in an existing folder; `postgresql://...` for a server; `memory:` for one that ends
                with the process.
            ttl, timeout: as above, in seconds.

        Raises:
            InputError: the address is unknown or malformed; no part of a password is shown.
            PolicyError: the ttl or the timeout is invalid, or the store keeps no ttl.
            ArchiveError: it cannot be opened, or an extra is missing; says what to do.
        """
        backend = open_backend(where)
        archive = cls.__new__(cls)
        try:
            check_ttl(backend.store, ttl)
            ArchiveFlows.__init__(archive, backend, ttl, timeout)
            if ttl is not None:
                backend.sweep()
        except BaseException as error:
            backend.close()
            if isinstance(error, Exception) and not isinstance(error, ValueError):
                raise ArchiveError(f"The archive cannot be opened: {explain(error)}.") from error
            raise
        return archive

    def close(self) -> None:
        """Close connections; a store that the caller gave stays open."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, scope: Scope, entries: Sequence[Entry]) -> None:
        """Write originals; existing ones are left as they are.

        Args:
            scope: the history.
            entries: messages from `conspectus.messages.read_messages`.

        Raises:
            ArchiveError: the store fails; some may have been written, which does no harm.
        """
        run(self.put_flow(scope, entries))

    async def aput(self, scope: Scope, entries: Sequence[Entry]) -> None:
        """Call `put` on an event loop."""
        await arun(self.put_flow(scope, entries))

    def missing(self, scope: Scope, entries: Sequence[Entry]) -> tuple[str, ...]:
        """Return the keys of entries that do not come back equal; empty when all are safe."""
        return run(self.missing_flow(scope, entries))

    async def amissing(self, scope: Scope, entries: Sequence[Entry]) -> tuple[str, ...]:
        """Call `missing` on an event loop."""
        return await arun(self.missing_flow(scope, entries))

    def get(self, scope: Scope, keys: Sequence[str]) -> list[Archived]:
        """Return originals in the order of their keys.

        Raises:
            NotFoundError: some are gone (expired, forgotten, never put); says which.
            ArchiveError: the store fails, or a value is damaged.
        """
        return run(self.get_flow(scope, keys))

    async def aget(self, scope: Scope, keys: Sequence[str]) -> list[Archived]:
        """Call `get` on an event loop."""
        return await arun(self.get_flow(scope, keys))

    def save_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """Keep a finished summary under the hash of its plan, so that it is paid for once."""
        run(self.save_draft_flow(scope, plan, draft))

    async def asave_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """Call `save_draft` on an event loop."""
        await arun(self.save_draft_flow(scope, plan, draft))

    def find_draft(self, scope: Scope, plan: str) -> Draft | None:
        """Return the draft of a plan; None if there is none that this version can use."""
        return run(self.find_draft_flow(scope, plan))

    async def afind_draft(self, scope: Scope, plan: str) -> Draft | None:
        """Call `find_draft` on an event loop."""
        return await arun(self.find_draft_flow(scope, plan))

    def commit(self, scope: Scope, record: Record) -> None:
        """Commit a record; committing it twice is the same as once.

        Raises:
            ArchiveUnconfirmed: the store does not return the record as the head.
            ArchiveError: the store fails; the head is the record before, or this one.
        """
        run(self.commit_flow(scope, record))

    async def acommit(self, scope: Scope, record: Record) -> None:
        """Call `commit` on an event loop."""
        await arun(self.commit_flow(scope, record))

    def chain(self, scope: Scope) -> tuple[Record, ...]:
        """Return the records from the first of a thread to its head.

        Empty if an ancestor is missing or damaged: what such a chain covers is not known.

        Raises:
            ArchiveError: the store fails, or a newer version has written a record.
        """
        return run(self.chain_flow(scope))

    async def achain(self, scope: Scope) -> tuple[Record, ...]:
        """Call `chain` on an event loop."""
        return await arun(self.chain_flow(scope))

    def records(self, scope: Scope) -> tuple[Record, ...]:
        """Return every sound record, abandoned branches too; parents before children."""
        return run(self.records_flow(scope))

    async def arecords(self, scope: Scope) -> tuple[Record, ...]:
        """Call `records` on an event loop."""
        return await arun(self.records_flow(scope))

    def threads(self, tenant: str) -> tuple[str, ...]:
        """Return the names of a tenant's threads, sorted."""
        return run(self.threads_flow(tenant))

    async def athreads(self, tenant: str) -> tuple[str, ...]:
        """Call `threads` on an event loop."""
        return await arun(self.threads_flow(tenant))

    def forget(self, tenant: str, thread: str | None = None) -> int:
        """Delete one thread with all its sessions, or a whole tenant.

        The search index goes too; checkpoints of graphs are not touched.

        Returns:
            The number of deleted values: messages, drafts, records, heads, names of threads.

        Raises:
            ArchiveError: the store fails or does not delete; call again to go on.
        """
        return run(self.forget_flow(tenant, thread))

    async def aforget(self, tenant: str, thread: str | None = None) -> int:
        """Call `forget` on an event loop."""
        return await arun(self.forget_flow(tenant, thread))

    def compact(self) -> int:
        """Bring an archive of an earlier version up to the form of this one, which is smaller.

        A file is written anew, which takes as much free space again. Stop all writers first: they
        would have to open it again. After an interruption the archive is sound; call again.
        Messages with a semantic index stay as they are.

        Returns:
            The number of rewritten values.

        Raises:
            ArchiveError: the store fails; says what to do.
        """
        return run(self.compact_flow())

    async def acompact(self) -> int:
        """Call `compact` on an event loop."""
        return await arun(self.compact_flow())

    def export(self, scope: Scope, chain: Chain | None = None) -> list[dict[str, Any]]:
        """Return a row for each original of a chain, in the order of the conversation.

        Rows are plain JSON data: key, id, cite, role, name, date, archived_at, lossless, form
        (`langchain` or `dict`) and the message. Expired originals have no row.

        Args:
            scope: the history.
            chain: records from the first to the head; by default those in force.
        """
        return run(self.export_flow(scope, chain))

    async def aexport(self, scope: Scope, chain: Chain | None = None) -> list[dict[str, Any]]:
        """Call `export` on an event loop."""
        return await arun(self.export_flow(scope, chain))
