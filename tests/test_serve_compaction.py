"""Histories that clients leave to the server, and compactions that they ask for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.held import HeldHistories, HeldHistory
from conspectus_serve.request_reader import RequestReader
from conspectus_serve.settings import DEFAULT_SUMMARIZATION
from serve_support import (
    METER,
    WINDOW,
    Serving,
    chat_reply,
    conspectus_header,
    post,
    provider_tokens,
    proxied_script,
    proxied_upstream,
)
from test_tokens import counts_tools

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 12
NEW: Any = {"role": "user", "content": "And now?"}
SUMMARY = "Here is a summary of the conversation to date:"


@contextmanager
def endpoint_and_client(path: Path | Archive, config: Any = None, **settings: Any) -> Iterator[Any]:
    """An upstream with a window, an endpoint, and OpenAI's client at it."""

    def script(request: Any) -> str:
        return f"Answer {request.number}. {LONG}"

    with (
        proxied_script(script, path, config, limit=WINDOW, count=provider_tokens, **settings) as (
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
    with endpoint_and_client(tmp_path / "a.db") as (upstream, _, client):
        for turn in range(turns):
            response = client.responses.create(
                model="m", input=f"Question {turn}. {LONG}", previous_response_id=parent,
                stream=stream, max_output_tokens=100,
            )  # fmt: skip
            if stream:
                [response] = [e.response for e in response if e.type == "response.completed"]
            parent = f"{response.id}"
        assert upstream.too_long == upstream.invalid == []
        last = upstream.requests[-1]
        assert "Question 0." in last.text
        assert f"Question {turns - 1}." in last.text
        assert len(last.messages) < 2 * turns - 1
    # Another process goes on from there.
    with endpoint_and_client(tmp_path / "a.db") as (upstream, endpoint, _):
        body = {"model": "m", "input": "And then?", "previous_response_id": parent}
        answer = post(endpoint, "/v1/responses", body)
        assert (conspectus_header(answer, "state"), conspectus_header(answer, "compacted")) == (
            "held",
            "true",
        )
        assert "Question 0." in upstream.requests[-1].text
        # Somebody else has no such response, and a conversation is the upstream's.
        other_answer = post(endpoint, "/v1/responses", body, authorization="Bearer other")
        assert (conspectus_header(other_answer, "state"), upstream.requests[-1].body) == (
            "upstream",
            body,
        )
        upstreams_bodies: list[Any] = [{"input": "hi", "conversation": "conv_1"}]
        upstreams_bodies += [{"input": [{"type": "item_reference", "id": "msg_1"}]}]
        for fields in upstreams_bodies:
            answer = post(endpoint, "/v1/responses", {"model": "m", **fields})
            assert conspectus_header(answer, "state") == "upstream"


def test_a_held_history_is_read_beside_the_event_loop(tmp_path, monkeypatch):
    thread_names = list[str]()
    read = RequestReader._read

    def noting_read(reader: RequestReader, request: Any, **options: Any) -> Any:
        thread_names.append(threading.current_thread().name)
        return read(reader, request, **options)

    monkeypatch.setattr(RequestReader, "_read", noting_read)
    with endpoint_and_client(tmp_path / "a.db") as (_, _, client):
        response = client.responses.create(model="m", input="Hello")
        client.responses.create(model="m", input="And?", previous_response_id=response.id)
    assert [name.startswith("conspectus-archive") for name in thread_names] == [False, True]


def test_a_long_line_of_responses_is_held_whole():
    with Archive.open("memory:") as archive:
        held = HeldHistory("t")
        for number in range(150):
            HeldHistories(archive).keep("ann", held, f"r{number}", [number])
            names = [*held.names, f"r{number}"]
            held = HeldHistories(archive).find("ann", f"r{number}")
            assert held == HeldHistory("t", names, list(range(number + 1)))
        assert HeldHistories(archive).find("bob", "r9") is None


def test_where_secrets_are_taken_out_no_history_is_held(tmp_path):
    config = SummarizationConfig.model_validate({**DEFAULT_SUMMARIZATION, "redact": True})
    with endpoint_and_client(tmp_path / "a.db", config) as (upstream, endpoint, _):
        body: dict[str, Any] = {"model": "m", "input": "My key is AKIAIOSFODNN7EXAMPLQ."}
        body["previous_response_id"] = post(endpoint, "/v1/responses", body).json()["id"]
        assert conspectus_header(post(endpoint, "/v1/responses", body), "state") == "upstream"
        assert upstream.requests[-1].body == body


def long_history() -> list[Any]:
    return [
        {"role": role, "content": f"{role} {turn}: {LONG}"}
        for turn in range(6)
        for role in ("user", "assistant")
    ] + [{"role": "user", "content": "Go on."}]


TRIGGER = {"type": "compaction_trigger"}
UNKNOWN = "conspectus.v1.cmp_\ud800"


def compaction_item(answer: Any) -> Any:
    [item] = answer.output
    assert item.type == "compaction"
    return item.model_dump(exclude_none=True)


def test_a_trigger_is_answered_with_one_item(tmp_path):
    history = long_history()
    with endpoint_and_client(tmp_path / "a.db") as (upstream, _, client):
        items_and_trigger = [*history, TRIGGER]
        *_, last = client.responses.create(model="m", input=items_and_trigger, stream=True)
        assert last.type == "response.completed"
        items = [
            compaction_item(client.responses.create(model="m", input=items_and_trigger)),
            compaction_item(last.response),
            compaction_item(client.responses.compact(model="m", input=history)),
        ]
        assert upstream.requests == []
        # Codex keeps what the user said beside the item, and gives some of it new ids.
        users_messages = [
            {**message, "id": f"msg_{n}"} for n, message in enumerate(history) if n % 2 == 0
        ]
        for item in items:
            for earlier in ([], users_messages):
                client.responses.create(model="m", input=[*earlier, item, NEW])
                sent = upstream.requests[-1].messages
                texts = [json.dumps(message["content"]) for message in sent]
                assert any(SUMMARY in text and "user 0" in text for text in texts)
                assert sent[-1]["content"].endswith(NEW["content"])
                assert len(texts) == len(set(texts))
                assert METER.count_messages(sent) < METER.count_messages(history) * (
                    0.5 if not earlier else 1
                )


def test_an_item_outlives_a_restart_but_not_its_thread(tmp_path):
    with endpoint_and_client(tmp_path / "a.db") as (upstream, endpoint, client):
        item = compaction_item(client.responses.compact(model="m", input=long_history()))
        with_item: Any = [item, NEW]
        names = (UNKNOWN, "conspectus.v1.", "conspectus.v1.resp_1")
        unknown_items = [[{**item, "encrypted_content": name}, NEW] for name in names]
        for body, key in ((with_item, "k2"), *((body, "k") for body in unknown_items)):
            raw = json.dumps({"model": "m", "input": body}).encode()
            answer = post(endpoint, "/v1/responses", raw, authorization=f"Bearer {key}")
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == "invalid_compaction_item"
        assert upstream.requests == []
    is_refused = pytest.raises(openai.BadRequestError, match="holds no such compaction item")
    with endpoint_and_client(tmp_path / "a.db") as (_, _, client):
        client.responses.create(model="m", input=with_item)
        with Archive.open(tmp_path / "a.db") as archive:
            archive.forget(Serving.tenant("k"))
        with is_refused:  # nothing of it is sent from memory either
            client.responses.create(model="m", input=with_item)
    with endpoint_and_client(tmp_path / "a.db") as (_, _, client), is_refused:
        client.responses.create(model="m", input=with_item)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_a_providers_own_item_goes_through_and_counts(tmp_path, path):
    item: Any = {"type": "compaction", "encrypted_content": "gAAAA" + "x1Yz" * 300}
    body: dict[str, Any] = {"model": "m", "input": [{**item, "id": "cmp_1"}, NEW]}
    if path == "/v1/messages":
        block = {**item, "content": "What was said so far. " * 120}
        body = {"model": "m", "messages": [{"role": "assistant", "content": [block]}, NEW]}
    with endpoint_and_client(tmp_path / "a.db") as (upstream, endpoint, _):
        answer = post(endpoint, path, body)
        assert upstream.requests[-1].body == body
        assert int(conspectus_header(answer, "tokens-before") or 0) > 500


def test_the_upstream_can_be_asked_for_compactions(tmp_path):
    redact = SummarizationConfig.model_validate({**DEFAULT_SUMMARIZATION, "redact": True})
    body: Any = {"model": "m", "input": [NEW, TRIGGER]}
    settings: list[Any] = [{"compaction": "upstream"}, {"config": redact}]
    for setting in settings:
        with proxied_upstream(lambda asked: chat_reply(), tmp_path, **setting) as (
            upstream,
            endpoint,
        ):
            for path in ("/v1/responses/compact", "/v1/responses"):
                post(endpoint, path, body)
                assert upstream.posts[-1].body == body


def test_what_a_counter_adds_to_any_list_is_left_free(tmp_path):
    config = SummarizationConfig.model_validate(
        {**DEFAULT_SUMMARIZATION, "token_counter": "test_tokens:counts_tools"}
    )

    def count(body: Any) -> int:
        return counts_tools(body["messages"])

    with proxied_script(lambda _: "Yes.", tmp_path / "a.db", config, limit=WINDOW, count=count) as (
        upstream,
        endpoint,
    ):
        for turns in range(20):
            messages = [{"role": "user", "content": f"{n}: {LONG}"} for n in range(turns)]
            body = {"model": "m", "max_tokens": 100, "messages": [*messages, NEW]}
            answer = post(endpoint, "/v1/messages", body)
            assert answer.status_code == 200, answer.text
        assert upstream.too_long == []
        assert len(upstream.requests[-1].messages) < 20
