"""Addresses of archives, and every kind of archive by one suite."""

import logging
import os
import stat
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from typer.testing import CliRunner

from conspectus import Compactor
from conspectus.archive import Archive, ArchiveStore, Scope
from conspectus.archive.sqlite import SqliteTables
from conspectus.bridge import run
from conspectus.cli.app import app
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.recall import recall_flow
from conspectus_lab.archive_conformance import (
    ArchiveConformance,
    StoreConformance,
    record_of,
    talk,
)
from postgres_support import postgres_schema
from test_docs import ROOT, blocks_of

ADDRESSES = Path(__file__).with_name("malformed_addresses.txt")
MALFORMED = ADDRESSES.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def password_parts_in(text: str) -> list[str]:
    return [part for part in ("hunter", "2secret", "secret2") if part in text]


@pytest.mark.parametrize("address", MALFORMED)
def test_a_malformed_address_shows_no_part_of_its_password(address, caplog, tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    for open_archive in (Archive.open, lambda text: Compactor(archive=text)):
        with pytest.raises(ConspectusError) as caught:
            open_archive(address)
        try:
            raise RuntimeError("somebody's own") from caught.value
        except RuntimeError as error:
            lines = traceback.format_exception(error, chain=True)
            shown = [line for line in lines if not line.lstrip().startswith("File ")]
            assert not password_parts_in("".join(shown))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "postgresql://" in str(caught.value)
    assert not password_parts_in(caplog.text)
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_folder_is_an_error_and_no_new_folder(tmp_path):
    mistyped = tmp_path / "archvies" / "deeper" / "archive.db"
    for address in (mistyped, str(mistyped), f"sqlite:///{mistyped}"):
        with pytest.raises(ArchiveError, match=r"deeper.*folder that is there"):
            Archive.open(address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="other permissions")
def test_the_default_place_is_made_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    history = tmp_path / "talk.json"
    history.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    umask_before = os.umask(0)
    try:
        result = CliRunner().invoke(app, ["compact", str(history)])
    finally:
        os.umask(umask_before)
    assert result.exit_code == 0, result.output
    file = tmp_path / "data" / "conspectus" / "archive.db"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in (file.parent, file.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="other permissions")
def test_an_empty_file_that_is_there_becomes_its_owners_alone(tmp_path):
    path = tmp_path / "archive.db"
    scope = Scope("ann", "thread")
    path.touch(0o644)
    path.chmod(0o644)
    umask_before = os.umask(0)
    try:
        with Archive.open(path) as archive:
            entries = talk("one", "two")
            archive.put(scope, entries)
            archive.commit(scope, record_of(entries))
            run(recall_flow(archive, scope, archive.chain(scope), query="two", count=len))
            files = [file for file in tmp_path.rglob("*") if file.is_file()]
            modes = {file.name.replace(path.name, ""): file.stat().st_mode for file in files}
    finally:
        os.umask(umask_before)
    assert len(modes) >= 2
    assert {stat.S_IMODE(mode) for mode in modes.values()} == {0o600}


T = TypeVar("T")


class TestInMemoryStore(ArchiveConformance):
    @pytest.fixture
    def store(self) -> BaseStore:
        return InMemoryStore()


def store_of_the_page() -> Any:
    """The store that the page on stores of one's own shows."""
    text = (ROOT / "docs" / "own_store.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(next(block.text for block in blocks_of("own_store.md", text)), names)
    return names["DictStore"]()


class TestStoreOfThePage(StoreConformance):
    @pytest.fixture
    def store(self) -> ArchiveStore:
        store: ArchiveStore = store_of_the_page()
        return store


class TestSqliteTables(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ArchiveStore]:
        with closing(SqliteTables(tmp_path / "archive.db", None)) as store:
            yield store

    @pytest.fixture
    def expiring_store(self, tmp_path: Path) -> Iterator[ArchiveStore]:
        with closing(SqliteTables(tmp_path / "archive.db", 0.5)) as store:
            yield store


@pytest.mark.slow
class TestSqliteStore(ArchiveConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[BaseStore]:
        with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            store.setup()
            yield store


class TestSqliteFile(TestSqliteStore):
    """The file that `Archive.open` makes."""

    @pytest.fixture
    def archive(self, tmp_path: Path) -> Iterator[Archive]:
        with Archive.open(tmp_path / "archive.db") as archive:
            yield archive


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

    def test_existing_tables_need_no_right_to_make_any(self, archive, address):
        with Archive.open(f"{address}{quote(' -cdefault_transaction_read_only=on')}") as reading:
            assert reading.threads("ann") == ()
