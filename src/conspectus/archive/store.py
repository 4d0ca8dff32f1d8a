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
    """Originals, content-addressed, with the drafts and records that say what became of them.

    Each method has a twin for event loops, named with an `a` in front. Whatever a store raises
    becomes an `ArchiveError` that says what to do; what the archive held before stays as it was.

    Args:
        store: any LangGraph store. It stays the caller's: `close` leaves it open.
        ttl: seconds after which what is written is gone; None for no end. Originals live that
            long from when they were archived, records from the latest commit of their chain.
        timeout: seconds that the store has for one batch of reads or writes; None for no limit.
            One that takes longer is a store that failed (`ArchiveTimeout`), so that it cannot hang
            an agent. A SQLite file waits for its own time-out instead. Default: 30.

    Raises:
        PolicyError: the ttl or the timeout means nothing, or the store keeps no ttl.

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
        """Open an archive and make what it needs.

        Args:
            where: a file's path or `sqlite:///path` (with four slashes for an absolute path) for
                a SQLite file, which is made for its owner alone, in a folder that is there;
                `postgresql://...` for a server; `memory:` for one that ends with the process.
            ttl, timeout: as above, in seconds.

        Raises:
            InputError: the address is of no known form, or malformed; no part of a password is
                shown.
            PolicyError: the ttl or the timeout means nothing, or the store keeps no ttl.
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
        """Give up connections; a store that the caller gave stays open."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, scope: Scope, entries: Sequence[Entry]) -> None:
        """Write originals; those that are there already are left as they are.

        Args:
            scope: whose history.
            entries: messages as `conspectus.messages.read_messages` gives them.

        Raises:
            ArchiveError: the store fails; some of them may have been written, which harms nothing.
        """
        run(self.put_flow(scope, entries))

    async def aput(self, scope: Scope, entries: Sequence[Entry]) -> None:
        """`put` on an event loop."""
        await arun(self.put_flow(scope, entries))

    def missing(self, scope: Scope, entries: Sequence[Entry]) -> tuple[str, ...]:
        """Keys of those that do not come back equal; empty when all are safe."""
        return run(self.missing_flow(scope, entries))

    async def amissing(self, scope: Scope, entries: Sequence[Entry]) -> tuple[str, ...]:
        """`missing` on an event loop."""
        return await arun(self.missing_flow(scope, entries))

    def get(self, scope: Scope, keys: Sequence[str]) -> list[Archived]:
        """Originals in the order asked.

        Raises:
            NotFoundError: some are gone (expired, forgotten, never put); says which.
            ArchiveError: the store fails, or a value is damaged.
        """
        return run(self.get_flow(scope, keys))

    async def aget(self, scope: Scope, keys: Sequence[str]) -> list[Archived]:
        """`get` on an event loop."""
        return await arun(self.get_flow(scope, keys))

    def save_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """Keep a finished summary under the hash of its plan, so that it is paid for once."""
        run(self.save_draft_flow(scope, plan, draft))

    async def asave_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """`save_draft` on an event loop."""
        await arun(self.save_draft_flow(scope, plan, draft))

    def find_draft(self, scope: Scope, plan: str) -> Draft | None:
        """The draft of a plan; None if there is none that this version can use."""
        return run(self.find_draft_flow(scope, plan))

    async def afind_draft(self, scope: Scope, plan: str) -> Draft | None:
        """`find_draft` on an event loop."""
        return await arun(self.find_draft_flow(scope, plan))

    def commit(self, scope: Scope, record: Record) -> None:
        """Put a record in force; committing it twice is the same as once.

        Raises:
            ArchiveUnconfirmed: the store does not give the record back as the one in force.
            ArchiveError: the store fails; the record before is still in force, or this one is.
        """
        run(self.commit_flow(scope, record))

    async def acommit(self, scope: Scope, record: Record) -> None:
        """`commit` on an event loop."""
        await arun(self.commit_flow(scope, record))

    def chain(self, scope: Scope) -> tuple[Record, ...]:
        """Records from the first of a thread to the one in force.

        Empty where an ancestor is missing or damaged: what such a chain covers is not known for
        sure, so it is not trusted.

        Raises:
            ArchiveError: the store fails, or a newer version has written a record.
        """
        return run(self.chain_flow(scope))

    async def achain(self, scope: Scope) -> tuple[Record, ...]:
        """`chain` on an event loop."""
        return await arun(self.chain_flow(scope))

    def records(self, scope: Scope) -> tuple[Record, ...]:
        """Every sound record, abandoned branches included; parents before their children.

        A record says what it adds to its parent, so of one whose parent is gone nothing is known.
        """
        return run(self.records_flow(scope))

    async def arecords(self, scope: Scope) -> tuple[Record, ...]:
        """`records` on an event loop."""
        return await arun(self.records_flow(scope))

    def threads(self, tenant: str) -> tuple[str, ...]:
        """Names of a tenant's threads, sorted."""
        return run(self.threads_flow(tenant))

    async def athreads(self, tenant: str) -> tuple[str, ...]:
        """`threads` on an event loop."""
        return await arun(self.threads_flow(tenant))

    def forget(self, tenant: str, thread: str | None = None) -> int:
        """Delete all that is kept of one thread, in all its sessions, or of a whole tenant.

        The search index goes too. What graphs hold in their checkpoints is not ours to delete.

        Returns:
            How many values were deleted: messages, drafts, records, pointers, names of threads.

        Raises:
            ArchiveError: the store fails or does not delete; forget again, it goes on from there.
        """
        return run(self.forget_flow(tenant, thread))

    async def aforget(self, tenant: str, thread: str | None = None) -> int:
        """`forget` on an event loop."""
        return await arun(self.forget_flow(tenant, thread))

    def compact(self) -> int:
        """Bring an archive of an earlier version up to the form of this one, which is smaller.

        A file is written anew, which takes as much free space as it has. Stop whatever writes to
        the archive meanwhile: it would have to open it again. Stopped half way, the archive is
        sound; compact it again. Messages with an index by meaning stay as they are.

        Returns:
            How many values were rewritten; 0 where there was nothing to do.

        Raises:
            ArchiveError: the store fails; says what to do.

        Example:
            >>> with Archive.open("memory:") as archive:
            ...     archive.compact()
            0
        """
        return run(self.compact_flow())

    async def acompact(self) -> int:
        """`compact` on an event loop."""
        return await arun(self.compact_flow())

    def export(self, scope: Scope, chain: Chain | None = None) -> list[dict[str, Any]]:
        """One row for each original that a chain answers for, in the order of the conversation.

        Rows are plain JSON data: key, id, cite, role, name, date, archived_at, lossless, form
        (`langchain` or `dict`) and the message. Originals that have expired have no row.

        Args:
            scope: whose history.
            chain: records from the first to the head; by default those in force.
        """
        return run(self.export_flow(scope, chain))

    async def aexport(self, scope: Scope, chain: Chain | None = None) -> list[dict[str, Any]]:
        """`export` on an event loop."""
        return await arun(self.export_flow(scope, chain))
