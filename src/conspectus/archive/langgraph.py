"""Keep an archive in any LangGraph store, and search it by an index in memory."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_memory_store, known
from conspectus.archive.backend import Commit, Kind, Listed, Original
from conspectus.archive.gate import LOOP, Patience, inside
from conspectus.archive.scope import Scope
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.trouble import ON_ITS_LOOP, explained
from conspectus.archive.values import archived, newer, original_of, packed, unpacked
from conspectus.errors import ArchiveError, PolicyError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

ROOT = "conspectus"  # First label of every namespace that we use
FORMAT = 1  # Version of a value; a newer one is refused
CHUNK = 500  # Most operations in one batch
CHUNK_SIZE = 8_000_000  # Most characters of values in one batch, unless one is larger
WRITES = 3  # Times that the head is written until it is read back as written
PAGE = 200  # Values looked up and deleted at a time


class LangGraphStore:
    """Values `{"v": 1, "z": <base64>}` under namespaces of hashes, which no store fails on.

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
        local = any(
            type(store) is known(f"langgraph.store.{place}", name)
            for place, name in (("memory", "InMemoryStore"), ("sqlite", "SqliteStore"))
        )
        self._patience = Patience(
            None if local else timeout
        )  # one that cannot hang needs no thread
        self._index = SqliteTables(None, None)

    # Originals

    def originals(self, scope: Scope, keys: Iterable[str]) -> dict[str, bytes]:
        return self._read(_place(scope, "messages"), list(dict.fromkeys(keys)))

    def keep(self, scope: Scope, originals: Sequence[Original]) -> None:
        ops = [self._put(_place(scope, "messages"), one.key, one.body) for one in originals]
        self._batch([self._registered(scope), *ops])

    def listed(self, scope: Scope, keys: Sequence[str]) -> list[Listed]:
        """Fill the index with what it does not have yet."""
        listed = self._index.listed(scope, keys)
        have = {key for key, *_ in listed}
        new = [key for key in keys if key not in have]
        for at in range(0, len(new), CHUNK):
            bodies = self.originals(scope, new[at : at + CHUNK])
            made = [original_of(archived(key, body), b"") for key, body in bodies.items()]
            self._index.keep(scope, made)
        return self._index.listed(scope, keys) if new else listed

    def holding(self, scope: Scope, words: Sequence[str]) -> dict[str, frozenset[int]]:
        return self._index.holding(scope, words)

    # Records, drafts, notes and the head

    def values(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, bytes]:
        place = _place(scope, f"{kind}s")
        if names is not None:
            return self._read(place, list(dict.fromkeys(names)))
        return _bodies(self._all(place))

    def save(self, scope: Scope, kind: Kind, values: Mapping[str, bytes]) -> None:
        ops = [self._put(_place(scope, f"{kind}s"), name, body) for name, body in values.items()]
        self._batch([self._registered(scope), *ops])

    def head(self, scope: Scope) -> str | None:
        found = self._read(_place(scope, "head"), ["head"])
        return str(unpacked(found["head"])) if "head" in found else None

    def point(self, scope: Scope, head: str) -> None:
        self._batch([self._put(_place(scope, "head"), "head", packed(head))])

    def commit(self, scope: Scope, commit: Commit) -> str | None:
        if commit.seen is not None:
            head = self.head(scope)
            if head and head not in (commit.seen, commit.record):
                return head
        records = {commit.record: commit.body}
        if self._ttl is not None:
            records |= self.values(scope, "record", commit.ancestors)
        values = (("record", records), ("note", commit.names))
        ops = [
            self._put(_place(scope, f"{kind}s"), *one)
            for kind, part in values
            for one in part.items()
        ]
        self._batch([self._registered(scope), *ops])
        for _ in range(WRITES):
            self.point(scope, commit.record)
            head = self.head(scope)
            # A slow worker may have set the head back to the record before.
            if head != commit.seen:
                break
        return head

    # All of it

    def scopes(self, tenant: str) -> list[Scope]:
        found = self._all((ROOT, Scope(tenant, "").hashes[0], "scopes"))
        names = (unpacked(body) for body in _bodies(found).values())
        return [Scope(*name) for name in names]

    def size(self, scope: Scope) -> int:
        found = self._all(_place(scope, "messages"))
        return sum(map(len, _bodies(found).values()))

    def forget(self, scopes: Sequence[Scope]) -> int:
        count = 0
        for scope in scopes:
            count += self._delete(_place(scope))
            registry, name = _registry(scope)
            self._batch([_ops().PutOp(registry, name, None)])
        self._index.close()
        self._index = SqliteTables(None, None)  # it is filled again at its next use
        return count

    def _delete(self, prefix: tuple[str, ...]) -> int:
        """Look and delete until nothing is found, without relying on order or pages."""
        deleted: set[tuple[tuple[str, ...], str]] = set()
        while True:
            [items] = self._batch([_ops().SearchOp(prefix, limit=PAGE)])
            places = {(tuple(item.namespace), item.key) for item in items}
            if not places:
                return sum(place[-1] in ("messages", "records", "drafts") for place, _ in deleted)
            if places <= deleted:
                raise ArchiveError(
                    "The store confirmed deletions and still holds the values, or somebody writes "
                    "them anew; stop the agent on this thread and forget it again."
                )
            self._batch([_ops().PutOp(place, key, None) for place, key in places])
            deleted |= places

    def check(self) -> str:
        return ""

    def sweep(self) -> None:
        """Leave it to the store, which deletes what has expired by itself."""

    def close(self) -> None:
        self._index.close()  # the store stays open: it is the caller's

    # The two primitives of a store

    def _registered(self, scope: Scope) -> Any:
        return self._put(*_registry(scope), packed([scope.tenant, scope.thread, scope.session]))

    def _put(self, place: tuple[str, ...], key: str, body: bytes) -> Any:
        value: dict[str, Any] = {"v": FORMAT, "z": b64encode(body).decode()}
        if self._ttl is not None:  # some stores delete expired values only when they are swept
            value["expires"] = time.time() + self._ttl
        minutes = None if self._ttl is None else self._ttl / 60
        return _ops().PutOp(place, key, value, False, minutes)

    def _read(self, place: tuple[str, ...], keys: Sequence[str]) -> dict[str, bytes]:
        ops = [_ops().GetOp(place, key, refresh_ttl=False) for key in keys]
        return _bodies(self._batch(ops))

    def _all(self, place: tuple[str, ...]) -> list[Any]:
        """Return all of a namespace at once, as unordered pages may overlap."""
        limit = 2 * CHUNK
        while True:
            op = _ops().SearchOp(place, limit=limit, refresh_ttl=False)
            [found] = self._batch([op])
            if len(found) < limit:
                return [item for item in found if tuple(item.namespace) == place]
            limit *= 4

    def _batch(self, ops: Sequence[Any]) -> list[Any]:
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
        for part in _chunks(ops):
            got = self._patience.wait_for(partial(self._call, part))
            if not isinstance(got, list) or len(got) != len(part):
                raise ArchiveError(
                    f"{type(self.store).__name__} gave no answer for each operation; it is not a "
                    "working LangGraph store"
                )
            answers += got
        return answers

    @inside()
    def _call(self, ops: list[Any]) -> Any:
        try:
            with self._memory_lock or nullcontext():
                try:
                    return self.store.batch(ops)
                except NotImplementedError:
                    if (loop := LOOP.get()) is None:
                        raise
                    return asyncio.run_coroutine_threadsafe(self.store.abatch(ops), loop).result()
        except Exception as error:
            connection, lock = getattr(self.store, "conn", None), getattr(self.store, "lock", None)
            if isinstance(connection, sqlite3.Connection) and lock is not None:
                # The transaction of a failed commit would fail every later batch.
                with suppress(sqlite3.Error), lock:
                    connection.rollback()
            raise explained(error) from error


def _ops() -> Any:
    """Return LangGraph's operations, whose module takes a while to import."""
    from langgraph.store import base

    return base


def _place(scope: Scope, *kind: str) -> tuple[str, ...]:
    return (ROOT, *scope.hashes, *kind)


def _registry(scope: Scope) -> tuple[tuple[str, ...], str]:
    tenant, thread, session = scope.hashes
    return (ROOT, tenant, "scopes"), thread + session


def _bodies(items: Iterable[Any]) -> dict[str, bytes]:
    """Return bodies by key; a damaged one is empty, one that has expired is left out."""
    found: dict[str, bytes] = {}
    for item in items:
        if item is None or item.value.get("expires", time.time() + 1) <= time.time():
            continue
        if isinstance(version := item.value.get("v"), int) and version > FORMAT:
            raise newer(version)
        try:
            found[item.key] = b64decode(item.value["z"], validate=True)
        except (KeyError, TypeError, ValueError):
            found[item.key] = b""
    return found


def _chunks(ops: Sequence[Any]) -> Iterable[list[Any]]:
    part: list[Any] = []
    size = 0
    for op in ops:
        written = len(op.value["z"]) if getattr(op, "value", None) else 0
        if part and (len(part) >= CHUNK or size + written > CHUNK_SIZE):
            yield part
            part, size = [], 0
        part.append(op)
        size += written
    if part:
        yield part
