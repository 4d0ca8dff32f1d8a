"""The archive. It stores originals, and the records of compactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, cast
from uuid import uuid4

from conspectus._langchain import is_store
from conspectus.archive.address import check_seconds, open_store
from conspectus.archive.chains import ChainReader
from conspectus.archive.guard import GuardedStore
from conspectus.archive.langgraph import LangGraphStore
from conspectus.archive.passages import original_of
from conspectus.archive.store import ArchiveStore
from conspectus.archive.values import (
    Archived,
    Scope,
    StoredItem,
    UncoveredOriginal,
    decode_original,
    encode_original,
    export_row,
    is_stored_form,
    manifest,
    name_hash,
    packed,
    parse_record,
    read_or_describe,
    read_original,
    unpacked,
)
from conspectus.bridge import call_that_computes, call_that_may_hang
from conspectus.core.records import FORMAT as RECORD_FORMAT
from conspectus.core.records import Chain, Draft, Record, without_undone
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    ArchiveUnconfirmed,
    NotFoundError,
    PolicyError,
)
from conspectus.messages import Message

TIMEOUT = 30.0
"""Seconds that a store has for one batch by default."""

RECORD_OF_SUMMARY = "record"
"""The kind of remarks that lead from a summary that comes back to its record."""

RECORDS_AFTER = "after"
"""The kind of remarks on the records that came after another one."""

MAX_BRANCHES = 8
"""The most records that are named as coming after another one."""

PROBE_TENANT = "conspectus probe"
"""The tenant of values that are written as a test, and removed."""

UNCOVERED = "uncovered"
"""The kind and the name of the remark on originals that no record covers."""

UNDONE = "undone"
"""The kind and the name of the remark on records that were taken back."""

OVERTAKEN = (
    "another worker has compacted this history at the same time, and its record is in force; call "
    "again to continue from it"
)
OVERTAKEN_BY_UNDO = (
    "a compaction of this history was taken back at the same time; call again to continue from "
    "what is in force"
)
UNDO_OVERTAKEN = (
    "another worker has compacted this history at the same time, so nothing was taken back; look "
    "at what is in force now, and call again"
)

P = ParamSpec("P")
T = TypeVar("T")


class Archive:
    """The originals of evicted messages, with the drafts and records of compactions.

    If the store fails, the method raises an `ArchiveError` that says what to do; values that were
    stored before do not change. Methods block, so on an event loop call them with
    `asyncio.to_thread`.

    Args:
        store: a LangGraph store, which stays open after `close`; or an `ArchiveStore`.
        ttl: seconds after which values expire. Each commit of a chain gives its records this time
            again. Default: None (values never expire).
        timeout: the most seconds that the store may take for one batch; after that the method
            raises `ArchiveTimeout`. Default: 30. None: no limit.

    Raises:
        PolicyError: `ttl` or `timeout` is invalid, or the store does not support `ttl`.
        ArchiveError: `store` is not a store of these kinds.

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
            # It guards each of its batches by itself.
            guarded = GuardedStore(LangGraphStore(store, ttl, timeout))
        elif isinstance(store, ArchiveStore):
            if ttl not in (None, store.ttl):
                raise PolicyError(
                    f"{type(store).__name__} keeps its values for {store.ttl} seconds, not for "
                    f"{ttl}; give it the ttl, and leave it out here."
                )
            guarded = GuardedStore(store, timeout if store.may_hang else None)
        else:
            raise ArchiveError(
                f"An archive needs a LangGraph store, not {type(store).__name__}; for a file or an "
                "address use Archive.open(...)."
            )
        self.backend: ArchiveStore = guarded
        self.ttl = guarded.ttl
        self.timeout = timeout
        self._chains = ChainReader(self.backend)

    @classmethod
    def open(
        cls, where: str | Path, *, ttl: float | None = None, timeout: float | None = TIMEOUT
    ) -> Self:
        """Open an archive, and create its tables if they do not exist.

        Args:
            where: the path of a SQLite file, `sqlite:///path`, `postgresql://...`, or `memory:`.
            ttl, timeout: in seconds, as for `Archive`.

        Raises:
            InputError: the address is unknown or malformed. The error shows no part of a password.
            PolicyError: `ttl` or `timeout` is invalid.
            ArchiveError: the archive cannot be opened, or a package is missing. The error says what
                to do.
        """
        check_seconds(ttl, timeout)
        archive = cls(open_store(where, ttl), ttl=ttl, timeout=timeout)
        if ttl is not None:
            try:
                archive.backend.sweep()
            except BaseException:
                archive.close()
                raise
        return archive

    def close(self) -> None:
        """Close the connections. A store that the caller passed stays open."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def may_hang(self) -> bool:
        """Whether a call of the store may never return, such as a call over a network."""
        return self.backend.may_hang

    async def call_either_way(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method from a coroutine; in an OS thread if it may block an event loop."""
        call = partial(method, *args, **kwargs)
        if self.may_hang:
            return cast("T", await call_that_may_hang(call))
        return cast("T", await call_that_computes(call))

    # Originals

    def put(self, scope: Scope, entries: Sequence[Message]) -> list[str]:
        """Write the messages that are not in the archive yet.

        In a store with transactions, either all of them are written, or none.

        Returns:
            The keys of messages that the archive does not return unchanged.
        """
        missing = set(self.missing(scope, entries))
        new = {entry.key: entry for entry in entries if entry.key in missing}
        items = [original_of(entry, encode_original(entry)) for entry in new.values()]
        if items:
            self.backend.write(scope, {"messages": items})
        stored = self.backend.read(scope, "messages", list(new))
        unconfirmed = []
        for item in items:
            body = stored.get(item.key)
            # Another worker may have put the same message at the same time, with its own date.
            if body != item.body and (body is None or not is_stored_form(body, new[item.key])):
                unconfirmed.append(item.key)
        return unconfirmed

    def missing(self, scope: Scope, entries: Sequence[Message]) -> tuple[str, ...]:
        """Return the keys of messages that the archive does not return unchanged."""
        entry_of = {entry.key: entry for entry in entries}
        stored = self.backend.read(scope, "messages", list(entry_of))
        return tuple(
            key
            for key, entry in entry_of.items()
            if key not in stored or not is_stored_form(stored[key], entry)
        )

    def find(self, scope: Scope, keys: Sequence[str]) -> dict[str, Archived]:
        """Return originals by key, without missing ones. A damaged original says so in its text."""
        stored = self.backend.read(scope, "messages", list(dict.fromkeys(keys)))
        return {key: read_or_describe(key, stored[key]) for key in keys if key in stored}

    def get(self, scope: Scope, keys: Sequence[str]) -> list[Archived]:
        """Return originals in the order of the keys.

        Raises:
            NotFoundError: some are missing; the error names them.
            ArchiveError: one of them is damaged.
        """
        distinct_keys = list(dict.fromkeys(keys))
        stored = self.backend.read(scope, "messages", distinct_keys)
        missing = [key for key in distinct_keys if key not in stored]
        if missing:
            raise NotFoundError(
                f"The archive no longer holds {', '.join(missing[:5])} ({len(missing):,} in all): "
                "expired, forgotten, or never put under this tenant, thread and session; continue "
                "without them, or look in a backup."
            )
        return [read_original(key, stored[key]) for key in keys]

    # Originals that no record covers

    def note_uncovered(self, scope: Scope, originals: Mapping[str, UncoveredOriginal]) -> None:
        """Store which originals of a history no record covers, by key; see `uncovered`."""
        rows = {key: list(original) for key, original in originals.items()}
        self.write_remarks(scope, UNCOVERED, {UNCOVERED: {"originals": rows}}, durable=True)

    def uncovered(self, scope: Scope) -> dict[str, UncoveredOriginal]:
        """Return the originals of a history that no record covers, by key.

        They were archived because their caller does not have them any more: for example a result
        that a client removed before a compaction was due. Recall finds them, too.
        """
        remark = self.read_remarks(scope, UNCOVERED, [UNCOVERED]).get(UNCOVERED, {})
        rows = remark.get("originals", {})
        return {key: UncoveredOriginal(*row) for key, row in rows.items()}

    def uncovered_in_reach(self, scope: Scope) -> tuple[str, ...]:
        """Return the keys of the uncovered originals that recall finds."""
        uncovered = self.uncovered(scope)
        return tuple(key for key, original in uncovered.items() if original.in_reach)

    def keys_in_reach(self, scope: Scope, chain: Chain) -> tuple[str, ...]:
        """Return the keys of all originals that recall finds: those of a chain, then the others."""
        return tuple(dict.fromkeys([*manifest(chain), *self.uncovered_in_reach(scope)]))

    # Drafts

    def save_draft(self, scope: Scope, name: str, draft: Draft) -> None:
        """Store a finished summary under a name, so that it is paid for only once.

        It may be lost if the machine fails before the record is committed.
        """
        item = StoredItem(name, packed(draft.to_json()))
        self.backend.write(scope, {"drafts": [item]}, durable=False)

    def find_draft(self, scope: Scope, name: str) -> Draft | None:
        """Return the draft with this name; None if it does not exist or cannot be read."""
        try:
            data = unpacked(self.backend.read(scope, "drafts", [name])[name])
            return Draft.from_json(data) if data["v"] == RECORD_FORMAT else None
        except (KeyError, TypeError, ValueError):
            return None  # a draft only saves money, so an error would be too much

    # Records

    def commit(
        self,
        scope: Scope,
        record: Record,
        *,
        expected_head_id: str | None = None,
        head_in_state: bool = False,
    ) -> None:
        """Write a record and the new head, and read both back.

        A store with transactions writes both or none. A LangGraph store writes the head last. If
        the same record is committed twice, the second call changes nothing.

        Args:
            scope: the history.
            record: the record that is in force from now on.
            expected_head_id: the head when the record was planned; empty if there was none. None:
                write also if the head has changed since.
            head_in_state: whether the caller's own state names the record in force. Another branch
                may then change the head at the same time, so the archive does not read the head
                back.

        Raises:
            ArchiveOvertaken: another worker has changed the head, or a record before this one was
                taken back. This record is not in force.
            ArchiveUnconfirmed: the store does not return the record, or another head.
        """
        earlier = () if record.parent is None else self.chain_at(scope, record.parent)
        item = StoredItem(record.id, packed(record.to_json()))
        remarks = self._links_to(scope, record)
        undone = self.undone(scope)
        if record.id in undone:  # a compaction that is made again is in force again
            remarks.append(_remark_on_undone(name for name in undone if name != record.id))
        head_id = self.backend.write(
            scope,
            {"records": [item], "remarks": remarks},
            head_id=record.id,
            expected_head_id=expected_head_id,
            renewed=[ancestor.id for ancestor in earlier],
        )
        if (
            expected_head_id is not None
            and head_id
            and head_id not in (expected_head_id, record.id)
        ):
            raise ArchiveOvertaken(OVERTAKEN)
        if expected_head_id and not head_in_state:
            self._check_not_undone(scope, record, earlier)
        stored = self.backend.read(scope, "records", [record.id]).get(record.id, b"")
        # Two workers may commit the same record, each with its own bill.
        is_stored = stored == item.body or parse_record(record.id, stored) is not None
        if not is_stored or (not head_in_state and head_id != record.id):
            raise ArchiveUnconfirmed(
                "The store took a record and does not give it back as the one in force; check its "
                "disk, its quota and its time to live, and that no other process writes to this "
                "thread."
            )
        if earlier or record.parent is None:
            self._chains.replace_parent(scope, stored, (*earlier, record))
        if self.ttl is not None:
            self.backend.sweep()

    def _check_not_undone(self, scope: Scope, record: Record, earlier: Chain) -> None:
        """Check that no record before a committed one was taken back since it was planned.

        An undo that takes all records back leaves no head, and a commit cannot tell that from a
        history whose head has expired.

        Raises:
            ArchiveOvertaken: one was taken back; the head is what was left in force.
        """
        in_force = without_undone(earlier, self.undone(scope))
        if len(in_force) < len(earlier):
            head_id = in_force[-1].id if in_force else ""
            self.backend.write(scope, {}, head_id=head_id, expected_head_id=record.id)
            raise ArchiveOvertaken(OVERTAKEN_BY_UNDO)

    def _links_to(self, scope: Scope, record: Record) -> list[StoredItem]:
        """Return the remarks by which a record is found: after its parent, and by its summary."""
        siblings = [
            sibling for sibling in self._after(scope, record.parent or "") if sibling != record.id
        ]
        followers = [*siblings, record.id][-MAX_BRANCHES:]
        links: dict[str, str | list[str]] = {f"{RECORDS_AFTER} {record.parent or ''}": followers}
        if record.summary:
            links[f"{RECORD_OF_SUMMARY} {record.signature}"] = record.id
        return [StoredItem(name_hash(name), packed({"id": ids})) for name, ids in links.items()]

    def chain(self, scope: Scope) -> Chain:
        """Return the records of a history, from the first one to the head; see `chain_at`."""
        head_id = self.head_id(scope)
        return self.chain_at(scope, head_id) if head_id else ()

    def chain_at(self, scope: Scope, head_id: str) -> Chain:
        """Return the chain up to a record.

        The method returns an empty chain if a record of the chain is missing or damaged, because
        nobody can know which messages such a chain covers. Older records of a chain may lack their
        summary and notes. The newest record always has its summary, and the newest record with
        notes always has its notes.
        """
        return self._chains.read(scope, head_id)

    def in_force(self, scope: Scope) -> Chain:
        """Return the chain that ends with the head of a history.

        Raises:
            ArchiveError: one of its records is missing or damaged.
        """
        chain = self.chain(scope)
        if not chain and self.head_id(scope):
            raise ArchiveError(
                f"A record of thread {scope.thread!r} is missing or damaged, so that nothing can "
                "be recalled; restore the archive from a backup."
            )
        return chain

    def chain_by_signature(self, scope: Scope, signature: str) -> Chain:
        """Return the chain whose newest record has this signature (`Record.signature`)."""
        remark = self.read_remarks(scope, RECORD_OF_SUMMARY, [signature]).get(signature, {})
        head_id = remark.get("id")
        return self.chain_at(scope, head_id) if isinstance(head_id, str) else ()

    def chains_after(self, scope: Scope, head_id: str) -> list[Chain]:
        """Return the chains that continue from a record, the newest first.

        If `head_id` is empty, they continue from the beginning of the history. A chain ends before
        the first of its records that was taken back.
        """
        last_records: list[str] = []
        to_visit = self._after(scope, head_id)
        visited = {head_id}
        while to_visit and len(last_records) < MAX_BRANCHES:
            record_id = to_visit.pop()
            visited.add(record_id)
            later = [name for name in self._after(scope, record_id) if name not in visited]
            if later:
                to_visit += later
            else:
                last_records.append(record_id)
        if not last_records:
            return []
        undone = self.undone(scope)
        chains = (self.chain_at(scope, record_id) for record_id in last_records)
        return [without_undone(chain, undone) for chain in chains]

    def records_after(self, scope: Scope, head_id: str) -> list[Record]:
        """Return the readable records whose parent is this one, the oldest first."""
        names = self._after(scope, head_id)
        bodies = self.backend.read(scope, "records", names) if names else {}
        records = (parse_record(name, bodies.get(name)) for name in names)
        return [record for record in records if record is not None]

    def _after(self, scope: Scope, head_id: str) -> list[str]:
        """Return the ids of the records that came after another one, the newest last."""
        remark = self.read_remarks(scope, RECORDS_AFTER, [head_id]).get(head_id, {})
        return [record_id for record_id in remark.get("id", []) if isinstance(record_id, str)]

    def records(self, scope: Scope) -> Chain:
        """Return every readable record, also of abandoned branches, in no special order."""
        bodies = self.backend.read(scope, "records", None)
        records = (parse_record(record_id, body) for record_id, body in bodies.items())
        return tuple(record for record in records if record is not None)

    def set_head(self, scope: Scope, head_id: str) -> None:
        """Make an existing record the head; with an empty text the history has no head any more."""
        self.backend.write(scope, {}, head_id=head_id)

    def head_id(self, scope: Scope) -> str | None:
        """Return the id of the head; empty if it was set to no record, None if it never was set."""
        return self.backend.head_id(scope)

    def copy(self, source: Scope, target: Scope, head_id: str) -> None:
        """Copy the chain up to a record, with its originals, to another scope."""
        chain = self.chain_at(source, head_id)
        keys = manifest(chain)
        present = self.backend.read(target, "messages", keys)
        originals = self.backend.read(source, "messages", keys)
        items = []
        for key, body in originals.items():
            if key not in present:
                items.append(original_of(decode_original(key, body).message, body))
        self.backend.write(target, {"messages": items})
        for record in chain:
            # A chain may lack its older summaries and notes; the store has them.
            stored = parse_record(record.id, self._chains.record_body(source, record.id))
            self.commit(target, stored or record, head_in_state=True)

    # Records that were taken back

    def undone(self, scope: Scope) -> tuple[str, ...]:
        """Return the ids of the records of a history that were taken back, the latest last."""
        return self.read_ids(scope, UNDONE, UNDONE)

    def set_undone(
        self,
        scope: Scope,
        undone: Sequence[str],
        *,
        head_id: str,
        expected_head_id: str | None = None,
    ) -> None:
        """Name the records that are taken back, and the head, in one transaction.

        The records stay, with their originals. See `commit` for `expected_head_id`.

        Raises:
            ArchiveOvertaken: another worker has changed the head. Nothing was written.
        """
        stored_head_id = self.backend.write(
            scope,
            {"remarks": [_remark_on_undone(undone)]},
            head_id=head_id,
            expected_head_id=expected_head_id,
        )
        if stored_head_id != head_id:
            raise ArchiveOvertaken(UNDO_OVERTAKEN)

    # Remarks of the engine, and of a program that uses it

    def read_remarks(self, place: Scope | str, kind: str, names: Sequence[str]) -> dict[str, Any]:
        """Return remarks of a kind by name, without missing ones.

        `place` is a tenant, or the scope of a thread: its remarks are deleted with it.
        """
        name_of = {name_hash(f"{kind} {name}"): name for name in names}
        stored = self.backend.read(_scope_of_remarks(place), "remarks", list(name_of))
        remarks: dict[str, Any] = {}
        for key, body in stored.items():
            with suppress(ValueError):
                remarks[name_of[key]] = unpacked(body)
        return remarks

    def read_ids(self, place: Scope | str, kind: str, name: str) -> tuple[str, ...]:
        """Return the ids that a remark holds, under `ids`; empty if there is none."""
        remark = self.read_remarks(place, kind, [name]).get(name, {})
        return tuple(each for each in remark.get("ids", ()) if isinstance(each, str))

    def write_remarks(
        self, place: Scope | str, kind: str, remarks: Mapping[str, Any], *, durable: bool = False
    ) -> None:
        """Write remarks by name, all in one transaction; see `read_remarks`.

        They survive the end of the process. If the machine fails, the remarks that were written
        after the last `durable` call may be lost.
        """
        items = [
            StoredItem(name_hash(f"{kind} {name}"), packed(dict(remark)))
            for name, remark in remarks.items()
        ]
        self.backend.write(_scope_of_remarks(place), {"remarks": items}, durable=durable)

    def probe(self, size: int) -> None:
        """Write a value of `size` bytes, read it back, and remove it.

        This finds out whether the store accepts writes; with a full disk it can still be read.

        Raises:
            ArchiveError: the store does not accept or return the value.
        """
        scope = Scope(PROBE_TENANT, "", str(uuid4()))
        item = StoredItem("probe", os.urandom(size))
        self.backend.write(scope, {"remarks": [item]})
        stored = self.backend.read(scope, "remarks", [item.key])
        self.backend.discard([scope])
        if stored.get(item.key) != item.body:
            raise ArchiveUnconfirmed(
                "The store took a value and does not give it back; check its disk and its quota."
            )

    # For people

    def scopes(self, tenant: str) -> tuple[Scope, ...]:
        """Return the histories of a tenant: a scope for each session of each thread."""
        # Remarks on a tenant have a scope without a thread.
        return tuple(scope for scope in self.backend.scopes(tenant) if scope.thread)

    def threads(self, tenant: str) -> tuple[str, ...]:
        """Return the names of a tenant's threads, sorted."""
        return tuple(sorted({scope.thread for scope in self.scopes(tenant)}))

    def size(self, scope: Scope) -> int:
        """Return the number of bytes that the originals of a history take in the store."""
        return sum(map(len, self.backend.read(scope, "messages", None).values()))

    def export(self, scope: Scope, chain: Chain | None = None) -> list[dict[str, Any]]:
        """Return plain JSON data for each original of a chain. Default: the chain in force.

        The rows have the order of the conversation; originals that no record covers come last.
        Expired originals have no row. A damaged original has no `message`, and its `damaged` says
        what to do.

        Raises:
            ArchiveError: a record is damaged, so the chain in force is not known.
        """
        keys = self.keys_in_reach(scope, self.in_force(scope) if chain is None else chain)
        stored = self.backend.read(scope, "messages", keys)
        return [export_row(key, stored[key]) for key in keys if key in stored]

    def check(self, scope: Scope | None = None) -> list[str]:
        """Return what is wrong with the store, or with one history: one sentence for each."""
        if scope is None:
            store_problem = self.backend.check()
            return [store_problem] if store_problem else []
        problems: list[str] = []
        chain = self.chain(scope)
        if not chain and self.head_id(scope):
            problems.append("a record is missing or damaged")
        keys = self.keys_in_reach(scope, chain)
        stored = self.backend.read(scope, "messages", keys)
        for key in keys:
            if key not in stored:
                problems.append(f"the original {key[:8]} is gone")
                continue
            try:
                read_original(key, stored[key])
            except ArchiveError as error:
                problems.append(str(error))
        return problems

    def forget(self, tenant: str, thread: str | None = None) -> int:
        """Delete one thread with all its sessions; without a `thread`, everything of the tenant.

        Checkpoints of a graph are not deleted. After an error, call it again.

        Returns:
            The number of deleted messages, records and drafts.
        """
        if thread is None:
            scopes = self.backend.scopes(tenant)
        else:
            scopes = [scope for scope in self.scopes(tenant) if scope.thread == thread]
        count = self.backend.forget(scopes)
        self._chains.clear()
        return count


def _remark_on_undone(names: Iterable[str]) -> StoredItem:
    return StoredItem(name_hash(f"{UNDONE} {UNDONE}"), packed({"ids": list(names)}))


def _scope_of_remarks(place: Scope | str) -> Scope:
    """Return where remarks are kept: in a history, or among those of a tenant."""
    return Scope(place, "", "remarks") if isinstance(place, str) else place
