"""Keep an archive in SQL tables, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from conspectus.archive.passages import original_of
from conspectus.archive.scope import Commit, Kind, Listed, Original, Scope, Values
from conspectus.archive.values import entry_of, packed, unpacked
from conspectus.errors import ArchiveError

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA = (
    "CREATE TABLE scope (id {serial}, tenant TEXT NOT NULL, thread TEXT NOT NULL, "
    "session TEXT NOT NULL, name {bytes} NOT NULL, next BIGINT NOT NULL, "
    "expires DOUBLE PRECISION NOT NULL, UNIQUE (tenant, thread, session))",
    "CREATE TABLE original (scope BIGINT NOT NULL, key TEXT NOT NULL, number BIGINT NOT NULL, "
    "passages INTEGER NOT NULL, words INTEGER NOT NULL, about TEXT NOT NULL, "
    "expires DOUBLE PRECISION NOT NULL, PRIMARY KEY (scope, key)) {clustered}",
    "CREATE TABLE body (number {number} PRIMARY KEY, body {bytes} NOT NULL)",
    "CREATE TABLE value (scope BIGINT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, "
    "body {bytes} NOT NULL, expires DOUBLE PRECISION NOT NULL, PRIMARY KEY (scope, kind, name))",
    *(
        f"CREATE INDEX {table}_expires ON {table} (expires) WHERE expires < 1e300"
        for table in ("scope", "original", "value")
    ),
)
"""`number` is that of an original's first passage, in `body` and the index of words, too. What
never expires does so at infinity, so that one comparison says what is alive."""

SPAN = 32
"""Bits of a passage's number within its scope; the number of the scope stands before them."""

MOST = 12_000
"""Passages of one word that are looked up; a word that more of them hold tells little."""

AT_ONCE = 500  # Originals deleted at a time
_GONE = "expires < 1e300 AND expires <= ?"  # as the indexes have it, so that one is used
_TOUCH = (
    "UPDATE scope SET expires = CASE WHEN expires > ? THEN expires ELSE ? END "
    "WHERE tenant = ? AND thread = ? AND session = ? RETURNING id, next"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where databases differ."""

    types: Mapping[str, str]  # the words of `SCHEMA` in braces
    words: tuple[str, ...]  # statements that make the index of words
    index: str  # adds a passage's number and text
    unindex: str  # deletes them
    look_up: str  # the numbers of the passages that hold a word, between two numbers
    among: str  # compares a column with a list
    mark: str  # stands for a value in a statement
    text: Callable[[str], str]  # a passage as statements take it
    word: Callable[[str], str]  # a word of a query; `word*`: or begins so
    listing: Callable[[Sequence[str]], Any]  # a list


class Run:
    """The statements of one transaction, with `?` for each value."""

    def __init__(self, cursor: Any, mark: str) -> None:
        self._cursor, self._mark = cursor, mark

    def __call__(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        self._cursor.execute(sql.replace("?", self._mark), values)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of many rows."""
        self._cursor.executemany(sql.replace("?", self._mark), list(rows))


def _transaction(
    *, writes: bool = False
) -> Callable[[Callable[Concatenate[Any, Run, P], T]], Callable[Concatenate[Any, P], T]]:
    """Make a method one transaction, which waits no longer than its caller is willing to."""

    def around(work: Callable[Concatenate[Any, Run, P], T]) -> Callable[Concatenate[Any, P], T]:
        @wraps(work)
        def done(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
            def whole() -> T:
                with self.transaction(writes=writes) as run:
                    return work(self, run, *args, **kwargs)

            return cast("T", self.within(whole))

        return cast("Callable[Concatenate[Any, P], T]", done)

    return around


class Tables(ABC):
    """What an archive asks of a store, as SQL.

    Each call is one transaction; failures are `ArchiveError`s. What has expired is never returned.
    `daemon` says whether a call may hang, so that an event loop's end must not wait for its thread.
    """

    daemon: bool
    dialect: Dialect

    def __init__(self, ttl: float | None) -> None:
        self.ttl = ttl

    @abstractmethod
    def transaction(self, *, writes: bool) -> AbstractContextManager[Run]:
        """Begin a transaction, and commit it at the end."""

    @abstractmethod
    def check(self) -> str:
        """Return what is wrong with the store itself; empty if nothing is known to be."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened for this archive."""

    def within(self, work: Callable[[], T]) -> T:
        """Wait for a transaction no longer than the caller is willing to."""
        return work()

    def scrub(self) -> None:
        """Take what was deleted out of the files, too."""
        return

    @_transaction()
    def originals(self, run: Run, scope: Scope, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the bodies of originals by key."""
        sql = "SELECT key, body FROM original JOIN body USING (number) WHERE scope = ? AND "
        values = (self._number(run, scope), time.time(), self.dialect.listing(keys))
        return _bodies(run(f"{sql} expires > ? AND key {self.dialect.among}", *values))

    @_transaction(writes=True)
    def keep(self, run: Run, scope: Scope, originals: Sequence[Original]) -> None:
        """Keep originals and index their words, all or none; equal keys are replaced."""
        number, after = self._made(run, scope)
        keys = self.dialect.listing([one.key for one in originals])
        sql = f"SELECT key, number FROM original WHERE scope = ? AND key {self.dialect.among}"
        known: dict[str, int] = dict(run(sql, number, keys))
        old, new, words = list(known), list[Any](), list[tuple[int, str]]()
        for one in originals:
            if one.key not in known:
                known[one.key] = first = (number << SPAN) + after
                size = sum(passage.count(" ") + 1 for passage in one.passages)
                count = len(one.passages)
                new.append((number, one.key, first, count, size, one.about, self._ends()))
                words += enumerate(map(self.dialect.text, one.passages), first)
                after += count
        run.many("INSERT INTO original VALUES (?, ?, ?, ?, ?, ?, ?)", new)
        run.many(
            "INSERT INTO body VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET body = "
            "excluded.body",
            [(known[one.key], one.body) for one in originals],
        )
        renewed = [(self._ends(), number, key) for key in old]
        run.many("UPDATE original SET expires = ? WHERE scope = ? AND key = ?", renewed)
        run.many(self.dialect.index, words)
        run("UPDATE scope SET next = ? WHERE id = ?", after, number)

    @_transaction()
    def listed(self, run: Run, scope: Scope, keys: Sequence[str]) -> list[Listed]:
        """Return what a search must know of a scope's originals, at least of those with a key."""
        sql = "SELECT key, number, passages, words, about FROM original WHERE scope = ?"
        return run(f"{sql} AND expires > ?", self._number(run, scope), time.time())

    @_transaction()
    def holding(self, run: Run, scope: Scope, words: Sequence[str]) -> dict[str, frozenset[int]]:
        """Return by word the passages that hold it, the newest `MOST`; `word*`: or begin so."""
        span, look_up = _span(self._number(run, scope)), self.dialect.look_up
        rows = {word: run(look_up, self.dialect.word(word), *span, MOST) for word in words}
        return {word: frozenset([number for (number,) in each]) for word, each in rows.items()}

    @_transaction()
    def values(
        self, run: Run, scope: Scope, kind: Kind, names: Sequence[str] | None
    ) -> dict[str, bytes]:
        """Return values by name; all of the kind without `names`."""
        sql = "SELECT name, body FROM value WHERE scope = ? AND kind = ? AND expires > ?"
        values: list[Any] = [self._number(run, scope), kind, time.time()]
        if names is not None:
            sql += f" AND name {self.dialect.among}"
            values.append(self.dialect.listing(names))
        return _bodies(run(sql, *values))

    @_transaction(writes=True)
    def save(self, run: Run, scope: Scope, values: Values) -> None:
        """Keep values by kind and name."""
        self._save(run, self._made(run, scope)[0], values)

    @_transaction(writes=True)
    def commit(self, run: Run, scope: Scope, commit: Commit) -> str | None:
        """Write a record and the head; return the head that is in force then."""
        number, _ = self._made(run, scope)  # which locks the scope for other writers
        kept = run("SELECT body FROM value WHERE scope = ? AND kind = 'head'", number)
        head = str(unpacked(bytes(kept[0][0]))) if kept else ""
        if commit.seen is not None and head and head not in (commit.seen, commit.record):
            return head
        self._save(run, number, {**commit.values, "head": {"head": packed(commit.record)}})
        if self.ttl is not None:
            sql = "UPDATE value SET expires = ? WHERE scope = ? AND kind = 'record' AND name = ?"
            run.many(sql, [(self._ends(), number, name) for name in commit.ancestors])
            self._drop_expired(run)
        return commit.record

    @_transaction()
    def scopes(self, run: Run, tenant: str) -> list[Scope]:
        """Return the histories of a tenant."""
        sql = "SELECT name FROM scope WHERE tenant = ? AND expires > ? ORDER BY id"
        rows = run(sql, Scope(tenant, "").hashes[0], time.time())
        return [Scope(*unpacked(bytes(name))) for (name,) in rows]

    @_transaction()
    def size(self, run: Run, scope: Scope) -> int:
        """Return the bytes of a history's originals as they are kept."""
        sql = "SELECT coalesce(sum(length(body)), 0) FROM body WHERE number BETWEEN ? AND ?"
        return int(run(sql, *_span(self._number(run, scope)))[0][0])

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete histories; return the number of originals, records and drafts."""
        count = self._forget(scopes)
        self.scrub()
        return count

    def sweep(self) -> None:
        """Delete what has expired."""
        if self._sweep():
            self.scrub()

    @_transaction(writes=True)
    def _forget(self, run: Run, scopes: Sequence[Scope]) -> int:
        count = 0
        for number in [self._number(run, scope) for scope in scopes]:
            count += self._drop(run, "scope = ?", number)
            counted = "SELECT count(*) FROM value WHERE scope = ? AND kind IN ('record', 'draft')"
            count += run(counted, number)[0][0]
            run("DELETE FROM value WHERE scope = ?", number)
            run("DELETE FROM scope WHERE id = ?", number)
        return count

    @_transaction(writes=True)
    def _sweep(self, run: Run) -> int:
        return self._drop_expired(run)

    def _drop_expired(self, run: Run) -> int:
        now = time.time()
        run(f"DELETE FROM value WHERE {_GONE}", now)
        run(f"DELETE FROM scope WHERE {_GONE}", now)
        return self._drop(run, _GONE, now)

    def _drop(self, run: Run, which: str, value: float) -> int:
        """Delete originals; the words of one go by its text, as the index does not keep them."""
        sql = "SELECT scope, key, number, body FROM original JOIN body USING (number) WHERE "
        count = 0
        while rows := run(f"{sql} {which} LIMIT {AT_ONCE}", value):
            for _, key, number, body in rows:
                with suppress(ArchiveError):  # the number of a damaged one names nothing any more
                    one = original_of(entry_of(key, bytes(body))[0], b"")
                    words = enumerate(map(self.dialect.text, one.passages), number)
                    run.many(self.dialect.unindex, words)
            run.many("DELETE FROM body WHERE number = ?", [(row[2],) for row in rows])
            gone = [row[:2] for row in rows]
            run.many("DELETE FROM original WHERE scope = ? AND key = ?", gone)
            count += len(rows)
        return count

    def _save(self, run: Run, scope: int, values: Values) -> None:
        run.many(
            "INSERT INTO value VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, kind, name) DO UPDATE "
            "SET body = excluded.body, expires = excluded.expires",
            [
                (scope, kind, name, body, self._ends())
                for kind, named in values.items()
                for name, body in named.items()
            ],
        )

    def _number(self, run: Run, scope: Scope) -> int:
        """Return the number of a scope; -1 without one."""
        sql = "SELECT id FROM scope WHERE tenant = ? AND thread = ? AND session = ?"
        rows = run(sql, *scope.hashes)
        return int(rows[0][0]) if rows else -1

    def _made(self, run: Run, scope: Scope) -> tuple[int, int]:
        """Return the number of a scope, made if need be, and that of its next passage.

        It lives as long as whatever is kept in it.
        """
        ends = self._ends()
        if not (rows := run(_TOUCH, ends, ends, *scope.hashes)):
            name = packed([scope.tenant, scope.thread, scope.session])
            run(
                "INSERT INTO scope (tenant, thread, session, name, next, expires) VALUES "
                "(?, ?, ?, ?, 0, ?) ON CONFLICT (tenant, thread, session) DO NOTHING",
                *(*scope.hashes, name, ends),
            )
            rows = run(_TOUCH, ends, ends, *scope.hashes)
        return rows[0][0], rows[0][1]

    def _ends(self) -> float:
        return math.inf if self.ttl is None else time.time() + self.ttl


def _span(scope: int) -> tuple[int, int]:
    """Return the first and the last number that a passage of a scope can have."""
    return scope << SPAN, (scope + 1 << SPAN) - 1


def _bodies(rows: Iterable[Any]) -> dict[str, bytes]:
    return {name: bytes(body) for name, body in rows}
