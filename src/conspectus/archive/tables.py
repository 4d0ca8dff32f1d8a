"""Keep an archive in SQL tables, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from conspectus.archive.passages import original_of
from conspectus.archive.values import (
    Items,
    Kind,
    Listed,
    Scope,
    entry_of,
    key_bytes,
    key_text,
    packed,
    unpacked,
)
from conspectus.errors import ArchiveError

KINDS: dict[Kind, int] = {"original": 0, "record": 1, "draft": 2, "note": 3, "head": 4}
COUNTED = range(3)  # Kinds that `forget` counts

SCHEMA = (
    "CREATE TABLE scope (id {serial}, tenant TEXT NOT NULL, thread TEXT NOT NULL, "
    "session TEXT NOT NULL, name {bytes} NOT NULL, next BIGINT NOT NULL, "
    "UNIQUE (tenant, thread, session))",
    "CREATE TABLE item (scope BIGINT NOT NULL, kind INTEGER NOT NULL, key {bytes} NOT NULL, "
    "number BIGINT NOT NULL, passages INTEGER NOT NULL, words INTEGER NOT NULL, "
    "about TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL, "
    "PRIMARY KEY (scope, kind, key)) {clustered}",
    "CREATE TABLE body (number {number} PRIMARY KEY, body {bytes} NOT NULL)",
    "CREATE INDEX item_expires ON item (expires) WHERE expires > 0",
)
"""`number` is that of an original's first passage, in `body` and in the index of words, too; other
items have a number of their own. What never expires does so at 0, which takes no byte."""

SPAN = 32
"""Bits of a passage's number within its scope; the number of the scope stands before them."""

MOST = 2_000
"""Passages of one word that are looked up; a word that more of them hold tells little."""

AT_ONCE = 500  # Items read or deleted by one statement
ITEMS = "FROM item JOIN body USING (number) WHERE scope = ? AND kind = ?"
ALIVE = "(expires = 0 OR expires > ?)"
GONE = "expires > 0 AND expires <= ?"  # as the index has it, so that it is used
Where = tuple[int, Kind, float]  # The number of a scope, a kind, and when it expires
SAME = "tenant = ? AND thread = ? AND session = ?"


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
        if made := list(rows):
            self._cursor.executemany(sql.replace("?", self._mark), made)

    def among(self, sql: str, *values: Any, keys: Sequence[bytes]) -> Iterator[Any]:
        """Yield the rows of a statement whose `key` is among these."""
        for at in range(0, len(keys), AT_ONCE):
            part = keys[at : at + AT_ONCE]
            yield from self(f"{sql} AND key IN ({', '.join('?' * len(part))})", *values, *part)


class Tables(ABC):
    """What an archive asks of a store, as SQL.

    Each call is one transaction; failures are `ArchiveError`s. What has expired is never returned.
    """

    daemon = False  # whether a call may hang, so that the end of an event loop must not await it
    look_up: str  # the numbers of the passages that hold a word, between two numbers
    index: str  # adds a passage's number and text to the index of words
    unindex: str  # deletes them

    def __init__(self, ttl: float | None) -> None:
        self.ttl = ttl

    @abstractmethod
    def transaction(
        self, *, writes: bool = False, durable: bool = True
    ) -> AbstractContextManager[Run]:
        """Begin a transaction, and commit it at the end; one that is not `durable` may be lost.

        Only if the machine fails, not if the process does.
        """

    @abstractmethod
    def word(self, word: str) -> str:
        """Return a word for `look_up`, or several that stand together; `word*`: or begins so."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened for this archive."""

    def text(self, passage: str) -> str:
        """Return a passage as `index` takes it."""
        return passage

    def scrub(self) -> None:
        """Take what was deleted out of the files, too."""
        return

    def check(self) -> str:
        """Return what is wrong with the store itself; empty if nothing is known to be."""
        with self.transaction() as run:
            return "" if run("SELECT 1") else "it does not answer"

    def read(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return bodies by name, which is the key of an original; without `names` all of a kind."""
        sql = f"SELECT key, body {ITEMS} AND {ALIVE}"
        with self.transaction() as run:
            values = (self._number(run, scope), KINDS[kind], time.time())
            keys = None if names is None else [*map(key_bytes, names)]
            rows = run(sql, *values) if keys is None else run.among(sql, *values, keys=keys)
            return {key_text(bytes(key)): bytes(body) for key, body in rows}

    def write(
        self,
        scope: Scope,
        items: Items,
        renewed: Sequence[str] = (),
        seen: str | None = None,
        durable: bool = True,
    ) -> str:
        """Keep items, those of originals with their words in the index; all or none.

        The records `renewed` live as long. With `seen`, the head that was seen (empty for none),
        nothing is written if another one, or one of these records, is in force. Returns the head.
        """
        with self.transaction(writes=True, durable=durable) as run:
            name = packed([scope.tenant, scope.thread, scope.session])
            # Which locks the scope for other writers.
            [(number, after)] = run(
                "INSERT INTO scope (tenant, thread, session, name, next) VALUES (?, ?, ?, ?, 0) "
                "ON CONFLICT (tenant, thread, session) DO UPDATE SET next = scope.next "
                "RETURNING id, next",
                *(*scope.hashes, name),
            )
            sql = f"SELECT body {ITEMS} AND {ALIVE}"
            kept = run(sql, number, KINDS["head"], time.time())
            head = str(unpacked(bytes(kept[0][0]))) if kept else ""
            if seen is not None and head not in ("", seen, *(one.key for one in items["record"])):
                return head
            ends = 0.0 if self.ttl is None else time.time() + self.ttl
            for kind in items:
                after = self._put(run, (number, kind, ends), items, after)
            self._renew(run, (number, "record", ends), map(key_bytes, renewed))
            run("UPDATE scope SET next = ? WHERE id = ?", after, number)
            return str(unpacked(items["head"][0].body)) if "head" in items else head

    def _put(self, run: Run, where: Where, items: Items, after: int) -> int:
        """Write items of a kind into a scope; return the number of its next passage."""
        number, kind, ends = where
        new = {key_bytes(one.key): one for one in items[kind]}
        sql = "SELECT key, number FROM item WHERE scope = ? AND kind = ?"
        rows = run.among(sql, number, KINDS[kind], keys=[*new])
        known = {bytes(key): first for key, first in rows}
        self._renew(run, where, known)
        made, words = list[Any](), list[tuple[int, str]]()
        for key, one in new.items():
            if key not in known:
                known[key] = first = (number << SPAN) + after
                size = sum(passage.count(" ") + 1 for passage in one.passages)
                row = (number, KINDS[kind], key, first, len(one.passages), size, one.about, ends)
                made.append(row)
                words += enumerate(map(self.text, one.passages), first)
                after += max(1, len(one.passages))
        run.many("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?)", made)
        sql = (
            "INSERT INTO body VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET body = excluded.body"
        )
        run.many(sql, [(known[key], one.body) for key, one in new.items()])
        run.many(self.index, words)
        return after

    def _renew(self, run: Run, where: Where, keys: Iterable[bytes]) -> None:
        number, kind, ends = where
        sql = "UPDATE item SET expires = ? WHERE scope = ? AND kind = ? AND key = ?"
        run.many(sql, [(ends, number, KINDS[kind], key) for key in keys])

    def listed(self, scope: Scope, keys: Sequence[str]) -> dict[str, Listed]:
        """Return by key what a search must know of originals, at least of those with these keys."""
        sql = "SELECT key, number, passages, words, about FROM item WHERE scope = ? AND kind = 0"
        with self.transaction() as run:
            rows = run(f"{sql} AND {ALIVE}", self._number(run, scope), time.time())
        return {key_text(bytes(row[0])): row for row in rows}

    def index_of(self, scope: Scope) -> object:
        """Return what tells a history from a later one of its name, with other numbers."""
        with self.transaction() as run:
            return self._number(run, scope)

    def holding(self, scope: Scope, words: Sequence[str]) -> dict[str, frozenset[int]]:
        """Return the newest `MOST` passages that hold a word, or begin so: `word*`; or several."""
        with self.transaction() as run:
            number = self._number(run, scope)
            span = (number << SPAN, (number + 1 << SPAN) - 1)
            rows = {word: run(self.look_up, self.word(word), *span, MOST) for word in words}
        return {word: frozenset([at for (at,) in each]) for word, each in rows.items()}

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the histories of a tenant."""
        alive = f"EXISTS (SELECT 1 FROM item WHERE item.scope = scope.id AND {ALIVE})"
        sql = f"SELECT name FROM scope WHERE tenant = ? AND {alive} ORDER BY id"
        with self.transaction() as run:
            rows = run(sql, Scope(tenant, "").hashes[0], time.time())
        return [Scope(*unpacked(bytes(name))) for (name,) in rows]

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete histories; return the number of originals, records and drafts."""
        with self.transaction(writes=True) as run:
            numbers = [self._number(run, scope) for scope in scopes]
            count = sum(self._drop(run, "scope = ?", number) for number in numbers)
            run.many("DELETE FROM scope WHERE id = ?", [(number,) for number in numbers])
        self.scrub()
        return count

    def sweep(self) -> None:
        """Delete what has expired."""
        with self.transaction(writes=True) as run:
            count = self._drop(run, GONE, time.time())
            rows = run("SELECT id, next FROM scope WHERE id NOT IN (SELECT scope FROM item)")
            # Unless it is written meanwhile.
            run.many("DELETE FROM scope WHERE id = ? AND next = ?", rows)
        if count:
            self.scrub()

    def _drop(self, run: Run, which: str, value: float) -> int:
        """Delete items; the words of one go by its text, as the index does not keep them."""
        sql = "SELECT scope, kind, key, number, body FROM item JOIN body USING (number) WHERE"
        count = 0
        while rows := run(f"{sql} {which} LIMIT {AT_ONCE}", value):
            for _, kind, key, number, body in rows:
                count += kind in COUNTED
                if kind == KINDS["original"]:
                    with suppress(ArchiveError):  # the number of a damaged one names nothing more
                        one = original_of(entry_of(key_text(bytes(key)), bytes(body))[0], b"")
                        run.many(self.unindex, enumerate(map(self.text, one.passages), number))
            run.many("DELETE FROM body WHERE number = ?", [(row[3],) for row in rows])
            gone = [row[:3] for row in rows]
            run.many("DELETE FROM item WHERE scope = ? AND kind = ? AND key = ?", gone)
        return count

    def _number(self, run: Run, scope: Scope) -> int:
        """Return the number of a scope; -1 without one."""
        rows = run(f"SELECT id FROM scope WHERE {SAME}", *scope.hashes)
        return int(rows[0][0]) if rows else -1
