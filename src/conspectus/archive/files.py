"""Tell whether the files of a SQLite archive are still those that a connection has open.

A connection goes on with files that were deleted, replaced or cut: it reads and writes what no
other process will ever see. So each commit is compared with what lies under the archive's path, by
a few calls of `stat` and the first bytes of the write-ahead log. Nothing here opens the database
itself, as closing it would give up SQLite's locks.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

LOG_HEADER = 32  # bytes
LOG_BEGINS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

LOST = "has lost its file {}, which was deleted or replaced while it was open"
LOOKED_FOR = 64  # of what was written last, where somebody else has changed the database
REPLACED = "was replaced by another file while it was open"
SAVED = "; what was archived before is safe in the database"

Identity = tuple[int, int]


class Look(NamedTuple):
    """How the files were at one moment; identities are None where there is no file."""

    database: Identity | None
    log: Identity | None
    log_index: Identity | None
    size: int  # of the database
    changed: int  # when it was written, in nanoseconds
    log_size: int


class Written(NamedTuple):
    """An item that was written: the names of its scope, its kind and key."""

    scope: tuple[str, str, str]
    kind: int
    key: bytes


class DatabaseFiles:
    """The database, its write-ahead log and the index of that, as the first connection found them.

    Args:
        path: of the database.
        database: its identity; see `identity`.
        connect: makes a connection that sees what a new process would see.
    """

    def __init__(
        self, path: Path, database: Identity, connect: Callable[[], sqlite3.Connection]
    ) -> None:
        self._path = path
        self._database = database
        self._connect = connect
        # SQLite keeps both beside the file that a link leads to.
        real = os.path.realpath(path)
        self._log = Path(f"{real}-wal")
        self._index = Path(f"{real}-shm")
        self._log_identity: Identity | None = None
        self._index_identity: Identity | None = None
        self._number: int | None = None  # that the archive was given when it was made
        self._before: Look | None = None
        self._scopes = 0  # the highest number of a scope
        self._written: deque[Written] = deque(maxlen=LOOKED_FOR)
        self.wrong = ""
        """What has happened to the files. It stays so: a connection may have read anything since,
        and has to be opened again."""

    def begin(self, connection: sqlite3.Connection) -> None:
        """Note the files of the first of several connections."""
        number = _number_of(connection)  # which opens the log
        if self._number not in (None, number):
            self.wrong = REPLACED
        self._number = number
        now = self._looked()
        self._log_identity = now.log
        self._index_identity = now.log_index
        self._before = now

    def note(self, connection: sqlite3.Connection, written: Written | None = None) -> None:
        """Note how the files are after work of our own, and what was written."""
        self._before = self._looked()
        if written is not None:
            self._written.append(written)
            self._scopes = _scopes_of(connection)

    def look(self, *, database_only: bool = False) -> str:
        """Look whether the files are those that are open; return what has happened, or nothing."""
        self.wrong = self.wrong or self._changed(self._looked(), database_only)
        return self.wrong

    def look_into(self, connection: sqlite3.Connection, *, after: bool = False) -> str:
        """Look what they hold, too; only in a transaction that writes, or `after` its commit.

        If the log or its index was deleted, and nobody has made another, what was committed before
        is brought to the database.
        """
        now = self._looked()
        if not self.wrong and (changed := self._changed(now)):
            saved = changed != REPLACED and self._is_saved(connection)
            self.wrong = changed + (SAVED if saved else "")
        self.wrong = self.wrong or self._overwritten(now, after)
        if after:
            self._before = now
        return self.wrong

    def _changed(self, now: Look, database_only: bool = False) -> str:
        if now.database is None:
            return "was deleted, moved or made unreadable while it was open"
        if now.database != self._database:
            return REPLACED
        if not database_only:
            if self._log_identity is not None and now.log != self._log_identity:
                return LOST.format(self._log.name)
            if self._index_identity is not None and now.log_index != self._index_identity:
                return LOST.format(self._index.name)
        return ""

    def _overwritten(self, now: Look, after: bool) -> str:
        if not now.size:
            return "was cut to nothing while it was open"
        has_log = self._log_identity is not None
        # An empty log is sound: it was brought to the database, and nothing was written since. Who
        # writes behind a log that was cut leaves a hole at its beginning.
        if has_log and now.log_size and not self._log_begins():
            return f"has a file {self._log.name} that was cut or written over while it was open"
        before = self._before
        if after or before is None:
            return ""
        same = (now.size, now.changed) == (before.size, before.changed)
        if not same or now.log_size < before.log_size:
            # Another process has brought the log to the database, or somebody has written over it.
            return self._unlike(shorter=now.size < before.size)
        return ""

    def _looked(self) -> Look:
        database, log, index = (_status_of(path) for path in (self._path, self._log, self._index))
        return Look(
            database=identity_of(database),
            log=identity_of(log),
            log_index=identity_of(index),
            size=database.st_size if database else 0,
            changed=database.st_mtime_ns if database else 0,
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
        return len(header) == LOG_HEADER and header[:4] in LOG_BEGINS

    def _is_saved(self, connection: sqlite3.Connection) -> bool:
        """Bring to the database what was committed to a log that has no name any more."""
        now = self._looked()
        if (
            now.database != self._database
            or now.log not in (None, self._log_identity)
            or now.log_index not in (None, self._index_identity)
        ):  # another process may write to them
            return False
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            [(busy, frames, done)] = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
            return not busy and frames == done
        return False

    def _unlike(self, *, shorter: bool) -> str:
        """Say how the database differs from ours, as a new connection sees it."""
        try:
            with closing(self._connect()) as fresh:
                same = _number_of(fresh) == self._number and _scopes_of(fresh) >= self._scopes
                if shorter:  # others have forgotten much, or it was cut
                    same = same and fresh.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
                if same and all(_holds(fresh, item) for item in self._written):
                    return ""
        except sqlite3.DatabaseError as error:
            return f"was cut or written over while it was open ({error})"
        return "was written over while it was open"


def identity(path: Path) -> Identity | None:
    """Return what tells a file from any other one; None if it cannot be seen."""
    return identity_of(_status_of(path))


def identity_of(status: os.stat_result | None) -> Identity | None:
    """Return the identity in the status of a file."""
    return None if status is None else (status.st_dev, status.st_ino)


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _number_of(connection: sqlite3.Connection) -> int:
    [(number,)] = connection.execute("PRAGMA application_id").fetchall()
    return int(number)


def _scopes_of(connection: sqlite3.Connection) -> int:
    sql = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'scope'"
    [(number,)] = connection.execute(sql).fetchall()
    return int(number or 0)


def _holds(connection: sqlite3.Connection, written: Written) -> bool:
    """Return whether an item is there, or its history was forgotten since."""
    sql = "SELECT id FROM scope WHERE tenant = ? AND thread = ? AND session = ?"
    found = connection.execute(sql, written.scope).fetchall()
    sql = "SELECT 1 FROM item WHERE scope = ? AND kind = ? AND key = ?"
    return not found or bool(
        connection.execute(sql, (*found[0], written.kind, written.key)).fetchall()
    )
