"""Test the promises of an archive on any store.

    from conspectus_lab.archive_conformance import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self):
            with MyStore(...) as store:
                yield store

`StoreConformance` is for a store that extends `KeyValueStore` or `ArchiveStore`;
`ArchiveConformance` is for a LangGraph store, which cannot promise as much. Both need pytest, which
the extra `conformance` installs. Every test uses its own tenants and forgets them, so a shared
store does not change.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
import uuid
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, overload

import pytest
from langchain_core import messages as lc
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.base import BaseStore

from conspectus.archive import Archive, ArchiveStore, Scope, StoredItem, ValueKind
from conspectus.bridge import arun, run
from conspectus.core.records import Cost, Draft, Record, RecordedClip
from conspectus.errors import NotFoundError
from conspectus.messages import Message, Source, read_message, read_messages
from conspectus.recall import recall_flow

T = TypeVar("T")

KINDS: tuple[ValueKind, ...] = ("messages", "records", "drafts", "remarks")
AWKWARD = "NUL \x00, half a pair \udc00, 😀, \u2028, é and e\u0301, 100% \\ \" ' ; --"
HUGE = 2**63 + 10**40

MESSAGES: dict[str, Source] = {
    "human": HumanMessage(AWKWARD, id="h1", name="ann", example=True),
    "system": lc.SystemMessage("rules", id="s" * 300),
    "chat": lc.ChatMessage(content="hello", role="critic"),
    "function": lc.FunctionMessage(content="42", name="f"),
    "tool": ToolMessage("done", tool_call_id="c1", status="error", artifact={"rows": [1, None]}),
    "assistant with calls": AIMessage(
        "working",
        id="a1",
        tool_calls=[{"name": "read", "args": {"path": "a\x00b", "n": HUGE}, "id": "c1"}],
        invalid_tool_calls=[{"name": "bad", "args": "{", "id": "c2", "error": "no JSON"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model": "m", "logprobs": [-0.5, 1e-300]},
    ),
    "human chunk": lc.HumanMessageChunk(content="part"),
    "tool chunk": lc.ToolMessageChunk(content="part", tool_call_id="c1"),
    "assistant chunk": lc.AIMessageChunk(
        content="part",
        tool_call_chunks=[{"name": "read", "args": '{"a": 1}', "id": "c", "index": 0}],
    ),
    "blocks": HumanMessage(
        [
            "bare text",
            {"type": "text", "text": "hello", "annotations": [{"type": "citation", "url": "u"}]},
            {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
            {"type": "document", "source": {"type": "text", "data": "words"}},
            {"type": "non_standard", "value": {"deep": [[[{}]]]}},
        ]
    ),
    "thoughts": AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "x"}},
        ]
    ),
    "numbers": HumanMessage(
        "numbers", additional_kwargs={"nan": math.nan, "inf": -math.inf, "zero": -0.0}
    ),
    "odd keys": HumanMessage(
        "keys", additional_kwargs={"map": {1: "a", None: "b", (1, 2): "c", 1.5: "d", b"e": "f"}}
    ),
    "bytes and tuples": ToolMessage(
        "raw", tool_call_id="c1", artifact=(b"\x00\xff", bytearray(b"x"), {"~conspectus": "mine"})
    ),
    "anthropic dict": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": AWKWARD}],
    },
    "dict with a number for an id": {"role": "user", "content": "x", "id": 7},
}
"""One message of each of LangChain's classes, and values that some stores refuse."""

LABELS = "a|a |a?|a.b|b||A|а|a\x00|a\udc00|*|%|_|threads|a/b|é".split("|")
"""Similar labels of tenants, threads and sessions, and labels with characters special to stores."""


def record_of(
    entries: Sequence[Message], parent: Record | None = None, clips: Sequence[Message] = ()
) -> Record:
    """Make a record that covers some messages and shows others short."""
    return Record.make(
        parent=parent.id if parent else None,
        covers=tuple(entry.key for entry in entries),
        clips=tuple(RecordedClip(entry.key, "shown", 50) for entry in clips),
        summary=AWKWARD,
        notes={"text": AWKWARD},
        cause="a test",
        tokens_before=HUGE,
        tokens_after=1,
        messages_after=1,
        archived=True,
        by="nobody",
        cost=Cost(1, 2, 3),
    )


def talk(*texts: str) -> list[Message]:
    """Read a conversation in which the user and the assistant take turns."""
    roles = ("user", "assistant")
    return read_messages(
        [{"role": roles[turn % 2], "content": text} for turn, text in enumerate(texts)]
    )


class _Broken(Sequence[StoredItem]):
    """Items whose second one raises an error: a write of them fails half way."""

    def __init__(self, item: StoredItem) -> None:
        self._item = item

    def __len__(self) -> int:
        return 2

    @overload
    def __getitem__(self, index: int) -> StoredItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[StoredItem]: ...
    def __getitem__(self, index: int | slice) -> StoredItem | Sequence[StoredItem]:
        if index != 0:
            raise RuntimeError("the second item is broken")
        return self._item


class ArchiveConformance:
    """Test an archive in a LangGraph store; override the fixture `store`.

    If the store runs on its own event loop, override `drive`, too.
    """

    @pytest.fixture
    def store(self) -> Iterator[BaseStore | ArchiveStore]:
        """Return the store to test, ready to use."""
        raise NotImplementedError("override the fixture `store`")

    @pytest.fixture
    def archive(self, store: BaseStore | ArchiveStore) -> Iterator[Archive]:
        """Open an archive on the store."""
        archive = Archive(store)
        yield archive
        archive.close()

    @pytest.fixture
    def tenant(self, archive: Archive) -> Iterator[str]:
        """Make a tenant for this test alone, and forget it afterwards."""
        name = f"conformance-{uuid.uuid4()}"
        yield name
        archive.forget(name)

    @pytest.fixture
    def scope(self, tenant: str) -> Scope:
        """Name a history of this test alone."""
        return Scope(tenant, "thread")

    def drive(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the store."""
        return asyncio.run(coroutine)

    def test_every_message_comes_back_equal(self, archive: Archive, scope: Scope) -> None:
        entries = {name: read_messages([message])[0] for name, message in MESSAGES.items()}
        archive.put(scope, list(entries.values()))
        assert archive.missing(scope, list(entries.values())) == ()
        kept = archive.find(scope, [entry.key for entry in entries.values()])
        for name, entry in entries.items():
            got = kept[entry.key]
            message = MESSAGES[name]
            assert type(got.message) is type(message), name
            assert got.lossless, name
            assert got.text == entry.reading, name
            assert read_message(got.message).encoded.text == entry.encoded.text, name
            assert name == "numbers" or got.message == message, name  # NaN does not equal itself

    def test_a_part_without_json_form_is_described_and_said_so(
        self, archive: Archive, scope: Scope
    ) -> None:
        message = ToolMessage("ok", tool_call_id="c", artifact={"rows": [1], "open": object()})
        entries = read_messages([message])
        archive.put(scope, entries)
        [got] = archive.get(scope, [entries[0].key])
        assert not got.lossless
        assert isinstance(got.message, ToolMessage)
        assert got.message.artifact["rows"] == [1]
        assert "builtins.object" in json.dumps(got.message.artifact["open"])
        assert archive.missing(scope, entries) == ()

    def test_a_retry_changes_nothing_and_an_edit_is_a_new_version(
        self, archive: Archive, scope: Scope
    ) -> None:
        [old] = read_messages([HumanMessage("draft", id="m1")])
        [new] = read_messages([HumanMessage("final", id="m1")])
        archive.put(scope, [old])
        before = archive.get(scope, [old.key])
        archive.put(scope, [old])
        assert archive.get(scope, [old.key]) == before
        assert archive.missing(scope, [old, new]) == (new.key,)
        archive.put(scope, [new])
        texts = [original.text for original in archive.get(scope, [new.key, old.key])]
        assert texts == ["final", "draft"]

    def test_originals_come_in_the_order_asked(self, archive: Archive, scope: Scope) -> None:
        entries = talk(*(f"message {n}" for n in range(1203)))
        archive.put(scope, entries)
        keys = [entry.key for entry in entries]
        random.Random(3).shuffle(keys)
        assert [original.key for original in archive.get(scope, keys)] == keys
        assert archive.missing(scope, entries) == ()
        with pytest.raises(NotFoundError, match="nowhere"):
            archive.get(scope, [keys[0], "nowhere"])

    def test_nothing_crosses_a_wall(self, archive: Archive, tenant: str) -> None:
        scopes = [Scope(tenant, label) for label in LABELS]
        scopes += [Scope(tenant, "a", label) for label in LABELS if label]
        scopes += [Scope(f"{tenant}{label}", "a") for label in LABELS if label]
        try:
            for number, scope in enumerate(scopes):
                entries = talk(f"secret of number {number}")
                archive.put(scope, entries)
                archive.commit(scope, record_of(entries))
            for number, scope in enumerate(scopes):
                [record] = archive.chain(scope)
                [got] = archive.get(scope, record.covers)
                assert got.text == f"secret of number {number}"
                answer = run(recall_flow(archive, scope, (record,), query="secret", count=len))
                assert [hit.key for hit in answer.hits] == list(record.covers)
                with pytest.raises(NotFoundError):
                    archive.get(scopes[number - 1], record.covers)
        finally:
            for scope in scopes:
                archive.forget(scope.tenant)

    def test_a_chain_goes_from_the_first_record_to_the_head(
        self, archive: Archive, scope: Scope
    ) -> None:
        entries = talk("one", "two", "three")
        archive.put(scope, entries)
        chain: list[Record] = []
        for entry in entries:
            chain.append(record_of([entry], chain[-1] if chain else None))
            archive.commit(scope, chain[-1])
            archive.commit(scope, chain[-1])
        assert [record.id for record in archive.chain(scope)] == [record.id for record in chain]
        assert archive.chain(scope)[-1] == chain[-1]
        side = record_of(entries[1:], chain[0])
        archive.commit(scope, side)
        assert [record.id for record in archive.chain(scope)] == [chain[0].id, side.id]
        kept = {record.id: record for record in archive.records(scope)}
        assert kept == {record.id: record for record in (*chain, side)}

    def test_drafts_are_found_by_their_plan_also_once_they_are_in_force(
        self, archive: Archive, scope: Scope
    ) -> None:
        draft = Draft(AWKWARD, "model", ("k1", "k2"), Cost(1, HUGE, 3), 9, 2, {"text": AWKWARD})
        assert archive.find_draft(scope, "plan") is None
        archive.save_draft(scope, "plan", draft)
        assert archive.find_draft(scope, "plan") == draft
        archive.commit(scope, record_of(talk("one")))
        assert archive.find_draft(scope, "plan") == draft
        assert archive.find_draft(scope, "another plan") is None
        assert archive.find_draft(Scope(scope.tenant, "other"), "plan") is None

    def test_an_export_holds_what_the_chain_answers_for(
        self, archive: Archive, scope: Scope
    ) -> None:
        entries = read_messages([*MESSAGES.values(), HumanMessage("left behind")])
        *covered, clipped, abandoned = entries
        archive.put(scope, entries)
        archive.commit(scope, record_of([abandoned]))
        archive.commit(scope, record_of(covered, clips=[clipped]))
        rows = archive.export(scope)
        assert [row["key"] for row in rows] == [entry.key for entry in (*covered, clipped)]
        assert len(json.dumps(rows, allow_nan=True)) > 1000
        assert rows[0]["message"]["data"]["content"] == AWKWARD
        assert archive.export(scope, ()) == []

    def test_forgetting_a_thread_leaves_the_others(self, archive: Archive, tenant: str) -> None:
        scopes = [Scope(tenant, "gone"), Scope(tenant, "gone", "sub"), Scope(tenant, "kept")]
        entries = talk(*(f"message {n}" for n in range(450)))
        for scope in scopes:
            archive.put(scope, entries)
            archive.save_draft(scope, "plan", Draft("text", "model", ()))
            archive.commit(scope, record_of(entries))
        # For each of the two sessions: its messages, a draft and a record.
        assert archive.forget(tenant, "gone") == 2 * 452
        assert archive.threads(tenant) == ("kept",)
        for scope in scopes[:2]:
            assert archive.chain(scope) == archive.records(scope) == ()
            assert archive.find_draft(scope, "plan") is None
            assert len(archive.missing(scope, entries)) == 450
        assert archive.missing(scopes[2], entries) == ()
        assert [archive.forget(tenant), archive.forget(tenant)] == [452, 0]

    def test_with_and_without_an_event_loop_it_is_the_same(
        self, archive: Archive, tenant: str
    ) -> None:
        entries = read_messages(list(MESSAGES.values()))
        record = record_of(entries)
        draft = Draft("text", "model", ("k",))

        async def everything(scope: Scope) -> tuple[Any, ...]:
            await archive.call_either_way(archive.put, scope, entries)
            await archive.call_either_way(archive.save_draft, scope, "plan", draft)
            await archive.call_either_way(archive.commit, scope, record)
            chain = await archive.call_either_way(archive.chain, scope)
            kept = await archive.call_either_way(
                archive.get, scope, [entry.key for entry in entries]
            )
            texts = [
                (
                    original.key,
                    original.text,
                    original.lossless,
                    read_message(original.message).encoded.text,
                )
                for original in kept
            ]
            asked: dict[str, Any] = {"query": "hello", "tokens": 500, "count": len}
            return (
                await archive.call_either_way(archive.missing, scope, entries),
                texts,
                await archive.call_either_way(archive.find_draft, scope, "plan"),
                chain,
                len(await archive.call_either_way(archive.export, scope)),
                await recall_flow(archive, scope, chain, **asked),
                await archive.call_either_way(archive.forget, tenant, scope.thread),
            )

        plain = run(everything(Scope(tenant, "sync")))
        assert self.drive(arun(everything(Scope(tenant, "async")))) == plain


class StoreConformance(ArchiveConformance):
    """Test a store of your own: the contract of `ArchiveStore`, and an archive in the store.

    Override the fixture `store`; and `expiring_store` if values can expire.
    """

    @pytest.fixture
    def store(self) -> Iterator[ArchiveStore]:
        """Return the store to test, ready to use."""
        raise NotImplementedError("override the fixture `store`")

    @pytest.fixture
    def expiring_store(self) -> Iterator[ArchiveStore]:
        """Return a store whose values expire after half a second."""
        pytest.skip("override the fixture `expiring_store` if values can expire")

    @pytest.fixture
    def place(self, store: ArchiveStore) -> Iterator[Scope]:
        """Name a scope of this test alone, and forget it afterwards."""
        scope = Scope(f"conformance-{uuid.uuid4()}", "thread")
        yield scope
        store.forget(store.scopes(scope.tenant))

    def test_values_of_each_kind_come_back_by_name(self, store: ArchiveStore, place: Scope) -> None:
        for kind in KINDS:
            assert store.read(place, kind, ["a"]) == {}
            store.write(place, {kind: [StoredItem("a", b"\x00" + kind.encode())]})
        for kind in KINDS:
            assert store.read(place, kind, ["a", "b"]) == {"a": b"\x00" + kind.encode()}
            assert store.read(place, kind, None) == {"a": b"\x00" + kind.encode()}
            assert store.read(Scope(place.tenant, "another"), kind, None) == {}

    def test_a_value_takes_the_place_of_the_one_before(
        self, store: ArchiveStore, place: Scope
    ) -> None:
        store.write(place, {"remarks": [StoredItem("a", b"old"), StoredItem("b", b"kept")]})
        store.write(place, {"remarks": [StoredItem("a", b"new")]})
        assert store.read(place, "remarks", None) == {"a": b"new", "b": b"kept"}

    def test_large_and_many_values_come_back(self, store: ArchiveStore, place: Scope) -> None:
        bodies = {f"{number:032x}": b"%d" % number for number in range(1_500)}
        bodies["large"] = random.Random(7).randbytes(4_000_000)
        store.write(place, {"messages": [StoredItem(*each) for each in bodies.items()]})
        assert store.read(place, "messages", list(bodies)) == bodies

    def test_a_write_that_fails_half_way_writes_nothing(
        self, store: ArchiveStore, place: Scope
    ) -> None:
        item = StoredItem("a", b"half")
        with pytest.raises(RuntimeError, match="broken"):
            store.write(place, {"messages": [item], "records": _Broken(item)}, head_id="a")
        assert store.head_id(place) is None
        for kind in KINDS:
            assert store.read(place, kind, None) == {}

    def test_a_head_is_moved_by_who_knows_it(self, store: ArchiveStore, place: Scope) -> None:
        assert store.head_id(place) is None
        assert store.write(place, {}, head_id="first", expected_head_id="") == "first"
        assert store.write(place, {}, head_id="second", expected_head_id="first") == "second"
        remark: dict[ValueKind, list[StoredItem]] = {"remarks": [StoredItem("a", b"1")]}
        assert store.write(place, remark, head_id="third", expected_head_id="first") == "second"
        assert store.read(place, "remarks", None) == {}
        # A retry of the same commit is no conflict, nor is a head that was reset.
        assert store.write(place, remark, head_id="second", expected_head_id="first") == "second"
        assert store.read(place, "remarks", None) == {"a": b"1"}
        assert store.write(place, {}, head_id="") == store.head_id(place) == ""
        assert store.write(place, {}, head_id="third", expected_head_id="first") == "third"
        assert store.write(place, {"remarks": [StoredItem("b", b"2")]}) == "third"

    def test_of_many_who_move_a_head_one_does(self, store: ArchiveStore, place: Scope) -> None:
        store.write(place, {}, head_id="before")

        def commit(name: str) -> str:
            item = StoredItem(name, b"mine")
            return store.write(place, {"records": [item]}, head_id=name, expected_head_id="before")

        names = [f"writer{number}" for number in range(8)]
        with ThreadPoolExecutor(len(names)) as pool:
            heads = set(pool.map(commit, names))
        assert heads == {store.head_id(place)}
        assert store.read(place, "records", None) == dict.fromkeys(heads, b"mine")

    def test_many_threads_write_at_once(self, store: ArchiveStore, place: Scope) -> None:
        def write(number: int) -> None:
            store.write(place, {"remarks": [StoredItem(f"{number}", b"%d" % number)]})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(80)))
        assert store.read(place, "remarks", None) == {f"{n}": b"%d" % n for n in range(80)}

    def test_scopes_are_listed_until_they_are_forgotten(
        self, store: ArchiveStore, place: Scope
    ) -> None:
        another = Scope(place.tenant, "another", "session")
        for scope in (place, another):
            store.write(scope, {kind: [StoredItem("a", b"1")] for kind in KINDS}, head_id="a")
        assert set(store.scopes(place.tenant)) == {place, another}
        # A message, a record and a draft; remarks and heads do not count.
        assert store.forget([place]) == 3
        assert store.scopes(place.tenant) == [another]
        assert (store.head_id(place), store.head_id(another)) == (None, "a")
        assert all(store.read(place, kind, None) == {} for kind in KINDS)
        assert all(store.read(another, kind, None) for kind in KINDS)
        assert store.forget([place]) == 0

    def test_what_has_expired_is_gone(self, expiring_store: ArchiveStore) -> None:
        store = expiring_store
        place = Scope(f"conformance-{uuid.uuid4()}", "thread")
        assert store.ttl is not None
        begin = time.monotonic()
        store.write(place, {"records": [StoredItem("a", b"1"), StoredItem("b", b"2")]}, head_id="b")
        time.sleep(0.6 * store.ttl)
        store.write(place, {"remarks": [StoredItem("n", b"3")]}, renewed=["a"])
        time.sleep(max(0.0, begin + 1.2 * store.ttl - time.monotonic()))
        assert store.read(place, "records", None) == {"a": b"1"}
        assert store.read(place, "remarks", None) == {"n": b"3"}
        assert store.head_id(place) is None
        assert store.write(place, {}, head_id="c", expected_head_id="expired") == "c"
        store.forget(store.scopes(place.tenant))
