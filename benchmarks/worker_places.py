"""Where conversations are kept while many workers are at them: checkpointer and store."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

POOL: dict[str, Any] = {"min_size": 1, "max_size": 6, "timeout": 120}
"""Connections that all workers of a process share; a worker waits its turn, in seconds at most."""

LEAN_POOL = {**POOL, "max_size": 2}
STATEMENTS = 16
"""Statements that a lean connection keeps ready, rather than 100 or 128: each number of messages
asked for at once is another one."""

PAGES = "PRAGMA cache_size = -512"
"""Kilobytes of a file that a lean connection to SQLite holds, rather than 2,000."""


@contextmanager
def own_schema(address: str, name: str) -> Iterator[str]:
    """Make an empty schema, and drop it at the end; yield nothing without an address."""
    if not address:
        yield ""
        return
    import psycopg
    from psycopg.conninfo import make_conninfo

    schema = f"{name}_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")  # type: ignore[arg-type]
        try:
            yield make_conninfo(address, options=f"-csearch_path={schema}")
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")  # type: ignore[arg-type]


@contextmanager
def place(
    database: str, folder: Path, address: str = "", lean: bool = False
) -> Iterator[tuple[Any, Any]]:
    """Open a checkpointer and a store for threads of the operating system.

    Args:
        database: `memory`, `sqlite` or `postgres`.
        folder: of files.
        address: of the PostgreSQL database.
        lean: let the databases' clients hold little, so that they soon hold all that they ever
            will, and later growth is not theirs.
    """
    statements = {"cached_statements": STATEMENTS} if lean else {}
    with ExitStack() as stack:
        if database == "memory":
            yield InMemorySaver(), InMemoryStore()
            return
        if database == "sqlite":
            from langgraph.checkpoint.sqlite import SqliteSaver
            from langgraph.store.sqlite import SqliteStore

            def connected(name: str, **more: Any) -> sqlite3.Connection:
                found = sqlite3.connect(
                    folder / name, check_same_thread=False, **statements, **more
                )
                stack.callback(found.close)
                if lean:
                    found.execute(PAGES)
                return found

            saver: Any = SqliteSaver(connected("checkpoints.db"))
            store: Any = SqliteStore(connected("store.db", isolation_level=None))
        else:
            from langgraph.checkpoint.postgres import PostgresSaver
            from langgraph.store.postgres import PostgresStore
            from psycopg.rows import dict_row
            from psycopg_pool import ConnectionPool

            kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            made = {"configure": _made_lean, **LEAN_POOL} if lean else POOL
            pool: Any = stack.enter_context(ConnectionPool(address, kwargs=kwargs, **made))
            saver, store = PostgresSaver(pool), PostgresStore(pool)
        saver.setup()
        store.setup()
        yield saver, store


def _made_lean(connection: Any) -> None:
    connection.prepared_max = STATEMENTS


async def _amade_lean(connection: Any) -> None:
    _made_lean(connection)


@asynccontextmanager
async def aplace(
    database: str, folder: Path, address: str = "", lean: bool = False
) -> AsyncIterator[tuple[Any, Any]]:
    """Open the same for tasks of an event loop."""
    statements = {"cached_statements": STATEMENTS} if lean else {}
    async with AsyncExitStack() as stack:
        if database == "memory":
            yield InMemorySaver(), InMemoryStore()
            return
        if database == "sqlite":
            import aiosqlite
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
            from langgraph.store.sqlite.aio import AsyncSqliteStore

            async def connected(name: str, **more: Any) -> Any:
                found = await stack.enter_async_context(
                    aiosqlite.connect(folder / name, **statements, **more)
                )
                if lean:
                    await found.execute(PAGES)
                return found

            saver: Any = AsyncSqliteSaver(await connected("checkpoints.db"))
            store: Any = AsyncSqliteStore(await connected("store.db", isolation_level=None))
        else:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
            from langgraph.store.postgres.aio import AsyncPostgresStore
            from psycopg.rows import dict_row
            from psycopg_pool import AsyncConnectionPool

            kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            made = {"configure": _amade_lean, **LEAN_POOL} if lean else POOL
            pool: Any = AsyncConnectionPool(address, kwargs=kwargs, open=False, **made)
            await stack.enter_async_context(pool)
            saver, store = AsyncPostgresSaver(pool), AsyncPostgresStore(pool)
        await saver.setup()
        await store.setup()
        yield saver, store
