"""Keep an archive in any LangGraph store."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from conspectus._langchain import known
from conspectus.archive.guard import CallGuard
from conspectus.archive.key_value import KeyValueStore
from conspectus.archive.values import (
    ItemsByKind,
    Scope,
    ValueKind,
    other_format,
    packed,
    parse_head,
    unpacked,
)
from conspectus.errors import ArchiveError, PolicyError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

ROOT = "conspectus"
"""The first label of all our namespaces."""

FORMAT = 2
"""The version of a value. Another version is refused."""

OPERATIONS_AT_ONCE = 200
"""Operations in one batch."""

NO_LIMIT = 1_000_000
"""The most values of a search: pages have no order and may overlap, so only one is read."""

COUNTED = ("messages", "records", "drafts")
"""The kinds that `forget` counts."""

Namespace = tuple[str, ...]


class LangGraphStore(KeyValueStore):
    """Stores values `{"v": 2, "z": <base64>}` in any store, under namespaces of hashes.

    Such stores have no transactions and cannot compare and set. A write takes several batches, the
    head last. Two workers may commit at the same time: then the head names the later record, and
    both records are stored.

    Raises:
        PolicyError: there is a time to live, and the store has none.
    """

    def __init__(self, store: BaseStore, ttl: float | None, timeout: float | None) -> None:
        super().__init__(ttl)
        if ttl is not None and not store.supports_ttl:
            raise PolicyError(
                f"{type(store).__name__} keeps no time to live; leave ttl out, or use a store that "
                "does, such as SqliteStore or PostgresStore."
            )
        from langgraph.store import base  # slow to import

        self._operations = base
        self._store = store
        memory_class = known("langgraph.store.memory", "InMemoryStore")
        sqlite_class = known("langgraph.store.sqlite", "SqliteStore")
        # The in-memory store is a plain dict, which must not change during a search.
        self._lock: AbstractContextManager[Any] = nullcontext()
        if isinstance(store, memory_class):
            self._lock = threading.RLock()
        # A store that cannot hang needs no thread that can be abandoned.
        can_hang = type(store) not in (memory_class, sqlite_class)
        # Each batch is guarded by itself, because one call of the archive may need several.
        self._guard = CallGuard(timeout if can_hang else None)

    def read(
        self, scope: Scope, kind: ValueKind | Literal["head"], names: Sequence[str] | None
    ) -> dict[str, bytes]:
        """Return values by name; see `ArchiveStore.read`."""
        namespace = _namespace(scope, kind)
        if names is None:
            items = self._all_below(namespace)
            return _bodies(item for item in items if tuple(item.namespace) == namespace)
        get = self._operations.GetOp
        return _bodies(
            self._batch([get(namespace, name, refresh_ttl=False) for name in dict.fromkeys(names)])
        )

    def write(
        self,
        scope: Scope,
        items: ItemsByKind,
        *,
        head_id: str | None = None,
        expected_head_id: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        """Write values, and the head last; see `ArchiveStore.write`."""
        current_head_id = "" if expected_head_id is None else self.head_id(scope) or ""
        if current_head_id not in ("", expected_head_id, head_id):
            return current_head_id
        renewed_records = {} if self.ttl is None else self.read(scope, "records", renewed)
        registry, name = _registry_entry(scope)
        self._put(registry, {name: packed([scope.tenant, scope.thread, scope.session])})
        self._put(_namespace(scope, "records"), renewed_records)
        for kind, values in items.items():
            self._put(_namespace(scope, kind), {item.key: item.body for item in values})
        if head_id is None:
            return self.head_id(scope) or ""
        self._put(_namespace(scope, "head"), {"head": packed(head_id)})
        return self.head_id(scope) or ""

    def _put(self, namespace: Namespace, bodies: Mapping[str, bytes]) -> None:
        put = self._operations.PutOp
        minutes = None if self.ttl is None else self.ttl / 60
        operations = []
        for name, body in bodies.items():
            value: dict[str, Any] = {"v": FORMAT, "z": b64encode(body).decode()}
            if self.ttl is not None:
                # Some stores return expired values until they are swept, so it is checked here.
                value["expires"] = time.time() + self.ttl
            operations.append(put(namespace, name, value, index=False, ttl=minutes))
        self._batch(operations)

    def head_id(self, scope: Scope) -> str | None:
        """Return the head of a scope; see `ArchiveStore.head_id`."""
        return parse_head(scope, self.read(scope, "head", ["head"]).get("head"))

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the scopes of a tenant, from a register of those that were written to."""
        tenant_hash = Scope(tenant, "").hashes[0]
        registered = _bodies(self._all_below((ROOT, tenant_hash, "scopes")))
        return [Scope(*unpacked(body)) for body in registered.values()]

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete scopes; see `ArchiveStore.forget`.

        Raises:
            ArchiveError: the store still holds their values.
        """
        put = self._operations.PutOp  # with None as the value it deletes
        count = 0
        for scope in scopes:
            items = self._all_below(_namespace(scope))
            self._batch([put(tuple(item.namespace), item.key, None) for item in items])
            self._batch([put(*_registry_entry(scope), None)])
            count += sum(item.namespace[-1] in COUNTED for item in items)
            if self._all_below(_namespace(scope)):
                raise ArchiveError(
                    "The store confirmed deletions and still holds the values, or somebody "
                    "writes them anew; stop the agent on this thread and forget it again."
                )
        self.forget_indexes()
        return count

    def close(self) -> None:
        """Drop the indexes. The store belongs to the caller, and stays open."""
        self.forget_indexes()

    def _all_below(self, namespace: Namespace) -> list[Any]:
        search = self._operations.SearchOp(namespace, limit=NO_LIMIT, refresh_ttl=False)
        [items] = self._batch([search])
        return list(items)

    def _batch(self, operations: Sequence[Any]) -> list[Any]:
        running_loop = asyncio._get_running_loop()
        if running_loop is not None and running_loop is getattr(self._store, "_loop", None):
            raise ArchiveError(
                "The archive failed: this store cannot be used on its own event loop without "
                "await; call it in a thread, as with await asyncio.to_thread(archive.find, ...)."
            )
        answers: list[Any] = []
        for start in range(0, len(operations), OPERATIONS_AT_ONCE):
            try:
                with self._lock:
                    part = operations[start : start + OPERATIONS_AT_ONCE]
                    answers += self._guard.make(partial(self._store.batch, list(part)))
            except ArchiveError as error:
                if isinstance(error.__cause__, Exception):
                    self._roll_back()
                raise
        return answers

    def _roll_back(self) -> None:
        """End the transaction of a commit that failed: it would fail every later batch."""
        connection = getattr(self._store, "conn", None)
        if isinstance(connection, sqlite3.Connection):
            with suppress(sqlite3.Error), getattr(self._store, "lock", nullcontext()):
                connection.rollback()


def _namespace(scope: Scope, *kind: str) -> Namespace:
    return (ROOT, *scope.hashes, *kind)


def _registry_entry(scope: Scope) -> tuple[Namespace, str]:
    """Return under which namespace and name a scope is registered."""
    tenant, thread, session = scope.hashes
    return (ROOT, tenant, "scopes"), thread + session


def _bodies(items: Iterable[Any]) -> dict[str, bytes]:
    """Return values by name; a damaged one is empty, one that has expired is left out.

    Raises:
        ArchiveError: a newer version has written one.
    """
    bodies: dict[str, bytes] = {}
    for item in items:
        if item is None:
            continue
        now = time.time()
        if item.value.get("expires", now + 1) <= now:
            continue
        version = item.value.get("v")
        if isinstance(version, int) and version > FORMAT:
            raise other_format(version, FORMAT)
        try:
            bodies[item.key] = b64decode(item.value["z"], validate=True)
        except (KeyError, TypeError, ValueError):
            bodies[item.key] = b""
    return bodies
