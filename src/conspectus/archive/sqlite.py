"""Keep an archive in a private SQLite file, or in memory."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

from conspectus.archive.files import DatabaseFiles, Identity, Written, identity
from conspectus.archive.tables import KINDS, SCHEMA, Run, Tables
from conspectus.archive.values import Items, Scope, key_bytes
from conspectus.errors import ArchiveError

BUSY = 5.0  # Seconds to wait for another process that writes to the same file
PAUSE = 0.05  # Seconds between two tries to make the tables
PAGE = 2048  # Bytes of a page; large values take whole pages, so small pages waste less
VERSION = 5  # Of the tables; a file of a newer one is refused
MADE = "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
TYPES = {
    # No number twice, or old words would find new texts.
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "bytes": "BLOB",
    "number": "INTEGER",
}
WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5(body, content='', detail=none, columnsize=0, "
    "tokenize=\"porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\")"
)
"""Which passages hold a word, and nothing else: no text, no places, no sizes."""


def default_archive_path() -> Path:
    """Return `conspectus/archive.db` in `XDG_DATA_HOME` (`~/.local/share`)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification ignores relative paths.
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "conspectus" / "archive.db"


def private_folder(path: Path) -> None:
    """Make a folder and its missing parents, for their owner alone."""
    if not path.exists():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


class SqliteTables(Tables):
    """Tables in one file, with a connection for each thread; without a path, in memory."""

    index = "INSERT INTO words (rowid, body) VALUES (?, ?)"
    unindex = "INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)"
    look_up = (
        "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? "
        "ORDER BY rowid DESC LIMIT ?"
    )

    def __init__(self, path: Path | None, ttl: float | None) -> None:
        super().__init__(ttl)
        self._path = None if path is None else path.expanduser().absolute()
        self._own = threading.local() if path else SimpleNamespace()
        self._open: WeakSet[_Connection] = WeakSet()  # that of a thread goes with its thread
        # Of writers, and of all who use the one connection to memory: SQLite's own wait for a
        # writer polls in ever longer pauses.
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._closed = False
        file = None if self._path is None else _private_file(self._path)
        self._files: DatabaseFiles | None = None  # None: in memory, or to be read only
        if self._path is not None and file is not None:
            self._files = DatabaseFiles(self._path, file, self._fresh)
        self._where = self._path.as_uri() if self._path else ":memory:"
        if self._path and self._files is None:  # to read
            # What no writer can change may be read without a lock, for which a file is written.
            fixed = hasattr(os, "statvfs") and os.statvfs(self._path).f_flag & os.ST_RDONLY
            self._where += "?mode=ro" + "&immutable=1" * bool(fixed)
        self._is_set_up = False
        try:
            connection = self._connection()
            self._set_up(connection)
            if self._files:
                self._files.begin(connection)
            self._is_set_up = True
        except Exception:
            self.close()
            raise

    @contextmanager
    def transaction(self, *, writes: bool = False, durable: bool = True) -> Iterator[Run]:
        # In a file SQLite decides in the end whether another writer is done.
        patience = BUSY if self._path else -1
        held = (writes or self._path is None) and self._turn.acquire(timeout=patience)
        connection = None
        try:
            connection = self._connection()
            if writes:  # to the disk at once, or with the next one that goes there
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
                self._look_into(connection)
            # What only reads needs no transaction: what it finds never changes, or is checked.
            yield Run(connection.cursor(), "?")
            if writes:
                connection.execute("COMMIT")
                self._look_into(connection, after=True)
        except BaseException as error:
            if connection is not None and connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            files = None if self._closed else self._files  # closing deletes the log itself
            if isinstance(error, sqlite3.DatabaseError) and files and files.look():
                raise self._lost() from error
            raise
        finally:
            if held:
                self._turn.release()

    def write(
        self,
        scope: Scope,
        items: Items,
        head: str | None = None,
        seen: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        now = super().write(scope, items, head, seen, durable, renewed)
        kinds = [(KINDS[kind], one.key) for kind, kept in items.items() for one in kept]
        if self._files and kinds and durable and self.ttl is None and head in (None, now):
            kind, key = kinds[-1]
            self._files.note(self._connection(), Written(scope.hashes, kind, key_bytes(key)))
        return now

    def word(self, word: str) -> str:
        bare = word.removesuffix("*").replace('"', '""').replace(" ", '" "')
        return f'"{bare}"{"*" if word.endswith("*") else ""}'

    def scrub(self) -> None:
        with self.transaction(writes=True) as run:
            run("INSERT INTO words (words) VALUES ('optimize')")
        connection = self._connection()
        connection.execute("PRAGMA incremental_vacuum").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if self._files:
            self._files.note(connection)

    def check(self) -> str:
        return "; ".join(line for (line,) in self.ask("PRAGMA integrity_check") if line != "ok")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connection in list(self._open):
                connection.close()

    def _look_into(self, connection: sqlite3.Connection, *, after: bool = False) -> None:
        """Raise `ArchiveError` if what is written is not what a new process would find."""
        if self._files is None or not self._is_set_up:
            return
        if self._files.look_into(connection, after=after):
            raise self._lost()

    def _lost(self) -> ArchiveError:
        wrong = self._files.wrong if self._files else ""
        return ArchiveError(
            f"The archive {self._path} {wrong}, so nothing is read or written; put it back, or "
            "restore a backup, and open it again, or restart the program."
        )

    def _fresh(self) -> sqlite3.Connection:
        assert self._path is not None
        return sqlite3.connect(f"{self._path.as_uri()}?mode=rw", BUSY, uri=True)

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise sqlite3.ProgrammingError("the archive is closed")
        if self._files and self._files.wrong:
            raise self._lost()
        # A fork opens its own: one that was carried over could damage the file.
        name = f"of_{os.getpid() if self._path else 0}"
        connection: _Connection | None = getattr(self._own, name, None)
        if connection is None:
            with self._lock:
                connection = self._opened()
            setattr(self._own, name, connection)
        return connection

    def _opened(self) -> _Connection:
        files = self._files
        is_first = not self._open  # SQLite has deleted the log behind the last one before
        if files and files.look(database_only=is_first):
            raise self._lost()  # SQLite would make an empty one
        own: Any = {"isolation_level": None, "check_same_thread": False, "uri": True}
        connection = _Connection(self._where, BUSY, **own)
        connection.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves the file too
        connection.execute("PRAGMA cache_size=-256")  # KiB, for each of many threads
        if files and self._is_set_up and is_first:
            files.begin(connection)
        self._open.add(connection)
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Make the tables, while another process may be making the same ones.

        A sound archive is opened without a lock.
        """
        until = time.monotonic() + BUSY
        while (made := connection.execute(MADE).fetchone())[0] != VERSION:
            if any(made):
                raise ArchiveError(
                    f"The archive {self._path} was made by another version, or by another program; "
                    "upgrade conspectus to open it, or choose another path."
                )
            connection.execute(f"PRAGMA page_size={PAGE}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            try:  # SQLite waits for no lock here
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(PAUSE)
                continue
            with self.transaction(writes=True) as run:
                if run("PRAGMA user_version") == [(0,)]:
                    for statement in (*SCHEMA, WORDS):
                        run(statement.format(**TYPES))
                    # By its number an archive is known from another one under its name.
                    run(f"PRAGMA application_id={secrets.randbits(31)}")
                    run(f"PRAGMA user_version={VERSION}")


class _Connection(sqlite3.Connection):
    """One that can be held weakly."""


def _private_file(path: Path) -> Identity | None:
    """Make sure that a file is there; return its identity, None if it can only be read.

    A new one is private, as its journal files are: SQLite gives them the mode of the database. No
    folder is made but the default one, as that would hide a mistyped path. A file that has content
    is not opened here: closing it would take this process's locks on it away from SQLite.
    """
    if path.is_file() and os.access(path, os.R_OK | os.W_OK) and path.stat().st_size:
        return identity(path)
    try:
        if path == default_archive_path():
            private_folder(path.parent)
        with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if not file.tell():  # another process made it, or somebody
                path.chmod(0o600)
    except OSError as error:
        if path.is_file() and os.access(path, os.R_OK) and path.stat().st_size:
            return None
        raise ArchiveError(
            f"The archive {path} cannot be opened ({error.strerror}); give a file in a folder that "
            "is there, and make both writable, or choose another path."
        ) from error
    return identity(path)
