"""Stores that fail: every failure becomes an ArchiveError that says what to do."""

import asyncio
import base64
import contextlib
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, Op, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from conspectus import Compactor
from conspectus.archive import Archive, Scope, default_archive_path
from conspectus.archive.calls import explain
from conspectus.archive.langgraph import FORMAT, WRITES
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.values import key_bytes, packed, unpacked
from conspectus.bridge import arun
from conspectus.errors import (
    ArchiveError,
    ArchiveTimeout,
    ArchiveUnconfirmed,
    ConspectusError,
    InputError,
    NotFoundError,
    PolicyError,
)
from conspectus_lab.archive_conformance import record_of, talk

SCOPE = Scope("ann", "thread")


class Failing(InMemoryStore):
    """Raises what it is told to, as often as it is told to, at each write."""

    def __init__(self, error: Exception, times: int = 1_000_000) -> None:
        super().__init__()
        self.error, self.times = error, times

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        if self.times and any(isinstance(op, PutOp) for op in ops):
            self.times -= 1
            raise self.error
        return super().batch(ops)


class Undying(InMemoryStore):
    """Confirms deletions and deletes nothing."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        kept = [GetOp((), "") if isinstance(op, PutOp) and op.value is None else op for op in ops]
        return super().batch(kept)


class PutBack(InMemoryStore):
    """A slow worker writes the pointer that was there before, so many times."""

    def __init__(self) -> None:
        super().__init__()
        self.times, self.before = 0, None

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        heads = [op for op in ops if isinstance(op, PutOp) and op.namespace[-1] == "head"]
        done = super().batch(ops)
        for op in heads:
            if self.times and self.before is not None:
                self.times -= 1
                super().batch([op._replace(value=self.before)])
            else:
                self.before = op.value
        return done


def _committed_twice(store: PutBack, times: int) -> tuple[Archive, str]:
    archive = Archive(store)
    entries = talk("one", "two", "three", "four")
    archive.put(SCOPE, entries)
    first = record_of(entries[:2])
    archive.commit(SCOPE, first)
    second = record_of(entries[2:], parent=first)
    store.times = times
    archive.commit(SCOPE, second, seen=first.id)
    return archive, second.id


def test_a_pointer_that_a_slow_worker_put_back_is_written_again():
    """One that is always put back is no commit."""
    store = PutBack()
    archive, second = _committed_twice(store, WRITES - 1)
    assert store.times == 0
    assert [record.id for record in archive.chain(SCOPE)][-1:] == [second]
    with pytest.raises(ArchiveUnconfirmed, match="no other process"):
        _committed_twice(PutBack(), WRITES)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (sqlite3.OperationalError("database or disk is full"), "free some space"),
        (OSError(28, "No space left on device"), "free some space"),
        (sqlite3.OperationalError("database is locked"), "try again"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "writable"),
        (sqlite3.DatabaseError("database disk image is malformed"), "backup"),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), "open it again"),
        (TimeoutError(), "did not answer in time"),
        (KeyError("anything else"), "KeyError"),
    ],
)
def test_whatever_a_store_raises_says_what_to_do(error, advice):
    archive = Archive(Failing(error))
    with pytest.raises(ArchiveError, match=advice) as caught:
        archive.put(SCOPE, talk("hello"))
    assert caught.value.__cause__ is error
    with pytest.raises(ArchiveError, match=advice):
        asyncio.run(arun(archive.flow(archive.put, SCOPE, talk("hello"))))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("AdminShutdown", "check that it is up"),
        ("QueryCanceled", "did not answer in time"),
        ("LockNotAvailable", "try again when it has finished"),
        ("DeadlockDetected", "try again when it has finished"),
        ("DiskFull", "free some space"),
        ("TooManyConnections", "close some"),
        ("ReadOnlySqlTransaction", "can be written to"),
        ("UndefinedTable", "setup"),
        ("SyntaxError", "SyntaxError"),
        ("OperationalError", "check that it is up"),
    ],
)
def test_what_postgresql_says_is_told_by_its_state(name, advice):
    psycopg = pytest.importorskip("psycopg")
    assert advice in explain(getattr(psycopg.errors, name)("in another language"))


class Remote(BaseStore):
    """A store with a semantic index, which answers nothing, or no embedding, until it is released;
    unlike one in memory, it is asked by many at once."""

    def __init__(self, only_embedding: bool = False) -> None:
        self.index_config = {"dims": 2} if only_embedding else None
        self.inner, self.release, self.asked = InMemoryStore(), threading.Event(), 0

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        self.asked += 1
        if not self.index_config or any(isinstance(op, PutOp) and op.index for op in ops):
            self.release.wait()
        return self.inner.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        raise NotImplementedError


def test_a_store_that_hung_is_left_alone_for_a_while(monkeypatch):
    now = 1_000.0
    monkeypatch.setattr("conspectus.archive.calls.monotonic", lambda: now)
    store = Remote()
    archive, entries = Archive(store, timeout=0.3), talk("one")
    with pytest.raises(ArchiveTimeout, match=r"within 0\.3 seconds; check"):
        archive.put(SCOPE, entries)
    with pytest.raises(ArchiveTimeout, match=r"asked again in 1 s; check it and try"):
        asyncio.run(arun(archive.flow(archive.chain, SCOPE)))
    assert store.asked == 1
    now += 0.4
    store.release.set()
    archive.put(SCOPE, entries)
    assert archive.missing(SCOPE, entries) == ()


def test_a_compaction_waits_for_a_store_that_hangs_once():
    store = Remote()
    compactor = Compactor(
        trigger=("messages", 10), keep=("messages", 4), archive=Archive(store, timeout=0.3)
    )
    sent = [{"role": "user", "content": f"Look at module {n}."} for n in range(20)]
    for _ in range(3):
        with pytest.raises(ArchiveTimeout):
            compactor.compact(sent, thread_id="t")
    assert store.asked == 1
    store.release.set()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "60"])
def test_a_time_that_means_nothing_is_refused(tmp_path, seconds):
    for make in (
        lambda: Archive(InMemoryStore(), timeout=seconds),
        lambda: Archive.open("memory:", timeout=seconds),
        lambda: Archive.open(tmp_path / "archive.db", ttl=seconds),
    ):
        with pytest.raises(PolicyError, match="seconds"):
            make()
    assert Archive(InMemoryStore(), timeout=None).timeout is None


def test_a_store_that_does_not_delete_is_found_out():
    archive = Archive(Undying())
    archive.put(SCOPE, talk("one"))
    with pytest.raises(ArchiveError, match="still holds"):
        archive.forget("ann")


def kept(store: InMemoryStore, kind: str, key: str) -> Any:
    """A value as a store holds it, unpacked."""
    item = store.get(("conspectus", *SCOPE.hashes, kind), key)
    assert item is not None
    return unpacked(base64.b64decode(item.value["z"]))


def change(store: InMemoryStore, kind: str, key: str, body: bytes, version: int = FORMAT) -> None:
    value = {"v": version, "z": base64.b64encode(body).decode()}
    store.put(("conspectus", *SCOPE.hashes, kind), key, value)


def test_a_message_that_came_back_changed_is_missing():
    store = InMemoryStore()
    archive = Archive(store)
    [entry] = talk("the price is 100")
    archive.put(SCOPE, [entry])
    changed = json.dumps(kept(store, "messages", entry.key)).replace("100", "900")
    change(store, "messages", entry.key, packed(json.loads(changed)))
    assert archive.missing(SCOPE, [entry]) == (entry.key,)
    change(store, "messages", entry.key, b"{")
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
    change(store, "records", first.id, b"no JSON")
    assert Archive(store).chain(SCOPE) == ()
    changed = {**first.to_json(), "summary": "another", "id": "another"}
    change(store, "records", first.id, packed(changed))
    assert Archive(store).chain(SCOPE) == ()
    store.delete(("conspectus", *SCOPE.hashes, "records"), first.id)
    assert Archive(store).chain(SCOPE) == ()
    assert Archive(store).records(SCOPE) == (second,)
    change(store, "records", first.id, packed(first.to_json()))
    assert Archive(store).chain(SCOPE) == archive.records(SCOPE) == (first, second)


def test_what_a_newer_version_has_written_is_refused():
    store = InMemoryStore()
    record = record_of(talk("one"))
    Archive(store).commit(SCOPE, record)
    change(store, "records", record.id, packed({**record.to_json(), "v": 99}))
    with pytest.raises(ArchiveError, match="upgrade conspectus"):
        Archive(store).chain(SCOPE)
    change(store, "records", record.id, packed(record.to_json()), FORMAT + 1)
    with pytest.raises(ArchiveError, match="upgrade conspectus"):
        Archive(store).chain(SCOPE)


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "archive.db"
    Archive.open(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ArchiveError, match="upgrade conspectus"):
        Archive.open(path)


def test_a_sound_archive_is_opened_while_another_process_writes_to_it(tmp_path, monkeypatch):
    path, entries = tmp_path / "archive.db", talk("one")
    monkeypatch.setattr("conspectus.archive.sqlite.BUSY", 0.2)
    with Archive.open(path) as archive:
        archive.put(SCOPE, entries)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Archive.open(path) as archive:
        assert archive.missing(SCOPE, entries) == ()
        with pytest.raises(ArchiveError, match="another process is writing"):
            archive.put(SCOPE, talk("two"))
        other.execute("ROLLBACK")
        archive.put(SCOPE, talk("two"))
    other.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_taken_away_takes_nothing_that_would_be_lost(tmp_path, replaced):
    path, entries = tmp_path / "archive.db", talk("one", "two")
    with Archive.open(path) as archive:
        archive.put(SCOPE, entries[:1])
        if replaced:
            Archive.open(tmp_path / "other.db").close()
            (tmp_path / "other.db").replace(path)
        else:
            path.unlink()
        with pytest.raises(ArchiveError, match="deleted or replaced since it was opened"):
            archive.put(SCOPE, entries[1:])
        with pytest.raises(ArchiveError, match="open it again"):
            archive.commit(SCOPE, record_of(entries))
        messages = [{"role": "user", "content": f"Look at module {n}."} for n in range(20)]
        compactor = Compactor(trigger=("messages", 10), keep=("messages", 4), archive=archive)
        result = compactor.compact(messages, thread_id="t")
        assert result.outcome != "compacted"
        assert len(result.messages) == 20


def test_what_is_kept_last_keeps_its_history_from_being_overlooked(tmp_path):
    with Archive.open(tmp_path / "a.db") as lasting:
        lasting.put(SCOPE, talk("one"))
    with Archive.open(tmp_path / "a.db", ttl=0.2) as archive:
        archive.put(SCOPE, talk("two"))
        archive.note(SCOPE.tenant, "kind", {"first": {"n": 1}})
        time.sleep(0.15)
        archive.note(SCOPE.tenant, "kind", {"second": {"n": 2}})
        time.sleep(0.1)
        assert archive.threads(SCOPE.tenant) == (SCOPE.thread,)
        assert archive.forget(SCOPE.tenant) == 2
        assert archive.notes(SCOPE.tenant, "kind", ["second"]) == {}
        assert len(archive.missing(SCOPE, talk("one"))) == 1


def test_a_copy_is_the_same_to_the_byte():
    archive, target = Archive(InMemoryStore()), Scope(SCOPE.tenant, "branch")
    [entry] = talk("the secret is [redacted]")
    entry.redacted = True
    archive.put(SCOPE, [entry])
    archive.commit(SCOPE, record := record_of([entry]))
    archive.copy(SCOPE, target, record.id)
    assert archive.export(target) == archive.export(SCOPE)
    assert archive.export(target)[0]["lossless"] is False


class Stubborn(sqlite3.Connection):
    """A connection that cannot commit, once."""

    failures = 0

    def execute(self, sql: str, *parts: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.failures:
            self.failures -= 1
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *parts)


def test_a_commit_that_failed_does_not_block_the_next_one(tmp_path):
    connection = sqlite3.connect(
        tmp_path / "store.db", factory=Stubborn, isolation_level=None, check_same_thread=False
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


@pytest.mark.parametrize("what", ["file", "folder", "folder of a new file"])
def test_what_may_not_be_written_is_said_when_it_is_opened(tmp_path, what):
    folder = tmp_path / "kept"
    path = folder / "archive.db"
    folder.mkdir()
    if what != "folder of a new file":
        Archive.open(path).close()
    locked = path if what == "file" else folder
    locked.chmod(0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write anywhere")
    try:
        with pytest.raises(ArchiveError, match="writable"):
            Archive.open(path)
    finally:
        locked.chmod(0o700)


def test_what_is_no_archive_is_told_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    for written in (b"my notes", b"SQLite format 3\x00" + b"\xff" * 4096):
        path.write_bytes(written)
        with pytest.raises(ArchiveError, match=r"not a SQLite database|damaged|failed"):
            Archive.open(path)
        assert path.read_bytes() == written
    with pytest.raises(ArchiveError, match="Is a directory"):
        Archive.open(tmp_path)
    with pytest.raises(ArchiveError, match="cannot be opened"):
        Archive.open(__file__ + "/below/archive.db")


NOWHERE = "postgresql://me:secret@127.0.0.1:1/none"
WRONG = [(one, "postgresql://") for one in ("mysql://me:secret@host/db", "", "  ", "sqlite://")]


@pytest.mark.parametrize(("where", "advice"), [*WRONG, (NOWHERE, "check that it is up")])
def test_an_address_that_leads_nowhere_is_refused_without_its_password(where, advice):
    if where == NOWHERE:
        pytest.importorskip("psycopg")
    with pytest.raises((InputError, ArchiveError), match=advice) as caught:
        Archive.open(where)
    assert "secret" not in str(caught.value)


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ArchiveError, match=r"pip install .*\[postgres\]'"):
        Archive.open("postgresql://localhost/test")


def test_nothing_of_a_forgotten_thread_is_left_in_the_files(tmp_path):
    entries = talk("the word is rhododendron")
    with Archive.open(f"sqlite:///{tmp_path / 'archive.db'}") as archive:
        archive.put(SCOPE, entries)
        archive.commit(SCOPE, record_of(entries))
        archive.forget("ann", "thread")
        for path in tmp_path.rglob("*"):
            assert path.is_dir() or b"rhododendron" not in path.read_bytes()


def test_several_processes_worth_of_writers_may_open_one_file(tmp_path):
    path = tmp_path / "archive.db"
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with Archive.open(path) as archive:
                scope = Scope("ann", f"thread {number}")
                entries = talk(*(f"message {i}" for i in range(20)))
                archive.put(scope, entries)
                archive.commit(scope, record_of(entries))
                assert archive.missing(scope, entries) == ()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Archive.open(path) as archive:
        assert len(archive.threads("ann")) == 6


def test_a_closed_archive_says_so(tmp_path):
    archive = Archive.open(tmp_path / "archive.db")
    archive.close()
    with pytest.raises(ArchiveError, match="open it again"):
        archive.threads("ann")


def test_what_has_expired_is_gone_even_if_the_store_still_holds_it(tmp_path):
    path, entries = tmp_path / "archive.db", talk("one")
    with Archive.open(path, ttl=1e-6) as archive:
        archive.put(SCOPE, entries)
        assert archive.missing(SCOPE, entries) == (entries[0].key,)
        with pytest.raises(NotFoundError, match="expired"):
            archive.get(SCOPE, [entries[0].key])
        assert archive.threads("ann") == ()
    with Archive.open(path, ttl=3600) as archive:
        archive.put(SCOPE, entries)
        assert archive.missing(SCOPE, entries) == ()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ends = connection.execute("SELECT expires FROM item WHERE kind = 0").fetchall()
    assert ends
    assert all(0 < end - time.time() <= 3600 for (end,) in ends)


def test_a_commit_renews_the_records_before_it(tmp_path):
    first = record_of(talk("one"))
    second = record_of(talk("two"), first)
    path = tmp_path / "archive.db"

    def ends() -> float:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            sql = "SELECT expires FROM item WHERE kind = 1 AND key = ?"
            [(end,)] = connection.execute(sql, (key_bytes(first.id),)).fetchall()
            return float(end)

    with Archive.open(path, ttl=3600) as archive:
        archive.commit(SCOPE, first)
        before = ends()
        archive.commit(SCOPE, second)
        assert ends() > before


def test_a_store_without_time_to_live_is_refused():
    with pytest.raises(PolicyError, match="keeps no time to live"):
        Archive(InMemoryStore(), ttl=60)


def test_labels_must_be_text_and_stores_must_be_stores():
    wrong: Any = 7
    with pytest.raises(InputError, match="named by text"):
        Scope("ann", wrong)
    with pytest.raises(ConspectusError, match=r"Archive\.open"):
        Archive(wrong)
    assert not isinstance(wrong, BaseStore)


def test_the_default_path_follows_the_environment(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_archive_path() == Path("/data/conspectus/archive.db")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/ann")
    expected = Path("/home/ann/.local/share/conspectus/archive.db")
    assert sys.platform == "win32" or default_archive_path() == expected


def test_nothing_of_what_has_expired_is_left_in_the_files(tmp_path):
    entries = talk("the word is rhododendron")
    with Archive.open(tmp_path / "archive.db", ttl=0.01) as archive:
        archive.put(SCOPE, entries)
    time.sleep(0.02)
    Archive.open(tmp_path / "archive.db", ttl=60).close()
    for path in tmp_path.rglob("*"):
        assert b"rhododendron" not in path.read_bytes()


def test_of_a_write_that_failed_half_way_nothing_is_kept(tmp_path, monkeypatch):
    path, entries = tmp_path / "archive.db", talk("one", "two")
    with Archive.open(path) as archive:
        archive.put(SCOPE, entries[:1])
        with monkeypatch.context() as patched:
            patched.setattr(SqliteTables, "index", "INSERT INTO nowhere VALUES (?, ?)")
            with pytest.raises(ArchiveError):
                archive.put(SCOPE, entries[1:])
        assert len(archive.missing(SCOPE, entries)) == 1
    with Archive.open(path) as again:
        assert len(again.missing(SCOPE, entries)) == 1
