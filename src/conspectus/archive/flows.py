"""The archive's methods for callers that are flows, which an event loop may drive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from conspectus._core.records import Draft, Record
from conspectus.archive.gate import LOOP
from conspectus.archive.scope import Scope
from conspectus.archive.store import BlockingArchive
from conspectus.archive.values import Archived
from conspectus.bridge import in_a_daemon, io
from conspectus.messages import Entry

P = ParamSpec("P")
T = TypeVar("T")


class Archive(BlockingArchive):
    """Originals by content hash, with the drafts and records of their compactions.

    Any failure of the store becomes an `ArchiveError` that says what to do; values stored before
    stay as they were. Its methods block; on an event loop call them with `asyncio.to_thread`.
    `flow` and the methods named `..._flow` are for callers that are flows themselves.

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

    async def flow(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method, in a thread where an event loop drives the flow."""
        call = partial(work, *args, **kwargs)
        answer: T = await io(call, partial(self._in_thread, call))
        return answer

    async def _in_thread(self, call: Callable[[], T]) -> T:
        token = LOOP.set(asyncio.get_running_loop())
        try:
            return await (in_a_daemon(call) if self.backend.daemon else asyncio.to_thread(call))
        finally:
            LOOP.reset(token)

    def put_flow(self, scope: Scope, entries: Sequence[Entry]) -> Awaitable[None]:
        return self.flow(self.put, scope, entries)

    def missing_flow(self, scope: Scope, entries: Sequence[Entry]) -> Awaitable[tuple[str, ...]]:
        return self.flow(self.missing, scope, entries)

    def find_flow(self, scope: Scope, keys: Sequence[str]) -> Awaitable[dict[str, Archived]]:
        return self.flow(self.find, scope, keys)

    def save_draft_flow(self, scope: Scope, plan: str, draft: Draft) -> Awaitable[None]:
        return self.flow(self.save_draft, scope, plan, draft)

    def find_draft_flow(self, scope: Scope, plan: str) -> Awaitable[Draft | None]:
        return self.flow(self.find_draft, scope, plan)

    def commit_flow(
        self, scope: Scope, record: Record, *, alone: bool = True, seen: str | None = None
    ) -> Awaitable[None]:
        return self.flow(self.commit, scope, record, alone=alone, seen=seen)

    def chain_flow(self, scope: Scope) -> Awaitable[tuple[Record, ...]]:
        return self.flow(self.chain, scope)

    def chain_at_flow(self, scope: Scope, head: str) -> Awaitable[tuple[Record, ...]]:
        return self.flow(self.chain_at, scope, head)

    def chain_of_flow(self, scope: Scope, name: str) -> Awaitable[tuple[Record, ...]]:
        return self.flow(self.chain_of, scope, name)

    def set_head_flow(self, scope: Scope, record_id: str | None) -> Awaitable[None]:
        return self.flow(self.set_head, scope, record_id)

    def pointer_flow(self, scope: Scope) -> Awaitable[str | None]:
        return self.flow(self.pointer, scope)

    def copy_flow(self, source: Scope, target: Scope, head: str) -> Awaitable[None]:
        return self.flow(self.copy, source, target, head)
