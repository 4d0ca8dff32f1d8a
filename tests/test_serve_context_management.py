"""Anthropic's requests for a compaction and for edits of the context, before any upstream."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest

from fault_server import FaultServer
from serve_support import Serving, serving

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 12
NEW = {"role": "user", "content": "And now?"}


def history(turns: int = 5) -> list[Any]:
    made: list[Any] = []
    for turn in range(turns):
        use = {"type": "tool_use", "id": f"t{turn}", "name": "read", "input": {"n": turn}}
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"r{turn}: {LONG}"}
        made += [
            {"role": "user", "content": f"Question {turn}."},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"Answer {turn}."},
        ]
    return [*made, NEW]


@contextmanager
def both(path: Path, **more: Any) -> Iterator[tuple[FaultServer, Serving, anthropic.Anthropic]]:
    with (
        FaultServer(lambda request: "fine") as upstream,
        serving(upstream.anthropic_url, path, window=20_000, **more) as endpoint,
        anthropic.Anthropic(base_url=endpoint.url, api_key="k", max_retries=0) as client,
    ):
        yield upstream, endpoint, client


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_for_a_compaction_is_answered_with_one_block(tmp_path, stream):
    with both(tmp_path / "a.db") as (upstream, _, client):
        asked: Any = {
            "model": "m", "messages": history(), "max_tokens": 99,
            "compaction": {"type": "summarize"}, "betas": ["compact-2026-01-12"],
        }  # fmt: skip
        if stream:
            with client.beta.messages.stream(**asked) as events:
                made = events.get_final_message()
        else:
            made = client.beta.messages.create(**asked)
        assert made.stop_reason == "compaction"
        [block] = made.content
        assert block.type == "compaction"
        assert "Question 0." in (block.content or "")
        assert upstream.requests == []
        back: Any = {"role": "assistant", "content": [block.model_dump(exclude_none=True)]}
        client.beta.messages.create(model="m", messages=[back, NEW], max_tokens=99)
        sent = upstream.requests[0].messages
        assert sent[0]["content"].startswith("Here is a summary of the conversation to date:")
        assert "Question 0." in sent[0]["content"]
        assert sent[-1] == NEW
        spoilt = json.loads(json.dumps(back).replace("Question 0.", "Question 9."))
        with pytest.raises(anthropic.BadRequestError, match="compaction item"):
            client.beta.messages.create(model="m", messages=[spoilt, NEW], max_tokens=99)


def test_an_edit_that_compacts_pauses_where_it_is_asked_to(tmp_path):
    edit: Any = {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 1_100},
        "pause_after_compaction": True,
    }
    with both(tmp_path / "a.db") as (upstream, _, client):
        asked: Any = {"model": "m", "max_tokens": 99, "context_management": {"edits": [edit]}}
        made = client.beta.messages.create(messages=history(), **asked)
        assert made.stop_reason == "compaction"
        assert upstream.requests == []
        said = [block.model_dump(exclude_none=True) for block in made.content]
        back: Any = {"role": "assistant", "content": said}
        made = client.beta.messages.create(messages=[*history(), back, NEW], **asked)
        assert made.content[0].type == "text"
        sent = upstream.requests[0]
        assert "context_management" not in sent.body
        assert len(sent.messages) < 5


def test_an_edit_that_compacts_does_so_from_its_trigger_on(tmp_path):
    other = {"type": "clear_thinking_20251015"}
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 6_000}}
    asked: Any = {"model": "m", "max_tokens": 99, "context_management": {"edits": [edit, other]}}
    with both(tmp_path / "a.db") as (upstream, _, client):
        for turns, summarised in ((3, False), (30, True)):
            made = client.beta.messages.create(messages=history(turns), **asked)
            assert [block.type for block in made.content] == ["text"]
            sent = upstream.requests[-1]
            assert ("Here is a summary" in sent.text) == summarised
            assert sent.body["context_management"] == {"edits": [other]}


@pytest.mark.parametrize("kept", [None, "opaque" * 400])
def test_a_providers_own_block_goes_through_and_counts(tmp_path, kept):
    block = {"type": "compaction", "content": "What was said so far. " * 200}
    block = block if kept is None else {**block, "encrypted_content": kept}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": [block]}]}
    body["messages"] += [NEW]
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        answer = httpx.post(f"{endpoint.url}/v1/messages", json=body)
        assert [one.body for one in upstream.requests] == [body]
        assert int(answer.headers["x-conspectus-tokens-before"]) > 800


def test_the_upstream_can_be_asked_for_all_this(tmp_path):
    body = {"model": "m", "messages": [NEW], "max_tokens": 9, "compaction": {"type": "summarize"}}
    with both(tmp_path / "a.db", compaction="upstream") as (upstream, endpoint, _):
        httpx.post(f"{endpoint.url}/v1/messages", json=body)
        assert upstream.requests[0].body == body
