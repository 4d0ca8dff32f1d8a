"""Keep an archive in SQL tables, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from conspectus.archive.passages import original_of
from conspectus.archive.store import ArchiveStore, SearchIndex
from conspectus.archive.values import (
    ItemsByKind,
    Scope,
    SearchRow,
    StoredItem,
    ValueKind,
    decode_original,
    key_bytes,
    key_text,
    packed,
    parse_head,
    unpacked,
)
from conspectus.errors import ArchiveError

KIND_NUMBERS: dict[ValueKind | Literal["head"], int] = {
    "messages": 0,
    "records": 1,
    "drafts": 2,
    "remarks": 3,
    "head": 4,
}
MESSAGES = KIND_NUMBERS["messages"]
RECORDS = KIND_NUMBERS["records"]
HEAD = KIND_NUMBERS["head"]

COUNTED = {MESSAGES, RECORDS, KIND_NUMBERS["drafts"]}
"""The kinds that `forget` counts."""

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
"""A scope has hashes instead of its names, which are in `name`. All items take their `number` from
one sequence of their scope, which continues at `next`: an original takes one for each passage in
the index of words, any other item takes one. An item that never expires has 0, which takes no byte
in SQLite. The body comes last, because a long body is on pages of its own."""

PASSAGE_BITS = 32
"""Bits of a passage's number within its scope. The bits above are the number of the scope."""

MAX_PASSAGES_OF_WORD = 1_000
"""The most passages of one word that are looked up. A word in more passages says little."""

ITEMS_AT_ONCE = 500
"""Items that one statement reads or deletes; SQLite takes at least 999 values in one."""

SEARCH_COLUMNS = "key, number, passages, words, name, about"
IS_ALIVE = "(expires = 0 OR expires > ?)"

IS_EXPIRED = "expires > 0 AND expires <= ?"
"""The condition of what has expired, in the form of the index, so that this is used."""

IS_SCOPE = "tenant = ? AND thread = ? AND session = ?"
ITEMS_OF_SCOPE = f"FROM item WHERE scope = (SELECT id FROM scope WHERE {IS_SCOPE}) AND kind = ?"

LOCK_SCOPE = (
    "INSERT INTO scope (tenant, thread, session, name, next) VALUES (?, ?, ?, ?, 0) "
    "ON CONFLICT (tenant, thread, session) DO UPDATE SET next = scope.next "
    "RETURNING id, next"
)
"""Makes the scope if there is none. The update changes nothing and locks the row for others."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """Runs the statements of one transaction. `?` is the place of a value."""

    cursor: Any
    placeholder: str
    """The place of a value in the driver's own form."""

    def __call__(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        self.cursor.execute(sql.replace("?", self.placeholder), values)
        return list(self.cursor.fetchall()) if self.cursor.description else []

    def for_each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for the values of each row."""
        values = list(rows)
        if values:
            self.cursor.executemany(sql.replace("?", self.placeholder), values)

    def among(self, sql: str, *values: Any, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield, of a statement that selects `key` first, the rows that have one of these keys.

        Each comes as its key and the rest of the row.
        """
        key_of = {key_bytes(key): key for key in keys}
        raw_keys = list(key_of)
        for start in range(0, len(raw_keys), ITEMS_AT_ONCE):
            part = raw_keys[start : start + ITEMS_AT_ONCE]
            is_among = f"key IN ({', '.join('?' * len(part))})"
            for raw_key, *columns in self(f"{sql} AND {is_among}", *values, *part):
                yield key_of[bytes(raw_key)], columns


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """Where items are written, and until when they live."""

    scope_id: int
    kind: int
    expires: float
    """Seconds since the epoch; 0 for never."""


class Tables(ArchiveStore):
    """An archive in SQL, with the words of originals in an index of the database.

    Each write is one transaction. What has expired is never returned; `keys_named` may still name
    it.
    """

    may_hang = False
    row_lock = ""
    """Ends a statement that reads rows which are then deleted, where others may write meanwhile."""

    find_passages: str
    """Selects the numbers of passages that hold a word, between two numbers, the last first."""

    add_passage: str
    """Adds the number and the text of a passage to the index of words."""

    remove_passage: str
    """Removes them."""

    def __init__(self, ttl: float | None) -> None:
        self.ttl = ttl

    @abstractmethod
    def transaction(
        self, *, writes: bool = False, durable: bool = True
    ) -> AbstractContextManager[Transaction]:
        """Begin a transaction, and commit it at the end.

        One that is not `durable` may be lost if the machine fails, though not if the process does.
        """

    @abstractmethod
    def search_term(self, word: str) -> str:
        """Return a word as `find_passages` takes it; see `SearchIndex.passages_holding`."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened for this archive."""

    def indexed_text(self, passage: str) -> str:
        """Return a passage as `add_passage` takes it."""
        return passage

    def scrub(self) -> None:
        """Take what was deleted out of the files, too."""
        return

    def check(self) -> str:
        """Return what is wrong with the database; empty if nothing is known to be."""
        return "" if self.ask("SELECT 1") else "it does not answer"

    def ask(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of one statement that only reads."""
        with self.transaction() as run:
            return run(sql, *values)

    def read(self, scope: Scope, kind: ValueKind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return values by name; see `ArchiveStore.read`."""
        sql = f"SELECT key, body {ITEMS_OF_SCOPE} AND {IS_ALIVE}"
        values = (*scope.hashes, KIND_NUMBERS[kind], time.time())
        with self.transaction() as run:
            if names is None:
                return {key_text(bytes(key)): bytes(body) for key, body in run(sql, *values)}
            return {key: bytes(body) for key, (body,) in run.among(sql, *values, keys=names)}

    def head_id(self, scope: Scope) -> str | None:
        """Return the head of a scope; see `ArchiveStore.head_id`."""
        sql = f"SELECT body {ITEMS_OF_SCOPE} AND {IS_ALIVE}"
        rows = self.ask(sql, *scope.hashes, HEAD, time.time())
        return parse_head(scope, bytes(rows[0][0])) if rows else None

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
        """Keep values, and the words of originals in the index; see `ArchiveStore.write`."""
        with self.transaction(writes=True, durable=durable) as run:
            names = packed([scope.tenant, scope.thread, scope.session])
            [(scope_id, next_passage)] = run(LOCK_SCOPE, *scope.hashes, names)
            current_head_id = self._locked_head(run, scope, scope_id)
            known_heads = ("", expected_head_id, head_id)
            if expected_head_id is not None and current_head_id not in known_heads:
                return current_head_id
            expires = 0.0 if self.ttl is None else time.time() + self.ttl
            for kind, values in items.items():
                place = ItemPlace(scope_id, KIND_NUMBERS[kind], expires)
                next_passage = self._put(run, place, values, next_passage)
            if head_id is not None:
                place = ItemPlace(scope_id, HEAD, expires)
                value = StoredItem("head", packed(head_id))
                next_passage = self._put(run, place, [value], next_passage)
            if renewed:
                self._renew(run, scope_id, renewed, expires)
            run("UPDATE scope SET next = ? WHERE id = ?", next_passage, scope_id)
            return current_head_id if head_id is None else head_id

    def _locked_head(self, run: Transaction, scope: Scope, scope_id: int) -> str:
        """Return the head of a scope that this transaction has locked; empty if there is none."""
        sql = f"SELECT body FROM item WHERE scope = ? AND kind = ? AND {IS_ALIVE}"
        rows = run(sql, scope_id, HEAD, time.time())
        return parse_head(scope, bytes(rows[0][0])) or "" if rows else ""

    def _put(
        self, run: Transaction, place: ItemPlace, items: Sequence[StoredItem], next_passage: int
    ) -> int:
        """Write items; return the number of the next passage of their scope."""
        item_of = {item.key: item for item in items}
        sql = "SELECT key, number FROM item WHERE scope = ? AND kind = ?"
        found = run.among(sql, place.scope_id, place.kind, keys=item_of)
        numbers: dict[str, int] = {key: number for key, (number,) in found}
        rows: list[tuple[Any, ...]] = []
        passages: list[tuple[int, str]] = []
        for key, item in item_of.items():
            if key not in numbers:
                number = (place.scope_id << PASSAGE_BITS) + next_passage
                numbers[key] = number
                passages += enumerate(map(self.indexed_text, item.passages), number)
                next_passage += max(1, len(item.passages))
            word_count = sum(passage.count(" ") + 1 for passage in item.passages)
            row = (
                numbers[key],
                place.scope_id,
                place.kind,
                key_bytes(key),
                place.expires,
                len(item.passages),
                word_count,
                item.name,
                item.about,
                item.body,
            )
            rows.append(row)
        sql = "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number)"
        run.for_each(f"{sql} DO UPDATE SET expires = excluded.expires, body = excluded.body", rows)
        run.for_each(self.add_passage, passages)
        return next_passage

    def _renew(
        self, run: Transaction, scope_id: int, records: Sequence[str], expires: float
    ) -> None:
        """Let records expire at this time."""
        # Without a time to live nothing expires, so nothing is renewed.
        other_end = "SELECT 1 FROM item WHERE scope = ? AND kind = ? AND expires <> ? LIMIT 1"
        if run(other_end, scope_id, RECORDS, expires):
            sql = "UPDATE item SET expires = ? WHERE scope = ? AND kind = ? AND key = ?"
            rows = ((expires, scope_id, RECORDS, key_bytes(key)) for key in records)
            run.for_each(sql, rows)

    def search_index(self, scope: Scope, keys: Collection[str]) -> SearchIndex:
        """Return these tables, which have the words of all originals."""
        return self

    def passages_holding(
        self, scope: Scope, words: Sequence[str]
    ) -> tuple[int, dict[str, set[int]]]:
        """Return the passages of words, of each word the newest 1,000; see `SearchIndex`."""
        with self.transaction() as run:
            rows = run(f"SELECT id, next FROM scope WHERE {IS_SCOPE}", *scope.hashes)
            if not rows:
                return 0, {word: set() for word in words}
            [(scope_id, passage_count)] = rows
            first = scope_id << PASSAGE_BITS
            last = (scope_id + 1 << PASSAGE_BITS) - 1
            found: dict[str, set[int]] = {}
            for word in words:
                term = self.search_term(word)
                numbers = run(self.find_passages, term, first, last, MAX_PASSAGES_OF_WORD)
                found[word] = {number for (number,) in numbers}
        return passage_count, found

    def rows_of(self, scope: Scope, keys: Sequence[str]) -> list[SearchRow]:
        """Return what a search knows of originals; see `SearchIndex.rows_of`."""
        sql = f"SELECT {SEARCH_COLUMNS} {ITEMS_OF_SCOPE} AND {IS_ALIVE}"
        with self.transaction() as run:
            rows = run.among(sql, *scope.hashes, MESSAGES, time.time(), keys=keys)
            return [(key, *columns) for key, columns in rows]

    def rows_holding(self, scope: Scope, numbers: Sequence[int]) -> list[SearchRow]:
        """Return the same of the originals with these passages, fewer than `ITEMS_AT_ONCE`."""
        if not numbers:
            return []
        # A passage belongs to the original with the largest number that is not above its own.
        sql = (
            f"WITH passage (at) AS (VALUES {', '.join(['(?)'] * len(numbers))}) "
            f"SELECT DISTINCT {SEARCH_COLUMNS} FROM passage JOIN item ON number = "
            "(SELECT max(earlier.number) FROM item AS earlier WHERE earlier.number <= at) "
            f"WHERE scope = (SELECT id FROM scope WHERE {IS_SCOPE}) AND kind = ? AND {IS_ALIVE}"
        )
        rows = self.ask(sql, *numbers, *scope.hashes, MESSAGES, time.time())
        return [(key_text(bytes(key)), *columns) for key, *columns in rows]

    def keys_named(self, scope: Scope, name: str) -> list[str]:
        """Return the keys of the originals that have this id; see `SearchIndex.keys_named`."""
        if not name:
            return []
        rows = self.ask(f"SELECT key {ITEMS_OF_SCOPE} AND name = ?", *scope.hashes, MESSAGES, name)
        return [key_text(bytes(key)) for (key,) in rows]

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the scopes of a tenant that hold a value."""
        has_items = f"EXISTS (SELECT 1 FROM item WHERE item.scope = scope.id AND {IS_ALIVE})"
        sql = f"SELECT name FROM scope WHERE tenant = ? AND {has_items} ORDER BY id"
        rows = self.ask(sql, Scope(tenant, "").hashes[0], time.time())
        return [Scope(*unpacked(bytes(names))) for (names,) in rows]

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete scopes, in the files, too; return the number of originals, records and drafts."""
        count = self.discard(scopes)
        self.scrub()
        return count

    def discard(self, scopes: Sequence[Scope]) -> int:
        """Delete as `forget` does. What the files still have of it is left to the next `forget`."""
        sql = f"SELECT id FROM scope WHERE {IS_SCOPE}{self.row_lock}"
        count = 0
        with self.transaction(writes=True) as run:
            for scope in scopes:
                for (scope_id,) in run(sql, *scope.hashes):
                    count += self._delete_items(run, "scope = ?", scope_id)
                    run("DELETE FROM scope WHERE id = ?", scope_id)
        return count

    def sweep(self) -> None:
        """Delete what has expired, in the files too."""
        has_expired = f"id IN (SELECT scope FROM item WHERE {IS_EXPIRED})"
        is_empty = "NOT EXISTS (SELECT 1 FROM item WHERE item.scope = scope.id)"
        count = 0
        with self.transaction(writes=True) as run:
            now = time.time()
            # It locks first, because a writer may renew what has expired.
            sql = f"SELECT id FROM scope WHERE {has_expired} ORDER BY id{self.row_lock}"
            for (scope_id,) in run(sql, now):
                count += self._delete_items(run, f"scope = ? AND {IS_EXPIRED}", scope_id, now)
                run(f"DELETE FROM scope WHERE id = ? AND {is_empty}", scope_id)
        if count:
            self.scrub()

    def _delete_items(self, run: Transaction, condition: str, *values: float) -> int:
        """Delete the items that meet a condition; return how many of them `forget` counts."""
        sql = f"SELECT number, kind, key, body FROM item WHERE {condition} LIMIT {ITEMS_AT_ONCE}"
        count = 0
        while rows := run(sql, *values):
            for number, kind, key, body in rows:
                count += kind in COUNTED
                if kind == MESSAGES:
                    self._remove_words(run, number, key_text(bytes(key)), bytes(body))
            run.for_each("DELETE FROM item WHERE number = ?", [row[:1] for row in rows])
        return count

    def _remove_words(self, run: Transaction, number: int, key: str, body: bytes) -> None:
        """Take the words of an original out of the index, which keeps no text to find them by."""
        # The words of a damaged original stay; their number is never used again.
        with suppress(ArchiveError):
            item = original_of(decode_original(key, body).message, b"")
            passages = map(self.indexed_text, item.passages)
            run.for_each(self.remove_passage, enumerate(passages, number))
