"""The store of one history's records, drafts and originals: in an archive, or in this process.

A history without an archive has a store, too. It keeps records and drafts while the process runs.
It keeps no originals, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from conspectus.archive import Archive, Archived, Scope
from conspectus.archive.stated_rules import removed_rules
from conspectus.archive.values import DAMAGED
from conspectus.core.records import Chain, Draft, Record
from conspectus.engine.memory import FailedSummary, SessionMemory
from conspectus.errors import ArchiveError, ArchiveUnconfirmed
from conspectus.messages import Message, read_messages
from conspectus.observe import log

T = TypeVar("T")

FAILED_REMARK = "failed"
"""The kind of an archive's remarks on failures."""

SUMMARY_FAILED = "summary"
"""The name of such a remark: a summary failed, or was declined."""

PREPARATION_FAILED = "preparation"
"""The name of another: notes that were prepared in the background failed."""


class HistoryStore(Protocol):
    """The store of one history. Its methods raise `ArchiveError` if the archive fails."""

    @property
    def keeps_originals(self) -> bool:
        """Whether what leaves the view can be recalled."""

    @property
    def lock_key(self) -> int:
        """A number that is the same for all stores of one archive, or of one memory.

        Of two workers with the same number, only one writes a draft at a time.
        """

    async def head_id(self) -> str:
        """Return the id of the record in force for callers without a state; empty if none."""

    async def chain_at(self, head_id: str) -> Chain:
        """Return the records up to the one with this id; empty if it is not known."""

    async def chain_by_signature(self, signature: str) -> Chain:
        """Return the records up to the one that a summary in a history names."""

    async def chains_after(self, head_id: str) -> Sequence[Chain]:
        """Return the chains that continue from a record, the newest first.

        With an empty id they continue from the beginning of the history.
        """

    async def load_notes(self, chain: Chain) -> Chain:
        """Return a chain whose newest record has its notes."""

    async def set_head(self, chain: Chain) -> None:
        """Name another chain as the one in force."""

    async def commit(self, chain: Chain, record: Record, expected_head_id: str) -> None:
        """Put a record in force after a chain.

        Without an archive, the later one of two threads wins.

        Raises:
            ArchiveOvertaken: another record than the expected one is in force in the archive.
        """

    async def find_draft(self, name: str) -> Draft | None:
        """Return the draft of this name."""

    async def save_draft(self, name: str, draft: Draft) -> None:
        """Keep a draft, so that it is paid for once."""

    async def find_originals(self, keys: Sequence[str]) -> Mapping[str, Message]:
        """Return the originals that are there, by their keys."""

    async def read_originals(self, keys: Sequence[str]) -> Mapping[str, Archived]:
        """Return originals as the archive has them, by their keys.

        Raises:
            NotFoundError: some are missing; the error names them.
            ArchiveError: one of them is damaged.
        """

    async def store_originals(self, originals: Sequence[Message]) -> None:
        """Write originals and read them back, because a store may lose them.

        Raises:
            ArchiveUnconfirmed: the store did not return them.
        """

    async def undone(self) -> Sequence[str]:
        """Return the ids of records that were taken back."""

    async def records_after(self, head_id: str) -> Sequence[Record]:
        """Return the records that were made directly after a record; an empty id is the start."""

    async def set_undone(self, undone: Sequence[str], chain: Chain, expected_head_id: str) -> None:
        """Name the records that are taken back, and the chain that is in force from now on.

        Raises:
            ArchiveOvertaken: another record than the expected one is in force in the archive.
        """

    async def removed_rules(self) -> Sequence[str]:
        """Return the ids of statements that a person has taken out of the rules."""

    async def read_failure(self, name: str) -> FailedSummary | None:
        """Return a failure that any process has noted."""

    async def write_failure(self, name: str, failed: FailedSummary | None) -> None:
        """Note a failure for every process; None: there is none any more."""


@dataclass(frozen=True, slots=True)
class ArchivedHistory:
    """The store of a history with an archive."""

    archive: Archive
    scope: Scope
    caller_keeps_head: bool  # the caller's state says which record is in force, not the archive
    label_of_record: Callable[[Record], str] | None  # the caller's own name of a record

    keeps_originals = True

    @property
    def lock_key(self) -> int:
        return id(self.archive)

    async def _ask(self, method: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a method of the archive for this history, sync or async."""
        return await self.archive.call_either_way(method, self.scope, *args, **options)

    async def head_id(self) -> str:
        head_id: str | None = await self._ask(self.archive.head_id)
        return head_id or ""

    async def chain_at(self, head_id: str) -> Chain:
        return await self._ask(self.archive.chain_at, head_id)

    async def chain_by_signature(self, signature: str) -> Chain:
        return await self._ask(self.archive.chain_by_signature, signature)

    async def chains_after(self, head_id: str) -> Sequence[Chain]:
        return await self._ask(self.archive.chains_after, head_id)

    async def load_notes(self, chain: Chain) -> Chain:
        """Read the notes of the newest record again, if the archive's cache has left them out.

        Of a cached chain only the newest record is sure to be whole (see `Chain`),
        and the history may have gone back to an earlier record.
        """
        noted = next((record for record in reversed(chain) if record.by), None)
        if noted is None or noted.notes:
            return chain
        whole = await self.chain_at(chain[-1].id)
        if not whole:
            return chain
        # A record of `chain` may have the summary that the cache has left out.
        pairs = zip(whole, chain, strict=True)
        return tuple(read if read.summary else known for read, known in pairs)

    async def set_head(self, chain: Chain) -> None:
        head_id = chain[-1].id if chain else ""
        await self._ask(self.archive.set_head, head_id)

    async def commit(self, chain: Chain, record: Record, expected_head_id: str) -> None:
        archive = self.archive
        if not self.caller_keeps_head:
            await self._ask(archive.commit, record, expected_head_id=expected_head_id)
            return
        # Branches share the head in the archive, which is for readers without a state.
        await self._ask(archive.commit, record, head_in_state=True)
        if self.label_of_record is not None:
            note = {self.label_of_record(record): {"id": record.id}}
            await self._ask(archive.write_remarks, "record", note)

    async def find_draft(self, name: str) -> Draft | None:
        return await self._ask(self.archive.find_draft, name)

    async def save_draft(self, name: str, draft: Draft) -> None:
        await self._ask(self.archive.save_draft, name, draft)

    async def find_originals(self, keys: Sequence[str]) -> Mapping[str, Message]:
        originals: dict[str, Message] = {}
        archived = await self._ask(self.archive.find, keys)
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

    async def read_originals(self, keys: Sequence[str]) -> Mapping[str, Archived]:
        originals = await self._ask(self.archive.get, keys)
        return {original.key: original for original in originals}

    async def store_originals(self, originals: Sequence[Message]) -> None:
        if not originals:
            return
        missing = await self._ask(self.archive.put, originals)
        if missing:
            raise ArchiveUnconfirmed(
                f"the store took {len(originals)} messages and did not give {len(missing)} of them "
                "back; check its disk, its quota and its time to live"
            )

    async def undone(self) -> Sequence[str]:
        return await self._ask(self.archive.undone)

    async def records_after(self, head_id: str) -> Sequence[Record]:
        return await self._ask(self.archive.records_after, head_id)

    async def set_undone(self, undone: Sequence[str], chain: Chain, expected_head_id: str) -> None:
        await self._ask(
            self.archive.set_undone,
            undone,
            head_id=chain[-1].id if chain else "",
            # Branches of callers with a state share the head in the archive.
            expected_head_id=None if self.caller_keeps_head else expected_head_id,
        )

    async def removed_rules(self) -> Sequence[str]:
        return await self.archive.call_either_way(removed_rules, self.archive, self.scope)

    async def read_failure(self, name: str) -> FailedSummary | None:
        try:
            notes = await self._ask(self.archive.read_remarks, FAILED_REMARK, [name])
        except ArchiveError:
            return None  # a call that needs the archive reports this
        return FailedSummary.from_json(notes.get(name))

    async def write_failure(self, name: str, failed: FailedSummary | None) -> None:
        note = {} if failed is None else failed.to_json()
        try:
            await self._ask(self.archive.write_remarks, FAILED_REMARK, {name: note})
        except ArchiveError as error:
            log("failure_not_noted", "other processes do not know of this failure: %s", error)


@dataclass(frozen=True, slots=True)
class UnarchivedHistory:
    """The store of a history without an archive: this process remembers records and drafts."""

    memory: SessionMemory
    lock_key: int  # the same for all sessions of one `Memories`
    caller_keeps_head: bool
    checkpointed: bool  # a checkpointer keeps the caller's state, records included

    keeps_originals = False

    async def head_id(self) -> str:
        chain = self.memory.chain
        return chain[-1].id if chain else ""

    async def chain_at(self, head_id: str) -> Chain:
        chain = self.memory.chain
        return chain if chain and chain[-1].id == head_id else ()

    async def chain_by_signature(self, signature: str) -> Chain:
        if self.caller_keeps_head:
            return ()
        return self.memory.chains.get(signature) or ()

    async def chains_after(self, head_id: str) -> Sequence[Chain]:
        chains = reversed(self.memory.chains.values())
        if not head_id:
            return list(chains)
        return [chain for chain in chains if any(record.id == head_id for record in chain[:-1])]

    async def load_notes(self, chain: Chain) -> Chain:
        return chain

    async def set_head(self, chain: Chain) -> None:
        self.memory.chain = chain

    async def commit(self, chain: Chain, record: Record, expected_head_id: str) -> None:
        if self.caller_keeps_head and self.checkpointed:
            return
        self.memory.chain = (*chain, record)
        self.memory.chains.put(record.signature, self.memory.chain)

    async def find_draft(self, name: str) -> Draft | None:
        return self.memory.drafts.get(name)

    async def save_draft(self, name: str, draft: Draft) -> None:
        self.memory.drafts.put(name, draft)

    async def find_originals(self, keys: Sequence[str]) -> Mapping[str, Message]:
        return {}

    async def read_originals(self, keys: Sequence[str]) -> Mapping[str, Archived]:
        return {}

    async def store_originals(self, originals: Sequence[Message]) -> None:
        return

    async def undone(self) -> Sequence[str]:
        return ()

    async def records_after(self, head_id: str) -> Sequence[Record]:
        return ()

    async def set_undone(self, undone: Sequence[str], chain: Chain, expected_head_id: str) -> None:
        return

    async def removed_rules(self) -> Sequence[str]:
        return ()

    async def read_failure(self, name: str) -> FailedSummary | None:
        return None

    async def write_failure(self, name: str, failed: FailedSummary | None) -> None:
        return
