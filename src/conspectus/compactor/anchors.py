"""Where the records of one history are found, and where the next one goes.

A caller that holds nothing but its messages is served from the archive's own pointer, or from this
process's memory. A graph holds the head in its checkpointed state: what belongs to a checkpoint
then comes back with it, whatever was done on other branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from conspectus._core.records import Draft, Record
from conspectus._drive import Flow
from conspectus.archive import Archive, Scope
from conspectus.compactor.memory import Memory

Chain = tuple[Record, ...]


class Anchor(Protocol):
    """The records and drafts of one history."""

    @property
    def knows(self) -> bool:
        """Whether what keeps the history also keeps which record is in force."""
        ...

    def chain_flow(self) -> Flow[Chain]:
        """The records in force, the first one first."""
        ...

    def named_flow(self, name: str) -> Flow[Chain]:
        """The chain whose head has this name; empty if there is none."""
        ...

    def moved_flow(self, chain: Chain) -> Flow[None]:
        """The history has gone back, or over, to these records."""
        ...

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        """Put a record on top of a chain in force."""
        ...

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        """The draft of a plan, if there is one."""
        ...

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        """Keep a draft."""
        ...


@dataclass(slots=True)
class ArchiveAnchor:
    """Records and drafts in the archive, the head named by its pointer.

    Attributes:
        archive: the archive.
        scope: whose they are.
        seen: the record that the pointer named when it was looked at last; empty for none.
    """

    archive: Archive
    scope: Scope
    seen: str = ""
    knows: ClassVar[bool] = False

    def chain_flow(self) -> Flow[Chain]:
        self.seen = (yield from self.archive.pointer_flow(self.scope)) or ""
        if not self.seen:
            return ()
        return (yield from self.archive.chain_at_flow(self.scope, self.seen))

    def named_flow(self, name: str) -> Flow[Chain]:
        return (yield from self.archive.chain_of_flow(self.scope, name))

    def moved_flow(self, chain: Chain) -> Flow[None]:
        yield from self.archive.set_head_flow(self.scope, chain[-1].id if chain else None)
        self.seen = chain[-1].id if chain else ""

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        yield from self.archive.commit_flow(self.scope, record, seen=self.seen)

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        return (yield from self.archive.find_draft_flow(self.scope, plan))

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        yield from self.archive.save_draft_flow(self.scope, plan, draft)


@dataclass(frozen=True, slots=True)
class MemoryAnchor:
    """Records and drafts of a caller without an archive, in this process only."""

    memory: Memory
    scope: Scope
    knows: ClassVar[bool] = False

    def chain_flow(self) -> Flow[Chain]:
        yield from ()
        return self.memory.of(self.scope).chain

    def named_flow(self, name: str) -> Flow[Chain]:
        yield from ()
        return self.memory.of(self.scope).chains.get(name, ())

    def moved_flow(self, chain: Chain) -> Flow[None]:
        yield from ()
        self.memory.of(self.scope).chain = chain

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        yield from ()
        self.memory.commit(self.scope, (*chain, record))

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        yield from ()
        return self.memory.find_draft(self.scope, plan)

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        yield from ()
        self.memory.save_draft(self.scope, plan, draft)


@dataclass(frozen=True, slots=True)
class StateAnchor:
    """The head is in a graph's state; what it stands on is in the archive, if there is one.

    Attributes:
        archive: where records and drafts are; None for none.
        memory: where drafts are without an archive.
        scope: whose they are.
        head: id of the record in force, where the archive holds it; else the records themselves.
        knows: whether a checkpointer keeps that state; else callers may bring back messages alone.
    """

    archive: Archive | None
    memory: Memory
    scope: Scope
    head: Chain | str
    knows: bool = False

    def chain_flow(self) -> Flow[Chain]:
        if not isinstance(self.head, str):
            return self.head
        if self.archive is None:
            return ()
        return (yield from self.archive.chain_at_flow(self.scope, self.head))

    def named_flow(self, name: str) -> Flow[Chain]:
        # A summary that the state has put there without its record: a message copied by hand.
        if self.archive is None:
            return ()
        return (yield from self.archive.chain_of_flow(self.scope, name))

    def moved_flow(self, chain: Chain) -> Flow[None]:
        """The state itself goes back and over; nothing needs to be told."""
        yield from ()

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        # Two branches of one thread share the pointer, which is for readers without a state.
        if self.archive is not None:
            yield from self.archive.commit_flow(self.scope, record, alone=False)

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        return (yield from self._drafts.find_draft_flow(plan))

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        yield from self._drafts.save_draft_flow(plan, draft)

    @property
    def _drafts(self) -> Anchor:
        if self.archive is None:
            return MemoryAnchor(self.memory, self.scope)
        return ArchiveAnchor(self.archive, self.scope)
