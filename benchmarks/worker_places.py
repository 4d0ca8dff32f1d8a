"""Where conversations are kept while many workers are at them: checkpointer and store."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

POOL: dict[str, Any] = {"min_size": 1, "max_size": 6, "timeout": 120}
"""Connections that all workers of a process share; a worker waits its turn, in seconds at most."""


@contextmanager
def place(database: str, folder: Path, address: str = "") -> Iterator[tuple[Any, Any]]:
    """A checkpointer and a store for threads of the operating system.

    Args:
        database: `memory`, `sqlite` or `postgres`.
        folder: where files go.
        address: of the PostgreSQL database.
    """
    with ExitStack() as stack:
        if database == "memory":
            yield InMemorySaver(), InMemoryStore()
            return
        if database == "sqlite":
            from langgraph.checkpoint.sqlite import SqliteSaver
            from langgraph.store.sqlite import SqliteStore

            def connected(name: str, **more: Any) -> sqlite3.Connection:
                found = sqlite3.connect(folder / name, check_same_thread=False, **more)
                stack.callback(found.close)
                return found

            saver: Any = SqliteSaver(connected("checkpoints.db"))
            store: Any = SqliteStore(connected("store.db", isolation_level=None))
        else:
            from langgraph.checkpoint.postgres import PostgresSaver
            from langgraph.store.postgres import PostgresStore
            from psycopg.rows import dict_row
            from psycopg_pool import ConnectionPool

            kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            pool: Any = stack.enter_context(ConnectionPool(address, kwargs=kwargs, **POOL))
            saver, store = PostgresSaver(pool), PostgresStore(pool)
        saver.setup()
        store.setup()
        yield saver, store


@asynccontextmanager
async def aplace(database: str, folder: Path, address: str = "") -> AsyncIterator[tuple[Any, Any]]:
    """The same for tasks of an event loop."""
    async with AsyncExitStack() as stack:
        if database == "memory":
            yield InMemorySaver(), InMemoryStore()
            return
        if database == "sqlite":
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
            from langgraph.store.sqlite.aio import AsyncSqliteStore

            checkpoints, kept = str(folder / "checkpoints.db"), str(folder / "store.db")
            saver: Any = await stack.enter_async_context(
                AsyncSqliteSaver.from_conn_string(checkpoints)
            )
            store: Any = await stack.enter_async_context(AsyncSqliteStore.from_conn_string(kept))
        else:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
            from langgraph.store.postgres.aio import AsyncPostgresStore
            from psycopg.rows import dict_row
            from psycopg_pool import AsyncConnectionPool

            kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            pool: Any = AsyncConnectionPool(address, kwargs=kwargs, open=False, **POOL)
            await stack.enter_async_context(pool)
            saver, store = AsyncPostgresSaver(pool), AsyncPostgresStore(pool)
        await saver.setup()
        await store.setup()
        yield saver, store
