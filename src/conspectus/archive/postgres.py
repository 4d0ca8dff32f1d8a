"""Keep an archive in a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conspectus.archive.passages import WORD
from conspectus.archive.tables import SCHEMA, Tables, Transaction
from conspectus.errors import ArchiveError, install_command

CONNECT_TIMEOUT = 5
"""Seconds to wait for a server to accept a connection."""

POOL_TIMEOUT = 10
"""Seconds to wait for a free connection of the pool."""

POOL_SIZE = 4
"""Connections of one process; an archive makes few calls at once."""

KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""Seconds and tries: a dead server is noticed within half a minute, which frees its connections."""

SETUP_LOCK = 7_301_905
"""Any number that no other program is likely to lock."""

COLUMN_TYPES = {"serial": "BIGSERIAL PRIMARY KEY", "bytes": "BYTEA", "number": "BIGINT"}
WORDS = (
    # The stems of FTS5. PostgreSQL's `english` has other stems, and leaves out words such as "not".
    "CREATE TEXT SEARCH DICTIONARY porter (TEMPLATE = snowball, language = porter)",
    "CREATE TEXT SEARCH CONFIGURATION porter (COPY = simple)",
    "ALTER TEXT SEARCH CONFIGURATION porter ALTER MAPPING REPLACE simple WITH porter",
    "CREATE TABLE words (number BIGINT PRIMARY KEY, body TSVECTOR NOT NULL)",
    "CREATE INDEX words_body ON words USING gin (body)",
)
HAS_TABLES = "SELECT 1 FROM pg_ts_config WHERE cfgname = 'porter' AND pg_ts_config_is_visible(oid)"


class PostgresTables(Tables):
    """Tables in a schema of their own, `conspectus`; or in that which the address names.

    Raises:
        ArchiveError: the extra `postgres` is not installed.
    """

    may_hang = True
    row_lock = " FOR UPDATE"  # a writer that has waited for it makes the scope again
    add_passage = "INSERT INTO words VALUES (?, to_tsvector('porter', ?))"
    remove_passage = "DELETE FROM words WHERE number = ? AND ?::text IS NOT NULL"
    find_passages = (
        "SELECT number FROM words WHERE body @@ to_tsquery('porter', ?) "
        "AND number BETWEEN ? AND ? ORDER BY number DESC LIMIT ?"
    )

    def __init__(self, address: str, ttl: float | None) -> None:
        super().__init__(ttl)
        check_driver()
        import psycopg

        self._address = address
        # By process: on the connections of its parent, a fork would get answers of others.
        self._pools: dict[int, Any] = {}
        self._closed = False
        # A pool would retry in the background; a plain connection fails at once.
        with psycopg.connect(address, connect_timeout=CONNECT_TIMEOUT) as connection:
            self._schema = _make_schema(connection)
        with self.transaction(writes=True) as run:
            run("SELECT pg_advisory_xact_lock(?)", SETUP_LOCK)
            # A user who may only use the tables may not run CREATE TABLE, even if they exist.
            if not run(HAS_TABLES):
                for statement in (*SCHEMA, *WORDS):
                    run(statement.format(**COLUMN_TYPES))

    def _pool(self) -> Any:
        """Return the pool of this process."""
        process = os.getpid()
        pool = self._pools.get(process)
        if pool is None:
            pool = self._pools.setdefault(process, self._new_pool())
        return pool

    def _new_pool(self) -> Any:
        from psycopg.conninfo import conninfo_to_dict
        from psycopg_pool import ConnectionPool

        return ConnectionPool(
            self._address,
            max_size=POOL_SIZE,
            min_size=1,
            # Checked before each use, so that the archive survives a restart of the server.
            check=ConnectionPool.check_connection,
            timeout=POOL_TIMEOUT,
            kwargs={**KEEPALIVE, **conninfo_to_dict(self._address)},
            configure=self._use_schema,
            open=False,
        )

    def _use_schema(self, connection: Any) -> None:
        connection.execute("SELECT set_config('search_path', %s, false)", (self._schema,))
        connection.commit()

    @contextmanager
    def transaction(self, *, writes: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """Begin a transaction on a connection of the pool; see `Tables.transaction`."""
        pool = self._pool()
        if not self._closed:
            pool.open()
        with pool.connection() as connection, connection.cursor() as cursor:
            yield Transaction(cursor, placeholder="%s")

    def indexed_text(self, passage: str) -> str:
        """Return the words of a passage: the server has rules of its own for other text."""
        return " ".join(match[0].casefold() for match in WORD.finditer(passage))

    def search_term(self, word: str) -> str:
        """Return a word in the language of `to_tsquery`."""
        words = self.indexed_text(word).replace(" ", "' & '")
        return f"'{words}'{':*' if word.endswith('*') else ''}"

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        pool = self._pools.get(os.getpid())
        if pool is not None:
            pool.close()


def check_driver() -> None:
    """Raise an error if the driver of PostgreSQL is missing.

    Raises:
        ArchiveError: it is not installed; names the extra to install.
    """
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise ArchiveError(
            "A PostgreSQL archive needs the extra `postgres`; install it with "
            f"{install_command('postgres')}"
        ) from error


def _make_schema(connection: Any) -> str:
    """Return the schema of the tables, which is there now."""
    row = connection.execute("SELECT current_schema()").fetchone()
    named_by_address = row[0] if row else None
    schema = "conspectus" if named_by_address in (None, "public") else str(named_by_address)
    is_there = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    if connection.execute(is_there, (schema,)).fetchone() is None:
        connection.execute("CREATE SCHEMA IF NOT EXISTS conspectus")
    return schema
