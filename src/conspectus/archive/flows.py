"""The archive's work, once, as flows; `Archive` drives them with and without a loop."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from conspectus._core.records import FORMAT as RECORD_FORMAT
from conspectus._core.records import Chain, Draft, Record
from conspectus._drive import Flow
from conspectus.archive.backend import Backend
from conspectus.archive.observed import observed
from conspectus.archive.operations import GetOp, Op, PutOp, SearchOp
from conspectus.archive.originals import TEXTS, Originals
from conspectus.archive.renewal import renew_flow
from conspectus.archive.scope import (
    SLIPS,
    THREADS,
    Label,
    Scope,
    label_hash,
    name_of,
    tenant_namespace,
    thread_namespace,
    written,
)
from conspectus.archive.shelf import Shelf
from conspectus.archive.trouble import unquoted
from conspectus.archive.values import Archived, from_data, manifest, same, to_data, to_row
from conspectus.archive.wire import Wire, aside, meaning_op
from conspectus.errors import ArchiveError, ArchiveOvertaken, ArchiveUnconfirmed, NotFoundError
from conspectus.events.notes import noted
from conspectus.messages import Entry, read_messages

logger = logging.getLogger("conspectus")

HEAD, INDEX = "head", "index"
TIMEOUT = 30.0  # Seconds that a store has for one batch, by default
WRITES = 3  # Times that the head is written until it is read back as written
PAGE = 200  # Values looked up and deleted at a time


ASIDE = ("turns", SLIPS)  # Kinds of the notes of a program around the archive


class Follower(Protocol):
    """An index that is built from an archive's records."""

    def committed_flow(self, scope: Scope, record_id: str) -> Flow[None]:
        """Add a record that was committed."""

    def forgotten(self, tenant: str, thread: str | None) -> None:
        """Drop a tenant, or one thread, whose values are deleted already."""


class ArchiveFlows:
    """The archive's work as flows, for callers that are flows themselves.

    Flows without a docstring are those of the methods of `Archive`. `follower`, if set, is called
    at every commit and every `forget`.
    """

    def __init__(
        self, backend: Backend, ttl: float | None, timeout: float | None = TIMEOUT
    ) -> None:
        self.wire = Wire(backend.store, ttl, timeout)
        self.ttl, self.timeout = ttl, timeout
        self._backend = backend
        self.shelf = Shelf(self.wire)
        self.originals = Originals(self.wire)
        self.follower: Follower | None = None

    @observed("write", counts=True)
    def put_flow(self, scope: Scope, entries: Sequence[Entry]) -> Flow[None]:
        wanted = {entry.key: entry for entry in entries}
        known = yield from self.originals.read_flow(scope, list(wanted))
        new = [entry for key, entry in wanted.items() if not same(known.get(key), entry)]
        if not new:
            return
        data = {entry.key: to_data(entry) for entry in new}
        meanings = {entry.key: entry.reading for entry in new} if self.wire.semantic else {}
        while True:
            ops: list[Op] = [self._registry_op(scope)]
            ops += self.originals.ops(scope, data, meanings)
            try:
                yield from self.wire.batch(ops)
                return
            except ArchiveError as error:
                if not meanings:
                    raise
                # Originals must be safe even if the embedding model cannot be reached.
                _warn("archived without a semantic index, found by words only: %s", error)
                meanings = {}

    @observed("read_back", counts=True)
    def missing_flow(self, scope: Scope, entries: Sequence[Entry]) -> Flow[tuple[str, ...]]:
        wanted = {entry.key: entry for entry in entries}
        found = yield from self.originals.read_flow(scope, list(wanted))
        return tuple(key for key, entry in wanted.items() if not same(found.get(key), entry))

    def get_flow(self, scope: Scope, keys: Sequence[str]) -> Flow[list[Archived]]:
        found = yield from self.find_flow(scope, keys)
        if gone := [key for key in dict.fromkeys(keys) if key not in found]:
            shown = ", ".join(gone[:5]) + (f" and {len(gone) - 5} more" if len(gone) > 5 else "")
            raise NotFoundError(
                f"The archive no longer holds {shown}: expired, forgotten, or never put under this "
                "tenant, thread and session; go on without, or look in a backup."
            )
        return [found[key] for key in keys]

    @observed("read", counts=True)
    def find_flow(self, scope: Scope, keys: Sequence[str]) -> Flow[dict[str, Archived]]:
        """Return originals by key, without those that are gone."""
        found = yield from self.originals.read_flow(scope, keys)
        return {key: from_data(key, data) for key, data in found.items()}

    @property
    def semantic(self) -> bool:
        """Whether messages are found by meaning too."""
        return self.wire.semantic

    def meant_flow(self, scope: Scope, query: str, limit: int) -> Flow[list[tuple[str, float]]]:
        """Return keys and scores of the messages nearest in meaning, best first.

        Empty if the store has no semantic index, or it cannot be asked now: words still find their
        matches.
        """
        place = scope.namespace("messages")
        if not self.wire.semantic:
            return []
        try:
            [items] = yield from self.wire.batch([meaning_op(place, query, limit)])
        except ArchiveError as error:
            _warn("recalled by words only, without the semantic index: %s", error)
            return []
        return [
            (item.key, item.score)
            for item in items
            if tuple(item.namespace) == place and getattr(item, "score", None) is not None
        ]

    @observed("save_draft")
    def save_draft_flow(self, scope: Scope, plan: str, draft: Draft) -> Flow[None]:
        yield from self._put_one(scope, "drafts", plan, {"draft": draft.to_json()})

    @observed("find_draft")
    def find_draft_flow(self, scope: Scope, plan: str) -> Flow[Draft | None]:
        found = yield from self.wire.read(scope.namespace("drafts"), [plan])
        try:
            data = (found.get(plan) or {})["draft"]
            return Draft.from_json(data) if data.get("v") == RECORD_FORMAT else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # a draft only saves money

    @observed("save_draft")
    def save_prepared_flow(self, scope: Scope, name: str, data: Mapping[str, Any]) -> Flow[None]:
        """Note which draft is being prepared for the record of this name."""
        yield from self._put_one(scope, "drafts", label_hash(name), data)

    @observed("find_draft")
    def find_prepared_flow(self, scope: Scope, name: str) -> Flow[dict[str, Any] | None]:
        """Return the note of `save_prepared_flow`, or None."""
        key = label_hash(name)
        return (yield from self.wire.read(scope.namespace("drafts"), [key])).get(key)

    @observed("commit")
    def commit_flow(
        self, scope: Scope, record: Record, *, alone: bool = True, seen: str | None = None
    ) -> Flow[None]:
        """Commit a record: write it, then the head, then read both back.

        Unless `alone`, the head is kept elsewhere too and another branch may have moved this one.
        With `seen`, the head when this record was planned (empty for none), nothing is written if
        another worker has moved it since. Stores cannot compare and set, so two workers may still
        pass each other; then the head names the later record, and neither has lost anything.
        """
        if seen is not None:
            self._check_overtaken((yield from self.pointer_flow(scope)), record, seen)
        written = [record]
        if self.ttl is not None and record.parent is not None:
            # A chain lives as long as its youngest record, or it would lose its root and be void.
            written += (yield from self.shelf.ancestry_flow(scope, record.parent)) or ()
            yield aside(self._backend.sweep, self.timeout)
        ops: list[Op] = [self._registry_op(scope)]
        ops += yield from self.shelf.ops_flow(scope, written)
        if record.summary:
            named = {"record": record.id}
            place = scope.namespace("summaries")
            ops.append(self.wire.put_op(place, label_hash(record.name), named))
        yield from self.wire.batch(ops)
        for _ in range(WRITES):
            yield from self._put_one(scope, "head", HEAD, {"record": record.id})
            kept = yield from self.shelf.one_flow(scope, record.id)
            pointer = yield from self.pointer_flow(scope)
            # A slow worker may have set the head back to the record before.
            if kept is None or pointer != seen:
                break
        if seen is not None:
            self._check_overtaken(pointer, record, seen)
        if kept is None or (alone and pointer != record.id):
            raise ArchiveUnconfirmed(
                "The store took a record and does not give it back as the one in force; check its "
                "disk, its quota and its time to live, and that no other process writes to this "
                "thread."
            )
        if self.follower is not None:
            yield from self.follower.committed_flow(scope, record.id)

    @staticmethod
    def _check_overtaken(pointer: str | None, record: Record, seen: str) -> None:
        if pointer and pointer not in (seen, record.id):
            raise ArchiveOvertaken(
                "another worker has compacted this history at the same time, and its record is in "
                "force; call again to go on from it"
            )

    def name_flow(self, scope: Scope, name: str, record_id: str) -> Flow[None]:
        """Give a record a further name; see `chain_of_flow`."""
        yield from self._put_one(scope, "summaries", label_hash(name), {"record": record_id})

    @observed("move_head")
    def set_head_flow(self, scope: Scope, record_id: str | None) -> Flow[None]:
        """Point the head to an existing record, or to none: the history was rewound."""
        yield from self._put_one(scope, "head", HEAD, {"record": record_id})

    @observed("find_head")
    def pointer_flow(self, scope: Scope) -> Flow[str | None]:
        """Return the id of the head; empty for no record, None without a head."""
        found = yield from self.wire.read(scope.namespace("head"), [HEAD])
        if HEAD not in found:
            return None
        return str((found[HEAD] or {}).get("record") or "")

    @observed("copy")
    def copy_flow(self, source: Scope, target: Scope, head: str) -> Flow[None]:
        """Copy the chain of a head, with its originals, into another scope.

        Values that are in the target already are not written again.
        """
        chain = yield from self.chain_at_flow(source, head)
        keys = manifest(chain)
        for begin in range(0, len(keys), PAGE):
            found = yield from self.find_flow(source, keys[begin : begin + PAGE])
            entries = []
            for key, original in found.items():
                entry = read_messages([original.message])[0]
                entry.key, entry.id = key, original.id
                entries.append(entry)
            yield from self.put_flow(target, entries)
        for record in chain:
            yield from self.commit_flow(target, record, alone=False)

    @observed("chain")
    def chain_flow(self, scope: Scope) -> Flow[tuple[Record, ...]]:
        return (yield from self._named_chain(scope, "head", HEAD))

    @observed("chain")
    def chain_at_flow(self, scope: Scope, head: str) -> Flow[tuple[Record, ...]]:
        """Return the chain up to a record; empty if there is none, or it is damaged."""
        return tuple(reversed((yield from self.shelf.ancestry_flow(scope, head)) or ()))

    @observed("chain")
    def chain_of_flow(self, scope: Scope, name: str) -> Flow[tuple[Record, ...]]:
        """Return the chain whose head has this name; empty as in `chain_at_flow`.

        A history that comes back with an older summary, or with that of another branch, finds its
        records so.
        """
        return (yield from self._named_chain(scope, "summaries", label_hash(name)))

    def _named_chain(self, scope: Scope, kind: Label, key: str) -> Flow[tuple[Record, ...]]:
        found = yield from self.wire.read(scope.namespace(kind), [key])
        head = (found.get(key) or {}).get("record")
        if not isinstance(head, str):
            return ()
        return tuple(reversed((yield from self.shelf.ancestry_flow(scope, head)) or ()))

    def _put_one(self, scope: Scope, kind: Label, key: str, data: Mapping[str, Any]) -> Flow[None]:
        yield from self.wire.batch([self.wire.put_op(scope.namespace(kind), key, data)])

    def records_flow(self, scope: Scope) -> Flow[tuple[Record, ...]]:
        by_id = {one.id: one for one in (yield from self.shelf.every_flow(scope))}

        def depth(record: Record) -> int:
            seen = {record.id}
            parent = by_id.get(record.parent or "")
            while parent is not None and parent.id not in seen:
                seen.add(parent.id)
                parent = by_id.get(parent.parent or "")
            return len(seen)

        return tuple(sorted(by_id.values(), key=lambda record: (depth(record), record.id)))

    def threads_flow(self, tenant: str) -> Flow[tuple[str, ...]]:
        found = yield from self.wire.everything(tenant_namespace(tenant, THREADS))
        return tuple(sorted({name for data in found if (name := name_of(data)) is not None}))

    @observed("forget")
    def forget_flow(self, tenant: str, thread: str | None) -> Flow[int]:
        if thread is None:
            count = yield from self._delete_under(tenant_namespace(tenant))
        else:
            count = yield from self._delete_under(thread_namespace(tenant, thread))
            registry, name = tenant_namespace(tenant, THREADS), label_hash(thread)
            [entry] = yield from self.wire.batch([GetOp(registry, name)])
            yield from self.wire.batch([PutOp(registry, name, None)])
            count += entry is not None
        self.shelf.forget()
        if self.follower is not None:
            self.follower.forgotten(tenant, thread)
        yield aside(self._backend.scrub)
        return count

    def compact_flow(self) -> Flow[int]:
        if self._backend.renewed is not None:
            yield aside(self._renewed)
        count = yield from renew_flow(self.wire)
        self.shelf.forget()
        yield aside(self._backend.shrink)
        return count

    def _renewed(self) -> None:
        assert self._backend.renewed is not None
        self._backend = self._backend.renewed()
        self.wire.store = self._backend.store

    def slips_flow(
        self, names: Sequence[str], place: str | Scope
    ) -> Flow[dict[str, dict[str, Any]]]:
        """Return the notes of a program around the archive, by name.

        `place` is a tenant, or the scope of a thread: its notes are deleted with it. Missing notes
        are left out.
        """
        by_key = {label_hash(name): name for name in names}
        found = yield from self.wire.read(_slips(place), list(by_key))
        return {by_key[key]: data for key, data in found.items() if data is not None}

    def put_slips_flow(
        self, slips: Mapping[str, Mapping[str, Any]], place: str | Scope
    ) -> Flow[None]:
        """Write notes by name, all in one batch; see `slips_flow`."""
        where = _slips(place)
        ops: list[Op] = [self._registry_op(place)] if isinstance(place, Scope) else []
        ops += [self.wire.put_op(where, label_hash(name), data) for name, data in slips.items()]
        yield from self.wire.batch(ops)

    def export_flow(self, scope: Scope, chain: Chain | None) -> Flow[list[dict[str, Any]]]:
        if chain is None:
            chain = yield from self.chain_flow(scope)
        keys = manifest(chain)
        found = yield from self.originals.read_flow(scope, keys)
        return [to_row(key, data) for key in keys if (data := found.get(key)) is not None]

    def _registry_op(self, scope: Scope) -> PutOp:
        data = {"tenant": scope.tenant, **written(scope.thread)}
        return self.wire.put_op(
            tenant_namespace(scope.tenant, THREADS), label_hash(scope.thread), data
        )

    def _delete_under(self, prefix: tuple[str, ...]) -> Flow[int]:
        """Look and delete until nothing is found, without relying on order or pages."""
        deleted: set[tuple[tuple[str, ...], str]] = set()
        while True:
            items = (yield from self.wire.batch([SearchOp(prefix, PAGE)]))[0]
            places = {(tuple(item.namespace), item.key) for item in items}
            if not places:
                # Parts of messages, and data derived from them, do not count.
                return sum(place[-1] not in (TEXTS, INDEX, *ASIDE) for place, _ in deleted)
            if places <= deleted:
                raise ArchiveError(
                    "The store confirmed deletions and still holds the values, or somebody writes "
                    "them anew; stop the agent on this thread and forget it again."
                )
            yield from self.wire.batch([PutOp(place, key, None) for place, key in places])
            deleted |= places


def _warn(text: str, error: ArchiveError) -> None:
    logger.warning(text, unquoted(error), extra=noted("meaning_unavailable"))


def _slips(place: str | Scope) -> tuple[str, ...]:
    if isinstance(place, str):
        return tenant_namespace(place, SLIPS)
    return place.namespace("turns")
