"""Keep an archive in a private SQLite file, or in memory."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from weakref import WeakSet

from conspectus.archive.calls import explained, inside
from conspectus.archive.tables import SCHEMA, Dialect, Run, Tables
from conspectus.errors import ArchiveError

BUSY = 5.0  # Seconds to wait for another process that writes to the same file
PAUSE = 0.05  # Seconds between two tries to make the tables
HEADER = b"SQLite format 3\x00"
PAGE = 2048  # Bytes of a page; large values take whole pages, so small pages waste less
VERSION = 1  # Of the tables; a file of a newer one is refused


def _word(word: str) -> str:
    bare = word.removesuffix("*").replace('"', '""')
    return f'"{bare}"{"*" if word.endswith("*") else ""}'


DIALECT = Dialect(
    types={
        # No number twice, or old words would find new texts.
        "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "bytes": "BLOB",
        "number": "INTEGER",
        "clustered": "WITHOUT ROWID",
    },
    words=(  # which passages hold a word, and nothing else: no text, no places, no sizes
        "CREATE VIRTUAL TABLE words USING fts5(body, content='', detail=none, columnsize=0, "
        "tokenize=\"porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\")",
    ),
    index="INSERT INTO words (rowid, body) VALUES (?, ?)",
    unindex="INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)",
    look_up="SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? "
    "ORDER BY rowid DESC LIMIT ?",
    among="IN (SELECT value FROM json_each(?))",
    mark="?",
    text=str,
    word=_word,
    listing=json.dumps,
)


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
    """Tables in one file, with a connection for each thread; without a path, in memory.

    Raises:
        ArchiveError: the file cannot be opened, or is none of ours; says what to do.
    """

    daemon = False
    dialect = DIALECT

    def __init__(self, path: Path | None, ttl: float | None) -> None:
        super().__init__(ttl)
        self._path = None if path is None else path.expanduser().absolute()
        self._own = threading.local()
        self._open: WeakSet[_Connection] = WeakSet()  # that of a thread goes with its thread
        self._lock = threading.RLock()
        self._closed, self._file = False, (0, 0)
        if self._path is not None:
            _private_file(self._path)
            self._file = _identity(self._path)
        try:
            self._set_up(self._connection())
        except Exception as error:
            self.close()
            if isinstance(error, ArchiveError):
                raise
            what = f"The archive {self._path or ''}".rstrip()
            raise explained(error, f"{what} cannot be opened") from error

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Run]:
        with inside(), self._lock if self._path is None else nullcontext():
            connection = None
            try:
                connection = self._connection()
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield Run(connection.cursor(), "?")
                if writes and self._path is not None and _identity(self._path) != self._file:
                    raise ArchiveError(
                        f"The archive {self._path} was deleted or replaced since it was opened, so "
                        "nothing was written; open it again, or restart the program."
                    )
                connection.execute("COMMIT")
            except BaseException as error:
                if connection is not None and connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise explained(error) from error
                raise

    def scrub(self) -> None:
        with self.transaction(writes=True) as run:
            run("INSERT INTO words (words) VALUES ('optimize')")
        connection = self._connection()
        connection.execute("PRAGMA incremental_vacuum").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def check(self) -> str:
        with self.transaction(writes=False) as run:
            rows = run("PRAGMA integrity_check")
        return "; ".join(line for (line,) in rows if line != "ok")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connection in list(self._open):
                connection.close()

    def _connection(self) -> sqlite3.Connection:
        own = self._own if self._path is not None else self
        connection: _Connection | None = getattr(own, "connection", None)
        if self._closed:
            raise sqlite3.ProgrammingError("the archive is closed")
        if connection is None:
            connection = _Connection(
                self._path or ":memory:",
                timeout=BUSY,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves the file too
            with self._lock:
                self._open.add(connection)
            own.connection = connection  # type: ignore[union-attr]
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Make the tables, while another process may be making the same ones.

        SQLite waits for no lock while the journal's mode changes, so that is tried again here. A
        sound archive is opened without a lock.
        """
        until = time.monotonic() + BUSY
        while True:
            try:
                [version] = connection.execute("PRAGMA user_version").fetchone()
                if version > VERSION:
                    raise ArchiveError(
                        "The archive was made by a newer version; upgrade conspectus to open it."
                    )
                if version == VERSION:
                    return
                connection.execute(f"PRAGMA page_size={PAGE}")
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("PRAGMA user_version").fetchone()[0] == version:
                    for statement in (*SCHEMA, *DIALECT.words):
                        connection.execute(statement.format(**DIALECT.types))
                    connection.execute(f"PRAGMA user_version={VERSION}")
                connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if time.monotonic() > until or not any(w in str(error) for w in ("lock", "busy")):
                    raise
                time.sleep(PAUSE)


class _Connection(sqlite3.Connection):
    """One that can be held weakly."""


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return found.st_dev, found.st_ino


def _private_file(path: Path) -> None:
    """Make sure that a writable file is there; a new or empty one becomes private.

    SQLite gives its journal files the mode of the database, so they are private too.
    """
    wrong, start = "", b""
    if path.is_dir():
        wrong = f"{path} is a folder; give the path of a file in it for the archive."
    elif path != default_archive_path() and not path.parent.is_dir():
        # A folder that is made would hide a mistyped path.
        wrong = (
            f"The archive {path} cannot be opened: there is no folder {path.parent}; correct the "
            "path, or make the folder first."
        )
    elif path.exists() and not stat.S_ISREG(path.stat().st_mode):
        wrong = f"{path} is not a plain file; choose another path for the archive."
    if wrong:
        raise ArchiveError(wrong)
    try:
        if path == default_archive_path():
            private_folder(path.parent)
        with open(path, "ab+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.seek(0)
            if not (start := file.read(len(HEADER))):  # another process made it, or somebody
                path.chmod(0o600)
    except OSError as error:
        raise ArchiveError(
            f"The archive {path} cannot be opened for writing ({error.strerror}); make the file "
            "and its folder writable, or choose another path."
        ) from error
    if start and start != HEADER:
        raise ArchiveError(
            f"{path} exists and is not a SQLite database; choose another path for the archive."
        )
