"""The two primitives of a store as steps of a flow, with explained failures.

A value in a store is `{"v": 2, "z": <base64 of packed JSON>}`: NUL, lone surrogates, bytes and
integers beyond 64 bits are inside, where no store fails on them. A store that takes bytes gets
bytes. Earlier versions wrote `{"v": 1, "json": <ASCII text>}`, which is read as well. For a store
with a semantic index, a message also has its plain text, for the index alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from conspectus._drive import Flow, Io, StepTimeout, in_a_daemon
from conspectus._langchain import is_memory_store, known
from conspectus.archive.file_store import FileStore
from conspectus.archive.gate import Breaker, inside
from conspectus.archive.operations import (
    GetOp,
    Item,
    NamespacesOp,
    Op,
    PutOp,
    SearchOp,
    for_langgraph,
)
from conspectus.archive.packed import packed, unpacked
from conspectus.archive.trouble import ON_ITS_LOOP, explain, is_of_a_database
from conspectus.errors import ArchiveError, ArchiveTimeout, PolicyError
from conspectus.messages.codec import sendable

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

Store: TypeAlias = "BaseStore | FileStore"

FORMAT = 2  # Version of the form above; a newer one is refused
CHUNK = 500  # Most operations in one batch
MOST_MEANT = 8_000  # Characters of a text that are embedded; embedding models read little more
CHUNK_SIZE = 8_000_000  # Most bytes of packed values in one batch, unless a single value is larger

Namespace = tuple[str, ...]


def dumps(data: Any) -> str:
    """Return ASCII JSON with keys in their own order, as tool arguments keep it."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))


def check_ttl(store: Store, ttl: float | None) -> None:
    """Refuse an invalid time to live, or one that the store would not keep."""
    _check_seconds("ttl", ttl, "end")
    if ttl is not None and not store.supports_ttl:
        raise PolicyError(
            f"{type(store).__name__} keeps no time to live; leave ttl out, or use a store that "
            "does, such as SqliteStore or PostgresStore."
        )


def _check_seconds(name: str, given: object, none: str) -> None:
    number = isinstance(given, (int, float)) and not isinstance(given, bool) and given
    if given is not None and not 0 < number < math.inf:
        raise PolicyError(
            f"{name} is a number of seconds above 0, or None for no {none}; got {given!r}."
        )


class Wire:
    """One store, reached through flows; `ttl` and `timeout` (of a batch) are in seconds."""

    def __init__(self, store: Store, ttl: float | None, timeout: float | None = None) -> None:
        check_ttl(store, ttl)
        _check_seconds("timeout", timeout, "limit")
        self.store = store
        self.ttl = ttl
        self.timeout = timeout
        self._in_thread = isinstance(store, FileStore)
        # Two, as a hanging embedding model must not keep originals from safety.
        self._breaker, self._meaning_breaker = Breaker(timeout), Breaker(timeout)
        # The in-memory store is a plain dict, which must not change while a search goes over it.
        self._memory_lock = threading.RLock() if is_memory_store(store) else None

    @property
    def semantic(self) -> bool:
        """Whether the store has a semantic index."""
        return bool(getattr(self.store, "index_config", None))

    @property
    def _patience(self) -> float | None:
        """How long to wait: None for stores that cannot hang, as waiting takes a thread.

        Those are a dict in memory, and a SQLite file, which has its own time-out.
        """
        sure = isinstance(self.store, FileStore) or _is_langgraphs(self.store, "memory", "sqlite")
        plain = sure and not self.semantic
        return None if plain else self.timeout

    @property
    def _shared(self) -> bool:
        """Whether a batch ends before a cancellation goes on: others share the connection.

        A call in a thread does so by itself, and a dict in memory has no transactions.
        """
        return self._memory_lock is None and not self._in_thread

    def put_op(
        self, namespace: Namespace, key: str, data: Mapping[str, Any], meaning: str | None = None
    ) -> PutOp:
        """Return the operation that writes one value.

        Data with `expires`, as it is read, keeps its end. `meaning` is the text for a semantic
        index.
        """
        body = dict(data)
        ttl = self.ttl
        if "expires" in body:
            ttl = max(1.0, body["expires"] - time.time())
        elif ttl is not None:
            # Some stores delete expired values only when they are swept.
            body["expires"] = time.time() + ttl
        raw = packed(body)
        whole = raw if getattr(self.store, "takes_bytes", False) else b64encode(raw).decode()
        value: dict[str, Any] = {"v": FORMAT, "z": whole}
        index: Literal[False] | list[str] = False
        if meaning is not None and self.semantic and meaning.strip():
            value["text"] = sendable(meaning[:MOST_MEANT])
            index = ["text"]
        return PutOp(namespace, key, value, index, None if ttl is None else ttl / 60)

    def read(
        self, namespace: Namespace, keys: Sequence[str]
    ) -> Flow[dict[str, dict[str, Any] | None]]:
        """Return values by key, without those missing or expired; a damaged one is None."""
        wanted = list(dict.fromkeys(keys))
        items = yield from self.batch([GetOp(namespace, key) for key in wanted])
        found = {key: unpack(item) for key, item in zip(wanted, items, strict=True) if item}
        return {key: data for key, data in found.items() if not expired(data)}

    def everything(self, namespace: Namespace) -> Flow[list[dict[str, Any]]]:
        """Return all sound values of a namespace, at once: unordered pages may overlap."""
        items = yield from self.items(namespace)
        found = (unpack(item) for item in items)
        return [data for data in found if data is not None and not expired(data)]

    def items(self, namespace: Namespace) -> Flow[list[Item]]:
        """Return everything in a namespace, as the store holds it."""
        return (yield from self._all(partial(SearchOp, namespace)))

    def namespaces(self, beginning: Namespace) -> Flow[list[Namespace]]:
        """Return all namespaces with this beginning, sorted."""
        found = yield from self._all(partial(NamespacesOp, beginning))
        return sorted(map(tuple, found))

    def _all(self, op: Callable[[int], Op]) -> Flow[list[Any]]:
        """Ask for more until the answer is smaller than its limit."""
        limit = 2 * CHUNK
        while len(found := (yield from self.batch([op(limit)]))[0]) >= limit:
            limit *= 4
        return list(found)

    def batch(self, ops: Sequence[Op]) -> Flow[list[Any]]:
        """Run operations in batches, and return their answers in order.

        Raises:
            ArchiveTimeout: the store does not answer in time, or did not a moment ago.
            ArchiveError: the store fails; says what to do.
        """
        breakers = [self._breaker]
        if any(map(_is_meant, ops)):
            breakers.append(self._meaning_breaker)
        answers: list[Any] = []
        for part in _chunks(ops):
            # Read here, as the call itself may run in a thread without a loop.
            call = partial(self._call, part, asyncio._get_running_loop())
            if left := next((n for one in reversed(breakers) if (n := one.left())), 0):
                raise ArchiveTimeout(
                    f"The archive failed: the store did not answer within {self.timeout:g} "
                    f"seconds, and is asked again in {left} s; check it and try again then."
                )
            try:
                got = yield Io(call, partial(self._acall, part), self._patience, self._shared)
            except StepTimeout as error:
                breakers[-1].hung()
                raise ArchiveTimeout(
                    f"The archive failed: the store did not answer within {self.timeout:g} "
                    "seconds; check it and try again, or give Archive(..., timeout=...) more."
                ) from error
            except ArchiveError:
                for one in breakers:
                    one.answered()
                raise
            for one in breakers:
                one.answered()
            if not isinstance(got, list) or len(got) != len(part):
                raise ArchiveError(
                    f"{type(self.store).__name__} gave no answer for each operation; it is not a "
                    "working LangGraph store"
                )
            answers += got
        return answers

    @inside()
    def _call(self, ops: list[Op], around: asyncio.AbstractEventLoop | None = None) -> Any:
        loop = getattr(self.store, "_loop", None)
        if around is not None and around is loop:
            raise ArchiveError(f"The archive failed: {ON_ITS_LOOP}.")
        if isinstance(loop, asyncio.AbstractEventLoop) and not loop.is_running():
            raise ArchiveError(  # it would wait for that loop for ever
                "the event loop of this store is not running; use the async methods on that loop, "
                "or a store that works without one, such as SqliteStore"
            )
        guard: AbstractContextManager[Any] = self._memory_lock or nullcontext()
        try:
            with guard:
                if isinstance(self.store, FileStore):
                    return self.store.batch(ops)
                return self.store.batch(for_langgraph(ops))
        except Exception as error:
            self._roll_back()
            raise ArchiveError(f"The archive failed: {explain(error)}.") from error

    async def _acall(self, ops: list[Op]) -> Any:
        if _is_langgraphs(self.store, "memory") and not self.semantic:
            return self._call(ops)
        if self._memory_lock is not None:  # it may do anything: embed over the network, or sleep
            return await in_a_daemon(partial(self._call, ops))
        if not (self._in_thread or isinstance(self.store, FileStore)):
            try:
                with inside():
                    return await self.store.abatch(for_langgraph(ops))
            except NotImplementedError:
                self._in_thread = True
            except asyncio.CancelledError:  # it took too long
                await self._aroll_back()
                raise
            except Exception as error:
                await self._aroll_back()
                raise ArchiveError(f"The archive failed: {explain(error)}.") from error
        return await in_a_daemon(partial(self._call, ops))

    def _roll_back(self) -> None:
        """End the transaction of a failed commit, or every later batch would fail."""
        connection, lock = getattr(self.store, "conn", None), getattr(self.store, "lock", None)
        if isinstance(connection, sqlite3.Connection) and lock is not None:
            # A closed or broken connection raises its own error at the next call.
            with suppress(sqlite3.Error), lock:
                connection.rollback()

    async def _aroll_back(self) -> None:
        connection, lock = getattr(self.store, "conn", None), getattr(self.store, "lock", None)
        if type(connection).__module__.startswith("aiosqlite") and lock is not None:
            with suppress(sqlite3.Error, ValueError):
                async with lock:
                    await connection.rollback()  # type: ignore[union-attr]


def _is_meant(op: Op) -> bool:
    """Return whether an operation needs an embedding model."""
    if isinstance(op, PutOp):
        return isinstance(op.index, list)
    return isinstance(op, SearchOp) and op.query is not None


def aside(call: Callable[[], object], timeout: float | None = None) -> Io:
    """Return a step beside the store's primitives, with its failure explained too."""

    @inside()
    def guarded() -> object:
        try:
            return call()
        except Exception as error:
            if not is_of_a_database(error):
                raise
            raise ArchiveError(f"The archive failed: {explain(error)}.") from error

    return Io(guarded, timeout=timeout)


def meaning_op(namespace: Namespace, query: str, limit: int) -> SearchOp:
    """Return the search for the values nearest in meaning, best first."""
    return SearchOp(namespace, query=sendable(query[:MOST_MEANT]), limit=limit)


def _chunks(ops: Sequence[Op]) -> Iterator[list[Op]]:
    part: list[Op] = []
    size = 0
    for op in ops:
        written = len(op.value["z"]) if isinstance(op, PutOp) and op.value else 0
        if part and (len(part) >= CHUNK or size + written > CHUNK_SIZE):
            yield part
            part, size = [], 0
        part.append(op)
        size += written
    if part:
        yield part


def unpack(item: Item) -> dict[str, Any] | None:
    """Return the data of a stored value; None if it is damaged."""
    value: Any = item.value
    if not isinstance(value, Mapping):
        return None
    check_version(value.get("v"), FORMAT)
    try:
        if value.get("v") == 1:
            data = json.loads(value["json"])
        else:
            held = value["z"]
            data = unpacked(held if isinstance(held, bytes) else b64decode(held, validate=True))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return data if value.get("v") in (1, FORMAT) and isinstance(data, dict) else None


def check_version(version: object, known: int) -> None:
    """Refuse data that a newer version of the library has written."""
    if isinstance(version, int) and version > known:
        raise ArchiveError(
            f"the archive holds data of format {version}, and this version of Conspectus knows "
            f"{known}; upgrade conspectus to read it"
        )


def expired(data: Mapping[str, Any] | None) -> bool:
    """Return whether a value's time to live is over, swept or not."""
    ends = data.get("expires") if data is not None else None
    return isinstance(ends, (int, float)) and time.time() >= ends


def _is_langgraphs(store: object, *kinds: Literal["memory", "sqlite"]) -> bool:
    """Return whether it is exactly LangGraph's own store of such a kind."""
    names = {"memory": "InMemoryStore", "sqlite": "SqliteStore"}
    return any(type(store) is known(f"langgraph.store.{one}", names[one]) for one in kinds)
