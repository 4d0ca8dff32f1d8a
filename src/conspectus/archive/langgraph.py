"""Keep an archive in any LangGraph store, and search it by an index in memory."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from conspectus._langchain import known
from conspectus._newest import Newest
from conspectus.archive.guard import Guarded
from conspectus.archive.passages import original_of
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.values import Item, Items, Kind, Scope, entry_of, newer, packed, unpacked
from conspectus.errors import ArchiveError, PolicyError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

ROOT = "conspectus"  # First label of every namespace that we use
FORMAT = 2  # Version of a value; a newer one is refused
CHUNK = 200  # Operations in one batch
ALL = 1_000_000  # Values of a namespace that are asked for at once, as unordered pages may overlap
INDEXES = 16  # Histories whose index is in memory
COUNTED = ("messages", "records", "drafts")


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
        from langgraph.store import base  # which takes a while to import

        self._store, self._ttl, self._operations = store, ttl, base
        # The in-memory store is a plain dict, which must not change while a search goes over it.
        memory = known("langgraph.store.memory", "InMemoryStore")
        self._lock = threading.RLock() if isinstance(store, memory) else nullcontext()
        # One that cannot hang needs no thread.
        local = type(store) in (memory, known("langgraph.store.sqlite", "SqliteStore"))
        self._guarded = Guarded(store, None if local else timeout)
        self._indexes: Newest[Scope, tuple[Any, set[str]]] = Newest(INDEXES)

    def read(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, bytes]:
        place, get = _place(scope, kind), self._operations.GetOp
        if names is None:
            return _bodies(item for item in self._all(place) if tuple(item.namespace) == place)
        return _bodies(
            self._batch([get(place, name, refresh_ttl=False) for name in dict.fromkeys(names)])
        )

    def write(
        self,
        scope: Scope,
        items: Items,
        head: str | None = None,
        seen: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        now = "" if seen is None else self._head(scope)
        if now not in ("", seen, head):
            return now
        older = {} if self._ttl is None else self.read(scope, "records", renewed)
        place, name = _registry(scope)
        self._put(place, {name: packed([scope.tenant, scope.thread, scope.session])})
        self._put(_place(scope, "records"), older)
        for kind, kept in items.items():
            self._put(_place(scope, kind), {one.key: one.body for one in kept})
        if head is None:
            return now
        self._put(_place(scope, "head"), {"head": packed(head)})
        return self._head(scope)

    def _put(self, place: tuple[str, ...], bodies: Mapping[str, bytes]) -> None:
        put, ttl = self._operations.PutOp, self._ttl
        # Some stores delete expired values only when they are swept, so we look at the end.
        ends = {} if ttl is None else {"expires": time.time() + ttl}
        packs = {k: {"v": FORMAT, "z": b64encode(v).decode(), **ends} for k, v in bodies.items()}
        minutes = None if ttl is None else ttl / 60
        self._batch([put(place, *one, index=False, ttl=minutes) for one in packs.items()])

    def _head(self, scope: Scope) -> str:
        kept = self.read(scope, "head", ["head"])
        return str(unpacked(kept["head"])) if kept else ""

    def searchable(self, scope: Scope, keys: Collection[str]) -> Any:
        """Return tables in memory with the words of these originals, and of no others."""
        index, known = self._indexes.get(scope) or (None, set[str]())
        # Of a branch that was left, if there are others: ranks go by what the index has.
        if index is None or not known <= {*keys}:
            index, known = SqliteTables(None, None), set()
        self._indexes.put(scope, (index, known))
        new = [key for key in keys if key not in known]
        for at in range(0, len(new), CHUNK):
            bodies = self.read(scope, "messages", new[at : at + CHUNK])
            items = list[Item]()
            for key, body in bodies.items():
                with suppress(ArchiveError):  # of a damaged one no word is known
                    items.append(original_of(entry_of(key, body)[0], b""))
            index.write(scope, {"messages": items})
            known.update(bodies)
        return index

    def scopes(self, tenant: str) -> list[Scope]:
        kept = _bodies(self._all((ROOT, Scope(tenant, "").hashes[0], "scopes")))
        return [Scope(*unpacked(body)) for body in kept.values()]

    def forget(self, scopes: Sequence[Scope]) -> int:
        put, count = self._operations.PutOp, 0
        for scope in scopes:
            items = self._all(_place(scope))
            self._batch([put(tuple(item.namespace), item.key, None) for item in items])
            self._batch([put(*_registry(scope), None)])
            count += sum(item.namespace[-1] in COUNTED for item in items)
            if self._all(_place(scope)):
                raise ArchiveError(
                    "The store confirmed deletions and still holds the values, or somebody "
                    "writes them anew; stop the agent on this thread and forget it again."
                )
        self._indexes.clear()
        return count

    discard = forget

    def check(self) -> str:
        return ""

    def sweep(self) -> None:
        """Leave it to the store, which deletes what has expired by itself."""

    def close(self) -> None:
        """Drop the indexes; the store stays open, as it is the caller's."""
        self._indexes.clear()

    def _all(self, place: tuple[str, ...]) -> list[Any]:
        search = self._operations.SearchOp(place, limit=ALL, refresh_ttl=False)
        [items] = self._batch([search])
        return list(items)

    def _batch(self, operations: Sequence[Any]) -> list[Any]:
        loop, answers = asyncio._get_running_loop(), list[Any]()
        if loop is not None and loop is getattr(self._store, "_loop", None):
            raise ArchiveError(
                "The archive failed: this store cannot be used on its own event loop without "
                "await; call it in a thread, as with await asyncio.to_thread(archive.find, ...)."
            )
        for at in range(0, len(operations), CHUNK):
            try:
                with self._lock:
                    answers += self._guarded.batch(list(operations[at : at + CHUNK]))
            except ArchiveError as error:
                own = getattr(self._store, "conn", None)
                if isinstance(own, sqlite3.Connection) and isinstance(error.__cause__, Exception):
                    # The transaction of a failed commit would fail every later batch.
                    with suppress(sqlite3.Error), getattr(self._store, "lock", nullcontext()):
                        own.rollback()
                raise
        return answers


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
