"""Find the records of one history, and commit the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conspectus.archive import Archive, Scope
from conspectus.core.records import Draft, Record
from conspectus.engine.engine import Engine
from conspectus.engine.memory import Memory

Chain = tuple[Record, ...]


@dataclass(slots=True)
class Anchor:
    """The records and drafts of one history.

    For a caller with messages alone, the archive's pointer or this process's memory names the
    head. A graph has the head in its state, so that each checkpoint keeps its own.

    Attributes:
        head: the id of the record in force, or without an archive the records, where the caller's
            state has it; None where the pointer or the memory has it.
        checkpointed: a checkpointer keeps that state; else callers may send messages alone.
        names: the caller's own name of a record, for the archive.
        aside: drafts are made in the background, and nothing is put in force.
        seen: the record that the pointer named at the last look; empty for none.
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
        return cls(engine.archive, engine.memory, scope)

    async def chain_flow(self) -> Chain:
        """Return the records in force, the oldest first."""
        if isinstance(self.head, tuple):
            return self.head
        if self.archive is None:
            return self.memory.of(self.scope).chain if self.head is None else ()
        if self.head is not None:
            return await self.archive.flow(self.archive.chain_at, self.scope, self.head)
        pointer = await self.archive.flow(self.archive.pointer, self.scope)
        self.seen = pointer or ""
        if not self.seen:
            return ()
        return await self.archive.flow(self.archive.chain_at, self.scope, self.seen)

    @property
    def in_force(self) -> object:
        """What was in force at the last look, for a caller with messages alone."""
        return self.memory.of(self.scope).chain if self.archive is None else self.seen

    async def at_head(self) -> object:
        """Look again what is in force; equal to `in_force` if nothing has changed."""
        if self.archive is not None:
            pointer = await self.archive.flow(self.archive.pointer, self.scope)
            self.seen = pointer or ""
        return self.in_force

    async def named_flow(self, name: str) -> Chain:
        """Return the chain whose head has this name, or an empty one."""
        if self.archive is not None:
            return await self.archive.flow(self.archive.chain_of, self.scope, name)
        found = None if self.head is not None else self.memory.of(self.scope).chains.get(name)
        return found or ()

    async def moved_flow(self, chain: Chain) -> None:
        """Put these records in force; a caller's state does so by itself."""
        if self.head is not None or self.aside:
            return
        if self.archive is None:
            self.memory.of(self.scope).chain = chain
            return
        head = chain[-1].id if chain else None
        await self.archive.flow(self.archive.set_head, self.scope, head)
        self.seen = head or ""

    async def commit_flow(self, chain: Chain, record: Record) -> None:
        """Put a record in force on top of a chain."""
        assert not self.aside, "what is prepared is not put in force"
        if self.archive is None:
            if self.head is None or not self.checkpointed:
                memory = self.memory.of(self.scope)
                memory.chain = (*chain, record)
                memory.chains.put(record.name, memory.chain)
            return
        if self.head is None:
            await self.archive.flow(self.archive.commit, self.scope, record, seen=self.seen)
            return
        # Branches of one thread share the pointer, which is for readers without a state.
        await self.archive.flow(self.archive.commit, self.scope, record, alone=False)
        if self.names is not None:
            note = {self.names(record): {"id": record.id}}
            await self.archive.flow(self.archive.note, self.scope, "record", note)

    async def find_draft_flow(self, plan: str) -> Draft | None:
        if self.archive is None:
            return self.memory.of(self.scope).drafts.get(plan)
        return await self.archive.flow(self.archive.find_draft, self.scope, plan)

    async def save_draft_flow(self, plan: str, draft: Draft) -> None:
        if self.archive is None:
            self.memory.of(self.scope).drafts.put(plan, draft)
        else:
            await self.archive.flow(self.archive.save_draft, self.scope, plan, draft)
