"""Open a store: a private SQLite file, PostgreSQL, or memory."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from conspectus.archive.address import check_address
from conspectus.archive.file_form import bring_up, holds_old, is_old, shape, shrink
from conspectus.archive.file_store import FileStore, drop_empty_places
from conspectus.archive.trouble import explain
from conspectus.errors import ArchiveError, InputError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore
    from langgraph.store.sqlite import SqliteStore

BUSY = 5.0  # Seconds to wait for another process that writes to the same file
PAUSE = 0.05  # Seconds between two tries to make the tables
CONNECT = 5  # Seconds to wait for a PostgreSQL server to accept a connection
WAIT_FOR_POOL = 10  # Seconds to wait for a free connection of the pool

KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""Seconds and tries: a dead server is noticed within half a minute, which frees its connections."""

SQLITE_HEADER = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Backend:
    """An open store, and the calls that keep its file in order.

    `scrub` takes deleted values out of the file's journal. `renewed` brings a file up to the form
    of this version and returns the backend to use from then on.
    """

    store: BaseStore | FileStore
    close: Callable[[], object] = lambda: None
    sweep: Callable[[], object] = lambda: None
    scrub: Callable[[], object] = lambda: None
    renewed: Callable[[], Backend] | None = None
    shrink: Callable[[], object] = lambda: None


def default_archive_path() -> Path:
    """Return `conspectus/archive.db` in `XDG_DATA_HOME` (`~/.local/share`)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification ignores relative paths.
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "conspectus" / "archive.db"


def open_backend(where: str | Path) -> Backend:
    """Open the store that an address names.

    Raises:
        InputError: the address is of no known form.
        ArchiveError: the store cannot be opened; says what to do.
    """
    if isinstance(where, Path):
        return _open_sqlite(where)
    check_address(where)
    scheme, mark, rest = where.partition("://")
    if where in ("memory:", ":memory:"):
        from langgraph.store.memory import InMemoryStore

        return Backend(InMemoryStore())
    if mark and scheme in ("postgresql", "postgres"):
        return _open_postgres(where)
    if mark and scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
        return _open_sqlite(Path(rest[1:]))
    if mark or not where.strip():
        # The rest may hold a password.
        shown = f"{scheme}://..." if mark and re.fullmatch(r"[\w+.-]{1,30}", scheme) else "this"
        raise InputError(
            f"{shown} names no archive; give a file's path, sqlite:///path, postgresql://... or "
            "memory:"
        )
    return _open_sqlite(Path(where))


def private_folder(path: Path) -> None:
    """Make a folder and its missing parents, for their owner alone."""
    if not path.exists():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """Make sure that a writable file exists; a new or empty one becomes private.

    SQLite gives its journal files the mode of the database, so they are private too.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    number = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ArchiveError(f"{path} is not a plain file; choose another path for the archive.")
        start = os.read(number, len(SQLITE_HEADER))
        if not start:  # another process made it, with its own umask
            path.chmod(0o600)
    finally:
        os.close(number)
    if start and start != SQLITE_HEADER:
        raise ArchiveError(
            f"{path} exists and is not a SQLite database; choose another path for the archive."
        )


def _open_sqlite(path: Path) -> Backend:
    path = path.expanduser().absolute()
    if path.is_dir():
        raise ArchiveError(f"{path} is a folder; give the path of a file in it for the archive.")
    try:
        if path == default_archive_path():
            private_folder(path.parent)
        elif not path.parent.is_dir():  # a folder that is made would hide a mistyped path
            raise ArchiveError(
                f"The archive {path} cannot be opened: there is no folder {path.parent}; correct "
                "the path, or make the folder first."
            )
        private_file(path)
    except OSError as error:
        raise ArchiveError(
            f"The archive {path} cannot be opened for writing ({error.strerror}); make the file "
            "and its folder writable, or choose another path."
        ) from error
    connection = None
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY, isolation_level=None, check_same_thread=False
        )
        # The file of an earlier version keeps its form until it is brought up.
        store = _old(connection) if is_old(connection) else FileStore(connection)
        _set_up(store)
        if isinstance(store, FileStore) and holds_old(connection):
            bring_up(connection)  # an earlier version has written to it meanwhile
    except Exception as error:
        if connection is not None:
            connection.close()
        raise ArchiveError(f"The archive {path} cannot be opened: {explain(error)}.") from error
    return _in_file(store, connection, path)


def _old(connection: sqlite3.Connection) -> SqliteStore:
    from langgraph.store.sqlite import SqliteStore  # it takes half a second

    return SqliteStore(connection)


def _in_file(store: FileStore | SqliteStore, connection: sqlite3.Connection, path: Path) -> Backend:

    def scrub() -> None:
        with store.lock:
            if isinstance(store, FileStore):
                drop_empty_places(connection)
                connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def sweep() -> None:
        if store.sweep_ttl():
            scrub()

    def renewed() -> Backend:
        with store.lock:
            bring_up(connection)
        return _in_file(FileStore(connection), connection, path)

    def smaller() -> None:
        with store.lock:
            shrink(connection)

    # Earlier versions kept a search cache beside the file, with words of what is archived.
    shutil.rmtree(path.with_name(path.name + ".search"), ignore_errors=True)
    return Backend(store, connection.close, sweep, scrub, renewed, smaller)


def _set_up(store: FileStore | SqliteStore) -> None:
    """Make the tables, while another process may be making the same ones.

    Whatever its time-out, SQLite does not wait for a lock while the journal's mode changes or two
    processes begin to write at once, so it is tried again here for as long.
    """
    tries = int(BUSY / PAUSE)
    for turn in range(tries + 1):
        try:
            if isinstance(store, FileStore):
                shape(store.conn)
            store.conn.execute("PRAGMA journal_mode=WAL")
            store.conn.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves the file too
            store.setup()
            return
        except sqlite3.Error as error:
            said = str(error)
            racing = isinstance(error, sqlite3.IntegrityError) or any(
                sign in said for sign in ("duplicate column", "locked", "busy")
            )
            if turn == tries or not racing:
                raise
            time.sleep(PAUSE)


def _open_postgres(address: str) -> Backend:
    try:
        import psycopg
        from langgraph.store.postgres import PostgresStore
        from psycopg.conninfo import conninfo_to_dict
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise ArchiveError(
            "A PostgreSQL archive needs the extra `postgres`; install it with "
            "pip install 'conspectus[postgres]'."
        ) from error
    stack, failed = ExitStack(), None
    try:
        # A pool would retry in the background; a plain connection fails at once.
        psycopg.connect(address, connect_timeout=CONNECT).close()
        given = conninfo_to_dict(address)
        pool = {
            "max_size": 4,
            # Checked before each use, so that the archive outlives a server's restart.
            "check": ConnectionPool.check_connection,
            "timeout": WAIT_FOR_POOL,
            "kwargs": {key: value for key, value in KEEPALIVE.items() if key not in given},
        }
        store = stack.enter_context(
            PostgresStore.from_conn_string(address, pool_config=cast("Any", pool))
        )
        store.setup()
    except psycopg.ProgrammingError as error:
        # It may quote the address, and an error raised in here would keep it as its context.
        stack.close()
        if error.sqlstate is not None:
            raise ArchiveError(f"The archive cannot be opened: {explain(error)}.") from error
        failed = InputError(
            "the PostgreSQL address holds an option that the driver does not know, or a value that "
            "it cannot read; write postgresql://user:password@host:port/database?option=value"
        )
    except Exception as error:
        stack.close()
        raise ArchiveError(f"The archive cannot be opened: {explain(error)}.") from error
    if failed is not None:
        raise failed
    return Backend(store, stack.close, sweep=store.sweep_ttl)
