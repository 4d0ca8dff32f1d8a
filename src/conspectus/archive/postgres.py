"""Keep an archive in a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from conspectus.archive.passages import PIECE
from conspectus.archive.tables import SCHEMA, Run, Tables
from conspectus.errors import ArchiveError, install_command

CONNECT = 5  # Seconds to wait for a server to accept a connection
WAIT_FOR_POOL = 10  # Seconds to wait for a free connection of the pool
KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""Seconds and tries: a dead server is noticed within half a minute, which frees its connections."""

MAKING = 7_301_905  # Number of the lock under which the tables are made
TYPES = {"serial": "BIGSERIAL PRIMARY KEY", "bytes": "BYTEA", "number": "BIGINT"}
WORDS = (
    # The stems of FTS5; `english` of PostgreSQL has others, and leaves out words such as "not".
    "CREATE TEXT SEARCH DICTIONARY porter (TEMPLATE = snowball, language = porter)",
    "CREATE TEXT SEARCH CONFIGURATION porter (COPY = simple)",
    "ALTER TEXT SEARCH CONFIGURATION porter ALTER MAPPING REPLACE simple WITH porter",
    "CREATE TABLE words (number BIGINT PRIMARY KEY, body TSVECTOR NOT NULL)",
    "CREATE INDEX words_body ON words USING gin (body)",
)


class PostgresTables(Tables):
    """Tables in a schema of their own, `conspectus`; or in that which the address names."""

    daemon = True
    lock = " FOR UPDATE"  # so that a writer waits, and makes the history anew
    index = "INSERT INTO words VALUES (?, to_tsvector('porter', ?))"
    unindex = "DELETE FROM words WHERE number = ? AND ?::text IS NOT NULL"
    look_up = (
        "SELECT number FROM words WHERE body @@ to_tsquery('porter', ?) "
        "AND number BETWEEN ? AND ? ORDER BY number DESC LIMIT ?"
    )

    def __init__(self, address: str, ttl: float | None) -> None:
        super().__init__(ttl)
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
            from psycopg_pool import ConnectionPool
        except ImportError as error:
            raise ArchiveError(
                "A PostgreSQL archive needs the extra `postgres`; install it with "
                f"{install_command('postgres')}"
            ) from error
        # A pool would retry in the background; a plain connection fails at once.
        with psycopg.connect(address, connect_timeout=CONNECT) as first:
            [schema] = first.execute("SELECT current_schema()").fetchone() or [None]
            self._schema = "conspectus" if schema in (None, "public") else schema
            there = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
            if first.execute(there, (self._schema,)).fetchone() is None:
                first.execute("CREATE SCHEMA IF NOT EXISTS conspectus")
        # Checked before each use, so that the archive outlives a server's restart.
        self._new = partial(
            ConnectionPool,
            address,
            max_size=4,
            min_size=1,
            check=ConnectionPool.check_connection,
            timeout=WAIT_FOR_POOL,
            kwargs={**KEEPALIVE, **conninfo_to_dict(address)},
            configure=self._configured,
            open=False,
        )
        # By process: a fork that spoke on its parent's connections would mix up the answers.
        self._pools, self._closed = dict[int, Any](), False
        with self.transaction(writes=True) as run:
            run("SELECT pg_advisory_xact_lock(?)", MAKING)
            # A user who may only use the tables may make none, not even those that are there.
            if not run(
                "SELECT 1 FROM pg_ts_config WHERE cfgname = 'porter'"
                " AND pg_ts_config_is_visible(oid)"
            ):
                for statement in (*SCHEMA, *WORDS):
                    run(statement.format(**TYPES))

    def _configured(self, connection: Any) -> None:
        connection.execute("SELECT set_config('search_path', %s, false)", (self._schema,))
        connection.commit()

    @contextmanager
    def transaction(self, *, writes: bool = False, durable: bool = True) -> Iterator[Run]:
        pool = self._pools.get(os.getpid()) or self._pools.setdefault(os.getpid(), self._new())
        if not self._closed:
            pool.open()
        with pool.connection() as connection, connection.cursor() as cursor:
            yield Run(cursor, "%s")

    def text(self, passage: str) -> str:
        # The server has rules of its own for addresses and files, so it gets words alone.
        return " ".join(match[0].casefold() for match in PIECE.finditer(passage))

    def word(self, word: str) -> str:
        words = self.text(word).replace(" ", "' & '")
        return f"'{words}'{':*' if word.endswith('*') else ''}"

    def close(self) -> None:
        self._closed = True
        if pool := self._pools.get(os.getpid()):
            pool.close()
