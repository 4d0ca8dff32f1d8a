"""Keep an archive in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from conspectus.archive.backend import MOST
from conspectus.archive.gate import Patience, inside
from conspectus.archive.passages import PIECE
from conspectus.archive.tables import SCHEMA, Run, Tables
from conspectus.archive.trouble import explained
from conspectus.errors import ArchiveError, InputError, install_command

T = TypeVar("T")

CONNECT = 5  # Seconds to wait for a server to accept a connection
WAIT_FOR_POOL = 10  # Seconds to wait for a free connection of the pool

KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""Seconds and tries: a dead server is noticed within half a minute, which frees its connections."""

WORDS = (
    "CREATE TABLE words (number BIGINT PRIMARY KEY, body TSVECTOR NOT NULL)",
    "CREATE INDEX words_body ON words USING gin (body)",
)
MAKING = 7_301_905  # Number of the lock under which the tables are made


class PostgresTables(Tables):
    """Tables in a schema of their own, `conspectus`; or in that which the address names.

    Raises:
        InputError: the address holds an option that the driver does not know.
        ArchiveError: the server cannot be reached, or the driver is not installed.
    """

    lock = " FOR UPDATE"
    daemon = True

    def __init__(self, address: str, ttl: float | None, timeout: float | None) -> None:
        super().__init__(ttl)
        self._patience = Patience(timeout)
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
            from psycopg_pool import ConnectionPool
        except ImportError as error:
            raise ArchiveError(
                "A PostgreSQL archive needs the extra `postgres`; install it with "
                f"{install_command('postgres')}"
            ) from error
        failed = None
        try:
            # A pool would retry in the background; a plain connection fails at once.
            with psycopg.connect(address, connect_timeout=CONNECT) as first:
                [schema] = first.execute("SELECT current_schema()").fetchone() or [None]
                self._schema = "conspectus" if schema in (None, "public") else schema
                if schema != self._schema:
                    first.execute("CREATE SCHEMA IF NOT EXISTS conspectus")
            given = conninfo_to_dict(address)
            self._pool = ConnectionPool(
                address,
                min_size=1,
                max_size=4,
                # Checked before each use, so that the archive outlives a server's restart.
                check=ConnectionPool.check_connection,
                timeout=WAIT_FOR_POOL,
                kwargs={key: value for key, value in KEEPALIVE.items() if key not in given},
                configure=self._configured,
                open=True,
            )
            self._set_up()
        except psycopg.ProgrammingError as error:
            # It may quote the address, and an error raised in here would keep it as its context.
            if error.sqlstate is not None:
                raise explained(error, "The archive cannot be opened") from error
            failed = InputError(
                "the PostgreSQL address holds an option that the driver does not know, or a value "
                "that it cannot read; write postgresql://user:password@host:port/database?option="
                "value"
            )
        except Exception as error:
            raise explained(error, "The archive cannot be opened") from error
        if failed is not None:
            raise failed

    def _configured(self, connection: Any) -> None:
        connection.execute("SELECT set_config('search_path', %s, false)", (self._schema,))
        connection.commit()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Run]:
        try:
            with inside(), self._pool.connection() as connection, connection.cursor() as cursor:
                yield _Run(cursor)
        except ArchiveError:
            raise
        except Exception as error:
            raise explained(error) from error

    def within(self, work: Callable[[], T]) -> T:
        return self._patience.wait_for(work)

    def index(self, run: Run, rows: Sequence[tuple[int, str]]) -> None:
        run.many(
            "INSERT INTO words VALUES (?, to_tsvector('english', ?))",
            [(number, _plain(text)) for number, text in rows],
        )

    def unindex(self, run: Run, rows: Sequence[tuple[int, str]]) -> None:
        run.many("DELETE FROM words WHERE number = ?", [(number,) for number, _ in rows])

    def look_up(self, run: Run, word: str, low: int, high: int) -> list[Any]:
        begins, bare = word.endswith("*"), _plain(word)
        asked = "(quote_literal(?) || ':*')::tsquery" if begins else "plainto_tsquery('english', ?)"
        sql = f"SELECT number - ? FROM words WHERE body @@ {asked} AND number BETWEEN ? AND ?"
        return run(f"{sql} ORDER BY number DESC LIMIT {MOST}", (low, bare, low, high))

    def check(self) -> str:
        with self.transaction(writes=False) as run:
            run("SELECT 1")
        return ""

    def close(self) -> None:
        self._pool.close()

    def _set_up(self) -> None:
        with self.transaction(writes=True) as run:
            run("SELECT pg_advisory_xact_lock(?)", (MAKING,))
            for statement in (*SCHEMA, *WORDS):
                what = statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
                what = what.replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS")
                run(
                    what.format(
                        serial="BIGSERIAL PRIMARY KEY", bytes="BYTEA", number="BIGINT", clustered=""
                    )
                )


class _Run:
    """The statements of one transaction."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __call__(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        self._cursor.execute(sql.replace("?", "%s"), values)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(sql.replace("?", "%s"), list(rows))


def _plain(text: str) -> str:
    """Return words alone, as the server has rules of its own for addresses and files."""
    return " ".join(match.group() for match in PIECE.finditer(text.replace("\x00", " ")))
