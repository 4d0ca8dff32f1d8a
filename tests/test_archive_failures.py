"""Stores that fail: every failure becomes an ArchiveError that says what to do."""

import asyncio
import base64
import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import GetOp, Op, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from typing_extensions import TypeIs

from compactor_support import FaultyStore
from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.archive.langgraph import FORMAT
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.tables import Tables
from conspectus.archive.values import packed, unpacked
from conspectus.bridge import arun
from conspectus.core.records import Draft
from conspectus.errors import (
    ArchiveError,
    ArchiveTimeout,
    ConspectusError,
    InputError,
    NotFoundError,
    PolicyError,
)
from conspectus_lab.archive_conformance import record_of, talk
from graph_support import tool_turns
from scripts import run_python

SCOPE = Scope("ann", "thread")
LOOKS = [HumanMessage(f"Look at module {n}. " * 9, id=f"m{n}") for n in range(24)]
SENT = [{"role": "user", "content": f"Look at module {n}."} for n in range(20)]


class HangingStore(InMemoryStore):
    """Hangs until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.release = threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        self.calls += not self.release.is_set()
        self.release.wait(30)
        return super().batch(ops)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (sqlite3.OperationalError("database or disk is full"), "free some space"),
        (OSError(28, "No space left on device"), "free some space"),
        (sqlite3.OperationalError("database is locked"), "try again"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "writable"),
        (sqlite3.DatabaseError("database disk image is malformed"), "backup"),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), "end of a with block"),
        (TimeoutError(), "did not answer in time"),
        (KeyError("anything else"), "KeyError"),
    ],
)
def test_whatever_a_store_raises_says_what_to_do(error, advice):
    store = FaultyStore(fail=["messages"])
    store.error = error
    archive = Archive(store)
    with pytest.raises(ArchiveError, match=advice) as caught:
        archive.put(SCOPE, talk("hello"))
    assert caught.value.__cause__ is error
    with pytest.raises(ArchiveError, match=advice):
        asyncio.run(arun(archive.call_either_way(archive.put, SCOPE, talk("hello"))))


def test_a_compaction_waits_for_a_store_that_hangs_once():
    store = HangingStore()
    archive = Archive(store, timeout=0.3)
    compactor = Compactor(trigger=("messages", 10), keep=("messages", 4), archive=archive)
    for _ in range(3):
        result = compactor.compact(SENT, thread_id="t")
        assert (result.outcome, result.failed, result.messages) == ("kept", "archive", SENT)
        assert "within 0.3 seconds" in result.reason
    with pytest.raises(ArchiveTimeout, match="within"):
        Compactor(archive=archive, on_failure="raise").compact(SENT, thread_id="t")
    with pytest.raises(ArchiveTimeout, match="left alone"):
        asyncio.run(arun(archive.call_either_way(archive.chain, SCOPE)))
    assert store.calls == 1
    store.release.set()
    time.sleep(0.3)
    archive.put(SCOPE, talk("one"))
    assert archive.missing(SCOPE, talk("one")) == ()


def test_a_recall_waits_no_longer_than_its_timeout(monkeypatch):
    monkeypatch.setattr(SqliteTables, "may_hang", True)
    archive = Archive(SqliteTables(None, None), timeout=0.3)
    compactor = Compactor(keep=("messages", 2), archive=archive)
    compactor.compact(SENT, thread_id="t", force=True)
    monkeypatch.setattr(SqliteTables, "passages_holding", lambda *arguments: time.sleep(5))
    with pytest.raises(ArchiveTimeout):
        compactor.recall("module 3", thread_id="t")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "60"])
def test_a_time_that_means_nothing_is_refused(seconds):
    for setting in ({"timeout": seconds}, {"ttl": seconds}):
        with pytest.raises(PolicyError, match="seconds"):
            Archive.open("memory:", **setting)
    with pytest.raises(PolicyError, match="keeps no time to live"):
        Archive(InMemoryStore(), ttl=60)


def overwrite(
    store: InMemoryStore, kind_of_values: str, key: str, body: bytes, version: int = FORMAT
) -> None:
    value = {"v": version, "z": base64.b64encode(body).decode()}
    store.put(("conspectus", *SCOPE.hashes, kind_of_values), key, value)


def test_a_value_of_a_newer_version_is_refused_by_its_name():
    store = InMemoryStore()
    archive = Archive(store)
    entries = talk("one")
    archive.put(SCOPE, entries)
    archive.commit(SCOPE, record_of(entries))
    overwrite(store, "messages", entries[0].key, b"{", version=FORMAT + 1)
    for read in (archive.export, lambda scope: archive.find(scope, [entries[0].key])):
        with pytest.raises(ArchiveError, match="upgrade conspectus"):
            read(SCOPE)


def test_what_has_expired_is_gone_before_a_store_is_swept(tmp_path, monkeypatch):
    with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        store.setup()
        archive = Archive(store, ttl=3_600)
        entries = talk("one", "two")
        archive.put(SCOPE, entries)
        archive.commit(SCOPE, record_of(entries))
        assert len(archive.export(SCOPE)) == 2
        later = time.time() + 7_200
        monkeypatch.setattr(time, "time", lambda: later)
        assert archive.find(SCOPE, [entry.key for entry in entries]) == {}
        assert archive.chain(SCOPE) == ()
        assert archive.threads("ann") == ()


class NeverDeletingStore(InMemoryStore):
    """Confirms deletions, and deletes nothing."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        return super().batch([GetOp(op.namespace, op.key) if _deletes(op) else op for op in ops])


def _deletes(op: Op) -> TypeIs[PutOp]:
    return isinstance(op, PutOp) and op.value is None


def test_a_store_that_keeps_what_is_forgotten_fails_to_forget_it():
    archive = Archive(NeverDeletingStore())
    archive.put(SCOPE, talk("one"))
    with pytest.raises(ArchiveError, match="still holds the values"):
        archive.forget("ann")


def test_a_message_that_came_back_changed_is_missing():
    store = InMemoryStore()
    archive = Archive(store)
    [entry] = talk("the price is 100")
    archive.put(SCOPE, [entry])
    item = store.get(("conspectus", *SCOPE.hashes, "messages"), entry.key)
    assert item is not None
    data = json.dumps(unpacked(base64.b64decode(item.value["z"])))
    for changed in (packed(json.loads(data.replace("100", "900"))), b"{"):
        overwrite(store, "messages", entry.key, changed)
        assert archive.missing(SCOPE, [entry]) == (entry.key,)
    with pytest.raises(ArchiveError, match="backup"):
        archive.get(SCOPE, [entry.key])
    archive.put(SCOPE, [entry])
    assert archive.missing(SCOPE, [entry]) == ()


def test_a_chain_with_a_gap_is_not_trusted():
    store = InMemoryStore()
    archive = Archive(store)
    first = record_of(talk("one"))
    second = record_of(talk("two"), first)
    archive.commit(SCOPE, first)
    archive.commit(SCOPE, second)
    for body in (b"no JSON", packed({**first.to_json(), "summary": "another", "id": "another"})):
        overwrite(store, "records", first.id, body)
        assert Archive(store).chain(SCOPE) == ()
    store.delete(("conspectus", *SCOPE.hashes, "records"), first.id)
    assert Archive(store).chain(SCOPE) == ()
    assert Archive(store).records(SCOPE) == (second,)
    overwrite(store, "records", first.id, packed(first.to_json()))
    assert set(map(str, archive.records(SCOPE))) == {str(first), str(second)}
    assert [record.id for record in Archive(store).chain(SCOPE)] == [first.id, second.id]


@pytest.mark.parametrize(
    ("version", "remedy"), [(1, "begin a new archive"), (99, "upgrade conspectus")]
)
def test_a_record_of_another_version_is_refused_by_its_name(version, remedy):
    store = InMemoryStore()
    entries = talk("one")
    record = record_of(entries)
    Archive(store).put(SCOPE, entries)
    Archive(store).commit(SCOPE, record)
    overwrite(store, "records", record.id, packed(record.to_json() | {"v": version}))
    with pytest.raises(ArchiveError, match=f"format {version}.*{remedy}"):
        Archive(store).chain(SCOPE)


def test_a_store_that_cannot_be_swept_is_closed_again(tmp_path, monkeypatch):
    closed: list[Tables] = []
    monkeypatch.setattr(SqliteTables, "sweep", Mock(side_effect=ArchiveError("the disk is full")))
    monkeypatch.setattr(SqliteTables, "close", lambda tables: closed.append(tables))
    with pytest.raises(ArchiveError, match="the disk is full"):
        Archive.open(tmp_path / "archive.db", ttl=60)
    assert len(closed) == 1


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "archive.db"
    Archive.open(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ArchiveError, match="upgrade conspectus"):
        Archive.open(path)


def test_a_sound_archive_is_opened_while_another_process_writes_to_it(tmp_path, monkeypatch):
    path = tmp_path / "archive.db"
    entries = talk("one")
    monkeypatch.setattr("conspectus.archive.sqlite.BUSY_SECONDS", 0.2)
    with Archive.open(path) as archive:
        archive.put(SCOPE, entries)
    other_process = sqlite3.connect(path, isolation_level=None)
    other_process.execute("BEGIN IMMEDIATE")
    with Archive.open(path) as archive:
        assert archive.missing(SCOPE, entries) == ()
        with pytest.raises(ArchiveError, match="another process is writing"):
            archive.put(SCOPE, talk("two"))
        other_process.execute("ROLLBACK")
        archive.put(SCOPE, talk("two"))
    other_process.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_removed_file_accepts_nothing(tmp_path, replaced):
    path = tmp_path / "archive.db"
    entries = talk("one", "two")
    with Archive.open(path) as archive:
        archive.put(SCOPE, entries[:1])
        if replaced:
            Archive.open(tmp_path / "other.db").close()
            (tmp_path / "other.db").replace(path)
        else:
            path.unlink()
        with pytest.raises(ArchiveError, match=r"(deleted|replaced).*while it was open.*again"):
            archive.put(SCOPE, entries[1:])
        with ThreadPoolExecutor() as pool, pytest.raises(ArchiveError, match=r"deleted|replaced"):
            pool.submit(archive.chain, SCOPE).result()  # by a connection of its own
        compactor = Compactor(trigger=("messages", 10), keep=("messages", 4), archive=archive)
        result = compactor.compact(SENT, thread_id="t")
        assert result.outcome != "compacted"
        assert len(result.messages) == 20


class FailingConnection(sqlite3.Connection):
    """A connection that cannot commit, once."""

    failures = 0

    def execute(self, sql: str, *parts: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.failures:
            self.failures -= 1
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *parts)


def test_a_commit_that_failed_does_not_block_the_next_one(tmp_path):
    connection = sqlite3.connect(
        tmp_path / "store.db",
        factory=FailingConnection,
        isolation_level=None,
        check_same_thread=False,
    )
    archive = Archive(SqliteStore(connection))
    entries = talk("one", "two")
    archive.put(SCOPE, entries[:1])
    connection.failures = 1
    with pytest.raises(ArchiveError, match="free some space"):
        archive.put(SCOPE, entries)
    archive.put(SCOPE, entries)
    assert archive.missing(SCOPE, entries) == ()
    connection.close()


def test_what_is_no_archive_is_told_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    for content in (b"my notes", b"SQLite format 3\x00" + b"\xff" * 4096):
        path.write_bytes(content)
        with pytest.raises(ArchiveError, match=r"not a SQLite database|failed"):
            Archive.open(path)
        assert path.read_bytes() == content
    other_file = tmp_path / "tasks.db"
    for statement in ("CREATE TABLE tasks (name TEXT)", "PRAGMA user_version=7"):
        with contextlib.closing(sqlite3.connect(other_file)) as connection:
            connection.execute(statement)
        content_before = other_file.read_bytes()
        with pytest.raises(ArchiveError, match=r"another program.*choose another path"):
            Archive.open(other_file)
        assert other_file.read_bytes()[100:] == content_before[100:]
    with pytest.raises(InputError, match="lacks a colon; write memory:"):
        Archive.open("memory")
    for no_file in (tmp_path, __file__ + "/below/archive.db"):
        with pytest.raises(ArchiveError, match="cannot be opened"):
            Archive.open(no_file)
        with pytest.raises(ConspectusError, match=r"Archive\.open"):
            Archive(no_file)


NOWHERE = "postgresql://me:secret@127.0.0.1:1/none"
WRONG = [
    (address, "names no archive") for address in ("mysql://me:secret@host/db", "  ", "sqlite://")
]


@pytest.mark.parametrize(
    ("address", "advice"),
    [*WRONG, (NOWHERE, "check that it is up"), (None, "a path or an address")],
)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(address, advice):
    if address == NOWHERE:
        pytest.importorskip("psycopg")
    with pytest.raises((InputError, ArchiveError), match=advice) as caught:
        Archive.open(address)
    assert "secret" not in str(caught.value)


FORKS = """
import os, sys
from conspectus.archive import Archive
archive = Archive.open(sys.argv[1])
mine = str(os.fork())
for n in range(9):
    archive.write_remarks("ann", "n", {mine: {"n": n}})
    assert archive.read_remarks("ann", "n", [mine]) == {mine: {"n": n}}
print("well")
"""


def test_a_fork_shares_no_connection_with_its_parent(database):
    finished = run_python("-c", FORKS, database, timeout=600)
    assert finished.stdout.count("well") == 2, finished.stderr


def test_an_archive_that_can_only_be_read_is_read(tmp_path, monkeypatch):
    with Archive.open(tmp_path / "a #1.db") as archive:
        messages = [{"role": "user", "content": f"zebra {n} " * 20} for n in range(30)]
        Compactor(archive=archive).compact(messages, thread_id="t", force=True)
    refuse = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr("conspectus.archive.sqlite.open", refuse, raising=False)
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    with Archive.open(tmp_path / "a #1.db") as archive:
        assert Compactor(archive=archive).recall("zebra", thread_id="t").hits
        with pytest.raises(ArchiveError, match="it is read-only"):
            archive.forget("local")
        with pytest.raises(ArchiveError, match=r"give Scope\(tenant, thread\)"):
            archive.export("t")  # type: ignore[arg-type]


def test_nothing_of_what_has_expired_is_left_in_the_files(tmp_path):
    entries = talk("the word is rhododendron")
    with Archive.open(tmp_path / "archive.db", ttl=0.01) as archive:
        archive.put(SCOPE, entries)
        time.sleep(0.02)
        assert archive.missing(SCOPE, entries) == (entries[0].key,)
        with pytest.raises(NotFoundError, match="expired"):
            archive.get(SCOPE, [entries[0].key])
        assert archive.threads("ann") == ()
    Archive.open(tmp_path / "archive.db", ttl=60).close()
    assert not any(b"rhododendron" in path.read_bytes() for path in tmp_path.iterdir())


def test_what_is_archived_anew_outlives_a_sweep_at_the_same_time(database, monkeypatch):
    entries = talk("one", "two")
    write = Tables._put
    began = threading.Event()

    def slow(*arguments: Any) -> int:
        inserted = write(*arguments)
        began.set()
        time.sleep(0.3)  # meanwhile a sweep begins
        return inserted

    with Archive.open(database, ttl=0.05) as old, Archive.open(database) as new:
        old.put(SCOPE, entries)
        time.sleep(0.06)
        monkeypatch.setattr(Tables, "_put", slow)
        writer = threading.Thread(target=new.put, args=(SCOPE, entries))
        writer.start()
        assert began.wait(30)
        old.backend.sweep()
        writer.join()
        assert new.missing(SCOPE, entries) == ()


def test_records_live_as_long_as_the_newest_of_their_chain(tmp_path, monkeypatch):
    clock = time.time()
    monkeypatch.setattr(time, "time", lambda: clock)
    with Archive.open(tmp_path / "archive.db", ttl=3_600) as archive:
        compactor = Compactor(archive=archive, keep=("messages", 4))
        for count in (12, 24):
            compactor.compact(LOOKS[:count], thread_id="t", force=True)
            clock += 2_400  # more than half of the time to live
    with Archive.open(tmp_path / "archive.db", ttl=3_600) as reopened:
        assert len(reopened.chain(Scope("local", "t"))) == 2


def test_a_history_that_has_expired_is_compacted_again(tmp_path, monkeypatch):
    with Archive.open(tmp_path / "archive.db", ttl=3_600) as archive:
        compactor = Compactor(archive=archive, keep=("messages", 4))
        view = compactor.compact(LOOKS[:12], thread_id="t", force=True).messages
        later = time.time() + 7_200
        monkeypatch.setattr(time, "time", lambda: later)
        assert archive.chain(Scope("local", "t", "main")) == ()
        result = compactor.compact([*view, *LOOKS[:12]], thread_id="t", force=True)
        assert (result.outcome, result.failed) == ("compacted", None)


def test_of_a_write_that_failed_half_way_nothing_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "archive.db"
    entries = talk("one", "two")
    with Archive.open(path) as archive:
        archive.put(SCOPE, entries[:1])
        with monkeypatch.context() as patched:
            patched.setattr(SqliteTables, "add_passage", "INSERT INTO nowhere VALUES (?, ?)")
            with pytest.raises(ArchiveError):
                archive.put(SCOPE, entries[1:])
        assert len(archive.missing(SCOPE, entries)) == 1
    with Archive.open(path) as reopened:
        assert len(reopened.missing(SCOPE, entries)) == 1


def nested(levels: int) -> Any:
    value: Any = ["core"]
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


def holding_itself() -> Any:
    value: list[Any] = ["core"]
    value += [value, {"again": value}]
    return value


@pytest.mark.parametrize("redact", [None, True])
@pytest.mark.parametrize("artifact", [nested(260), nested(50_000), holding_itself()])
def test_an_artifact_beyond_json_is_described_and_fails_no_step(artifact, redact):
    with Archive.open("memory:") as archive:
        settings: Any = {"trigger": ("messages", 10), "keep": ("messages", 4), "redact": redact}
        compactor = Compactor(window=2_000, archive=archive, **settings)
        try:
            result = compactor.compact(
                tool_turns(8, artifact={"n": 7, "tree": artifact}), thread_id="deep"
            )
        except RecursionError:
            pytest.fail("the step failed")
        assert result.outcome == "compacted"
        rows = archive.export(Scope("local", "deep"))
        tool_rows = [row for row in rows if row["role"] == "tool"]
        assert tool_rows
        for row in tool_rows:
            data = row["message"]["data"]
            assert not row["lossless"]
            assert data["content"].startswith("part ")
            assert data["artifact"]["n"] == 7
            assert "nested more than 200" in str(data) or "holds itself" in str(data)


def test_a_stored_draft_that_is_damaged_is_written_again(monkeypatch):
    compactor = Compactor(lambda messages: "Seen.", keep=("messages", 2), archive="memory:")
    draft = Draft("word " * 9_000, by="somebody", read=(), notes={"lines": [3]})
    monkeypatch.setattr(Archive, "find_draft", lambda *_: draft)
    result = compactor.compact(SENT, thread_id="t", force=True)
    assert result.outcome == "compacted"
    assert "word word" not in result.summary
