"""Test the promises of an archive on any LangGraph store.

    from conspectus_lab.archive_conformance import ArchiveConformance

    class TestMyStore(ArchiveConformance):
        @pytest.fixture
        def store(self):
            with MyStore(...) as store:
                yield store

Needs pytest. Every test writes under tenants of its own and forgets them, so a shared store is
left as it was. A store that lives on an event loop of its own overrides `drive`.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import uuid
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pytest
from langchain_core import messages as lc
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.base import BaseStore, Op, SearchOp

from conspectus.archive import Archive, Archived, Scope
from conspectus.bridge import arun, run
from conspectus.core.records import ClipMark, Cost, Draft, Record
from conspectus.errors import NotFoundError
from conspectus.messages import Entry, Source, encode, read_messages
from conspectus.recall import recall_flow

T = TypeVar("T")

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
    "system chunk": lc.SystemMessageChunk(content="part"),
    "chat chunk": lc.ChatMessageChunk(content="part", role="critic"),
    "function chunk": lc.FunctionMessageChunk(content="part", name="f"),
    "tool chunk": lc.ToolMessageChunk(content="part", tool_call_id="c1"),
    "assistant chunk": lc.AIMessageChunk(
        content="part",
        tool_call_chunks=[{"name": "read", "args": '{"a": 1}', "id": "c", "index": 0}],
    ),
    "last assistant chunk": lc.AIMessageChunk(content="", chunk_position="last"),
    "blocks": HumanMessage(
        [
            "bare text",
            {"type": "text", "text": "hello", "annotations": [{"type": "citation", "url": "u"}]},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
            {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
            {"type": "video", "url": "https://example.org/v.mp4"},
            {"type": "file", "file_id": "f-1"},
            {"type": "document", "source": {"type": "text", "data": "words"}},
            {"type": "non_standard", "value": {"deep": [[[{}]]]}},
        ]
    ),
    "thoughts": AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xx"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "x"}},
            {"type": "server_tool_use", "id": "t2", "name": "search", "input": {}},
        ]
    ),
    "numbers": HumanMessage(
        "numbers",
        additional_kwargs={"nan": math.nan, "inf": -math.inf, "zero": -0.0, "long": 10**5000},
    ),
    "odd keys": HumanMessage(
        "keys", additional_kwargs={"map": {1: "a", None: "b", (1, 2): "c", 1.5: "d", b"e": "f"}}
    ),
    "bytes and tuples": ToolMessage(
        "raw", tool_call_id="c1", artifact=(b"\x00\xff", bytearray(b"x"), {"~conspectus": "mine"})
    ),
    "openai dict": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    "anthropic dict": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": AWKWARD}],
    },
    "dict with a number for an id": {"role": "user", "content": "x", "id": 7},
    "dict with an empty id": {"role": "user", "content": "x", "id": None},
}
"""One message of every kind that LangChain has, and values that stores are known to refuse."""

LABELS = "a|a |a?|a.b|b||A|а|a\x00|a\udc00|*|%|_|threads|a/b|é".split("|")
"""Similar labels of tenants, threads and sessions, and labels that mean something to a store."""


class Shuffled(BaseStore):
    """A store whose searches answer in random order, as no store promises any."""

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner
        self._random = random.Random(7)

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        answers = []
        for op in ops:
            if not isinstance(op, SearchOp):
                answers += self.inner.batch([op])
                continue
            [found] = self.inner.batch([op._replace(limit=100_000, offset=0)])
            assert isinstance(found, list)
            self._random.shuffle(found)
            answers.append(found[op.offset : op.offset + op.limit])
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        raise NotImplementedError


def record_of(
    entries: Sequence[Entry], parent: Record | None = None, clips: Sequence[Entry] = ()
) -> Record:
    """Make a record that covers some messages and shows others short."""
    return Record.make(
        parent=parent.id if parent else None,
        covers=tuple(entry.key for entry in entries),
        clips=tuple(ClipMark(entry.key, "shown", 50) for entry in clips),
        summary=AWKWARD,
        segment={"text": AWKWARD},
        cause="a test",
        tokens_before=HUGE,
        tokens_after=1,
        messages_after=1,
        archived=True,
        by="nobody",
        cost=Cost(1, 2, 3),
    )


def talk(*texts: str) -> list[Entry]:
    """Read a conversation."""
    roles = ("user", "assistant")
    return read_messages([{"role": roles[i % 2], "content": t} for i, t in enumerate(texts)])


class ArchiveConformance:
    """Test a store; override the fixture `store`, and `drive` if needed."""

    @pytest.fixture
    def store(self) -> Iterator[BaseStore]:
        """Return the store to test, ready to use."""
        raise NotImplementedError("override the fixture `store`")

    @pytest.fixture
    def archive(self, store: BaseStore) -> Iterator[Archive]:
        """Open an archive on the store."""
        archive = Archive(store)
        yield archive
        archive.close()

    @pytest.fixture
    def tenant(self, archive: Archive) -> Iterator[str]:
        """Name a tenant of this test alone, and forget it afterwards."""
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

    @pytest.mark.parametrize("name", MESSAGES)
    def test_every_message_comes_back_equal(
        self, archive: Archive, scope: Scope, name: str
    ) -> None:
        message = MESSAGES[name]
        entries = read_messages([message])
        archive.put(scope, entries)
        assert archive.missing(scope, entries) == ()
        [got] = archive.get(scope, [entries[0].key])
        assert type(got.message) is type(message)
        assert got.lossless
        assert got.text == entries[0].reading
        assert encode(got.message) == entries[0].encoded
        if name != "numbers":  # NaN is unlike itself
            assert got.message == message

    def test_a_part_without_json_form_is_described_and_said_so(
        self, archive: Archive, scope: Scope
    ) -> None:
        message = ToolMessage("ok", tool_call_id="c", artifact={"rows": [1], "open": object()})
        entries = read_messages([message])
        archive.put(scope, entries)
        [got] = archive.get(scope, [entries[0].key])
        assert not got.lossless
        assert isinstance(got.message, ToolMessage)
        assert got.message.content == "ok"
        assert got.message.artifact["rows"] == [1]
        assert "builtins.object" in json.dumps(got.message.artifact["open"])
        assert archive.missing(scope, entries) == ()

    def test_a_retry_changes_nothing(self, archive: Archive, scope: Scope) -> None:
        entries = talk("one", "two")
        archive.put(scope, entries)
        before = archive.get(scope, [entry.key for entry in entries])
        archive.put(scope, entries)
        assert archive.get(scope, [entry.key for entry in entries]) == before

    def test_an_edited_message_is_a_new_version(self, archive: Archive, scope: Scope) -> None:
        old, new = (read_messages([HumanMessage(text, id="m1")])[0] for text in ("draft", "final"))
        archive.put(scope, [old])
        assert archive.missing(scope, [old, new]) == (new.key,)
        archive.put(scope, [new])
        texts = [one.text for one in archive.get(scope, [new.key, old.key])]
        assert texts == ["final", "draft"]

    def test_originals_come_in_the_order_asked(self, archive: Archive, scope: Scope) -> None:
        entries = talk(*(f"message {n}" for n in range(1203)))
        archive.put(scope, entries)
        keys = [entry.key for entry in entries]
        random.Random(3).shuffle(keys)
        assert [one.key for one in archive.get(scope, keys)] == keys
        assert archive.missing(scope, entries) == ()

    def test_what_was_never_put_is_named(self, archive: Archive, scope: Scope) -> None:
        [entry] = talk("here")
        archive.put(scope, [entry])
        with pytest.raises(NotFoundError, match="nowhere"):
            archive.get(scope, [entry.key, "nowhere"])

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
                found = run(recall_flow(archive, scope, [record], query="secret", count=len))
                assert [hit.key for hit in found.hits] == list(record.covers)
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
        assert archive.chain(scope) == tuple(chain)
        side = record_of(entries[1:], chain[0])
        archive.commit(scope, side)
        assert archive.chain(scope) == (chain[0], side)
        kept = archive.records(scope)
        assert {one.id for one in kept} == {one.id for one in (*chain, side)}
        assert (kept[0], kept[-1]) == (chain[0], chain[-1])
        assert archive.threads(scope.tenant) == (scope.thread,)

    def test_drafts_are_found_by_their_plan(self, archive: Archive, scope: Scope) -> None:
        draft = Draft(AWKWARD, "model", ("k1", "k2"), Cost(1, HUGE, 3), 9, 2, {"text": AWKWARD})
        assert archive.find_draft(scope, "plan") is None
        archive.save_draft(scope, "plan", draft)
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
        entries = talk("one", "two")
        for scope in scopes:
            archive.put(scope, entries)
            archive.save_draft(scope, "plan", Draft("text", "model", ()))
            archive.commit(scope, record_of(entries))
        # Of each of the two sessions: two messages, a draft and a record.
        assert archive.forget(tenant, "gone") == 8
        assert archive.threads(tenant) == ("kept",)
        for scope in scopes[:2]:
            assert archive.chain(scope) == archive.records(scope) == ()
            assert archive.find_draft(scope, "plan") is None
            assert len(archive.missing(scope, entries)) == 2
        assert archive.missing(scopes[2], entries) == ()
        assert [archive.forget(tenant), archive.forget(tenant)] == [4, 0]

    def test_no_order_of_a_search_is_relied_on(self, store: BaseStore, scope: Scope) -> None:
        archive = Archive(Shuffled(store))
        entries = talk(*(f"message {n}" for n in range(450)))
        archive.put(scope, entries)
        archive.commit(scope, record_of(entries))
        assert [row["key"] for row in archive.export(scope)] == [entry.key for entry in entries]
        for number in range(30):
            archive.put(Scope(scope.tenant, f"thread {number:02}"), entries[:1])
        assert len(archive.threads(scope.tenant)) == 31
        assert archive.forget(scope.tenant) == 450 + 1 + 30
        assert archive.threads(scope.tenant) == ()

    def test_with_and_without_an_event_loop_it_is_the_same(
        self, archive: Archive, tenant: str
    ) -> None:
        entries = read_messages(list(MESSAGES.values()))
        keys = [entry.key for entry in entries]
        record, draft = record_of(entries), Draft("text", "model", ("k",))
        one, other = Scope(tenant, "sync"), Scope(tenant, "async")

        def ask(text: str) -> dict[str, Any]:
            return {"query": text, "tokens": 500, "count": len}

        archive.put(one, entries)
        archive.save_draft(one, "plan", draft)
        archive.commit(one, record)
        chain = archive.chain(one)
        plain = (
            archive.missing(one, entries),
            _timeless(archive.get(one, keys)),
            archive.find_draft(one, "plan"),
            chain,
            archive.records(one),
            len(archive.export(one)),
            run(recall_flow(archive, one, chain, **ask("hello"))),
        )

        async def same() -> tuple[Any, ...]:
            await arun(archive.flow(archive.put, other, entries))
            await arun(archive.flow(archive.save_draft, other, "plan", draft))
            await arun(archive.flow(archive.commit, other, record))
            chain = await arun(archive.flow(archive.chain, other))
            threads = await arun(archive.flow(archive.threads, tenant))
            assert threads == ("async", "sync")
            return (
                await arun(archive.flow(archive.missing, other, entries)),
                _timeless(await arun(archive.flow(archive.get, other, keys))),
                await arun(archive.flow(archive.find_draft, other, "plan")),
                chain,
                await arun(archive.flow(archive.records, other)),
                len(await arun(archive.flow(archive.export, other))),
                await arun(recall_flow(archive, other, chain, **ask("hello"))),
            )

        assert self.drive(same()) == plain
        forgotten = self.drive(arun(archive.flow(archive.forget, tenant, "async")))
        assert forgotten == archive.forget(tenant, "sync")


def _timeless(found: Sequence[Archived]) -> list[tuple[str, str, bool, str]]:
    """Return all fields but the time, with NaN as text."""
    return [(one.key, one.text, one.lossless, encode(one.message).text) for one in found]
