"""Where the records of one history are found, and where the next one goes.

A caller that holds nothing but its messages is served from the archive's own pointer, or from this
process's memory. A graph holds the head in its checkpointed state: what belongs to a checkpoint
then comes back with it, whatever was done on other branches.
"""

from __future__ import annotations

from dataclasses import dataclass

from conspectus._core.records import Draft, Record
from conspectus._drive import Flow
from conspectus.archive import Archive, Scope
from conspectus.compactor.memory import Memory

Chain = tuple[Record, ...]


@dataclass(slots=True)
class Anchor:
    """The records and drafts of one history, for a caller that holds nothing but its messages.

    Attributes:
        archive: where they are, the head named by its pointer; None for none.
        memory: where they are without one: in this process only.
        scope: whose they are.
        seen: the record that the pointer named when it was looked at last; empty for none.
    """

    archive: Archive | None
    memory: Memory
    scope: Scope
    seen: str = ""

    @property
    def knows(self) -> bool:
        """Whether what keeps the history also keeps which record is in force."""
        return False

    def chain_flow(self) -> Flow[Chain]:
        """The records in force, the first one first."""
        if self.archive is None:
            return self.memory.of(self.scope).chain
        self.seen = (yield from self.archive.pointer_flow(self.scope)) or ""
        if not self.seen:
            return ()
        return (yield from self.archive.chain_at_flow(self.scope, self.seen))

    def named_flow(self, name: str) -> Flow[Chain]:
        """The chain whose head has this name; empty if there is none."""
        if self.archive is None:
            return self.memory.of(self.scope).chains.get(name) or ()
        return (yield from self.archive.chain_of_flow(self.scope, name))

    def moved_flow(self, chain: Chain) -> Flow[None]:
        """The history has gone back, or over, to these records."""
        if self.archive is None:
            self.memory.of(self.scope).chain = chain
            return
        head = chain[-1].id if chain else None
        yield from self.archive.set_head_flow(self.scope, head)
        self.seen = head or ""

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        """Put a record on top of a chain in force."""
        if self.archive is None:
            self.memory.commit(self.scope, (*chain, record))
        else:
            yield from self.archive.commit_flow(self.scope, record, seen=self.seen)

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        """The draft of a plan, if there is one."""
        if self.archive is None:
            return self.memory.find_draft(self.scope, plan)
        return (yield from self.archive.find_draft_flow(self.scope, plan))

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        """Keep a draft."""
        if self.archive is None:
            self.memory.save_draft(self.scope, plan, draft)
        else:
            yield from self.archive.save_draft_flow(self.scope, plan, draft)


@dataclass(slots=True, kw_only=True)
class StateAnchor(Anchor):
    """The head is in a graph's state; what it stands on is in the archive, if there is one.

    Attributes:
        head: id of the record in force, where the archive holds it; else the records themselves.
        kept: whether a checkpointer keeps that state; else callers may bring back messages alone.
    """

    head: Chain | str
    kept: bool = False

    @property
    def knows(self) -> bool:
        return self.kept

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
