"""The form of archives: small, a long text once a session; originals of before are read."""

import gzip
import json
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from conspectus import Compactor
from conspectus.archive import Archive, Scope, file_form
from conspectus.archive.file_store import FileStore, written_key
from conspectus.archive.operations import Op, PutOp
from conspectus.archive.packed import packed, unpacked
from conspectus.cli.app import app
from conspectus.errors import ArchiveError
from conspectus.messages import read_messages
from conspectus_lab.testing.archive_conformance import ArchiveConformance, record_of, talk
from stored_values import store_of

DATA = Path(__file__).parent / "data"
SCOPE = Scope("ann", "thread")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An archive that an earlier version wrote; `archive_form_1.json.gz` says what it gave back."""
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((DATA / "archive_form_1.db.gz").read_bytes()))
    return path


EXPECTED: dict[str, Any] = json.loads(
    gzip.decompress((DATA / "archive_form_1.json.gz").read_bytes())
)


PARTS = ("id", "cite", "role", "name", "date", "lossless", "archived_at")


def given_back(archive: Archive) -> dict[str, Any]:
    """The originals by their keys; records of that version are not read."""
    return {
        name: {
            one.key: [*(getattr(one, part) for part in PARTS), one.message.content]
            for one in archive.get(Scope(*name.split("/")), list(expected()[name]))
        }
        for name in EXPECTED
    }


def expected() -> dict[str, Any]:
    return {
        name: {
            row["key"]: [*(row[part] for part in PARTS), row["message"]["data"]["content"]]
            for row in one["rows"]
        }
        for name, one in EXPECTED.items()
    }


def columns(path: Path) -> list[str]:
    with sqlite3.connect(path) as db:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master ORDER BY 1")]


def test_an_archive_of_an_earlier_version_is_read_and_written(old):
    entries = talk("one more", "and another")
    with Archive.open(old) as archive:
        assert given_back(archive) == expected()
        archive.put(SCOPE, entries)
        archive.commit(SCOPE, record_of(entries))
    with Archive.open(old) as archive:
        assert given_back(archive) == expected()
        assert archive.missing(SCOPE, entries) == ()
    assert "kept" not in columns(old)


def test_compact_brings_an_archive_of_an_earlier_version_up(old):
    before = old.stat().st_size
    done = CliRunner().invoke(app, ["archive", "compact", "--archive", str(old), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["rewritten"] > 100
    assert said["bytes_before"] >= before
    assert said["bytes_after"] == old.stat().st_size < before / 2
    assert "store" not in columns(old)
    with Archive.open(old) as archive:
        assert given_back(archive) == expected()
        assert archive.compact() == 0
    again = CliRunner().invoke(app, ["archive", "compact", "--archive", str(old)])
    assert "0 values" in again.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stop", range(1, 6))
def test_stopped_half_way_it_is_sound_and_goes_on(old, stop, monkeypatch):
    whole, writes = FileStore.batch, 0

    def batch(self: FileStore, ops: Iterable[Op]) -> list[Any]:
        nonlocal writes
        every = list(ops)
        writes += any(isinstance(op, PutOp) for op in every)
        if writes == stop:
            raise sqlite3.OperationalError("database or disk is full")
        return whole(self, every)

    with monkeypatch.context() as patched:
        patched.setattr(FileStore, "batch", batch)
        with Archive.open(old) as archive, pytest.raises(ArchiveError, match="disk is full"):
            archive.compact()
    with Archive.open(old) as archive:
        assert given_back(archive) == expected()
        assert archive.compact() > 0
        assert given_back(archive) == expected()


def test_a_move_that_fails_leaves_the_file_as_it_was(old, monkeypatch):
    def fail(key: str) -> bytes:
        nonlocal left
        left -= 1
        if left == 0:
            raise ValueError("no room")
        return written_key(key)  # type: ignore[return-value]

    left = 40
    with monkeypatch.context() as patched:
        patched.setattr(file_form, "written_key", fail)
        with Archive.open(old) as archive, pytest.raises(ArchiveError):
            archive.compact()
    assert "kept" not in columns(old)
    with Archive.open(old) as archive:
        assert given_back(archive) == expected()


def test_a_store_of_the_users_own_is_compacted_too_and_their_values_stay():
    from langgraph.store.sqlite import SqliteStore

    with SqliteStore.from_conn_string(":memory:") as store:
        store.setup()
        store.put(("mine",), "k", {"v": 1})
        archive = Archive(store)
        entries = talk("a long text " * 90, "short")
        archive.put(SCOPE, entries)
        place = SCOPE.namespace("messages")
        for entry in entries:  # as earlier versions wrote it
            [one] = archive.get(SCOPE, [entry.key])
            data = {"form": "dict", "message": one.message, "id": None, "derived": one.id}
            data |= {"cite": one.cite, "role": one.role, "name": None, "date": None}
            data |= {"at": one.archived_at, "lossless": True}
            store.put(place, entry.key, {"v": 1, "json": json.dumps(data)})
        assert archive.compact() == 2
        assert archive.missing(SCOPE, entries) == ()
        assert store.get(("mine",), "k").value == {"v": 1}  # type: ignore[union-attr]
        assert {item.value["v"] for item in store.search(place)} == {2}


def test_a_text_is_kept_once_in_a_session_and_never_across():
    store = InMemoryStore()
    archive = Archive(store)
    text = "the same long report, line by line\n" * 40
    scopes = [SCOPE, Scope("ann", "thread", "sub"), Scope("ann", "other"), Scope("bob", "thread")]
    for scope in scopes:
        entries = read_messages([HumanMessage(text, id=f"m{n}") for n in range(5)])
        archive.put(scope, entries)
        assert archive.missing(scope, entries) == ()
        assert [one.text for one in archive.get(scope, [e.key for e in entries])] == [text] * 5
    for scope in scopes:
        assert len(store.search(scope.namespace("texts"))) == 1
        assert all(len(str(i.value)) < 400 for i in store.search(scope.namespace("messages")))
    archive.forget("ann", "thread")
    assert [len(store.search(one.namespace("texts"))) for one in scopes] == [0, 0, 1, 1]


def test_a_message_whose_text_is_gone_is_not_safe():
    store = InMemoryStore()
    archive = Archive(store)
    entries = talk("a text that is long enough to be kept apart " * 20)
    archive.put(SCOPE, entries)
    for item in store.search(SCOPE.namespace("texts")):
        store.delete(item.namespace, item.key)
    assert archive.missing(SCOPE, entries) == (entries[0].key,)
    with pytest.raises(ArchiveError, match="damaged"):
        archive.get(SCOPE, [entries[0].key])
    archive.put(SCOPE, entries)
    assert archive.missing(SCOPE, entries) == ()


def test_a_record_is_kept_as_what_it_adds_to_its_parent():
    store = InMemoryStore()
    archive = Archive(store)
    chain: list[Any] = []
    facts = [{"kind": "rule", "text": f"rule {n}: " + os.urandom(60).hex()} for n in range(60)]
    for n in range(4):
        parent = chain[-1] if chain else None
        bare = record_of(talk(f"message {n}"), parent).to_json()
        for part in ("v", "id"):
            del bare[part]
        kept = record_of(talk(f"message {n}"), parent)
        made = {one: getattr(kept, one) for one in bare if one != "segment"}
        chain.append(type(kept).make(**made, segment={"facts": facts[: 50 + n]}))
        archive.commit(SCOPE, chain[-1])
    sizes = {item.key: len(item.value["z"]) for item in store.search(SCOPE.namespace("records"))}
    assert all(sizes[one.id] < sizes[chain[0].id] / 5 for one in chain[1:])
    for archive_again in (archive, Archive(store)):
        assert archive_again.chain(SCOPE) == archive_again.records(SCOPE) == tuple(chain)


@pytest.mark.parametrize("how", ["forget", "expire"])
def test_what_is_forgotten_or_has_expired_leaves_text_index_and_journal(tmp_path, how, monkeypatch):
    monkeypatch.setattr("conspectus.archive.packed.LEVEL", 0)  # or no word would be found anyway
    path, word = tmp_path / "archive.db", b"rhododendron"
    with Archive.open(path, ttl=3600 if how == "expire" else None) as archive:
        view: list[Any] = [
            {"role": "user", "content": f"{word.decode()} {n} " * 60} for n in range(9)
        ]
        compactor = Compactor(trigger=("messages", 5), keep=("messages", 2), archive=archive)
        assert compactor.compact(view, thread_id="t", tenant="ann").outcome == "compacted"
        assert compactor.recall(word.decode(), thread_id="t", tenant="ann").hits
        assert holding(tmp_path, word)
        if how == "forget":
            archive.forget("ann", "t")
            assert not holding(tmp_path, word)
    if how == "expire":
        with sqlite3.connect(path) as db:
            db.execute("UPDATE kept SET expires = 1")
        db.close()
        with Archive.open(path, ttl=3600) as archive:
            assert not holding(tmp_path, word)
    assert not holding(tmp_path, word)


def holding(folder: Path, word: bytes) -> list[str]:
    files = [one for one in folder.rglob("*") if one.is_file()]
    return [one.name for one in files if word in one.read_bytes()]


def test_what_is_packed_comes_back_or_is_damaged():
    data = {
        "form": "dict",
        "message": {"content": "NUL \x00, half a pair \udc00, 订单"},
        "n": 2**70,
    }
    raw = packed(data)
    assert unpacked(raw) == data
    for wrong in (raw[:-1], raw[:9], raw + b"x", b"", b"\x02" + raw[1:]):
        with pytest.raises(ValueError, match=r"unpacked|cut off"):
            unpacked(wrong)


@pytest.mark.slow
class TestFileStore(ArchiveConformance):
    @pytest.fixture
    def archive(self, tmp_path: Path) -> Iterable[Archive]:
        with Archive.open(tmp_path / "archive.db") as archive:
            yield archive

    @pytest.fixture
    def store(self, archive: Archive) -> Any:
        return store_of(archive)

    def test_a_search_without_a_namespace_finds_what_lies_in_all(self, store):
        store.batch([PutOp(("a", "b"), "k", {"n": 1}), PutOp(("c",), "k", {"n": 2})])
        assert [one.value["n"] for one in store.search((), limit=9)] == [1, 2]
        assert [one.namespace for one in store.search((), limit=1, offset=1)] == [("c",)]
        assert [one.namespace for one in store.search(("a",), limit=9)] == [("a", "b")]


def test_a_record_that_two_branches_commit_with_other_bills_keeps_its_children():
    store = InMemoryStore()
    archive = Archive(store)
    first = record_of(talk("message 1"), None)
    child = record_of(talk("message 2"), first)
    archive.commit(SCOPE, replace(first, bill={"seconds": 1.5}))
    archive.commit(SCOPE, child)
    archive.commit(SCOPE, replace(first, bill={"seconds": 0.25, "money": 0.01}))
    for reader in (archive, Archive(store)):
        found = {one.id: one for one in reader.records(SCOPE)}
        assert found == {first.id: first, child.id: child}
    assert found[first.id].bill == {"seconds": 0.25, "money": 0.01}
