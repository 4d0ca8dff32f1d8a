"""Checkpointer and store of one worker process, on SQLite or PostgreSQL, each statement watched."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from kill_boundaries import STATEMENT, WRITING, Boundaries

Parts = tuple[Any, Any]
"""A checkpointer and a store."""


@contextmanager
def opened(where: str | Path, boundaries: Boundaries) -> Iterator[Parts]:
    """Both, for a worker without an event loop; a path is a folder, a text an address."""
    if isinstance(where, Path):
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.store.sqlite import SqliteStore

        store_file, saver_file = (
            sqlite3.connect(where / name, check_same_thread=False, isolation_level=level)
            for name, level in (("store.db", None), ("checkpoints.db", "DEFERRED"))
        )
        store, saver = SqliteStore(store_file), SqliteSaver(saver_file)
        store.setup()
        saver.setup()
        for connection in (store_file, saver_file):
            connection.set_trace_callback(boundaries.statement)
        yield saver, store
        store_file.close()
        saver_file.close()
        return
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore
    from psycopg.rows import dict_row

    class Watched(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            with _watching(query, boundaries):
                return super().execute(query, *args, **kwargs)

        def executemany(self, query: Any, *args: Any, **kwargs: Any) -> None:
            with _watching(query, boundaries):
                super().executemany(query, *args, **kwargs)

    def connect() -> Any:
        return psycopg.connect(
            where,
            autocommit=True,
            prepare_threshold=0,
            row_factory=dict_row,  # type: ignore[arg-type]
            cursor_factory=Watched,
        )

    with connect() as one, connect() as other:
        yield PostgresSaver(one), PostgresStore(other)


@asynccontextmanager
async def aopened(where: str | Path, boundaries: Boundaries) -> AsyncIterator[Parts]:
    """Open the same for a worker on an event loop."""
    if isinstance(where, Path):
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        async with (
            AsyncSqliteSaver.from_conn_string(str(where / "checkpoints.db")) as saver,
            AsyncSqliteStore.from_conn_string(str(where / "store.db")) as store,
        ):
            await saver.setup()
            await store.setup()
            for one in (saver, store):
                await one.conn.set_trace_callback(boundaries.statement)
            yield saver, store
        return
    import psycopg
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row

    class Watched(psycopg.AsyncCursor[Any]):
        async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            with _watching(query, boundaries):
                return await super().execute(query, *args, **kwargs)

        async def executemany(self, query: Any, *args: Any, **kwargs: Any) -> None:
            with _watching(query, boundaries):
                await super().executemany(query, *args, **kwargs)

    async def connect() -> Any:
        return await psycopg.AsyncConnection.connect(
            where,
            autocommit=True,
            prepare_threshold=0,
            row_factory=dict_row,  # type: ignore[arg-type]
            cursor_factory=Watched,
        )

    async with await connect() as one, await connect() as other:
        yield AsyncPostgresSaver(one), AsyncPostgresStore(other)


@contextmanager
def schema_at(address: str, name: str) -> Iterator[str]:
    """Make a schema with all tables in it, and drop it at the end."""
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[arg-type]
        try:
            own = f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{name}"
            with (
                PostgresSaver.from_conn_string(own) as saver,
                PostgresStore.from_conn_string(own) as store,
            ):
                saver.setup()
                store.setup()
            yield own
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")  # type: ignore[arg-type]


@contextmanager
def _watching(query: object, boundaries: Boundaries) -> Iterator[None]:
    writes = str(query).lstrip().upper().startswith(WRITING)
    if writes:
        boundaries.passes(STATEMENT)
    yield
    if writes:
        boundaries.passes(STATEMENT)
