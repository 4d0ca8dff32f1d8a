"""OpenAI's Responses: items, histories that clients leave to the server, compaction on request."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from conspectus.config import SummarizationConfig
from conspectus.tokens import TokenMeter
from conspectus_serve.settings import PLAINLY
from responses_upstream import Upstream, message, responding
from serve_support import WINDOW, Serving, serving

METER = TokenMeter(model="m")
LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 12


def say(body: dict[str, Any], number: int) -> list[Any]:
    return [message(f"Answer {number}. {LONG}", number)]


@contextmanager
def both(path: Path, **more: Any) -> Iterator[tuple[Upstream, Serving, openai.OpenAI]]:
    with (
        responding(say, WINDOW) as (upstream, url),
        serving(url, path, **more) as endpoint,
        openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as client,
    ):
        yield upstream, endpoint, client


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_history_left_to_the_server_is_held_and_compacted_here(tmp_path, stream):
    parent: Any = openai.omit
    turns = 24
    with both(tmp_path / "a.db") as (upstream, _, client):
        for turn in range(turns):
            made = client.responses.create(
                model="m", input=f"Question {turn}. {LONG}", previous_response_id=parent,
                stream=stream, max_output_tokens=100,
            )  # fmt: skip
            if stream:
                [made] = [e.response for e in made if e.type == "response.completed"]
            parent = made.id
        assert upstream.over == []
        assert not any("previous_response_id" in body for body in upstream.bodies)
        sent = json.dumps(upstream.bodies[-1]["input"])
        assert "Question 0." in sent
        assert f"Question {turns - 1}." in sent
        assert len(upstream.bodies[-1]["input"]) < 2 * turns - 1
    # Another process goes on from there.
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        body = {"model": "m", "input": "And then?", "previous_response_id": parent}
        named = {"authorization": "Bearer k"}
        answer = httpx.post(f"{endpoint.openai_url}/responses", json=body, headers=named)
        assert answer.headers["x-conspectus-state"] == "held"
        assert answer.headers["x-conspectus-compacted"] == "true"
        assert "Question 0." in json.dumps(upstream.bodies[-1]["input"])
        # Somebody else has no such response.
        other = {"authorization": "Bearer other"}
        answer = httpx.post(f"{endpoint.openai_url}/responses", json=body, headers=other)
        assert answer.headers["x-conspectus-state"] == "upstream"
        assert upstream.bodies[-1] == body


def test_a_conversation_is_the_upstreams_and_said_to_be(tmp_path):
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        body = {"model": "m", "input": "hi", "conversation": "conv_1"}
        answer = httpx.post(f"{endpoint.openai_url}/responses", json=body)
        assert answer.headers["x-conspectus-state"] == "upstream"
        assert upstream.bodies == [body]


def test_items_of_tools_stay_together(tmp_path):
    history: list[Any] = []
    for turn in range(14):
        call = {"type": "function_call", "call_id": f"c{turn}", "name": "f", "arguments": "{}"}
        history += [
            {"role": "user", "content": f"Question {turn}. {LONG}"},
            {"type": "reasoning", "id": f"rs_{turn}", "summary": []},
            call,
            {"type": "function_call_output", "call_id": f"c{turn}", "output": LONG},
            message(LONG, turn),
        ]
    history.append({"role": "user", "content": "Go on."})
    with both(tmp_path / "a.db") as (upstream, _, client):
        client.responses.create(model="m", input=history, instructions="Be brief.")
        sent = upstream.bodies[0]["input"]
        calls = {one["call_id"] for one in sent if one.get("type") == "function_call"}
        outputs = {one["call_id"] for one in sent if one.get("type") == "function_call_output"}
        assert calls == outputs
        assert upstream.over == []
        assert len(sent) < len(history)


def long_history() -> list[Any]:
    return [
        {"role": role, "content": f"{role} {turn}: {LONG}"}
        for turn in range(6)
        for role in ("user", "assistant")
    ] + [{"role": "user", "content": "Go on."}]


def compaction_of(answer: Any) -> Any:
    [item] = answer.output
    assert item.type == "compaction"
    return item


def test_a_trigger_is_answered_with_one_item_that_comes_back_as_notes(tmp_path):
    history = long_history()
    with both(tmp_path / "a.db") as (upstream, _, client):
        asked = [*history, {"type": "compaction_trigger"}]
        whole = compaction_of(client.responses.create(model="m", input=asked))
        stream = client.responses.create(model="m", input=asked, stream=True)
        seen = list(stream)
        assert [one.type for one in seen][-1] == "response.completed"
        streamed = compaction_of(seen[-1].response)
        compact = compaction_of(client.responses.compact(model="m", input=history))
        assert upstream.bodies == []
        for item in (whole, streamed, compact):
            assert "user 0" in item.encrypted_content  # anybody can read it
            new = {"role": "user", "content": "What was asked first?"}
            client.responses.create(model="m", input=[item.model_dump(exclude_none=True), new])
            sent = upstream.bodies[-1]["input"]
            assert sent[0]["content"].startswith("Here is a summary of the conversation to date:")
            assert "user 0" in sent[0]["content"]
            assert sent[-1] == new
            assert METER.messages(sent) < METER.messages(history) / 2
            assert not any(one.get("type") == "compaction" for one in sent)


def test_codex_keeps_what_the_user_said_beside_the_item(tmp_path):
    history = long_history()
    with both(tmp_path / "a.db") as (upstream, _, client):
        asked = [*history, {"type": "compaction_trigger"}]
        item = compaction_of(client.responses.create(model="m", input=asked))
        kept = [one for one in history if one["role"] == "user"]
        new = {"role": "user", "content": "Next."}
        client.responses.create(
            model="m", input=[*kept, item.model_dump(exclude_none=True), new]
        )  # fmt: skip
        sent = upstream.bodies[-1]["input"]
        texts = [json.dumps(one) for one in sent]
        assert len(texts) == len(set(texts))
        assert sum("Go on." in text for text in texts) == 1
        assert sent[-1] == new


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("user 0", "user 9"),
        lambda text: text[:40] + ("0" if text[40] != "0" else "1") + text[41:],
        lambda text: "conspectus.v1.",
        lambda text: "conspectus.v1.abc.{}",
        lambda text: "conspectus.v1.\ud800.{}",
        lambda text: text + "\ud800",
    ],
)
def test_an_item_that_does_not_verify_is_refused(tmp_path, spoil):
    with both(tmp_path / "a.db") as (upstream, _, client):
        made = compaction_of(client.responses.compact(model="m", input=long_history()))
        item = {"type": "compaction", "encrypted_content": spoil(made.encrypted_content)}
        body = {"model": "m", "input": [item, {"role": "user", "content": "hi"}]}
        answer = httpx.post(  # with its letters escaped: half of one is no UTF-8
            f"{client.base_url}responses",
            content=json.dumps(body),
            headers={"authorization": "Bearer k"},
        )
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "invalid_compaction_item"
        assert upstream.bodies == []


@pytest.mark.slow
def test_an_item_is_its_tenants_and_outlives_a_change_of_keys(tmp_path):
    first, second, third = (f"signing key number {n}" for n in (1, 2, 3))
    new = {"role": "user", "content": "hi"}
    with both(tmp_path / "a.db", signing_keys=[first]) as (_, _, client):
        made = compaction_of(client.responses.compact(model="m", input=long_history()))
        item = made.model_dump(exclude_none=True)
        with pytest.raises(openai.BadRequestError):
            client.with_options(api_key="k2").responses.create(model="m", input=[item, new])
    with both(tmp_path / "a.db", signing_keys=[second, first]) as (_, _, client):
        client.responses.create(model="m", input=[item, new])
    with (
        both(tmp_path / "a.db", signing_keys=[third, second]) as (_, _, client),
        pytest.raises(openai.BadRequestError),
    ):
        client.responses.create(model="m", input=[item, new])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", ["/responses", "/responses/compact"])
@pytest.mark.parametrize("model", [{}, {"model": ""}, {"model": 7}])
def test_a_compaction_without_a_model_is_refused(tmp_path, path, model):
    history = [{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}]
    body = {**model, "input": history if path == "/responses" else history[:1]}
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        answer = httpx.post(endpoint.openai_url + path, json=body)
        assert answer.status_code == 400
        assert "model is missing" in answer.json()["error"]["message"]
        assert upstream.bodies == []


def test_the_answer_to_a_trigger_repeats_the_settings(tmp_path):
    body = {
        "model": "m", "input": [*long_history(), {"type": "compaction_trigger"}],
        "instructions": "Be brief.", "temperature": 0.5, "tools": [{"type": "function"}],
    }  # fmt: skip
    with both(tmp_path / "a.db") as (_, endpoint, _):
        made = httpx.post(f"{endpoint.openai_url}/responses", json=body).json()
        assert (made["instructions"], made["temperature"], made["tools"]) == ("Be brief.", 0.5, [])


def test_a_providers_own_item_goes_through_and_counts(tmp_path):
    item: Any = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" + "x1Yz" * 300}
    with both(tmp_path / "a.db") as (upstream, endpoint, _):
        body = {"model": "m", "input": [item, {"role": "user", "content": "hi"}]}
        answer = httpx.post(f"{endpoint.openai_url}/responses", json=body)
        assert upstream.bodies == [body]
        assert int(answer.headers["x-conspectus-tokens-before"]) > 500


@pytest.mark.parametrize("place", [0, 5])
def test_a_trigger_elsewhere_is_refused(tmp_path, place):
    history = long_history()
    history.insert(place, {"type": "compaction_trigger"})
    with (
        both(tmp_path / "a.db") as (_, _, client),
        pytest.raises(openai.BadRequestError, match="last item"),
    ):
        client.responses.create(model="m", input=history)


def test_where_secrets_are_taken_out_no_history_is_held(tmp_path):
    secret = "AKIAIOSFODNN7EXAMPLQ"
    config = SummarizationConfig.model_validate({**PLAINLY, "redact": True})
    with (
        responding(say, WINDOW) as (upstream, url),
        serving(url, tmp_path / "a.db", config) as endpoint,
    ):
        body: dict[str, Any] = {"model": "m", "input": f"My key is {secret}."}
        first = httpx.post(f"{endpoint.openai_url}/responses", json=body)
        body["previous_response_id"] = first.json()["id"]
        second = httpx.post(f"{endpoint.openai_url}/responses", json=body)
        assert second.headers["x-conspectus-state"] == "upstream"
        assert upstream.bodies[-1] == body
