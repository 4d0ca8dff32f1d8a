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

from conspectus.archive.sqlite_files import DatabaseFiles, Identity, WrittenItem, identity
from conspectus.archive.tables import KIND_NUMBERS, SCHEMA, Tables, Transaction
from conspectus.archive.values import ItemsByKind, Scope, key_bytes
from conspectus.errors import ArchiveError

BUSY_SECONDS = 5.0
"""Seconds to wait for another process that writes to the same file."""

SETUP_RETRY_SECONDS = 0.05
"""Seconds between two tries to make the tables."""

PAGE_BYTES = 2048
"""Bytes of a page; a large value takes whole pages, so small ones waste less."""

CACHE_KIB = 256
"""KiB for the cache of each connection. Every thread has a connection."""

VERSION = 5
"""The version of the tables. A file of another version is refused."""

STATE = "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
"""The version of the tables, 0 for none, and how many tables and indexes there are."""

COLUMN_TYPES = {
    # No number is used twice, or words of a deleted text would find a new text.
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "bytes": "BLOB",
    "number": "INTEGER",
}
WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5(body, content='', detail=none, columnsize=0, "
    "tokenize=\"porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\")"
)
"""The index of words. It knows which passages hold a word, and keeps no text and no positions."""


def default_archive_path() -> Path:
    """Return `conspectus/archive.db` in `XDG_DATA_HOME` (`~/.local/share`)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification ignores relative paths.
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "conspectus" / "archive.db"


def private_folder(path: Path) -> None:
    """Make a folder and its missing parents, which nobody but their owner can read."""
    if not path.exists():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


class SqliteTables(Tables):
    """Tables in one file, with a connection for each thread; without a path, in memory.

    Raises:
        ArchiveError: the file cannot be opened, or is of another version or program.
    """

    add_passage = "INSERT INTO words (rowid, body) VALUES (?, ?)"
    remove_passage = "INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)"
    find_passages = (
        "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? "
        "ORDER BY rowid DESC LIMIT ?"
    )

    def __init__(self, path: Path | None, ttl: float | None) -> None:
        super().__init__(ttl)
        self._path = None if path is None else path.expanduser().absolute()
        self._of_thread: Any = SimpleNamespace() if path is None else threading.local()
        self._connections: WeakSet[_Connection] = WeakSet()  # that of a thread ends with it
        # Held by a writer; in memory by everybody, because all share one connection. Without this
        # lock they would wait in SQLite, which polls with longer and longer pauses.
        self._write_lock = threading.Lock()
        self._connect_lock = threading.Lock()
        self._closed = False
        self._files: DatabaseFiles | None = None  # None: in memory, or a file that is only read
        if self._path is None:
            self._address = ":memory:"
        else:
            self._address = self._path.as_uri()
            file_identity = _private_file(self._path)
            if file_identity is not None:
                self._files = DatabaseFiles(self._path, file_identity, self._new_connection)
            else:
                self._address += _read_only_options(self._path)
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
    def transaction(self, *, writes: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """Begin a transaction on the connection of this thread; see `Tables.transaction`."""
        connection: _Connection | None = None
        with self._exclusive(writes):
            try:
                connection = self._connection()
                if writes:
                    # Written to the disk at once, or with the next transaction that is.
                    connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                    connection.execute("BEGIN IMMEDIATE")
                    self._check_files(connection)
                # Reading needs no transaction: values never change, or are checked.
                yield Transaction(connection.cursor(), placeholder="?")
                if writes:
                    connection.execute("COMMIT")
                    self._check_files(connection, after_commit=True)
            except BaseException as error:
                if connection is not None and connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.DatabaseError) and self._files_have_changed():
                    raise self._changed_files_error() from error
                raise

    @contextmanager
    def _exclusive(self, writes: bool) -> Iterator[None]:
        """Keep out other writers. In memory, keep out everybody: all share the connection."""
        if self._path is not None and not writes:
            yield
            return
        # For a file, this lock is only a courtesy: after `BUSY_SECONDS` SQLite's own lock decides.
        patience = -1 if self._path is None else BUSY_SECONDS
        is_held = self._write_lock.acquire(timeout=patience)
        try:
            yield
        finally:
            if is_held:
                self._write_lock.release()

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
        """Write, and remember the last value, so that a file that was replaced is noticed."""
        current_head_id = super().write(
            scope,
            items,
            head_id=head_id,
            expected_head_id=expected_head_id,
            durable=durable,
            renewed=renewed,
        )
        written = [(KIND_NUMBERS[kind], item.key) for kind in items for item in items[kind]]
        # What may expire or be lost proves nothing where it is missing.
        is_lasting = durable and self.ttl is None
        if self._files and written and is_lasting and head_id in (None, current_head_id):
            kind, key = written[-1]
            last = WrittenItem(scope.hashes, kind, key_bytes(key))
            self._files.remember(self._connection(), last)
        return current_head_id

    def search_term(self, word: str) -> str:
        """Return a word in the language of FTS5."""
        quoted = word.removesuffix("*").replace('"', '""').replace(" ", '" "')
        return f'"{quoted}"{"*" if word.endswith("*") else ""}'

    def scrub(self) -> None:
        """Take what was deleted out of the index, the file and its log."""
        with self.transaction(writes=True) as run:
            run("INSERT INTO words (words) VALUES ('optimize')")
        connection = self._connection()
        connection.execute("PRAGMA incremental_vacuum").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if self._files:
            self._files.remember(connection)

    def check(self) -> str:
        """Return what SQLite finds wrong in the file; empty for nothing."""
        return "; ".join(line for (line,) in self.ask("PRAGMA integrity_check") if line != "ok")

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._connect_lock:
            self._closed = True
            for connection in list(self._connections):
                connection.close()

    def _check_files(self, connection: sqlite3.Connection, *, after_commit: bool = False) -> None:
        """Raise `ArchiveError` if what is written is not what a new process would find."""
        if self._files is None or not self._is_set_up:
            return
        if self._files.inspect(connection, after_commit=after_commit):
            raise self._changed_files_error()

    def _files_have_changed(self) -> bool:
        # SQLite itself deletes the log when the last connection is closed.
        if self._files is None or self._closed:
            return False
        return bool(self._files.compare())

    def _changed_files_error(self) -> ArchiveError:
        change = self._files.change if self._files else ""
        return ArchiveError(
            f"The archive {self._path} {change}, so nothing is read or written; put it back, or "
            "restore a backup, and open it again, or restart the program."
        )

    def _new_connection(self) -> sqlite3.Connection:
        """Return a connection that sees what a new process would see."""
        assert self._path is not None
        return sqlite3.connect(f"{self._path.as_uri()}?mode=rw", BUSY_SECONDS, uri=True)

    def _connection(self) -> _Connection:
        """Return the connection of this thread."""
        if self._closed:
            raise sqlite3.ProgrammingError("the archive is closed")
        if self._files and self._files.change:
            raise self._changed_files_error()
        # A fork opens its own: one that was carried over could damage the file.
        attribute = f"in_process_{os.getpid() if self._path else 0}"
        connection: _Connection | None = getattr(self._of_thread, attribute, None)
        if connection is None:
            with self._connect_lock:
                connection = self._connect()
            setattr(self._of_thread, attribute, connection)
        return connection

    def _connect(self) -> _Connection:
        """Open a connection for this thread."""
        files = self._files
        # After the last connection was closed, there is no log: SQLite has deleted it.
        is_first = not self._connections
        if files and files.compare(database_only=is_first):
            raise self._changed_files_error()  # SQLite would make an empty file
        connection = sqlite3.connect(
            self._address,
            BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
            uri=True,
        )
        connection.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves the file too
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")  # SQLite counts KiB below zero
        if files and self._is_set_up and is_first:
            files.begin(connection)
        self._connections.add(connection)
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Make the tables, while another process may be making the same ones.

        A file that has them is opened without a lock.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            version, table_count = connection.execute(STATE).fetchone()
            if version == VERSION:
                return
            if version or table_count:
                raise ArchiveError(
                    f"The archive {self._path} was made by another version, or by another program; "
                    "upgrade conspectus to open it, or choose another path."
                )
            connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            try:  # SQLite does not wait for a lock here
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(SETUP_RETRY_SECONDS)
                continue
            with self.transaction(writes=True) as run:
                if run("PRAGMA user_version") == [(0,)]:  # nobody else has made them since
                    for statement in (*SCHEMA, WORDS):
                        run(statement.format(**COLUMN_TYPES))
                    # This number tells the archive from any other one at the same path.
                    run(f"PRAGMA application_id={secrets.randbits(31)}")
                    run(f"PRAGMA user_version={VERSION}")


class _Connection(sqlite3.Connection):
    """A connection to which there can be weak references."""


def _private_file(path: Path) -> Identity | None:
    """Make sure that a file is there; return its identity, None if it can only be read.

    A new file is private, and so are its journal files: SQLite gives them the mode of the database.
    Only the default folder is made, because others would hide a mistyped path. A file with content
    is not opened here: closing it would release this process's locks of SQLite.

    Raises:
        ArchiveError: there is no such file, and none can be made.
    """
    has_content = path.is_file() and path.stat().st_size > 0
    if has_content and os.access(path, os.R_OK | os.W_OK):
        return identity(path)
    try:
        if path == default_archive_path():
            private_folder(path.parent)
        with open(path, "ab", opener=_open_private) as file:
            if not file.tell():  # it was there and empty, perhaps with another mode
                path.chmod(0o600)
    except OSError as error:
        if path.is_file() and os.access(path, os.R_OK) and path.stat().st_size:
            return None
        raise ArchiveError(
            f"The archive {path} cannot be opened ({error.strerror}); give a file in a folder that "
            "is there, and make both writable, or choose another path."
        ) from error
    return identity(path)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _read_only_options(path: Path) -> str:
    """Return the end of an address under which SQLite only reads a file."""
    # To lock the file, SQLite would have to write another file. If nobody writes, none is needed.
    is_on_read_only_disk = hasattr(os, "statvfs") and os.statvfs(path).f_flag & os.ST_RDONLY
    return "?mode=ro&immutable=1" if is_on_read_only_disk else "?mode=ro"
