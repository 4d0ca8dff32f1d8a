"""Bring the file of an earlier version up to the form of this one.

Earlier versions kept their values in the table `store` of `SqliteStore`. Other programs may use
that table too, so only our values are touched.
"""

from __future__ import annotations

import sqlite3

from conspectus.archive.file_store import PAGE, TABLES, written_key, written_text
from conspectus.archive.scope import ROOT

_OURS = f"prefix = '{ROOT}' OR (prefix > '{ROOT}.' AND prefix < '{ROOT}/')"


def is_old(connection: sqlite3.Connection) -> bool:
    """Return whether an earlier version made the archive and it was never brought up."""
    return holds_old(connection) and not _has(connection, "kept")


def holds_old(connection: sqlite3.Connection) -> bool:
    """Return whether values of ours are in the table of earlier versions."""
    if not _has(connection, "store"):
        return False
    found = connection.execute(f"SELECT 1 FROM store WHERE {_OURS} LIMIT 1").fetchone()
    return found is not None


def shape(connection: sqlite3.Connection) -> None:
    """Set the options that SQLite takes only while a file is empty."""
    connection.execute(f"PRAGMA page_size={PAGE}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")


def bring_up(connection: sqlite3.Connection) -> None:
    """Move the values of an earlier version to the tables of this one, all or none.

    A value that is there already stays: a worker of this version wrote it later.
    """
    if not holds_old(connection):
        return
    connection.create_function("conspectus_key", 1, written_key, deterministic=True)
    connection.create_function("conspectus_value", 1, written_text, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(
            f"INSERT OR IGNORE INTO places (name) SELECT DISTINCT prefix FROM store WHERE {_OURS}"
        )
        connection.execute(
            "INSERT OR IGNORE INTO kept (place, key, value, at, expires) "
            "SELECT place, conspectus_key(key), conspectus_value(value), "
            "CAST(coalesce(strftime('%s', updated_at), 0) AS INTEGER), "
            "CAST(strftime('%s', expires_at) AS REAL) "
            f"FROM store JOIN places ON name = prefix WHERE {_OURS} ORDER BY store.rowid"
        )
        connection.execute(f"DELETE FROM store WHERE {_OURS}")
        if connection.execute("SELECT 1 FROM store LIMIT 1").fetchone() is None:
            for table in ("store", "store_migrations"):
                connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def shrink(connection: sqlite3.Connection) -> None:
    """Write the file anew, without free pages and with pages of our size.

    SQLite changes the page size only outside of WAL, and leaves WAL only where no other process has
    the file open; otherwise pages keep their size.
    """
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
        shape(connection)
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error) and "busy" not in str(error):
            raise
    finally:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _has(connection: sqlite3.Connection, table: str) -> bool:
    asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(asked, (table,)).fetchone() is not None
