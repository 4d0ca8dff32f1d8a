"""Make stores fail: a full disk, a lock, a lost connection, a server that stalls.

Others hang, forget or return something else. A case opens its store for code with an event loop
or without one. It gives a `Fault`: the store, the begin and the end of the trouble, and the
store to inspect afterwards.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from stalling_proxy import Proxy

from conspectus.archive.values import packed, unpacked

PATIENCE = 0.4
"""Seconds that an archive waits for its store here."""

DISK = 400_000
"""Bytes of the disk that fills up."""

LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@dataclass(slots=True)
class Fault:
    """A store, and its trouble.

    Attributes:
        store: it.
        begin, end: trouble comes and goes.
        anew: the store that follows it, where it does not recover by itself.
        struck: counts the strikes, where that is known.
    """

    store: BaseStore
    begin: Callable[[], object]
    end: Callable[[], object]
    anew: BaseStore | None = None
    struck: Callable[[], int] = lambda: 1


@dataclass(frozen=True)
class Case:
    """One kind of failure.

    Attributes:
        name: as the table has it.
        database: likewise.
        opened: gives a `Fault`; takes the number of the step at which it strikes, and whether the
            store is for an event loop.
        each_step: it strikes at one step after another, so long as there is one.
        harmless: it does not keep anything from being compacted.
        whole: only for histories that somebody else holds whole.
        patience: seconds that the archive waits for it while there is trouble.
    """

    name: str
    database: str
    opened: Callable[[int, bool], AbstractAsyncContextManager[Fault]]
    each_step: bool = False
    harmless: bool = False
    whole: bool = False
    patience: float = 30.0


# Stores in memory that misbehave


@dataclass
class Mood:
    """The present behaviour of a store.

    Attributes:
        before: called with each batch before it is run.
        writes: whether a write is kept.
        reads: changes a stored text as it is read.
    """

    before: Callable[[], object] = lambda: None
    writes: Callable[[], bool] = lambda: True
    reads: Callable[[str], str] = lambda text: text


@dataclass
class Moody(BaseStore):
    """A real store behind a mood."""

    inner: BaseStore = field(default_factory=InMemoryStore)
    mood: Mood = field(default_factory=Mood)

    __hash__ = object.__hash__

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self.mood.before()
        wanted = self._kept(ops)
        return self._told(wanted, self.inner.batch(wanted))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        if isinstance(self.inner, InMemoryStore):
            raise NotImplementedError  # as of many stores: it is called in a thread
        await asyncio.to_thread(self.mood.before)
        wanted = self._kept(ops)
        return self._told(wanted, await self.inner.abatch(wanted))

    def _kept(self, ops: Iterable[Op]) -> list[Op]:
        nothing = GetOp(("nothing",), "nothing")
        return [nothing if isinstance(op, PutOp) and not self.mood.writes() else op for op in ops]

    def _told(self, ops: list[Op], found: list[Result]) -> list[Result]:
        out: list[Result] = []
        for op, one in zip(ops, found, strict=True):
            value = getattr(one, "value", None)
            if isinstance(op, GetOp) and isinstance(value, dict) and "z" in value:
                held = _text(b64decode(value["z"]))
                said = self.mood.reads(held)
                body = packed(json.loads(said)) if said != held else b64decode(value["z"])
                changed = {**value, "z": b64encode(body).decode()}
                one = type(one)(  # type: ignore[operator]
                    value=changed,
                    key=one.key,  # type: ignore[union-attr]
                    namespace=one.namespace,  # type: ignore[union-attr]
                    created_at=one.created_at,  # type: ignore[union-attr]
                    updated_at=one.updated_at,  # type: ignore[union-attr]
                )
            out.append(one)
        return out


def _text(body: bytes) -> str:
    try:
        return json.dumps(unpacked(body), separators=(",", ":"))
    except ValueError:  # the head is no JSON
        return ""


def in_memory(
    name: str, begin: Callable[[Moody], None], end: Callable[[Moody], None], **more: Any
) -> Case:
    """Make a case of a store in memory."""

    @asynccontextmanager
    async def opened(step: int, loop: bool) -> AsyncIterator[Fault]:
        store = Moody()
        yield Fault(store, lambda: begin(store), lambda: end(store))

    return Case(name, "memory", opened, **more)


def moody(name: str, mood: Callable[[], Mood], **more: Any) -> Case:
    """Make a case of a store in memory that gets into a mood, and out of it."""

    def begin(store: Moody) -> None:
        store.mood = mood()

    def end(store: Moody) -> None:
        store.mood = Mood()

    return in_memory(name, begin, end, **more)


def _raising() -> None:
    raise TimeoutError("the store's own time is over")


def _every_fourth() -> Callable[[], bool]:
    """Lose the fourth write and each fourth one from there."""
    count = iter(range(1, 1_000_000))
    return lambda: bool(next(count) % 4)


def _other_content(text: str) -> str:
    data = json.loads(text or "null")
    return json.dumps(data).replace("the mark", "the  mark") if isinstance(data, list) else text


def _forget(store: Moody) -> None:
    """Lose all that was confirmed and given back."""
    store.inner = InMemoryStore()


IN_MEMORY = (
    moody("slow: 20 ms a call", lambda: Mood(before=lambda: time.sleep(0.02)), harmless=True),
    moody("hangs for ever", lambda: Mood(before=threading.Event().wait), patience=PATIENCE),
    moody("raises a time-out", lambda: Mood(before=_raising)),
    moody("confirms and forgets all", lambda: Mood(writes=lambda: False)),
    moody("confirms and forgets every fourth", lambda: Mood(writes=_every_fourth())),
    moody("gives back other content", lambda: Mood(reads=_other_content)),
    in_memory("forgets all after a while", _forget, lambda store: None, harmless=True, whole=True),
)


# SQLite files


@contextmanager
def small_disk() -> Iterator[tuple[Path, bool]]:
    """Make a folder on a disk of its own, where one may be mounted; else any."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "conspectus", name]
        try:
            own = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        except OSError:
            own = False
        try:
            yield Path(name), own
        finally:
            if own:
                subprocess.run(["umount", "-l", name], check=True)


def _filling(
    folder: Path, own: bool, execute: Any
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Make functions that fill the disk up, or stop its file's growth, and undo it."""
    filler = folder / "filler"

    def begin() -> None:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))

    def end() -> None:
        filler.unlink()

    def limit(pages: int) -> Callable[[], None]:
        return lambda: execute(f"PRAGMA max_page_count = {pages}")

    return (begin, end) if own else (limit(1), limit(1_000_000))


@asynccontextmanager
async def full_disk(step: int, loop: bool) -> AsyncIterator[Fault]:
    """Give the trouble of SQLITE_FULL."""
    running = asyncio.get_running_loop()
    with small_disk() as (folder, own):
        async with sqlite_store(folder, loop) as store:

            def execute(sql: str) -> None:
                done = store.conn.execute(sql)
                if loop:
                    asyncio.run_coroutine_threadsafe(done, running).result()

            yield Fault(store, *_filling(folder, own, execute))


@asynccontextmanager
async def sqlite_store(folder: Path, loop: bool) -> AsyncIterator[Any]:
    """Open a store on a file, which waits 50 ms for a lock."""
    path = folder / "store.db"
    if loop:
        async with AsyncSqliteStore.from_conn_string(str(path)) as store:
            await store.setup()
            await store.conn.execute("PRAGMA busy_timeout = 50")
            yield store
        return
    with closing(
        sqlite3.connect(path, timeout=0.05, isolation_level=None, check_same_thread=False)
    ) as connection:
        plain = SqliteStore(connection)
        plain.setup()
        yield plain


class Locker:
    """Another process that holds a file for itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        """Take it."""
        command = [sys.executable, "-c", LOCK, str(self._path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "locked\n"

    def end(self) -> None:
        """Let it go."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


@asynccontextmanager
async def locked_file(step: int, loop: bool) -> AsyncIterator[Fault]:
    """Give the trouble of SQLITE_BUSY."""
    with tempfile.TemporaryDirectory() as name:
        async with sqlite_store(Path(name), loop) as store:
            locker = Locker(Path(name) / "store.db")
            yield Fault(store, locker.begin, locker.end)
            locker.end()


SQLITE = (
    Case("the disk is full", "SQLite", full_disk),
    Case("locked by another process", "SQLite", locked_file),
)


# PostgreSQL


class Postgres:
    """Cases on one server.

    Args:
        address: of a schema with the store's tables in it.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def cases(self) -> tuple[Case, ...]:
        """Give all of them."""
        name = "PostgreSQL"
        alone, pooled = partial(self._cut, False), partial(self._cut, True)
        locked, timed = partial(self._locked, 0), partial(self._locked, 100)
        return (
            Case("connection terminated, at each step", name, alone, each_step=True),
            Case("the same, from a pool", name, pooled, each_step=True),
            Case("locked by another process", name, locked, patience=PATIENCE),
            Case("the same, with statement_timeout", name, timed),
            Case("the server stalls", name, self._stalled, patience=PATIENCE),
        )

    def _connect(self, **more: Any) -> Any:
        import psycopg
        from psycopg.rows import dict_row

        own: Any = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        return psycopg.connect(self.address, **own, **more)

    @asynccontextmanager
    async def _opened(
        self, loop: bool, address: str = "", pool: bool = False
    ) -> AsyncIterator[Any]:
        from langgraph.store.postgres import PostgresStore
        from langgraph.store.postgres.aio import AsyncPostgresStore

        size: Any = {"min_size": 1, "max_size": 1} if pool else None
        given: Any = {"conn_string": address or self.address, "pool_config": size}
        if loop:
            async with AsyncPostgresStore.from_conn_string(**given) as store:
                yield store
        else:
            with PostgresStore.from_conn_string(**given) as plain:
                yield plain

    def _cutter(
        self, at: int
    ) -> tuple[Moody, Callable[[], None], Callable[[], None], Callable[[], int], str]:
        """Make a store whose connection is terminated before one of its batches."""
        store, name = Moody(), f"cut{uuid.uuid4().hex[:12]}"
        on, seen, struck = False, 0, 0

        def before() -> None:
            nonlocal seen, struck
            seen += on
            if on and seen == at:
                struck += 1
                with self._connect() as other:
                    other.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE application_name = %s",
                        [name],
                    )

        def begin() -> None:
            nonlocal on
            on = True

        def end() -> None:
            nonlocal on
            on = False

        store.mood = Mood(before=before)
        return store, begin, end, lambda: struck, f"{self.address}&application_name={name}"

    @asynccontextmanager
    async def _cut(self, pool: bool, step: int, loop: bool) -> AsyncIterator[Fault]:
        store, begin, end, struck, address = self._cutter(step)
        async with self._opened(loop, address, pool) as store.inner, self._opened(loop) as other:
            yield Fault(store, begin, end, None if pool else other, struck=struck)

    @contextmanager
    def _lock(self) -> Iterator[tuple[Callable[[], object], Callable[[], object]]]:
        with self._connect() as other:
            other.autocommit = False

            def begin() -> None:
                other.execute("LOCK TABLE store IN ACCESS EXCLUSIVE MODE")

            yield begin, other.rollback

    @asynccontextmanager
    async def _locked(self, milliseconds: int, step: int, loop: bool) -> AsyncIterator[Fault]:
        address = f"{self.address}%20-cstatement_timeout%3D{milliseconds}"
        async with self._opened(loop, address) as store:
            with self._lock() as lock:
                yield Fault(store, *lock)

    @asynccontextmanager
    async def _stalled(self, step: int, loop: bool) -> AsyncIterator[Fault]:
        with Proxy(self.address) as proxy:
            async with self._opened(loop, proxy.address) as store, self._opened(loop) as other:
                # On a loop what was being waited for is given up with its connection.
                yield Fault(store, proxy.stall, proxy.go_on, other if loop else None)
