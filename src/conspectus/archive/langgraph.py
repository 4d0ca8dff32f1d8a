"""Keep an archive in any LangGraph store, and search it by an index in memory."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_memory_store, known
from conspectus._newest import Newest
from conspectus.archive.calls import LOOP, ON_ITS_LOOP, Patience, explained, inside
from conspectus.archive.passages import original_of
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.values import (
    Kind,
    Listed,
    Original,
    Scope,
    Values,
    entry_of,
    newer,
    packed,
    unpacked,
)
from conspectus.errors import ArchiveError, PolicyError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

ROOT = "conspectus"  # First label of every namespace that we use
FORMAT = 2  # Version of a value; a newer one is refused
CHUNK = 500  # Most operations in one batch
CHUNK_SIZE = 8_000_000  # Most characters of values in one batch, unless one is larger
WRITES = 3  # Times that the head is written until it is read back as written
PAGE = 200  # Values looked up and deleted at a time
INDEXES = 16  # Histories whose index is in memory
LABELS: dict[Kind, str] = {
    "original": "messages",
    "record": "records",
    "draft": "drafts",
    "note": "notes",
    "head": "head",
}


class LangGraphStore:
    """Values `{"v": 2, "z": <base64>}` under namespaces of hashes, which no store fails on.

    Such stores cannot compare and set: two workers may still pass each other at a commit. Then the
    head names the later record, and neither has lost anything.
    """

    daemon = True

    def __init__(self, store: BaseStore, ttl: float | None, timeout: float | None) -> None:
        if ttl is not None and not store.supports_ttl:
            raise PolicyError(
                f"{type(store).__name__} keeps no time to live; leave ttl out, or use a store that "
                "does, such as SqliteStore or PostgresStore."
            )
        self.store, self._ttl = store, ttl
        # The in-memory store is a plain dict, which must not change while a search goes over it.
        self._memory_lock = threading.RLock() if is_memory_store(store) else None
        # One that cannot hang needs no thread.
        memory = known("langgraph.store.memory", "InMemoryStore")
        local = type(store) in (memory, known("langgraph.store.sqlite", "SqliteStore"))
        self._patience = Patience(None if local else timeout)
        self._indexes: Newest[Scope, SqliteTables] = Newest(INDEXES)

    def read(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, bytes]:
        place = _place(scope, LABELS[kind])
        if names is None:
            return _bodies(self._all(place))
        get = partial(_operations().GetOp, place, refresh_ttl=False)
        return _bodies(self._batch([get(name) for name in dict.fromkeys(names)]))

    def write(self, scope: Scope, values: Values, originals: Sequence[Original] = ()) -> None:
        ends = {} if self._ttl is None else {"expires": time.time() + self._ttl}
        every = [(*_registry(scope), packed([scope.tenant, scope.thread, scope.session]))]
        every += [(_place(scope, LABELS["original"]), one.key, one.body) for one in originals]
        every += [
            (_place(scope, LABELS[kind]), *one) for kind in values for one in values[kind].items()
        ]
        minutes = None if self._ttl is None else self._ttl / 60
        put = partial(_operations().PutOp, index=False, ttl=minutes)
        # Some stores delete expired values only when they are swept, so we look at the end.
        packs = ((*at, {"v": FORMAT, "z": b64encode(body).decode(), **ends}) for *at, body in every)
        self._batch([put(*one) for one in packs])

    def commit(
        self, scope: Scope, record: str, values: Values, older: Sequence[str], seen: str | None
    ) -> str | None:
        head = self._head(scope)
        if seen is not None and head and head not in (seen, record):
            return head
        renewed = {} if self._ttl is None else self.read(scope, "record", older)
        self.write(scope, {**values, "record": {**renewed, **values["record"]}})
        for _ in range(WRITES):
            self.write(scope, {"head": {"head": packed(record)}})
            head = self._head(scope)
            # A slow worker may have set the head back to the record before.
            if head != seen:
                break
        return head

    def _head(self, scope: Scope) -> str | None:
        kept = self.read(scope, "head", ["head"])
        return str(unpacked(kept["head"])) if kept else None

    def listed(self, scope: Scope, keys: Sequence[str]) -> list[Listed]:
        index = self._index(scope)
        have = {key for key, *_ in index.listed(scope, keys)}
        new = [key for key in keys if key not in have]
        for at in range(0, len(new), CHUNK):
            bodies = self.read(scope, "original", new[at : at + CHUNK])
            made = [original_of(entry_of(key, body)[0], b"") for key, body in bodies.items()]
            index.write(scope, {}, made)
        return index.listed(scope, keys)

    def holding(self, scope: Scope, words: Sequence[str]) -> dict[str, frozenset[int]]:
        return self._index(scope).holding(scope, words)

    def _index(self, scope: Scope) -> SqliteTables:
        return self._indexes.get_or_make(scope, lambda: SqliteTables(None, None))

    def scopes(self, tenant: str) -> list[Scope]:
        kept = _bodies(self._all((ROOT, Scope(tenant, "").hashes[0], "scopes")))
        return [Scope(*unpacked(body)) for body in kept.values()]

    def forget(self, scopes: Sequence[Scope]) -> int:
        put, search, count = _operations().PutOp, _operations().SearchOp, 0
        counted = {LABELS["original"], LABELS["record"], LABELS["draft"]}
        for scope in scopes:
            deleted: set[tuple[tuple[str, ...], str]] = set()
            # Look and delete until nothing is left, without relying on order or pages.
            while items := self._batch([search(_place(scope), limit=PAGE)])[0]:
                places = {(tuple(item.namespace), item.key) for item in items}
                if places <= deleted:
                    raise ArchiveError(
                        "The store confirmed deletions and still holds the values, or somebody "
                        "writes them anew; stop the agent on this thread and forget it again."
                    )
                self._batch([put(place, key, None) for place, key in places])
                deleted |= places
            count += sum(place[-1] in counted for place, _ in deleted)
            self._batch([put(*_registry(scope), None)])
        self._indexes.clear()
        return count

    def check(self) -> str:
        return ""

    def sweep(self) -> None:
        """Leave it to the store, which deletes what has expired by itself."""

    def close(self) -> None:
        """Drop the indexes; the store stays open, as it is the caller's."""
        self._indexes.clear()

    def _all(self, place: tuple[str, ...]) -> list[Any]:
        """Return all of a namespace at once, as unordered pages may overlap."""
        limit = 2 * CHUNK
        while True:
            [items] = self._batch([_operations().SearchOp(place, limit=limit, refresh_ttl=False)])
            if len(items) < limit:
                return [item for item in items if tuple(item.namespace) == place]
            limit *= 4

    def _batch(self, operations: Sequence[Any]) -> list[Any]:
        loop = getattr(self.store, "_loop", None)
        if isinstance(loop, asyncio.AbstractEventLoop):
            if loop is asyncio._get_running_loop():
                raise ArchiveError(f"The archive failed: {ON_ITS_LOOP}.")
            if not loop.is_running():  # it would wait for that loop for ever
                raise ArchiveError(
                    "the event loop of this store is not running; use the archive from that loop, "
                    "or a store that works without one, such as SqliteStore"
                )
        answers: list[Any] = []
        for part in _chunks(operations):
            answer = self._patience.wait_for(partial(self._call, part))
            if not isinstance(answer, list) or len(answer) != len(part):
                raise ArchiveError(
                    f"{type(self.store).__name__} gave no answer for each operation; it is not a "
                    "working LangGraph store"
                )
            answers += answer
        return answers

    @inside()
    def _call(self, operations: list[Any]) -> Any:
        try:
            with self._memory_lock or nullcontext():
                try:
                    return self.store.batch(operations)
                except NotImplementedError:
                    if (loop := LOOP.get()) is None:
                        raise
                    answer = self.store.abatch(operations)
                    return asyncio.run_coroutine_threadsafe(answer, loop).result()
        except Exception as error:
            connection, lock = getattr(self.store, "conn", None), getattr(self.store, "lock", None)
            if isinstance(connection, sqlite3.Connection) and lock is not None:
                # The transaction of a failed commit would fail every later batch.
                with suppress(sqlite3.Error), lock:
                    connection.rollback()
            raise explained(error) from error


def _operations() -> Any:
    """Return the module of LangGraph's operations, which takes a while to import."""
    from langgraph.store import base

    return base


def _place(scope: Scope, *label: str) -> tuple[str, ...]:
    return (ROOT, *scope.hashes, *label)


def _registry(scope: Scope) -> tuple[tuple[str, ...], str]:
    tenant, thread, session = scope.hashes
    return (ROOT, tenant, "scopes"), thread + session


def _bodies(items: Iterable[Any]) -> dict[str, bytes]:
    """Return bodies by key; a damaged one is empty, one that has expired is left out."""
    bodies: dict[str, bytes] = {}
    for item in items:
        if item is None or item.value.get("expires", time.time() + 1) <= time.time():
            continue
        if isinstance(version := item.value.get("v"), int) and version > FORMAT:
            raise newer(version)
        try:
            bodies[item.key] = b64decode(item.value["z"], validate=True)
        except (KeyError, TypeError, ValueError):
            bodies[item.key] = b""
    return bodies


def _chunks(operations: Sequence[Any]) -> list[list[Any]]:
    parts: list[list[Any]] = []
    size = 0
    for one in operations:
        size += len(one.value["z"]) if getattr(one, "value", None) else 0
        if not parts or len(parts[-1]) >= CHUNK or size > CHUNK_SIZE:
            parts.append([])
            size = 0
        parts[-1].append(one)
    return parts
