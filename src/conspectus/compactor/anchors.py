"""Where the records of one history are found, and where the next one goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conspectus._core.records import Draft, Record
from conspectus._drive import Flow
from conspectus.archive import Archive, Scope
from conspectus.compactor.engine import Engine
from conspectus.compactor.memory import Memory

Chain = tuple[Record, ...]


@dataclass(slots=True)
class Anchor:
    """The records and drafts of one history.

    A caller that holds nothing but its messages is served from the archive's own pointer, or from
    this process's memory. A graph holds the head in its checkpointed state: what belongs to a
    checkpoint then comes back with it, whatever was done on other branches.

    Attributes:
        head: where the caller's state has it, the id of the record in force, or without an archive
            the records themselves; None where the pointer or the memory has it.
        checkpointed: a checkpointer keeps that state; else callers may bring back messages alone.
        names: names a record in the archive, where the caller knows it by another name.
        aside: drafts are made beside the caller, and nothing is put in force.
        seen: the record that the pointer named when it was looked at last; empty for none.
    """

    archive: Archive | None
    memory: Memory
    scope: Scope
    head: Chain | str | None = None
    checkpointed: bool = False
    names: Callable[[Record], str] | None = None
    aside: bool = False
    seen: str = ""

    @classmethod
    def of(cls, engine: Engine, scope: Scope) -> Anchor:
        """Make one for the archive and the memory of an engine."""
        return cls(engine.archive, engine.memory, scope)

    def chain_flow(self) -> Flow[Chain]:
        """Return the records in force, the first one first."""
        if isinstance(self.head, tuple):
            return self.head
        if self.archive is None:
            return self.memory.of(self.scope).chain if self.head is None else ()
        if self.head is not None:
            return (yield from self.archive.chain_at_flow(self.scope, self.head))
        self.seen = (yield from self.archive.pointer_flow(self.scope)) or ""
        if not self.seen:
            return ()
        return (yield from self.archive.chain_at_flow(self.scope, self.seen))

    def named_flow(self, name: str) -> Flow[Chain]:
        """Return the chain whose head has this name; empty if there is none.

        Where a state has the head, that is for a summary that came without its record, such as a
        message copied by hand.
        """
        if self.archive is not None:
            return (yield from self.archive.chain_of_flow(self.scope, name))
        found = None if self.head is not None else self.memory.of(self.scope).chains.get(name)
        return found or ()

    def moved_flow(self, chain: Chain) -> Flow[None]:
        """Go back, or over, to these records; a state does so by itself."""
        if self.head is not None or self.aside:
            return
        if self.archive is None:
            self.memory.of(self.scope).chain = chain
            return
        head = chain[-1].id if chain else None
        yield from self.archive.set_head_flow(self.scope, head)
        self.seen = head or ""

    def commit_flow(self, chain: Chain, record: Record) -> Flow[None]:
        """Put a record on top of a chain in force."""
        assert not self.aside, "what is prepared is not put in force"
        if self.archive is None:
            if self.head is None:
                remembered = self.memory.of(self.scope)
                remembered.chain = (*chain, record)
                remembered.chains.put(record.name, remembered.chain)
            return
        if self.head is None:
            yield from self.archive.commit_flow(self.scope, record, seen=self.seen)
            return
        # Two branches of one thread share the pointer, which is for readers without a state.
        yield from self.archive.commit_flow(self.scope, record, alone=False)
        if self.names is not None:
            yield from self.archive.name_flow(self.scope, self.names(record), record.id)

    def find_draft_flow(self, plan: str) -> Flow[Draft | None]:
        """Return the draft of a plan, if there is one."""
        if self.archive is None:
            return self.memory.of(self.scope).drafts.get(plan)
        return (yield from self.archive.find_draft_flow(self.scope, plan))

    def save_draft_flow(self, plan: str, draft: Draft) -> Flow[None]:
        """Keep a draft."""
        if self.archive is None:
            self.memory.of(self.scope).drafts.put(plan, draft)
        else:
            yield from self.archive.save_draft_flow(self.scope, plan, draft)
