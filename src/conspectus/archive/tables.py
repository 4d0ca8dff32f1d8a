"""Keep an archive in SQL tables, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from conspectus.archive.passages import original_of
from conspectus.archive.values import (
    Item,
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

KINDS: dict[Kind, int] = {"messages": 0, "records": 1, "drafts": 2, "notes": 3, "head": 4}
COUNTED = range(3)  # Kinds that `forget` counts

SCHEMA = (
    "CREATE TABLE scope (id {serial}, tenant TEXT NOT NULL, thread TEXT NOT NULL, "
    "session TEXT NOT NULL, name {bytes} NOT NULL, next BIGINT NOT NULL, "
    "UNIQUE (tenant, thread, session))",
    "CREATE TABLE item (number {number} PRIMARY KEY, scope BIGINT NOT NULL, "
    "kind INTEGER NOT NULL, key {bytes} NOT NULL, expires DOUBLE PRECISION NOT NULL, "
    "passages INTEGER NOT NULL, words INTEGER NOT NULL, name TEXT NOT NULL, about TEXT NOT NULL, "
    "body {bytes} NOT NULL, UNIQUE (scope, kind, key))",
    "CREATE INDEX item_expires ON item (expires) WHERE expires > 0",
)
"""`number` is that of an original's first passage in the index of words; other items have a number
of their own. What never expires does so at 0, which takes no byte. The body comes last, as a long
one is on pages of its own."""

SPAN = 32
"""Bits of a passage's number within its scope; the number of the scope stands before them."""

MOST = 1_000
"""Passages of one word that are looked up; a word that more of them hold tells little."""

AT_ONCE = 500  # Items read or deleted by one statement
LISTED = "key, number, passages, words, name, about"
ALIVE = "(expires = 0 OR expires > ?)"
GONE = "expires > 0 AND expires <= ?"  # as the index has it, so that it is used
SAME = "tenant = ? AND thread = ? AND session = ?"
OF_SCOPE = f"FROM item WHERE scope = (SELECT id FROM scope WHERE {SAME}) AND kind = ?"


@dataclass(frozen=True, slots=True)
class Run:
    """The statements of one transaction, with `?` for each value."""

    cursor: Any
    mark: str  # of a value in the driver's own form

    def __call__(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        self.cursor.execute(sql.replace("?", self.mark), values)
        return list(self.cursor.fetchall()) if self.cursor.description else []

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of many rows."""
        if made := list(rows):
            self.cursor.executemany(sql.replace("?", self.mark), made)

    def among(self, sql: str, *values: Any, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield keys, and the rest of their rows, of a statement for those that it finds."""
        asked = {key_bytes(key): key for key in keys}
        every = [*asked]
        for at in range(0, len(every), AT_ONCE):
            part = every[at : at + AT_ONCE]
            rows = self(f"{sql} AND key IN ({', '.join('?' * len(part))})", *values, *part)
            yield from ((asked[bytes(key)], row) for key, *row in rows)


class Tables(ABC):
    """What an archive asks of a store, as SQL.

    Each call is one transaction. What has expired is never returned.
    """

    daemon = False  # whether a call may hang, so that the end of an event loop must not await it
    lock = ""  # of rows that are read before they are deleted, where others may write meanwhile
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
        return "" if self.ask("SELECT 1") else "it does not answer"

    def ask(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of one statement that only reads."""
        with self.transaction() as run:
            return run(sql, *values)

    def read(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return bodies by name, which is the key of an original; without `names` all of a kind."""
        sql = f"SELECT key, body {OF_SCOPE} AND {ALIVE}"
        values = (*scope.hashes, KINDS[kind], time.time())
        with self.transaction() as run:
            if names is None:
                return {key_text(bytes(key)): bytes(body) for key, body in run(sql, *values)}
            return {key: bytes(body) for key, (body,) in run.among(sql, *values, keys=names)}

    def write(
        self,
        scope: Scope,
        items: Items,
        head: str | None = None,
        seen: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        """Keep items, those of originals with their words in the index, and a head; all or none.

        The records `renewed` live as long. With `seen`, the head that was seen (empty for none),
        nothing is written if another one than this or `head` is in force. Returns the head.
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
            sql = f"SELECT body FROM item WHERE scope = ? AND kind = ? AND {ALIVE}"
            found = run(sql, number, KINDS["head"], time.time())
            now = str(unpacked(bytes(found[0][0]))) if found else ""
            if seen is not None and now not in ("", seen, head):
                return now
            ends = 0.0 if self.ttl is None else time.time() + self.ttl
            heads = () if head is None else (Item("head", packed(head)),)
            for kind, kept in [*items.items(), ("head", heads)]:
                after = self._put(run, (number, KINDS[kind], ends), kept, after)
            # Without a time to live all have the same end, and there is nothing to renew.
            others = "SELECT 1 FROM item WHERE scope = ? AND kind = 1 AND expires <> ? LIMIT 1"
            old = renewed if renewed and run(others, number, ends) else ()
            rows = [(ends, number, key_bytes(key)) for key in old]
            run.many("UPDATE item SET expires = ? WHERE scope = ? AND kind = 1 AND key = ?", rows)
            run("UPDATE scope SET next = ? WHERE id = ?", after, number)
            return now if head is None else head

    def _put(
        self, run: Run, where: tuple[int, int, float], items: Sequence[Item], after: int
    ) -> int:
        """Write items into a scope, as a kind, until they expire; return its next passage."""
        scope, kind, ends = where
        new = {one.key: one for one in items}
        sql = "SELECT key, number FROM item WHERE scope = ? AND kind = ?"
        known = {key: first for key, (first,) in run.among(sql, scope, kind, keys=new)}
        rows, words = list[Any](), list[tuple[int, str]]()
        for key, one in new.items():
            if key not in known:
                known[key] = (scope << SPAN) + after
                words += enumerate(map(self.text, one.passages), known[key])
                after += max(1, len(one.passages))
            size = sum(passage.count(" ") + 1 for passage in one.passages)
            row = (known[key], scope, kind, key_bytes(key), ends, len(one.passages), size)
            rows.append((*row, one.name, one.about, one.body))
        sql = "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number)"
        run.many(f"{sql} DO UPDATE SET expires = excluded.expires, body = excluded.body", rows)
        run.many(self.index, words)
        return after

    def searchable(self, scope: Scope, keys: Collection[str]) -> Any:
        """Return the tables that have the words of these originals."""
        return self

    def holding(self, scope: Scope, words: Sequence[str]) -> tuple[int, dict[str, set[int]]]:
        """Return the number of a history's passages, and for each word the newest that hold it.

        At most `MOST` of them. A word may be the beginning of one, `word*`, or several.
        """
        with self.transaction() as run:
            sql = f"SELECT id, next FROM scope WHERE {SAME}"
            [(number, total)] = run(sql, *scope.hashes) or [(-1, 0)]
            span = (number << SPAN, (number + 1 << SPAN) - 1)
            rows = {word: run(self.look_up, self.word(word), *span, MOST) for word in words}
        return total, {word: {at for (at,) in each} for word, each in rows.items()}

    def listed(self, scope: Scope, keys: Sequence[str]) -> list[Listed]:
        """Return what a search must know of originals, of those that are there."""
        sql = f"SELECT {LISTED} {OF_SCOPE} AND {ALIVE}"
        with self.transaction() as run:
            rows = run.among(sql, *scope.hashes, 0, time.time(), keys=keys)
            return [(key, *row) for key, row in rows]

    def holders(self, scope: Scope, numbers: Sequence[int]) -> list[Listed]:
        """Return the same of the originals that have these passages, fewer than `AT_ONCE`."""
        sql = (
            f"WITH passage (at) AS (VALUES {', '.join(['(?)'] * len(numbers))}) "
            f"SELECT DISTINCT {LISTED} FROM passage JOIN item ON number = "
            "(SELECT max(one.number) FROM item AS one WHERE one.number <= at) "
            f"WHERE scope = (SELECT id FROM scope WHERE {SAME}) AND kind = ? AND {ALIVE}"
        )
        rows = self.ask(sql, *numbers, *scope.hashes, 0, time.time()) if numbers else []
        return [(key_text(bytes(key)), *row) for key, *row in rows]

    def named(self, scope: Scope, name: str) -> list[str]:
        """Return the keys of the originals that have this id."""
        rows = self.ask(f"SELECT key {OF_SCOPE} AND name = ?", *scope.hashes, 0, name)
        return [key_text(bytes(key)) for (key,) in rows if name]

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the histories of a tenant."""
        alive = f"EXISTS (SELECT 1 FROM item WHERE item.scope = scope.id AND {ALIVE})"
        sql = f"SELECT name FROM scope WHERE tenant = ? AND {alive} ORDER BY id"
        rows = self.ask(sql, Scope(tenant, "").hashes[0], time.time())
        return [Scope(*unpacked(bytes(name))) for (name,) in rows]

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete histories; return the number of originals, records and drafts."""
        count = self.discard(scopes)
        self.scrub()
        return count

    def discard(self, scopes: Sequence[Scope]) -> int:
        """Delete as `forget` does, and leave what the files still hold of it for the next one."""
        count, sql = 0, f"SELECT id FROM scope WHERE {SAME}{self.lock}"
        with self.transaction(writes=True) as run:
            for number in [row for scope in scopes for row in run(sql, *scope.hashes)]:
                count += self._drop(run, "scope = ?", *number)
                run("DELETE FROM scope WHERE id = ?", *number)
        return count

    def sweep(self) -> None:
        """Delete what has expired."""
        held = f"id IN (SELECT scope FROM item WHERE {GONE}) ORDER BY id{self.lock}"
        bare = "NOT EXISTS (SELECT 1 FROM item WHERE item.scope = scope.id)"
        with self.transaction(writes=True) as run:
            now, count = time.time(), 0
            # Until its scope is locked, a writer may put anew what has expired.
            for (number,) in run(f"SELECT id FROM scope WHERE {held}", now):
                count += self._drop(run, f"scope = ? AND {GONE}", number, now)
                run(f"DELETE FROM scope WHERE id = ? AND {bare}", number)
        if count:
            self.scrub()

    def _drop(self, run: Run, which: str, *values: float) -> int:
        """Delete items; the words of one go by its text, as the index does not keep them."""
        sql, count = "SELECT number, kind, key, body FROM item WHERE", 0
        while rows := run(f"{sql} {which} LIMIT {AT_ONCE}", *values):
            for number, kind, key, body in rows:
                count += kind in COUNTED
                if kind == KINDS["messages"]:
                    with suppress(ArchiveError):  # the number of a damaged one names nothing more
                        one = original_of(entry_of(key_text(bytes(key)), bytes(body))[0], b"")
                        run.many(self.unindex, enumerate(map(self.text, one.passages), number))
            run.many("DELETE FROM item WHERE number = ?", [row[:1] for row in rows])
        return count
