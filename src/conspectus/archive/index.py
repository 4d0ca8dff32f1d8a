"""Full-text indexes over archived messages: one SQLite FTS5 database for each scope.

An index is a cache. It holds terms and keys and no message, can be lost at any time, and is built
again from the archive. One scope has one database of its own, so that neither a value nor a
statistic of one can be seen in another's results.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from conspectus.archive.backend import private_file, private_folder
from conspectus.archive.lookup import Match, look_up, of_one_call
from conspectus.archive.scope import Scope, label_hash
from conspectus.archive.steps import Kind
from conspectus.archive.words import Query, Terms
from conspectus.errors import ArchiveError

VERSION = 3
"""Of the tables and of the rules for terms; an index of another version is built again."""

OPEN = 32
"""Indexes kept open at a time; of those that nobody uses, the one used longest ago is closed."""

_TABLES = f"""
CREATE TABLE docs (doc INTEGER PRIMARY KEY, key TEXT UNIQUE, id TEXT, cite TEXT, size INTEGER,
    asks INTEGER, speaker TEXT, kind INTEGER, answers TEXT, calls TEXT);
CREATE INDEX docs_id ON docs (id);
CREATE INDEX docs_cite ON docs (cite);
CREATE INDEX docs_size ON docs (size);
CREATE INDEX docs_kind ON docs (key, kind);
CREATE TABLE records (id TEXT PRIMARY KEY);
CREATE VIRTUAL TABLE terms USING fts5 (words, wholes, tokenize = 'ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (terms, 'col');
PRAGMA user_version = {VERSION};
"""


class IndexLost(Exception):
    """The index could not be used and has been thrown away; build it again."""


@dataclass(frozen=True, slots=True)
class Doc:
    """One message to be indexed.

    Attributes:
        key, id, cite: how it is named.
        terms: what it is found by.
        speaker: terms of the name of who speaks, or of the role where there is no name.
        asks: it ends in a question.
        kind: what it does.
        answers: ids of the calls whose results it holds.
        calls: where it makes several calls at once, what each is found by, by its id.
    """

    key: str
    id: str
    cite: str
    terms: Terms
    speaker: tuple[str, ...] = ()
    asks: bool = False
    kind: Kind = Kind.SAYS
    answers: tuple[str, ...] = ()
    calls: Mapping[str, Terms] = field(default_factory=dict)


class SearchIndexes:
    """The indexes of one archive.

    Args:
        folder: where they lie as private files; None keeps them in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._open: OrderedDict[str, tuple[sqlite3.Connection, int | None]] = OrderedDict()
        self._in_memory: set[str] = set()
        self._used: Counter[str] = Counter()
        self._counting = threading.Lock()

    @contextmanager
    def in_use(self, scope: Scope) -> Iterator[None]:
        """While this lasts, the scope's index is not closed for others: in memory, what has just
        been indexed would be gone before it is asked, and nothing would be found."""
        name = _name(scope)
        with self._counting:  # not the lock of the indexes, which others hold while they read
            self._used[name] += 1
        try:
            yield
        finally:
            with self._counting:
                self._used[name] -= 1
                self._used += Counter()  # forgets those that nobody uses any more

    def without_file(self, scope: Scope) -> None:
        """Keep this scope's index in memory from now on, as its file cannot be used."""
        with self._lock:
            self._drop(_name(scope))
            self._in_memory.add(_name(scope))

    def held(self, scope: Scope, records: Sequence[str]) -> set[str]:
        """Those of these records whose messages are all indexed."""
        with self._use(scope) as db:
            return {one for one in records if _has(db, "records", "id", one)}

    def unknown(self, scope: Scope, keys: Sequence[str]) -> list[str]:
        """Those of these messages that are not indexed."""
        with self._use(scope) as db:
            return [key for key in dict.fromkeys(keys) if not _has(db, "docs", "key", key)]

    def add(self, scope: Scope, docs: Sequence[Doc]) -> None:
        """Index messages; one that is there already is left alone."""
        with self._use(scope) as db:
            for doc in docs:
                named = (doc.key, _digest(doc.id), _digest(doc.cite))
                about = (len(doc.terms.words), doc.asks, " ".join(doc.speaker))
                calls = {_digest(name): of_one_call(terms) for name, terms in doc.calls.items()}
                answers = " ".join(map(_digest, doc.answers))
                does = (int(doc.kind), answers, json.dumps(calls) if calls else "")
                done = db.execute(
                    "INSERT OR IGNORE INTO docs "
                    "(key, id, cite, size, asks, speaker, kind, answers, calls) "
                    "VALUES (?,?,?,?,?,?,?,?,?)",
                    named + about + does,
                )
                if done.rowcount == 1:
                    db.execute(
                        "INSERT INTO terms (rowid, words, wholes) VALUES (?,?,?)",
                        (done.lastrowid, " ".join(doc.terms.words), " ".join(doc.terms.wholes)),
                    )

    def hold(self, scope: Scope, record: str) -> None:
        """Remember that all messages of a record are indexed: a record never changes."""
        with self._use(scope) as db:
            db.execute("INSERT OR IGNORE INTO records VALUES (?)", (record,))

    def drop(self, scope: Scope, keys: Sequence[str]) -> None:
        """Take out messages that the archive no longer holds."""
        with self._use(scope) as db:
            for key in keys:
                db.execute(
                    "DELETE FROM terms WHERE rowid IN (SELECT doc FROM docs WHERE key = ?)", (key,)
                )
                db.execute("DELETE FROM docs WHERE key = ?", (key,))
            db.execute("DELETE FROM records")  # which of them held these messages is not known

    def query(self, scope: Scope, query: Query, covered: Sequence[str]) -> list[Match]:
        """Messages that fit, the best first, and only those that are covered."""
        with self._use(scope) as db:
            return look_up(db, query, covered)

    def resolve(self, scope: Scope, name: str) -> set[str]:
        """Keys of messages with this id, or cited by it, or whose key starts with it."""
        with self._use(scope) as db:
            digest = _digest(name)
            rows = db.execute("SELECT key FROM docs WHERE id = ? OR cite = ?", (digest, digest))
            found = {key for (key,) in rows}
            if len(name) >= 8 and all(c in "0123456789abcdef" for c in name):
                rows = db.execute("SELECT key FROM docs WHERE key GLOB ?", (name + "*",))
                found |= {key for (key,) in rows}
            return found

    def forget(self, tenant: str, thread: str | None = None) -> None:
        """Delete the indexes of a tenant or of one thread, in memory and on disk."""
        start = label_hash(tenant) + "-" + ("" if thread is None else label_hash(thread) + "-")
        with self._lock:
            for name in [name for name in self._open if name.startswith(start)]:
                self._drop(name)
            self._in_memory = {name for name in self._in_memory if not name.startswith(start)}
            if self._folder is not None and self._folder.is_dir():
                for path in self._folder.glob(start + "*"):
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close them all; files stay for the next time."""
        with self._lock:
            for connection, _ in self._open.values():
                connection.close()
            self._open.clear()

    @contextmanager
    def _use(self, scope: Scope) -> Iterator[sqlite3.Connection]:
        """The index of a scope, inside a transaction; one that fails is thrown away."""
        name = _name(scope)
        with self._lock:
            try:
                db = self._opened(name)
                db.execute("BEGIN IMMEDIATE")
                try:
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OSError, ArchiveError) as error:
                self._drop(name, delete=True)
                raise IndexLost(str(error)) from error

    def _opened(self, name: str) -> sqlite3.Connection:
        path = self._path(name)
        if name in self._open:
            connection, file = self._open[name]
            if path is None or _file_number(path) == file:
                self._open.move_to_end(name)
                self._make_room(name)
                return connection
            self._drop(name)  # another process has forgotten or rebuilt it
        if path is None:
            connection = _connect(":memory:")
        else:
            private_folder(path.parent)
            private_file(path)
            connection = _connect(str(path))
        self._open[name] = (connection, _file_number(path) if path is not None else None)
        _prepare(connection)
        self._make_room(name)
        return connection

    def _make_room(self, name: str) -> None:
        """Close what was used longest ago, but not this index, nor one that somebody uses."""
        if len(self._open) <= OPEN:
            return
        with self._counting:
            idle = [one for one in self._open if one != name and one not in self._used]
        for one in idle[: len(self._open) - OPEN]:
            self._drop(one)

    def _path(self, name: str) -> Path | None:
        if self._folder is None or name in self._in_memory:
            return None
        return self._folder / f"{name}.db"

    def _drop(self, name: str, *, delete: bool = False) -> None:
        known = self._open.pop(name, None)
        if known is not None:
            with suppress(sqlite3.Error):
                known[0].close()
        path = self._path(name)
        if delete and path is not None:
            for ending in ("", "-journal", "-wal", "-shm"):
                with suppress(OSError):
                    path.with_name(path.name + ending).unlink(missing_ok=True)


def _connect(where: str) -> sqlite3.Connection:
    db = sqlite3.connect(where, timeout=5.0, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = OFF")  # a cache; what a power cut spoils is built again
    db.execute("PRAGMA secure_delete = ON")
    return db


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables of a new index; one of another version is refused, and so thrown away."""
    db.execute("BEGIN IMMEDIATE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version != VERSION and tables:
            raise sqlite3.DatabaseError("an index of another version")
        if not tables:
            for statement in _TABLES.strip().split(";\n"):
                db.execute(statement.rstrip(";"))
    finally:
        db.execute("COMMIT")


def _has(db: sqlite3.Connection, table: str, column: str, value: str) -> bool:
    return db.execute(f"SELECT 1 FROM {table} WHERE {column} = ?", (value,)).fetchone() is not None


def _name(scope: Scope) -> str:
    return "-".join(scope.hashes)


def _digest(text: str) -> str:
    """Ids are compared by digest: they may hold what SQLite cannot."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _file_number(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116
    except OSError:
        return None
