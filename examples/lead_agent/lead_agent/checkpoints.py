"""Where threads are kept: SQLite, PostgreSQL, or memory, by the address in `config.yaml`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from conspectus.errors import install_command
from lead_agent.errors import SettingsError
from lead_agent.settings import POSTGRES, SQLITE

CONNECTIONS = 8
"""To PostgreSQL, at most."""


@contextmanager
def checkpointer_at(address: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """The checkpointer that an address names, closed at the end.

    Raises:
        SettingsError: it cannot be opened; says nothing of a password.
    """
    if address == "memory:":
        yield InMemorySaver()
    elif address.startswith(SQLITE):
        with closing(_sqlite(Path(address.removeprefix(SQLITE)))) as connection:
            yield SqliteSaver(connection)
    elif address.startswith(POSTGRES):
        with _postgres(address) as saver:
            yield saver
    else:
        raise SettingsError(
            "lead_agent.checkpointer must be sqlite:///FILE, postgresql://... or memory:"
        )


def _sqlite(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return sqlite3.connect(path, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise SettingsError(f"lead_agent.checkpointer: {path} cannot be opened: {error}") from error


@contextmanager
def _postgres(address: str) -> Iterator[BaseCheckpointSaver[Any]]:
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg import Connection, Error
        from psycopg.rows import DictRow, dict_row
        from psycopg_pool import ConnectionPool, PoolTimeout
    except ImportError:
        raise SettingsError(f"PostgreSQL needs: {install_command('postgres')}") from None
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    # A pool replaces connections that a restarted server has dropped.
    pool: ConnectionPool[Connection[DictRow]] = ConnectionPool(
        address, min_size=1, max_size=CONNECTIONS, kwargs=options, open=False
    )
    with closing(pool):
        try:
            pool.open(wait=True, timeout=10)
            saver = PostgresSaver(pool)
            saver.setup()
        except (Error, PoolTimeout) as error:
            raise SettingsError(
                f"lead_agent.checkpointer: PostgreSQL cannot be used ({type(error).__name__}); "
                "check the address, and that the server answers"
            ) from None
        yield saver


def archive_beside(address: str) -> str:
    """Where originals go when `summarization.archive` says nothing: beside the checkpoints."""
    if address.startswith(SQLITE):
        path = Path(address.removeprefix(SQLITE))
        return f"{SQLITE}{path.with_name(path.stem + '-archive.sqlite')}"
    return address
