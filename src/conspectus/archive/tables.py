"""Keep an archive in SQL tables, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from conspectus.archive.passages import original_of
from conspectus.archive.values import Item, Items, Kind, Listed, Scope, entry_of
from conspectus.errors import ArchiveError

SCHEMA = (
    "CREATE TABLE scope (id {serial}, tenant TEXT NOT NULL, thread TEXT NOT NULL, "
    "session TEXT NOT NULL, name TEXT NOT NULL, next BIGINT NOT NULL, "
    "UNIQUE (tenant, thread, session))",
    "CREATE TABLE pack (id {serial}, scope BIGINT NOT NULL, expires DOUBLE PRECISION NOT NULL, "
    "body {bytes} NOT NULL, UNIQUE (scope, id))",
    "CREATE TABLE original (number {number} PRIMARY KEY, scope BIGINT NOT NULL, "
    "key TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL, passages INTEGER NOT NULL, "
    "words INTEGER NOT NULL, name TEXT NOT NULL, about TEXT NOT NULL, "
    "pack BIGINT NOT NULL, line INTEGER NOT NULL, UNIQUE (scope, key))",
    "CREATE TABLE value (scope BIGINT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, "
    "expires DOUBLE PRECISION NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (scope, kind, key))",
    *(f"CREATE INDEX {name}_expires ON {name} (expires) WHERE expires > 0"
      for name in ("pack", "original", "value")),
)  # fmt: skip
"""`number` is that of an original's first passage in the index of words. What never expires does so
at 0, which takes no byte. A pack holds the bodies of originals that were written together, one a
line, compressed as one: that takes a third of the time and of the room."""

PACK = 1 << 14  # Characters of a pack; a larger one is hardly smaller, and recall reads it whole
LEVEL = 4  # of compression

SPAN = 32
"""Bits of a passage's number within its scope; the number of the scope stands before them."""

MOST = 1_000
"""Passages of one word that are looked up; a word that more of them hold tells little."""

AT_ONCE = 500  # Rows read or deleted by one statement
LISTED = "key, number, passages, words, name, about"
ALIVE = "(expires = 0 OR expires > ?)"
GONE = "expires > 0 AND expires <= ?"  # as the index has it, so that it is used
SAME = "tenant = ? AND thread = ? AND session = ?"
OF_SCOPE = f"scope = (SELECT id FROM scope WHERE {SAME})"


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

    def among(self, sql: str, *values: Any, of: str, names: Iterable[Any]) -> list[Any]:
        """Return the rows of a statement whose column `of` has one of many values."""
        every, rows = [*dict.fromkeys(names)], list[Any]()
        for at in range(0, len(every), AT_ONCE):
            part = every[at : at + AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows += self(f"{sql} {of} IN ({marks})", *values, *part)
        return rows


class Tables(ABC):
    """What an archive asks of a store, as SQL.

    Each call is one transaction. What has expired is never returned.
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
        return "" if self.ask("SELECT 1") else "it does not answer"

    def ask(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of one statement that only reads."""
        with self.transaction() as run:
            return run(sql, *values)

    def read(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, str]:
        """Return bodies by name, which is the key of an original; without `names` all of a kind.

        The body of what is damaged is empty.
        """
        originals = kind == "messages"
        columns, table = ("key, pack, line", "original") if originals else ("key, body", "value")
        sql = f"SELECT {columns} FROM {table} WHERE {OF_SCOPE} AND {ALIVE}"
        values: tuple[Any, ...] = (*scope.hashes, time.time())
        if not originals:
            sql, values = f"{sql} AND kind = ?", (*values, kind)
        with self.transaction() as run:
            found = run(sql, *values) if names is None else None
            if found is None:
                found = run.among(f"{sql} AND", *values, of="key", names=names or ())
            if originals:
                return self._bodies(run, found)
        return {key: (_lines(body) or [""])[0] for key, body in found}

    def _bodies(self, run: Run, rows: Sequence[tuple[str, int, int]]) -> dict[str, str]:
        """Return the bodies of originals by key, from their packs and the lines there."""
        packs = run.among("SELECT id, body FROM pack WHERE", of="id", names=[r[1] for r in rows])
        lines = {number: _lines(body) for number, body in packs}
        # A pack is shorter if it is damaged, and gone if it has expired since.
        return {
            key: lines[pack][line] if line < len(lines.get(pack, ())) else ""
            for key, pack, line in rows
        }

    def write(
        self,
        scope: Scope,
        items: Items,
        head: str | None = None,
        seen: str | None = None,
        durable: bool = True,
    ) -> str:
        """Keep items, those of originals with their words in the index, and a head; all or none.

        A record renews those before it. With `seen`, the head that was seen (empty for none),
        nothing is written if another one than this or `head` is in force. Returns the head.
        """
        with self.transaction(writes=True, durable=durable) as run:
            name = json.dumps([scope.tenant, scope.thread, scope.session])
            # Which locks the scope for other writers.
            [(number, after)] = run(
                "INSERT INTO scope (tenant, thread, session, name, next) VALUES (?, ?, ?, ?, 0) "
                "ON CONFLICT (tenant, thread, session) DO UPDATE SET next = scope.next "
                "RETURNING id, next",
                *(*scope.hashes, name),
            )
            sql = f"SELECT body FROM value WHERE scope = ? AND kind = 'head' AND {ALIVE}"
            found = run(sql, number, time.time()) if seen is not None else ()
            now = json.loads(_lines(found[0][0])[0]) if found else ""
            if now not in ("", seen, head):
                return str(now)
            ends = 0.0 if self.ttl is None else time.time() + self.ttl
            if originals := items.get("messages"):
                after = self._put(run, number, ends, originals, after)
                run("UPDATE scope SET next = ? WHERE id = ?", after, number)
            heads = () if head is None else (Item("head", json.dumps(head)),)
            rows = [
                (number, kind, one.key, ends, zlib.compress(_raw(one.body), LEVEL))
                for kind, kept in [*items.items(), ("head", heads)]
                for one in kept
                if kind != "messages"
            ]
            sql = "INSERT INTO value VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, kind, key) "
            run.many(f"{sql} DO UPDATE SET expires = excluded.expires, body = excluded.body", rows)
            if ends and items.get("records"):
                sql = "UPDATE value SET expires = ? WHERE scope = ? AND kind = 'records'"
                run(f"{sql} AND {ALIVE}", ends, number, time.time())
            return now if head is None else head

    def _put(self, run: Run, scope: int, ends: float, items: Sequence[Item], after: int) -> int:
        """Write originals into a scope, until they expire; return its next passage."""
        sql = "SELECT key, number FROM original WHERE scope = ? AND"
        known = dict(run.among(sql, scope, of="key", names=[one.key for one in items]))
        rows, words = list[Any](), list[tuple[int, str]]()
        packed = self._packed(run, scope, ends, [one.body for one in items])
        for one, (pack, line) in zip(items, packed, strict=True):
            if one.key not in known:
                known[one.key] = (scope << SPAN) + after
                words += enumerate(map(self.text, one.passages), known[one.key])
                after += max(1, len(one.passages))
            size = sum(passage.count(" ") + 1 for passage in one.passages)
            row = (known[one.key], scope, one.key, ends, len(one.passages), size)
            rows.append((*row, one.name, one.about, pack, line))
        sql = "INSERT INTO original VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number)"
        new = ", ".join(f"{name} = excluded.{name}" for name in ("expires", "pack", "line"))
        run.many(f"{sql} DO UPDATE SET {new}", rows)
        run.many(self.index, words)
        return after

    def _packed(
        self, run: Run, scope: int, ends: float, bodies: Sequence[str]
    ) -> Iterator[tuple[int, int]]:
        """Write bodies into packs; yield for each its pack, and the line there."""
        first = size = 0
        for after, body in enumerate(bodies, 1):
            size += len(body)
            if size >= PACK or after == len(bodies):
                text = "\n".join(bodies[first:after])  # JSON has no line break
                sql = "INSERT INTO pack (scope, expires, body) VALUES (?, ?, ?) RETURNING id"
                [(pack,)] = run(sql, scope, ends, zlib.compress(_raw(text), LEVEL))
                yield from ((pack, line) for line in range(after - first))
                first, size = after, 0

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
        sql = f"SELECT {LISTED} FROM original WHERE {OF_SCOPE} AND {ALIVE} AND"
        with self.transaction() as run:
            return run.among(sql, *scope.hashes, time.time(), of="key", names=keys)

    def holders(self, scope: Scope, numbers: Sequence[int]) -> list[Listed]:
        """Return the same of the originals that have these passages, fewer than `AT_ONCE`."""
        sql = (
            f"WITH passage (at) AS (VALUES {', '.join(['(?)'] * len(numbers))}) "
            f"SELECT DISTINCT {LISTED} FROM passage JOIN original ON number = "
            "(SELECT max(one.number) FROM original AS one WHERE one.number <= at) "
            f"WHERE {OF_SCOPE} AND {ALIVE}"
        )
        return self.ask(sql, *numbers, *scope.hashes, time.time()) if numbers else []

    def named(self, scope: Scope, name: str) -> list[str]:
        """Return the keys of the originals that have this id."""
        sql = f"SELECT key FROM original WHERE {OF_SCOPE} AND name = ?"
        return [key for (key,) in self.ask(sql, *scope.hashes, name) if name]

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the histories of a tenant."""
        alive = " OR ".join(
            f"EXISTS (SELECT 1 FROM {table} WHERE {table}.scope = scope.id AND {ALIVE})"
            for table in ("original", "value")
        )
        sql = f"SELECT name FROM scope WHERE tenant = ? AND ({alive}) ORDER BY id"
        now = time.time()
        rows = self.ask(sql, Scope(tenant, "").hashes[0], now, now)
        return [Scope(*json.loads(name)) for (name,) in rows]

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete histories; return the number of originals, records and drafts."""
        count, sql = 0, f"SELECT id FROM scope WHERE {SAME}"
        with self.transaction(writes=True) as run:
            for number in [row for scope in scopes for row in run(sql, *scope.hashes)]:
                count += self._drop(run, "scope = ?", *number)
                run("DELETE FROM scope WHERE id = ?", *number)
        self.scrub()
        return count

    def sweep(self) -> None:
        """Delete what has expired."""
        now = time.time()
        with self.transaction(writes=True) as run:
            count = self._drop(run, GONE, now)
            held = "SELECT scope FROM original UNION SELECT scope FROM value"
            rows = run(f"SELECT id, next FROM scope WHERE id NOT IN ({held})")
            # Unless it is written meanwhile.
            run.many("DELETE FROM scope WHERE id = ? AND next = ?", rows)
        if count:
            self.scrub()

    def _drop(self, run: Run, which: str, value: float) -> int:
        """Delete rows; the words of one go by its text, as the index does not keep them."""
        counted = f"{which} AND kind IN ('records', 'drafts')"
        count: int = run(f"SELECT count(*) FROM value WHERE {counted}", value)[0][0]
        run(f"DELETE FROM value WHERE {which}", value)
        sql = f"SELECT number, key, pack, line FROM original WHERE {which} LIMIT {AT_ONCE}"
        while rows := run(sql, value):
            bodies = self._bodies(run, [row[1:] for row in rows])
            for number, key, *_ in rows:
                with suppress(ArchiveError):  # the number of a damaged one names nothing more
                    one = original_of(entry_of(key, bodies[key])[0], "")
                    run.many(self.unindex, enumerate(map(self.text, one.passages), number))
            run.many("DELETE FROM original WHERE number = ?", [row[:1] for row in rows])
            count += len(rows)
        run(f"DELETE FROM pack WHERE {which}", value)
        return count


def _raw(body: str) -> bytes:
    return body.encode("utf-8", "surrogatepass")


def _lines(body: bytes) -> list[str]:
    """Return the lines of a compressed text; none if it is damaged."""
    try:
        return zlib.decompress(body).decode("utf-8", "surrogatepass").split("\n")
    except (zlib.error, ValueError):
        return []
