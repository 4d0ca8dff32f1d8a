"""The archive: originals, and the records of their compactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, cast
from uuid import uuid4

from conspectus._langchain import is_store
from conspectus._newest import Newest
from conspectus.archive.address import check_seconds, opened
from conspectus.archive.guard import Guarded
from conspectus.archive.langgraph import LangGraphStore
from conspectus.archive.passages import original_of
from conspectus.archive.tables import Tables
from conspectus.archive.values import (
    Archived,
    Item,
    Kind,
    Scope,
    archived,
    body_of,
    entry_of,
    equals,
    label_hash,
    manifest,
    packed,
    readable,
    record_in,
    row_of,
    unpacked,
)
from conspectus.bridge import in_turn, io_apart
from conspectus.core.records import FORMAT as RECORD_FORMAT
from conspectus.core.records import Chain, Draft, Record
from conspectus.errors import ArchiveError, ArchiveOvertaken, ArchiveUnconfirmed, NotFoundError
from conspectus.messages import Message

TIMEOUT = 30.0  # Seconds that a store has for one batch, by default
CHAINS, RECORDS = 256, 10_000  # Chains in memory, and their records
RECORD = "record"  # Notes by which a history that comes back finds the record of its summary
PROBE = "conspectus probe"  # The tenant of values that are written to be removed
AFTER, BRANCHES = "after", 8  # Notes of the newest records after another one, and how many

P = ParamSpec("P")
T = TypeVar("T")


class Archive:
    """Originals by content hash, with the drafts and records of their compactions.

    Any failure of the store becomes an `ArchiveError` that says what to do; values stored before
    stay as they were. Methods block: on an event loop call them with `asyncio.to_thread`.

    Args:
        store: any LangGraph store, which `close` leaves open.
        ttl: seconds after which values expire; records live from the latest commit of their chain.
        timeout: seconds that the store has for one batch, else `ArchiveTimeout`. Default: 30.

    Raises:
        PolicyError: the ttl or the timeout is invalid, or the store keeps no ttl.

    Example:
        >>> with Archive.open("memory:") as archive:
        ...     archive.threads("ann")
        ()
    """

    def __init__(
        self, store: Any, *, ttl: float | None = None, timeout: float | None = TIMEOUT
    ) -> None:
        check_seconds(ttl, timeout)
        if is_store(store):
            self.backend = Guarded(LangGraphStore(store, ttl, timeout))
        elif isinstance(store, Tables):
            self.backend = Guarded(store, timeout if store.daemon else None)
        else:
            raise ArchiveError(
                f"An archive needs a LangGraph store, not {type(store).__name__}; for a file or an "
                "address use Archive.open(...)."
            )
        self.ttl, self.timeout = ttl, timeout
        # By scope and head, each with its newest record as it is stored.
        self._chains: Newest[tuple[Scope, str], tuple[bytes, Chain]] = Newest(
            CHAINS, RECORDS, lambda kept: len(kept[1])
        )

    @classmethod
    def open(
        cls, where: str | Path, *, ttl: float | None = None, timeout: float | None = TIMEOUT
    ) -> Self:
        """Open an archive, and make its tables if needed.

        `where` is a path or `sqlite:///path`, `postgresql://...`, or `memory:`.

        Raises:
            InputError: the address is unknown or malformed; no part of a password is shown.
            PolicyError: the ttl or the timeout is invalid.
            ArchiveError: it cannot be opened, or an extra is missing; says what to do.
        """
        check_seconds(ttl, timeout)
        archive = cls(opened(where, ttl), ttl=ttl, timeout=timeout)
        if ttl is not None:
            archive.backend.sweep()
        return archive

    def close(self) -> None:
        """Close connections; a store that the caller gave stays open."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def flow(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method, in a thread where an event loop drives the flow."""
        call = partial(work, *args, **kwargs)
        if not self.backend.daemon:
            return cast("T", await in_turn(call))
        return cast("T", await io_apart(call))

    # Originals

    def put(self, scope: Scope, entries: Sequence[Message]) -> list[str]:
        """Write messages as read, all or none, but equal ones; return keys that are not back."""
        missing = set(self.missing(scope, entries))
        new = {entry.key: entry for entry in entries if entry.key in missing}
        if items := [original_of(one, body_of(one)) for one in new.values()]:
            self.backend.write(scope, {"messages": items})
        kept = self.backend.read(scope, "messages", list(new))
        # Another worker may have put one at the same time, with its own date.
        back = (one.key for one in items if kept.get(one.key) != one.body)
        return [key for key in back if key not in kept or not equals(kept[key], new[key])]

    def missing(self, scope: Scope, entries: Sequence[Message]) -> tuple[str, ...]:
        """Return the keys of messages that do not come back equal; empty when all are safe."""
        wanted = {entry.key: entry for entry in entries}
        kept = self.backend.read(scope, "messages", list(wanted))
        return tuple(k for k, one in wanted.items() if k not in kept or not equals(kept[k], one))

    def find(self, scope: Scope, keys: Sequence[str]) -> dict[str, Archived]:
        """Return originals by key, without those that are gone; a damaged one says that it is."""
        kept = self.backend.read(scope, "messages", list(dict.fromkeys(keys)))
        return {key: readable(key, kept[key]) for key in keys if key in kept}

    def get(self, scope: Scope, keys: Sequence[str]) -> list[Archived]:
        """Return originals in the order of their keys.

        Raises:
            NotFoundError: names those that are gone.
            ArchiveError: one is damaged.
        """
        kept = self.backend.read(scope, "messages", list(dict.fromkeys(keys)))
        if gone := [key for key in dict.fromkeys(keys) if key not in kept]:
            raise NotFoundError(
                f"The archive no longer holds {', '.join(gone[:5])} ({len(gone):,} in all): "
                "expired, forgotten, or never put under this tenant, thread and session; go on "
                "without, or look in a backup."
            )
        return [archived(key, kept[key]) for key in keys]

    # Drafts

    def save_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """Keep a finished summary under the hash of its plan, so that it is paid for once.

        It may be lost if the machine fails before the record is committed.
        """
        self.backend.write(scope, {"drafts": [Item(plan, packed(draft.to_json()))]}, durable=False)

    def find_draft(self, scope: Scope, plan: str) -> Draft | None:
        """Return the draft of a plan; None if there is none that this version can use."""
        try:
            data = unpacked(self.backend.read(scope, "drafts", [plan])[plan])
            return Draft.from_json(data) if data["v"] == RECORD_FORMAT else None
        except (KeyError, TypeError, ValueError):
            return None  # a draft only saves money

    # Records

    def commit(
        self, scope: Scope, record: Record, *, alone: bool = True, seen: str | None = None
    ) -> None:
        """Write a record and the head in one transaction, and read both back; twice is as once.

        `alone` is False if the head is kept elsewhere too, and another branch may move this one;
        `seen` is the head when the record was planned, empty for none.

        Raises:
            ArchiveOvertaken: another worker has moved the head since; nothing was written.
            ArchiveUnconfirmed: the store does not return the record as the head.
        """
        before = () if record.parent is None else self.chain_at(scope, record.parent)
        items: dict[Kind, list[Item]] = {"records": [Item(record.id, packed(record.to_json()))]}
        later = [one for one in self._after(scope, record.parent) if one != record.id]
        links: dict[str, Any] = {f"{AFTER} {record.parent}": [*later, record.id][-BRANCHES:]}
        if record.summary:
            links[f"{RECORD} {record.name}"] = record.id
        items["notes"] = [Item(label_hash(key), packed({"id": to})) for key, to in links.items()]
        head = self.backend.write(scope, items, record.id, seen, renewed=[r.id for r in before])
        if seen is not None and head and head not in (seen, record.id):
            raise ArchiveOvertaken(
                "another worker has compacted this history at the same time, and its record is in "
                "force; call again to go on from it"
            )
        kept = self.backend.read(scope, "records", [record.id]).get(record.id)
        # Two workers may commit one record, each with its own bill.
        here = kept == items["records"][0].body or record_in(record.id, kept) is not None
        if kept is None or not here or (alone and head != record.id):
            raise ArchiveUnconfirmed(
                "The store took a record and does not give it back as the one in force; check its "
                "disk, its quota and its time to live, and that no other process writes to this "
                "thread."
            )
        if before or record.parent is None:
            self._chains.drop((scope, record.parent or ""))
            self._keep(scope, kept, (*before, record))
        if self.ttl is not None:
            self.backend.sweep()

    def chain(self, scope: Scope) -> Chain:
        """Return the records from the first of a thread to its head; see `chain_at`."""
        head = self.pointer(scope)
        return self.chain_at(scope, head) if head else ()

    def chain_at(self, scope: Scope, head: str) -> Chain:
        """Return the chain up to a record.

        Empty if a part of it is missing or damaged: what such a chain covers is not known. Only the
        newest record is sure to have its summary, and the newest with notes to have those.
        """
        # The newest is always read from the store: while it is there, so are its ancestors.
        newest = body = self.backend.read(scope, "records", [head]).get(head, b"")
        known = self._chains.get((scope, head))
        if known and known[0] == newest:
            self._chains.put((scope, head), known)
            return known[1]
        later, wanted = list[Record](), head
        while True:
            record = record_in(wanted, body)
            if record is None or any(record.id == one.id for one in later):
                return ()
            later.insert(0, record)
            before = self._chains.get((scope, record.parent or ""))
            if before or record.parent is None:
                return self._keep(scope, newest, (*(before[1] if before else ()), *later))
            wanted = record.parent
            body = self.backend.read(scope, "records", [wanted]).get(wanted, b"")

    def in_force(self, scope: Scope) -> Chain:
        """Return the chain of a thread's head; it is an `ArchiveError` if a part is damaged."""
        if not (chain := self.chain(scope)) and self.pointer(scope):
            raise ArchiveError(
                f"A record of thread {scope.thread!r} is missing or damaged, so that nothing can "
                "be recalled; restore the archive from a backup."
            )
        return chain

    def _keep(self, scope: Scope, newest: bytes, chain: Chain) -> Chain:
        """Remember a chain as it was read, of all notes only the newest; return it."""
        last = max((at for at, record in enumerate(chain) if record.segment), default=0)
        lean = [
            replace(one, segment={}, summary="") if one.summary else one for one in chain[:last]
        ]
        chain = (*lean, *chain[last:])
        self._chains.put((scope, chain[-1].id), (newest, chain))
        return chain

    def chain_of(self, scope: Scope, name: str) -> Chain:
        """Return the chain whose head has this name, by which a summary that returns is known."""
        head = self.notes(scope, RECORD, [name]).get(name, {}).get("id")
        return self.chain_at(scope, head) if isinstance(head, str) else ()

    def chains_after(self, scope: Scope, head: str | None) -> list[Chain]:
        """Return the chains that go on from a record, or from none for None; the newest first."""
        ends, waiting, seen = list[str](), self._after(scope, head), {head}
        while waiting and len(ends) < BRANCHES:
            seen.add(one := waiting.pop())
            later = [name for name in self._after(scope, one) if name not in seen]
            waiting += later
            ends += [] if later else [one]
        return [self.chain_at(scope, one) for one in ends]

    def _after(self, scope: Scope, head: str | None) -> list[str]:
        kept = self.notes(scope, AFTER, [f"{head}"]).get(f"{head}", {}).get("id", [])
        return [one for one in kept if isinstance(one, str)]

    def records(self, scope: Scope) -> Chain:
        """Return every sound record, abandoned branches too, in no order."""
        bodies = self.backend.read(scope, "records", None)
        return tuple(one for name, body in bodies.items() if (one := record_in(name, body)))

    def set_head(self, scope: Scope, record_id: str | None) -> None:
        """Point the head to an existing record, or to none: the history was rewound."""
        self.backend.write(scope, {}, record_id or "")

    def pointer(self, scope: Scope) -> str | None:
        """Return the id of the head; empty for no record, None without a head."""
        kept = self.backend.read(scope, "head", ["head"])
        try:
            return str(unpacked(kept["head"])) if kept else None
        except ValueError as error:
            wrong = f"The head of thread {scope.thread!r} cannot be read: {error}"
            raise ArchiveError(f"{wrong}; restore a backup, or forget the thread.") from error

    def copy(self, source: Scope, target: Scope, head: str) -> None:
        """Copy the chain of a head, with its originals, into another scope."""
        chain = self.chain_at(source, head)
        keys = manifest(chain)
        there = self.backend.read(target, "messages", keys)
        kept = self.backend.read(source, "messages", keys).items()
        new = [original_of(entry_of(key, one)[0], one) for key, one in kept if key not in there]
        self.backend.write(target, {"messages": new})
        for record in chain:
            body = self.backend.read(source, "records", [record.id]).get(record.id)
            self.commit(target, record_in(record.id, body) or record, alone=False)

    # Notes of a program around the archive

    def notes(self, place: Scope | str, kind: str, names: Sequence[str]) -> dict[str, Any]:
        """Return notes of a kind by name, without missing ones.

        `place` is a tenant, or the scope of a thread: its notes are deleted with it.
        """
        by_key, notes = {label_hash(f"{kind} {name}"): name for name in names}, dict[str, Any]()
        scope = Scope(place, "", "notes") if isinstance(place, str) else place
        for key, body in self.backend.read(scope, "notes", list(by_key)).items():
            with suppress(ValueError):
                notes[by_key[key]] = unpacked(body)
        return notes

    def note(
        self, place: Scope | str, kind: str, notes: Mapping[str, Any], *, durable: bool = False
    ) -> None:
        """Write notes by name, all in one transaction; see `notes`.

        They survive the end of the process. The newest may be lost if the machine fails, up to the
        next `durable` one.
        """
        named = {label_hash(f"{kind} {name}"): dict(data) for name, data in notes.items()}
        items = [Item(name, packed(data)) for name, data in named.items()]
        scope = Scope(place, "", "notes") if isinstance(place, str) else place
        self.backend.write(scope, {"notes": items}, durable=durable)

    def probe(self, size: int) -> None:
        """Write a value of so many bytes, read it back, and remove it.

        So it is known whether the store takes what is written: one on a full disk still reads.

        Raises:
            ArchiveError: it does not.
        """
        scope, item = Scope(PROBE, "", str(uuid4())), Item("probe", os.urandom(size))
        self.backend.write(scope, {"notes": [item]})
        kept = self.backend.read(scope, "notes", [item.key])
        self.backend.discard([scope])
        if kept.get(item.key) != item.body:
            raise ArchiveUnconfirmed(
                "The store took a value and does not give it back; check its disk and its quota."
            )

    # For people

    def scopes(self, tenant: str) -> tuple[Scope, ...]:
        """Return a tenant's histories: threads and the sessions in each."""
        return tuple(one for one in self.backend.scopes(tenant) if one.thread)

    def threads(self, tenant: str) -> tuple[str, ...]:
        """Return the names of a tenant's threads, sorted."""
        return tuple(sorted({one.thread for one in self.scopes(tenant)}))

    def size(self, scope: Scope) -> int:
        """Return the bytes of a history's originals as they are kept."""
        return sum(map(len, self.backend.read(scope, "messages", None).values()))

    def export(self, scope: Scope, chain: Chain | None = None) -> list[dict[str, Any]]:
        """Return plain JSON data for each original of a chain, by default of that in force.

        Rows stand in the order of the conversation; expired originals have none. A damaged one has
        no `message`, and `damaged` says what to do.

        Raises:
            ArchiveError: a record is damaged, so that the chain in force is not known.
        """
        keys = manifest(self.in_force(scope) if chain is None else chain)
        kept = self.backend.read(scope, "messages", keys)
        return [row_of(key, kept[key]) for key in keys if key in kept]

    def check(self, scope: Scope | None = None) -> list[str]:
        """Return what is wrong with the store, or with one history: a sentence each."""
        if scope is None:
            return [wrong] if (wrong := self.backend.check()) else []
        chain = self.chain(scope)
        wrongs = [] if chain or not self.pointer(scope) else ["a record is missing or damaged"]
        kept = self.backend.read(scope, "messages", keys := manifest(chain))
        for key in keys:
            try:
                archived(key, kept[key])
            except KeyError:
                wrongs.append(f"the original {key[:8]} is gone")
            except ArchiveError as error:
                wrongs.append(str(error))
        return wrongs

    def forget(self, tenant: str, thread: str | None = None) -> int:
        """Delete one thread with all its sessions, or a whole tenant; checkpoints stay.

        Returns the number of deleted messages, records and drafts. After an error call again.
        """
        every = self.scopes(tenant) if thread is not None else self.backend.scopes(tenant)
        count: int = self.backend.forget([one for one in every if thread in (None, one.thread)])
        self._chains.clear()
        return count
