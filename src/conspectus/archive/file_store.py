"""Keep values in a SQLite file that is small on disk.

LangGraph's store keeps the namespace three times for each value and its key twice, which is longer
than a short message. Here a namespace is a number, a hexadecimal key takes half its length, and a
packed value stays bytes.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from conspectus.archive.operations import FileItem, GetOp, NamespacesOp, Op, PutOp, SearchOp

PAGE = 1024
"""Bytes of a page of the file. Large values take whole pages, so small pages waste less."""

TABLES = (
    "CREATE TABLE IF NOT EXISTS places (place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, place INTEGER NOT NULL, "
    "key NOT NULL, value BLOB NOT NULL, at INTEGER NOT NULL, expires REAL)",
    "CREATE UNIQUE INDEX IF NOT EXISTS kept_key ON kept (place, key)",
    "CREATE INDEX IF NOT EXISTS kept_expires ON kept (expires) WHERE expires IS NOT NULL",
)

_HEX = re.compile(r"[0-9a-f]{32}")
_NUMBERED = re.compile(r"([0-9a-f]{28})-(0|[1-9][0-9]{0,6})")


class FileStore:
    """Values by namespace and key in one SQLite file, without semantic index or filters.

    The connection must have no transactions of its own (`isolation_level=None`).
    """

    supports_ttl = True
    takes_bytes = True  # Whether a value `{"v": ..., "z": ...}` may hold bytes

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.conn = connection
        self.lock = threading.RLock()

    def setup(self) -> None:
        with self.lock:
            for statement in TABLES:
                self.conn.execute(statement)

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """Carry out operations in one transaction, in their order."""
        every = list(ops)
        writes = any(isinstance(op, PutOp) for op in every)
        with self.lock:
            self.conn.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                answers = [self._done(op) for op in every]
                self.conn.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self.conn.execute("ROLLBACK")
                raise
        return answers

    def sweep_ttl(self) -> int:
        """Delete expired values and return their number."""
        with self.lock:
            return self.conn.execute("DELETE FROM kept WHERE expires <= ?", (time.time(),)).rowcount

    def _done(self, op: Op) -> Any:
        if isinstance(op, GetOp):
            return self._get(op.namespace, op.key)
        if isinstance(op, PutOp):
            return self._put(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        return self._namespaces(op)

    def _place(self, namespace: tuple[str, ...]) -> int | None:
        row = self.conn.execute("SELECT place FROM places WHERE name = ?", (_name(namespace),))
        found = row.fetchone()
        return None if found is None else int(found[0])

    def _get(self, namespace: tuple[str, ...], key: str) -> FileItem | None:
        row = self.conn.execute(
            "SELECT value FROM kept JOIN places USING (place) WHERE name = ? AND key = ?",
            (_name(namespace), written_key(key)),
        ).fetchone()
        return None if row is None else FileItem(namespace, key, _read(row[0]))

    def _put(self, op: PutOp) -> None:
        place = self._place(op.namespace)
        if op.value is None:
            self.conn.execute(
                "DELETE FROM kept WHERE place = ? AND key = ?", (place, written_key(op.key))
            )
            return
        if place is None:
            made = self.conn.execute("INSERT INTO places (name) VALUES (?)", (_name(op.namespace),))
            place = made.lastrowid
        now = time.time()
        expires = None if op.ttl is None else now + 60 * op.ttl
        self.conn.execute(
            "INSERT INTO kept (place, key, value, at, expires) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (place, key) DO UPDATE SET "
            "value = excluded.value, at = excluded.at, expires = excluded.expires",
            (place, written_key(op.key), _written(op.value), int(now), expires),
        )

    def _search(self, op: SearchOp) -> list[FileItem]:
        name = _name(op.namespace_prefix)
        # A dot sorts before a slash, and no label has either: this is all below the namespace.
        where = "WHERE name = ? OR (name > ? AND name < ?) " if name else ""
        below = (name, name + ".", name + "/") if name else ()
        rows = self.conn.execute(
            f"SELECT name, key, value FROM kept JOIN places USING (place) {where}LIMIT ? OFFSET ?",
            (*below, op.limit, op.offset),
        )
        return [
            FileItem(tuple(name.split(".")), _long(key), _read(value))
            for name, key, value in rows.fetchall()
        ]

    def _namespaces(self, op: NamespacesOp) -> list[tuple[str, ...]]:
        rows = self.conn.execute("SELECT name FROM places ORDER BY name").fetchall()
        every = [tuple(name.split(".")) for (name,) in rows]
        size = len(op.beginning)
        return [one for one in every if one[:size] == op.beginning][: op.limit]


def drop_empty_places(connection: sqlite3.Connection) -> None:
    """Delete the names of empty namespaces."""
    connection.execute("DELETE FROM places WHERE place NOT IN (SELECT place FROM kept)")


def _name(namespace: tuple[str, ...]) -> str:
    if any("." in label or "/" in label for label in namespace):
        raise ValueError("a label of a namespace holds a dot or a slash")
    return ".".join(namespace)


def written_key(key: str) -> str | bytes:
    """Return the stored form of a key: bytes if it is hexadecimal."""
    if _HEX.fullmatch(key):
        return bytes.fromhex(key)
    if numbered := _NUMBERED.fullmatch(key):
        return bytes.fromhex(numbered[1]) + int(numbered[2]).to_bytes(3, "big")
    return key


def _long(kept: str | bytes) -> str:
    if isinstance(kept, str):
        return kept
    if len(kept) == 16:
        return kept.hex()
    return f"{kept[:14].hex()}-{int.from_bytes(kept[14:], 'big')}"


def _written(value: Mapping[str, Any]) -> bytes:
    """Return a packed value as a version byte and its bytes; any other as JSON."""
    if value.keys() == {"v", "z"} and isinstance(value["z"], bytes) and 0 < value["v"] < 32:
        return bytes([value["v"]]) + value["z"]
    return json.dumps(dict(value)).encode()


def written_text(value: Any) -> bytes:
    """Return the stored form of a value that another store kept as JSON."""
    return value if isinstance(value, bytes) else str(value).encode()


def _read(raw: Any) -> Any:
    """Return the value that `_written` wrote; None if it is damaged."""
    if not isinstance(raw, bytes) or not raw:
        return None
    if raw[0] < 32:
        return {"v": raw[0], "z": raw[1:]}
    try:
        return json.loads(raw)
    except ValueError:
        return None
