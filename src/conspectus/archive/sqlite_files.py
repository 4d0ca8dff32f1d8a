"""Tell whether the files of a SQLite archive are still those that a connection has open.

A connection continues to use files that were deleted, replaced or cut: it reads and writes what no
other process will ever see. So each commit is compared with the files at the archive's path, by a
few calls of `stat` and the first bytes of the write-ahead log. Nothing here opens the database
itself, because closing it would release SQLite's locks.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

LOG_HEADER = 32
"""Bytes at the beginning of a write-ahead log."""

LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
"""How a write-ahead log begins, by its byte order."""

REMEMBERED_ITEMS = 64
"""The newest items that are looked for if others have changed the database."""

REPLACED = "was replaced by another file while it was open"
LOST_FILE = "has lost its file {}, which was deleted or replaced while it was open"
IS_SAVED = "; what was archived before is safe in the database"

Identity = tuple[int, int]
"""The device and the inode of a file, which identify it."""


class FilesState(NamedTuple):
    """The files at one moment. An identity is None if there is no file."""

    database: Identity | None
    log: Identity | None
    log_index: Identity | None
    database_size: int  # bytes
    modified: int  # when the database was written last, in nanoseconds since the epoch
    log_size: int  # bytes


class WrittenItem(NamedTuple):
    """An item that was written: the hashes of its scope, its kind and its key."""

    scope: tuple[str, str, str]
    kind: int
    key: bytes


class DatabaseFiles:
    """The database, its write-ahead log and the index of that, as the first connection found them.

    Args:
        path: of the database.
        database: its identity; see `identity`.
        connect: makes a connection that sees what a new process would see.

    Attributes:
        change: what has happened to the files; empty for nothing. It stays so: a connection may
            have read anything since, and has to be opened again.
    """

    def __init__(
        self, path: Path, database: Identity, connect: Callable[[], sqlite3.Connection]
    ) -> None:
        self.change = ""
        self._path = path
        self._database = database
        self._connect = connect
        # SQLite keeps both in the folder of the file to which a link leads.
        real_path = os.path.realpath(path)
        self._log = Path(f"{real_path}-wal")
        self._log_index = Path(f"{real_path}-shm")
        self._log_identity: Identity | None = None
        self._log_index_identity: Identity | None = None
        self._application_id: int | None = None  # a random number that each archive has
        self._last_state: FilesState | None = None
        self._last_scope = 0  # the highest number of a scope
        self._written: deque[WrittenItem] = deque(maxlen=REMEMBERED_ITEMS)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Note the files of the first of several connections."""
        application_id = _application_id(connection)  # opens the log, too
        if self._application_id not in (None, application_id):
            self.change = REPLACED
        self._application_id = application_id
        state = self._state()
        self._log_identity = state.log
        self._log_index_identity = state.log_index
        self._last_state = state

    def remember(self, connection: sqlite3.Connection, written: WrittenItem | None = None) -> None:
        """Note the state of the files after our own work, and what was written."""
        self._last_state = self._state()
        if written is not None:
            self._written.append(written)
            self._last_scope = _last_scope(connection)

    def compare(self, *, database_only: bool = False) -> str:
        """Return what has happened to the files; empty if they are those that are open."""
        self.change = self.change or self._identity_change(self._state(), database_only)
        return self.change

    def inspect(self, connection: sqlite3.Connection, *, after_commit: bool = False) -> str:
        """Return what has happened to the files or to their content; empty for nothing.

        Call it in a transaction that writes, or after its commit. If the log or its index was
        deleted, and nobody has made another, what was committed before is saved to the database.
        """
        state = self._state()
        if not self.change:
            change = self._identity_change(state)
            if change and change != REPLACED and self._save_log(connection):
                change += IS_SAVED
            self.change = change
        if not self.change:
            self.change = self._content_change(state, after_commit)
        if after_commit:
            self._last_state = state
        return self.change

    def _identity_change(self, state: FilesState, database_only: bool = False) -> str:
        if state.database is None:
            return "was deleted, moved or made unreadable while it was open"
        if state.database != self._database:
            return REPLACED
        if database_only:
            return ""
        if self._log_identity not in (None, state.log):
            return LOST_FILE.format(self._log.name)
        if self._log_index_identity not in (None, state.log_index):
            return LOST_FILE.format(self._log_index.name)
        return ""

    def _content_change(self, state: FilesState, after_commit: bool) -> str:
        if not state.database_size:
            return "was cut to nothing while it was open"
        # An empty log is valid: it was copied to the database, and nothing was written since. If
        # it was cut, a writer that continues it leaves a hole at its beginning.
        if self._log_identity is not None and state.log_size and not self._log_begins():
            return f"has a file {self._log.name} that was cut or written over while it was open"
        last = self._last_state
        if after_commit or last is None:
            return ""
        is_same_database = (state.database_size, state.modified) == (
            last.database_size,
            last.modified,
        )
        if is_same_database and state.log_size >= last.log_size:
            return ""
        # Another process has brought the log to the database, or somebody has written over it.
        return self._database_change(is_shorter=state.database_size < last.database_size)

    def _state(self) -> FilesState:
        database = _status_of(self._path)
        log = _status_of(self._log)
        return FilesState(
            database=identity_of(database),
            log=identity_of(log),
            log_index=identity(self._log_index),
            database_size=database.st_size if database else 0,
            modified=database.st_mtime_ns if database else 0,
            log_size=log.st_size if log else 0,
        )

    def _log_begins(self) -> bool:
        try:
            file = os.open(self._log, os.O_RDONLY)
        except OSError:
            return False
        try:
            header = os.read(file, LOG_HEADER)
        finally:
            os.close(file)
        return len(header) == LOG_HEADER and header[:4] in LOG_MAGIC

    def _save_log(self, connection: sqlite3.Connection) -> bool:
        """Bring to the database what was committed to a log whose file was deleted.

        Returns whether all of it is there. A log in its place, of another process, is left alone.
        """
        state = self._state()
        is_alone = (
            state.database == self._database
            and state.log in (None, self._log_identity)
            and state.log_index in (None, self._log_index_identity)
        )
        if not is_alone:
            return False
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            rows = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
            [(is_busy, frames, saved_frames)] = rows
            return not is_busy and frames == saved_frames
        return False

    def _database_change(self, *, is_shorter: bool) -> str:
        """Return how the database differs from ours, as a new connection sees it."""
        try:
            with closing(self._connect()) as connection:
                if self._is_ours(connection, is_shorter):
                    return ""
        except sqlite3.DatabaseError as error:
            return f"was cut or written over while it was open ({error})"
        return "was written over while it was open"

    def _is_ours(self, connection: sqlite3.Connection, is_shorter: bool) -> bool:
        """Tell whether a database is this archive, and not an older copy of it."""
        if _application_id(connection) != self._application_id:
            return False
        if _last_scope(connection) < self._last_scope:
            return False
        if is_shorter:  # others have forgotten much, or it was cut
            damage = connection.execute("PRAGMA quick_check(1)").fetchall()
            if damage != [("ok",)]:
                return False
        return all(_is_there_or_forgotten(connection, item) for item in self._written)


def identity(path: Path) -> Identity | None:
    """Return the identity of a file; None if there is none, or it cannot be seen."""
    return identity_of(_status_of(path))


def identity_of(status: os.stat_result | None) -> Identity | None:
    """Return the identity in the status of a file."""
    return None if status is None else (status.st_dev, status.st_ino)


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _application_id(connection: sqlite3.Connection) -> int:
    [(number,)] = connection.execute("PRAGMA application_id").fetchall()
    return int(number)


def _last_scope(connection: sqlite3.Connection) -> int:
    sql = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'scope'"
    [(number,)] = connection.execute(sql).fetchall()
    return int(number or 0)


def _is_there_or_forgotten(connection: sqlite3.Connection, item: WrittenItem) -> bool:
    """Tell whether an item is there, or the scope to which it belongs was deleted since."""
    sql = "SELECT id FROM scope WHERE tenant = ? AND thread = ? AND session = ?"
    scopes = connection.execute(sql, item.scope).fetchall()
    if not scopes:
        return True
    [(scope_id,)] = scopes
    sql = "SELECT 1 FROM item WHERE scope = ? AND kind = ? AND key = ?"
    return bool(connection.execute(sql, (scope_id, item.kind, item.key)).fetchall())
