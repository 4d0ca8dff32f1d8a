"""One agent's history in one thread: its name, its window, and the store of its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from conspectus.archive import Scope
from conspectus.core.items import Size, Window
from conspectus.core.planner import divide_size
from conspectus.core.records import Chain, Record
from conspectus.engine.engine import Engine
from conspectus.engine.history_store import ArchivedHistory, HistoryStore, UnarchivedHistory
from conspectus.engine.memory import SessionMemory
from conspectus.errors import InputError

PREPARE_FROM = 0.7
"""The share of the trigger at which notes are prepared. In windows with a tenth of room above the
trigger, four tenths of the trigger take longer than a summary of 30 seconds."""

LOCAL = "local"
"""The tenant if none is named."""

ThreadId = str | int | UUID


def scope_of(tenant: str | None, thread_id: ThreadId, session: str) -> Scope:
    """Name a history.

    Raises:
        InputError: a name is empty, or is not a text.
    """
    if isinstance(thread_id, (int, UUID)) and not isinstance(thread_id, bool):
        thread_id = str(thread_id)
    for name, value in (("thread_id", thread_id), ("tenant", tenant), ("session", session)):
        if not (isinstance(value, str) and value) and not (name == "tenant" and value is None):
            raise InputError(f"{name} must be a text that is not empty, not {value!r}")
    return Scope(LOCAL if tenant is None else tenant, str(thread_id), session)


class InForce(NamedTuple):
    """The records in force."""

    chain: Chain  # the oldest first
    stored_head_id: str = ""  # id of the newest as the store names it; empty if a state does


class HeadSource(Protocol):
    """What says which record of a history is in force: the store or the state of the caller."""

    in_state: bool
    """The caller's state says it, so that each checkpoint has its own."""

    async def read_in_force(self, store: HistoryStore) -> InForce:
        """Return the records in force; an `ArchiveError` if the archive cannot be read."""


@dataclass(frozen=True, slots=True)
class StoreNamesHead:
    """The store says it: for callers that send only messages."""

    in_state = False

    async def read_in_force(self, store: HistoryStore) -> InForce:
        head_id = await store.head_id()
        return InForce(await store.chain_at(head_id) if head_id else (), head_id)


@dataclass(frozen=True, slots=True)
class StateNamesHead:
    """The caller's state has the id of the record, and the archive has the records."""

    head_id: str  # empty for no record
    in_state = True

    async def read_in_force(self, store: HistoryStore) -> InForce:
        is_archived = bool(self.head_id) and store.keeps_originals
        return InForce(await store.chain_at(self.head_id) if is_archived else ())


@dataclass(frozen=True, slots=True)
class StateHoldsRecords:
    """The caller's state has the records themselves."""

    chain: Chain
    in_state = True

    async def read_in_force(self, store: HistoryStore) -> InForce:
        return InForce(self.chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerCounts:
    """A caller's own count of a history for the trigger, in place of the meter's."""

    trigger_size: Size
    """The size that is compared with the trigger."""
    count_view: Callable[[Sequence[Any]], Size] | None = None
    """Counts a view in the same way; None if that is not needed."""
    rearm_from: Size | None = None
    """The size that the latest compaction reached, in the same count: the history must have grown
    from there before the same trigger counts again."""


@dataclass(frozen=True, slots=True)
class HistoryContext:
    """One agent's history in one thread."""

    engine: Engine
    scope: Scope
    window: Window | None = None
    """None if it is unknown."""
    head_source: HeadSource = StoreNamesHead()
    """What says which record is in force."""
    checkpointed: bool = False
    """A checkpointer keeps the caller's state. If none does, the caller may send only messages."""
    label_of_record: Callable[[Record], str] | None = None
    """The caller's own name of a record, for the archive."""
    counts: CallerCounts | None = None
    """The caller's own count for the trigger; None if the trigger uses the meter's count."""
    ratio: float | None = None
    """The ratio by which reports of usage correct the estimate, if the caller knows it."""
    is_continuation: bool = False
    """The caller knows that the history continues the record in force, wherever it begins."""

    @property
    def budget(self) -> int | None:
        """Tokens of all messages; None if the window is unknown."""
        return None if self.window is None else self.window.budget

    @property
    def limit(self) -> int | None:
        """Tokens of the whole window; None if it is unknown."""
        return None if self.window is None else self.window.limit

    @property
    def trigger_size(self) -> Size | None:
        """The size by the caller's own count; None if the trigger uses the meter's count."""
        return None if self.counts is None else self.counts.trigger_size

    @property
    def memory(self) -> SessionMemory:
        """What this process remembers of it."""
        return self.engine.memories.of(self.scope)

    @property
    def store(self) -> HistoryStore:
        """Where its records, drafts and originals are."""
        archive = self.engine.archive
        if archive is None:
            lock_key = id(self.engine.memories)
            return UnarchivedHistory(
                self.memory, lock_key, self.head_source.in_state, self.checkpointed
            )
        return ArchivedHistory(archive, self.scope, self.head_source.in_state, self.label_of_record)

    async def read_in_force(self) -> InForce:
        """Return the records in force; an `ArchiveError` if the archive cannot be read."""
        return await self.head_source.read_in_force(self.store)

    # What is due at a size

    def exceeds_window(self, size: Size) -> bool:
        """Tell whether a view of this size does not fit the window."""
        return self.window is not None and size.tokens > self.window.budget

    def size_for_trigger(self, size: Size) -> Size:
        """Return what the trigger is compared with for a view of this size.

        It is the caller's own count; without one, it is the size of the view.
        """
        return self.trigger_size or size

    def fires(self, trigger_size: Size, rearm_from: Size | None = None) -> bool:
        """Tell whether the trigger fires; for both sizes see `Policy.fired`."""
        return self.engine.policy.fired(trigger_size, self.limit, rearm_from) is not None

    def is_due(self, size: Size) -> bool:
        """Tell whether the window or the trigger asks for a compaction of a view of this size."""
        return self.exceeds_window(size) or self.fires(self.size_for_trigger(size))

    def nears_trigger(self, trigger_size: Size) -> bool:
        """Tell whether notes should be prepared, because the trigger fires soon."""
        if self.engine.preparations is None:
            return False
        return (
            self.engine.policy.fired(divide_size(trigger_size, PREPARE_FROM), self.limit)
            is not None
        )

    def is_quiet(self, size: Size, head: Record | None) -> bool:
        """Tell whether a view of this size needs neither a compaction nor a preparation.

        `head` is the record in force. The trigger counts from the size after it.
        """
        trigger_size = self.size_for_trigger(size)
        if self.nears_trigger(trigger_size) or self.exceeds_window(size):
            return False
        return not self.fires(trigger_size, rearm_from=head.size_after if head else None)
