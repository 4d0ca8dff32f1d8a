"""Histories that clients leave to the server, and compactions that they ask for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.compaction import Known, held_until, hold
from conspectus_serve.fitting import Fitter
from conspectus_serve.settings import PLAINLY
from fault_server import FaultServer
from serve_support import METER, WINDOW, Serving, between, own, post, sent_tokens
from test_tokens import counts_tools

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 12
NEW: Any = {"role": "user", "content": "And now?"}
SUMMARY = "Here is a summary of the conversation to date:"


@contextmanager
def both(path: Path | Archive, config: Any = None, **more: Any) -> Iterator[Any]:
    """An upstream with a window, an endpoint, and OpenAI's client at it."""

    def script(request: Any) -> str:
        return f"Answer {request.number}. {LONG}"

    with (
        between(script, path, config, limit=WINDOW, count=sent_tokens, **more) as (
            upstream,
            endpoint,
        ),
        openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as client,
    ):
        yield upstream, endpoint, client


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_left_to_the_server_is_held_and_compacted_here(tmp_path, stream):
    parent: Any = openai.omit
    turns = 18
    with both(tmp_path / "a.db") as (upstream, _, client):
        for turn in range(turns):
            made = client.responses.create(
                model="m", input=f"Question {turn}. {LONG}", previous_response_id=parent,
                stream=stream, max_output_tokens=100,
            )  # fmt: skip
            if stream:
                [made] = [e.response for e in made if e.type == "response.completed"]
            parent = f"{made.id}"
        assert upstream.refused == upstream.torn == []
        last = upstream.requests[-1]
        assert "Question 0." in last.text
        assert f"Question {turns - 1}." in last.text
        assert len(last.messages) < 2 * turns - 1
    # Another process goes on from there.
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        body = {"model": "m", "input": "And then?", "previous_response_id": parent}
        answer = post(endpoint, "/v1/responses", body)
        assert (own(answer, "state"), own(answer, "compacted")) == ("held", "true")
        assert "Question 0." in upstream.requests[-1].text
        # Somebody else has no such response, and a conversation is the upstream's.
        other = post(endpoint, "/v1/responses", body, authorization="Bearer other")
        assert (own(other, "state"), upstream.requests[-1].body) == ("upstream", body)
        theirs = {"model": "m", "input": "hi", "conversation": "conv_1"}
        assert own(post(endpoint, "/v1/responses", theirs), "state") == "upstream"


def test_a_held_history_is_read_beside_the_event_loop(tmp_path, monkeypatch):
    where, read = list[str](), Fitter.read

    def seen(fitter: Fitter, x: Any) -> None:
        where.append(threading.current_thread().name)
        read(fitter, x)

    monkeypatch.setattr(Fitter, "read", seen)
    with both(tmp_path / "a.db") as (_, _, client):
        first = client.responses.create(model="m", input="Hello")
        client.responses.create(model="m", input="And?", previous_response_id=first.id)
    assert [name.startswith("conspectus-archive") for name in where] == [False, True]


def test_a_long_line_of_responses_is_held_whole():
    with Archive.open("memory:") as archive:
        ids = list[str]()
        for number in range(150):
            hold(archive, "ann", "t", f"r{number}", ids, [number])
            held = held_until(archive, "ann", f"r{number}", Known(1))
            assert held == ("t", [*ids, f"r{number}"], list(range(number + 1)))
            ids = held[1]
        assert held_until(archive, "bob", "r9", Known(1)) is None


def test_where_secrets_are_taken_out_no_history_is_held(tmp_path):
    config = SummarizationConfig.model_validate({**PLAINLY, "redact": True})
    with both(tmp_path / "a.db", config) as (upstream, endpoint, _):
        body: dict[str, Any] = {"model": "m", "input": "My key is AKIAIOSFODNN7EXAMPLQ."}
        body["previous_response_id"] = post(endpoint, "/v1/responses", body).json()["id"]
        assert own(post(endpoint, "/v1/responses", body), "state") == "upstream"
        assert upstream.requests[-1].body == body


def long_history() -> list[Any]:
    return [
        {"role": role, "content": f"{role} {turn}: {LONG}"}
        for turn in range(6)
        for role in ("user", "assistant")
    ] + [{"role": "user", "content": "Go on."}]


TRIGGER = {"type": "compaction_trigger"}


def item_of(answer: Any) -> Any:
    [item] = answer.output
    assert item.type == "compaction"
    return item.model_dump(exclude_none=True)


def test_a_trigger_is_answered_with_one_item_that_comes_back_as_notes(tmp_path):
    history = long_history()
    with both(tmp_path / "a.db") as (upstream, _, client):
        asked = [*history, TRIGGER]
        *_, last = client.responses.create(model="m", input=asked, stream=True)
        assert last.type == "response.completed"
        items = [
            item_of(client.responses.create(model="m", input=asked)),
            item_of(last.response),
            item_of(client.responses.compact(model="m", input=history)),
        ]
        assert upstream.requests == []
        # Codex keeps what the user said beside the item.
        users = [one for one in history if one["role"] == "user"]
        for item in items:
            for before in ([], users):
                client.responses.create(model="m", input=[*before, item, NEW])
                sent = upstream.requests[-1].messages
                texts = [json.dumps(one) for one in sent]
                assert any(SUMMARY in text and "user 0" in text for text in texts)
                assert sent[-1] == NEW
                assert len(texts) == len(set(texts))
                assert METER.messages(sent) < METER.messages(history) * (0.5 if not before else 1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("user 0", "user 9"),
        lambda text: text[:40] + ("0" if text[40] != "0" else "1") + text[41:],
        lambda text: "conspectus.v1.abc.{}",
        lambda text: "conspectus.v1.\ud800.{}",
        lambda text: text + "\ud800",
    ],
)
def test_an_item_that_does_not_verify_is_refused(tmp_path, spoil):
    with both(tmp_path / "a.db") as (upstream, endpoint, client):
        item = item_of(client.responses.compact(model="m", input=long_history()))
        item["encrypted_content"] = spoil(item["encrypted_content"])
        body = json.dumps({"model": "m", "input": [item, NEW]}).encode()
        answer = post(endpoint, "/v1/responses", body)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "invalid_compaction_item"
        assert upstream.requests == []


def test_an_item_is_its_tenants_and_outlives_a_change_of_keys(tmp_path):
    first, second, third = (f"signing key number {n}" for n in (1, 2, 3))
    with both(tmp_path / "a.db", signing_keys=[first]) as (_, _, client):
        given: Any = [item_of(client.responses.compact(model="m", input=long_history())), NEW]
        with pytest.raises(openai.BadRequestError):
            client.with_options(api_key="k2").responses.create(model="m", input=given)
    with both(tmp_path / "a.db", signing_keys=[second, first]) as (_, _, client):
        client.responses.create(model="m", input=given)
    with (
        both(tmp_path / "a.db", signing_keys=[third, second]) as (_, _, client),
        pytest.raises(openai.BadRequestError),
    ):
        client.responses.create(model="m", input=given)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_a_providers_own_item_goes_through_and_counts(tmp_path, path):
    item: Any = {"type": "compaction", "encrypted_content": "gAAAA" + "x1Yz" * 300}
    body: dict[str, Any] = {"model": "m", "input": [{**item, "id": "cmp_1"}, NEW]}
    if path == "/v1/messages":
        block = {**item, "content": "What was said so far. " * 200}
        body = {"model": "m", "messages": [{"role": "assistant", "content": [block]}, NEW]}
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        answer = post(endpoint, path, body)
        assert upstream.requests[-1].body == body
        assert int(own(answer, "tokens-before") or 0) > 500


def worked(turns: int = 5) -> list[Any]:
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
def talking(path: Path, **more: Any) -> Iterator[tuple[FaultServer, Serving, anthropic.Anthropic]]:
    with (
        between(lambda request: "fine", path, window=20_000, **more) as (upstream, endpoint),
        anthropic.Anthropic(base_url=endpoint.url, api_key="k", max_retries=0) as client,
    ):
        yield upstream, endpoint, client


PAUSING: Any = {
    "type": "compact_20260112",
    "trigger": {"type": "input_tokens", "value": 1_100},
    "pause_after_compaction": True,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "asks", [{"compaction": {"type": "summarize"}}, {"context_management": {"edits": [PAUSING]}}]
)
def test_a_request_for_a_compaction_is_answered_with_one_block(tmp_path, stream, asks):
    asked: Any = {"model": "m", "max_tokens": 99, "betas": ["compact-2026-01-12"]}
    with talking(tmp_path / "a.db") as (upstream, _, client):
        if stream:
            with client.beta.messages.stream(**asked, messages=worked(), **asks) as events:
                made = events.get_final_message()
        else:
            made = client.beta.messages.create(**asked, messages=worked(), **asks)
        assert made.stop_reason == "compaction"
        [block] = made.content
        assert block.type == "compaction"
        assert "Question 0." in (block.content or "")
        assert upstream.requests == []
        back: Any = {"role": "assistant", "content": [block.model_dump(exclude_none=True)]}
        for before in ([], worked()):
            client.beta.messages.create(**asked, messages=[*before, back, NEW])
            sent = upstream.requests[-1].messages
            assert sent[0]["content"].startswith(SUMMARY)
            assert "Question 0." in sent[0]["content"]
            assert sent[-1] == NEW
            assert len(sent) < 5
        spoilt = json.loads(json.dumps(back).replace("Question 0.", "Question 9."))
        with pytest.raises(anthropic.BadRequestError, match="compaction item"):
            client.beta.messages.create(**asked, messages=[spoilt, NEW])


def test_an_edit_that_compacts_does_so_from_its_trigger_on(tmp_path):
    other = {"type": "clear_thinking_20251015"}
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 6_000}}
    asked: Any = {"model": "m", "max_tokens": 99, "context_management": {"edits": [edit, other]}}
    with talking(tmp_path / "a.db") as (upstream, _, client):
        for turns, summarised in ((3, False), (30, True)):
            made = client.beta.messages.create(messages=worked(turns), **asked)
            assert [block.type for block in made.content] == ["text"]
            sent = upstream.requests[-1]
            assert ("Here is a summary" in sent.text) == summarised
            assert sent.body["context_management"] == {"edits": [other]}


def test_the_upstream_can_be_asked_for_all_this(tmp_path):
    body = {"model": "m", "messages": [NEW], "max_tokens": 9, "compaction": {"type": "summarize"}}
    with talking(tmp_path / "a.db", compaction="upstream") as (upstream, endpoint, _):
        httpx.post(f"{endpoint.url}/v1/messages", json=body)
        assert upstream.requests[0].body == body


def test_what_a_counter_adds_to_any_list_is_left_free(tmp_path):
    config = SummarizationConfig.model_validate(
        {**PLAINLY, "token_counter": "test_tokens:counts_tools"}
    )

    def count(body: Any) -> int:
        return counts_tools(body["messages"])

    with between(lambda _: "Yes.", tmp_path / "a.db", config, limit=WINDOW, count=count) as (
        upstream,
        at,
    ):
        for turns in range(20):
            said = [{"role": "user", "content": f"{n}: {LONG}"} for n in range(turns)]
            body = {"model": "m", "max_tokens": 100, "messages": [*said, NEW]}
            answer = post(at, "/v1/messages", body)
            assert answer.status_code == 200, answer.text
        assert upstream.refused == []
        assert len(upstream.requests[-1].messages) < 20
