"""The endpoint's own tool: the model looks things up while it answers, and the client sees it not.

The upstream is strict: calls without results, and results without calls, are refused.
"""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest

from conspectus.tokens import TokenMeter
from conspectus_serve.recall import NAME, ROUNDS
from fault_server import Answer, FaultServer, ToolCall, Usage, faults
from responses_upstream import message, responding
from serve_support import Serving, between, serving, talked_about

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6
PORT = "The relay of Oslo answers on port 48213."
LOOK = ToolCall(NAME, {"query": "port of the relay of Oslo"})
THEIRS = ToolCall("read_file", {"path": "a.py"})
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}
METER = TokenMeter(model="m")


def history(asked: str = "Go on.") -> list[Any]:
    return talked_about(asked, PORT, LONG)


def both(path: Any, script: Any, **more: Any) -> Any:
    return between(script, path, recall_tool=True, **more)


def chat(endpoint: Serving, stream: bool, **more: Any) -> dict[str, Any]:
    """Text, calls, end and usage that the real client of OpenAI gets."""
    tools: Any = [{"type": "function", "function": {"name": "read_file", "parameters": TOOL}}]
    asked: Any = {"model": "m", "messages": history(), "tools": tools, **more}
    with openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as client:
        if not stream:
            made = client.chat.completions.create(**asked)
            choice, usage = made.choices[0], made.usage.model_dump()
        else:
            usage_too = {"include_usage": True}
            with client.chat.completions.stream(**asked, stream_options=usage_too) as events:
                seen = list(events)
            assert NAME not in str(seen)
            final = events.get_final_completion()
            assert final.usage is not None
            choice, usage = final.choices[0], final.usage.model_dump()  # type: ignore[assignment]
    calls = [one.function.name for one in choice.message.tool_calls or ()]  # type: ignore[union-attr]
    return {
        "text": choice.message.content or "",
        "calls": calls,
        "end": choice.finish_reason,
        "in": usage["prompt_tokens"],
        "out": usage["completion_tokens"],
    }


def messages(endpoint: Serving, stream: bool, **more: Any) -> dict[str, Any]:
    """The same of Anthropic's client."""
    asked: Any = {
        "model": "m", "messages": history(), "max_tokens": 99,
        "tools": [{"name": "read_file", "input_schema": TOOL}], **more,
    }  # fmt: skip
    with anthropic.Anthropic(base_url=endpoint.url, api_key="k", max_retries=0) as client:
        if not stream:
            made = client.beta.messages.create(**asked)
        else:
            with client.beta.messages.stream(**asked) as events:
                seen = list(events)
                assert NAME not in str(seen)
                made = events.get_final_message()
    return {
        "text": "\n\n".join(one.text for one in made.content if one.type == "text"),
        "calls": [one.name for one in made.content if one.type == "tool_use"],
        "end": {"end_turn": "stop", "tool_use": "tool_calls"}.get(str(made.stop_reason)),
        "in": made.usage.input_tokens,
        "out": made.usage.output_tokens,
    }


CLIENTS = pytest.mark.parametrize(
    ("client", "stream"),
    [(chat, False), (chat, True), (messages, False), (messages, True)],
    ids=["chat", "chat-stream", "messages", "messages-stream"],
)
Client = Callable[..., dict[str, Any]]


@pytest.mark.sampled(2)
@CLIENTS
def test_the_model_looks_up_what_it_needs_and_the_client_sees_one_answer(tmp_path, client, stream):
    script = [
        Answer("Let me look.", (LOOK,), usage=Usage(100, 10)),
        Answer("It is 48213.", usage=Usage(200, 5)),
    ]
    with both(tmp_path / "a.db", script) as (upstream, endpoint):
        made = client(endpoint, stream)
        assert made == {
            "text": "It is 48213.", "calls": [], "end": "stop", "in": 200, "out": 5
        }  # fmt: skip
        first, second = upstream.requests
        assert NAME in json.dumps(first.body["tools"])
        assert second.messages[: len(first.messages)] == first.messages
        assert "port 48213" in second.text
        assert "port 48213" not in first.text
        assert first.body["tools"] == second.body["tools"]
        assert METER.messages(second.messages) < 4_000


def offered(request: Any) -> bool:
    """Whether the model may call our tool."""
    choice = str(request.body.get("tool_choice"))
    return NAME in json.dumps(request.body["tools"]) and "none" not in choice


@pytest.mark.sampled(2)
@CLIENTS
def test_beside_calls_of_the_clients_tools_ours_is_left_out(tmp_path, client, stream):
    def script(request: Any) -> Answer:
        return Answer("So.", (LOOK, THEIRS) if offered(request) else (THEIRS,))

    with both(tmp_path / "a.db", script) as (upstream, endpoint):
        made = client(endpoint, stream)
        assert (made["calls"], made["end"], made["text"]) == (["read_file"], "tool_calls", "So.")
        first, second = upstream.requests
        assert first.messages == second.messages


@pytest.mark.sampled(1)
@CLIENTS
def test_after_a_lookup_the_clients_tools_are_called_as_ever(tmp_path, client, stream):
    with both(tmp_path / "a.db", [Answer("", (LOOK,)), Answer("", (THEIRS,))]) as (_, endpoint):
        made = client(endpoint, stream)
        assert (made["calls"], made["end"]) == (["read_file"], "tool_calls")


@pytest.mark.sampled(1)
@CLIENTS
def test_a_model_that_only_looks_up_comes_to_an_end(tmp_path, client, stream):
    def script(request: Any) -> Answer:
        return Answer("", (LOOK,)) if offered(request) else Answer("So.")

    with both(tmp_path / "a.db", script) as (upstream, endpoint):
        made = client(endpoint, stream)
        assert (made["text"], made["calls"], made["end"]) == ("So.", [], "stop")
        assert len(upstream.requests) == ROUNDS
        assert METER.messages(upstream.requests[-1].messages) < 4_000


def test_lookups_end_where_the_window_does(tmp_path):
    """Six results of a thousand tokens have no place in a window of four thousand."""

    def script(request: Any) -> Answer:
        query = {"query": f"Answer {request.number} tests say"}
        return Answer("", (ToolCall(NAME, query),)) if offered(request) else Answer("So.")

    with both(tmp_path / "a.db", script, recall_tokens=2_000) as (upstream, endpoint):
        chat(endpoint, False)
        last = upstream.requests[-1]
        assert METER.messages(last.messages) + METER.tools(last.body["tools"]) < 4_000
        assert "There is no room to show any more" in last.text


@pytest.mark.sampled(2)
@CLIENTS
def test_what_is_wrong_with_a_call_is_told_to_the_model(tmp_path, client, stream):
    wrong = (ToolCall(NAME, {"id": "m99999"}), ToolCall(NAME, {}), ToolCall(NAME, {"query": 3}))
    with both(tmp_path / "a.db", [Answer("", wrong), "I do not know."]) as (upstream, endpoint):
        assert client(endpoint, stream)["text"] == "I do not know."
        said = upstream.requests[1].text
        assert "no archived message" in said
        assert "Give query, or id" in said
        assert "query must be a string" in said


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_refusal_on_the_way_reaches_the_client(tmp_path, path):
    script = [Answer("", (LOOK,)), faults.rate_limited(retry_after=7)] * 2
    body: dict[str, Any] = {"model": "m", "messages": history(), "max_tokens": 99}
    with both(tmp_path / "a.db", script) as (_, endpoint):
        answer = httpx.post(f"{endpoint.url}{path}", json=body)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "7"
        answer = httpx.post(f"{endpoint.url}{path}", json={**body, "stream": True})
        assert answer.status_code == 429


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "none"},
        {"tool_choice": {"type": "function", "function": {"name": "read_file"}}},
        {"n": 2},
        {"tools": [{"type": "function", "function": {"name": NAME, "parameters": TOOL}}]},
    ],
)
def test_a_request_that_could_not_be_answered_as_asked_gets_no_tool(tmp_path, more):
    with both(tmp_path / "a.db", ["fine"]) as (upstream, endpoint):
        body = {"model": "m", "messages": history(), **more}
        answer = httpx.post(f"{endpoint.openai_url}/chat/completions", json=body)
        assert answer.headers["x-conspectus-compacted"] == "true"
        assert upstream.requests[0].body.get("tools") == more.get("tools")


def test_nothing_is_added_where_nothing_has_left_or_nobody_asked_for_it(tmp_path):
    body = {"model": "m", "messages": history()}
    for name, more in (("a", {"window": 400_000}), ("b", {"recall_tool": False})):
        with (
            FaultServer(["fine"]) as upstream,
            serving(
                upstream.anthropic_url, tmp_path / name, **{"recall_tool": True, **more}
            ) as one,
        ):
            httpx.post(f"{one.openai_url}/chat/completions", json=body)
            assert "tools" not in upstream.requests[0].body


@pytest.mark.parametrize("stream", [False, True])
def test_responses_look_up_too_and_can_be_named_afterwards(tmp_path, stream):
    def say(body: dict[str, Any], number: int) -> list[Any]:
        thought = {"id": f"rs_{number}", "type": "reasoning", "summary": []}
        if number == 1:
            call = {
                "id": "fc_1", "type": "function_call", "call_id": "c1", "name": NAME,
                "arguments": json.dumps(LOOK.args), "status": "completed",
            }  # fmt: skip
            return [thought, call]
        return [thought, message("It is 48213.", number)]

    with (
        responding(say, 4_000) as (upstream, url),
        serving(url, tmp_path / "a.db", recall_tool=True) as endpoint,
        openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as client,
    ):
        made: Any = client.responses.create(model="m", input=history(), stream=stream)
        if stream:
            seen = list(made)
            assert NAME not in str(seen)
            assert [one.sequence_number for one in seen] == list(range(len(seen)))
            made = seen[-1].response
        assert made.output_text == "It is 48213."
        assert [one.id for one in made.output] == ["rs_2", "msg_2"]
        assert made.id == "resp_2"
        first, second = upstream.bodies
        assert made.usage.output_tokens == 1
        assert made.usage.input_tokens > METER.messages(first["input"])
        assert [one["type"] for one in second["input"][-3:]] == [
            "reasoning", "function_call", "function_call_output"
        ]  # fmt: skip
        assert "port 48213" in second["input"][-1]["output"]
        client.responses.create(model="m", input="And now?", previous_response_id=made.id)
        assert "It is 48213." in json.dumps(upstream.bodies[-1]["input"])
        assert upstream.over == []
