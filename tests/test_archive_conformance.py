"""The conformance suite on every store that LangGraph ships."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from conspectus.archive import Archive, Scope
from conspectus.errors import ArchiveError
from conspectus_lab.archive_conformance import ArchiveConformance, talk
from postgres_support import postgres_schema

T = TypeVar("T")


class TestInMemoryStore(ArchiveConformance):
    @pytest.fixture
    def store(self) -> BaseStore:
        return InMemoryStore()


@pytest.mark.slow
class TestSqliteStore(ArchiveConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[BaseStore]:
        with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            store.setup()
            yield store


class TestSqliteFile(ArchiveConformance):
    """The file that `Archive.open` makes."""

    @pytest.fixture
    def archive(self, tmp_path: Path) -> Iterator[Archive]:
        with Archive.open(tmp_path / "archive.db") as archive:
            yield archive

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[BaseStore]:
        with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            store.setup()
            yield store


@pytest.mark.slow
class TestAsyncSqliteStore(ArchiveConformance):
    """A store that lives on an event loop: used without await from another thread."""

    @pytest.fixture(autouse=True)
    def loop(self) -> Iterator[asyncio.AbstractEventLoop]:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        yield self._loop
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop.close()

    def drive(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[BaseStore]:
        context = AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db"))

        async def enter() -> AsyncSqliteStore:
            store = await context.__aenter__()
            await store.setup()
            return store

        async def leave(store: AsyncSqliteStore) -> None:
            task = store._task
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await context.__aexit__(None, None, None)

        store = self.drive(enter())
        yield store
        self.drive(leave(store))

    def test_use_on_its_own_loop_says_to_use_a_thread(self, archive):
        async def wrong() -> None:
            archive.put(Scope("t", "t"), talk("hello"))

        with pytest.raises(ArchiveError, match=r"asyncio\.to_thread"):
            self.drive(wrong())


@pytest.mark.slow
@pytest.mark.postgres
class TestPostgresStore(ArchiveConformance):
    @pytest.fixture
    def store(self) -> Iterator[BaseStore]:
        with postgres_schema() as address:
            from langgraph.store.postgres import PostgresStore

            with PostgresStore.from_conn_string(address) as store:
                store.setup()
                yield store


@pytest.mark.postgres
class TestPostgresAddress(ArchiveConformance):
    """What `Archive.open` makes of an address."""

    @pytest.fixture
    def address(self) -> Iterator[str]:
        with postgres_schema() as address:
            yield address

    @pytest.fixture
    def archive(self, address: str) -> Iterator[Archive]:
        with Archive.open(address) as archive:
            yield archive

    @pytest.fixture
    def store(self, archive: Archive, address: str) -> Iterator[BaseStore]:
        from langgraph.store.postgres import PostgresStore

        with PostgresStore.from_conn_string(address) as store:
            store.setup()
            yield store
