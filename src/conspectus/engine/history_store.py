"""Where the records, drafts and originals of one history are: in an archive, or in this process.

A history without an archive has a store, too. It keeps records and drafts while the process runs,
and no originals, which it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from conspectus.archive import Archive, Scope
from conspectus.archive.values import DAMAGED
from conspectus.core.records import Chain, Draft, Record
from conspectus.engine.memory import FailedSummary, SessionMemory
from conspectus.errors import ArchiveError, ArchiveUnconfirmed
from conspectus.messages import Message, read_messages
from conspectus.observe import log

FAILED_REMARK = "failed"
"""The kind of an archive's remarks on failures."""

SUMMARY_FAILED = "summary"
"""The name of such a remark: a summary failed, or was refused."""

PREPARATION_FAILED = "preparation"
"""The name of another: notes that were prepared in the background failed."""


class HistoryStore(Protocol):
    """The store of one history. Its methods raise `ArchiveError` if the archive fails."""

    @property
    def keeps_originals(self) -> bool:
        """Whether what leaves the view can be recalled."""

    @property
    def identity(self) -> int:
        """A number that is the same for all stores of one archive, or of one memory."""

    async def head_id(self) -> str:
        """Return the id of the record in force for callers without a state; empty if none."""

    async def chain_at(self, head_id: str) -> Chain:
        """Return the records up to the one with this id; empty if it is not known."""

    async def chain_labelled(self, name: str) -> Chain:
        """Return the records up to the one that a summary in a history names."""

    async def chains_after(self, head_id: str | None) -> Sequence[Chain]:
        """Return chains that go on from a record, or from none; the newest first."""

    async def load_notes(self, chain: Chain) -> Chain:
        """Return a chain whose newest record has its notes."""

    async def set_head(self, chain: Chain) -> None:
        """Name another chain as the one in force."""

    async def commit(self, chain: Chain, record: Record, expected_head: str) -> None:
        """Put a record in force on top of a chain.

        Without an archive the later of two threads wins.

        Raises:
            ArchiveOvertaken: another record than the expected one is in force in the archive.
        """

    async def find_draft(self, name: str) -> Draft | None:
        """Return the draft of this name."""

    async def save_draft(self, name: str, draft: Draft) -> None:
        """Keep a draft, so that it is paid for once."""

    async def find_originals(self, keys: Sequence[str]) -> Mapping[str, Message]:
        """Return the originals that are there, by their keys."""

    async def store_originals(self, originals: Sequence[Message]) -> None:
        """Write originals and read them back, as a store may forget.

        Raises:
            ArchiveUnconfirmed: the store did not give them back.
        """

    async def noted_failure(self, name: str) -> FailedSummary | None:
        """Return a failure that any process has noted."""

    async def note_failure(self, name: str, failed: FailedSummary | None) -> None:
        """Note a failure for every process, or with None that it is over."""


@dataclass(frozen=True, slots=True)
class ArchivedHistory:
    """The store of a history with an archive."""

    archive: Archive
    scope: Scope
    caller_keeps_head: bool  # in force is what the caller's state says, not what the archive says
    label_of_record: Callable[[Record], str] | None  # the caller's own name of a record

    keeps_originals = True

    @property
    def identity(self) -> int:
        return id(self.archive)

    async def head_id(self) -> str:
        head: str | None = await self.archive.call_either_way(self.archive.head, self.scope)
        return head or ""

    async def chain_at(self, head_id: str) -> Chain:
        return await self.archive.call_either_way(self.archive.chain_at, self.scope, head_id)

    async def chain_labelled(self, name: str) -> Chain:
        return await self.archive.call_either_way(self.archive.chain_labelled, self.scope, name)

    async def chains_after(self, head_id: str | None) -> Sequence[Chain]:
        return await self.archive.call_either_way(self.archive.chains_after, self.scope, head_id)

    async def load_notes(self, chain: Chain) -> Chain:
        """Read the notes of the newest record again, where the archive's cache has left them out.

        Only the newest record of a cached chain is sure to be whole (see
        `Archive._remember_lean`), and the history may have gone back to an earlier record.
        """
        noted = next((record for record in reversed(chain) if record.by), None)
        if noted is None or noted.notes:
            return chain
        whole = await self.chain_at(chain[-1].id)
        if not whole:
            return chain
        # A record of the given chain may still have the summary that the cache has left out.
        pairs = zip(whole, chain, strict=True)
        return tuple(read if read.summary else known for read, known in pairs)

    async def set_head(self, chain: Chain) -> None:
        head_id = chain[-1].id if chain else None
        await self.archive.call_either_way(self.archive.set_head, self.scope, head_id)

    async def commit(self, chain: Chain, record: Record, expected_head: str) -> None:
        archive = self.archive
        if not self.caller_keeps_head:
            await archive.call_either_way(
                archive.commit, self.scope, record, expected_head=expected_head
            )
            return
        # Branches share the head in the archive, which is for readers without a state.
        await archive.call_either_way(archive.commit, self.scope, record, head_is_ours=False)
        if self.label_of_record is not None:
            note = {self.label_of_record(record): {"id": record.id}}
            await archive.call_either_way(archive.write_remarks, self.scope, "record", note)

    async def find_draft(self, name: str) -> Draft | None:
        return await self.archive.call_either_way(self.archive.find_draft, self.scope, name)

    async def save_draft(self, name: str, draft: Draft) -> None:
        await self.archive.call_either_way(self.archive.save_draft, self.scope, name, draft)

    async def find_originals(self, keys: Sequence[str]) -> Mapping[str, Message]:
        originals: dict[str, Message] = {}
        archived = await self.archive.call_either_way(self.archive.find, self.scope, keys)
        for key, original in archived.items():
            if original.role == DAMAGED:
                continue
            [message] = read_messages([original.message])
            message.key = key
            message.id = original.id
            originals[key] = message
        lost = len(set(keys) - set(originals))
        if lost:
            log(
                "originals_lost",
                "the originals of %s clipped messages have expired, were forgotten or are damaged",
                lost,
            )
        return originals

    async def store_originals(self, originals: Sequence[Message]) -> None:
        if not originals:
            return
        missing = await self.archive.call_either_way(self.archive.put, self.scope, originals)
        if missing:
            raise ArchiveUnconfirmed(
                f"the store took {len(originals)} messages and did not give {len(missing)} of them "
                "back; check its disk, its quota and its time to live"
            )

    async def noted_failure(self, name: str) -> FailedSummary | None:
        try:
            notes = await self.archive.call_either_way(
                self.archive.read_remarks, self.scope, FAILED_REMARK, [name]
            )
        except ArchiveError:
            return None  # whoever needs the archive says so
        return FailedSummary.from_json(notes.get(name))

    async def note_failure(self, name: str, failed: FailedSummary | None) -> None:
        note = {} if failed is None else failed.to_json()
        try:
            await self.archive.call_either_way(
                self.archive.write_remarks, self.scope, FAILED_REMARK, {name: note}
            )
        except ArchiveError as error:
            log("failure_not_noted", "other processes do not know of this failure: %s", error)


@dataclass(frozen=True, slots=True)
class UnarchivedHistory:
    """The store of a history without an archive: this process remembers records and drafts."""

    memory: SessionMemory
    owner: int  # identity of the memory of all sessions
    caller_keeps_head: bool
    checkpointed: bool  # a checkpointer keeps the caller's state, records included

    keeps_originals = False

    @property
    def identity(self) -> int:
        return self.owner

    async def head_id(self) -> str:
        chain = self.memory.chain
        return chain[-1].id if chain else ""

    async def chain_at(self, head_id: str) -> Chain:
        chain = self.memory.chain
        return chain if chain and chain[-1].id == head_id else ()

    async def chain_labelled(self, name: str) -> Chain:
        if self.caller_keeps_head:
            return ()
        return self.memory.chains.get(name) or ()

    async def chains_after(self, head_id: str | None) -> Sequence[Chain]:
        chains = reversed(self.memory.chains.values())
        if head_id is None:
            return list(chains)
        return [chain for chain in chains if any(record.id == head_id for record in chain[:-1])]

    async def load_notes(self, chain: Chain) -> Chain:
        return chain

    async def set_head(self, chain: Chain) -> None:
        self.memory.chain = chain

    async def commit(self, chain: Chain, record: Record, expected_head: str) -> None:
        if self.caller_keeps_head and self.checkpointed:
            return
        self.memory.chain = (*chain, record)
        self.memory.chains.put(record.label_in_history, self.memory.chain)

    async def find_draft(self, name: str) -> Draft | None:
        return self.memory.drafts.get(name)

    async def save_draft(self, name: str, draft: Draft) -> None:
        self.memory.drafts.put(name, draft)

    async def find_originals(self, keys: Sequence[str]) -> Mapping[str, Message]:
        return {}

    async def store_originals(self, originals: Sequence[Message]) -> None:
        return

    async def noted_failure(self, name: str) -> FailedSummary | None:
        return None

    async def note_failure(self, name: str, failed: FailedSummary | None) -> None:
        return
