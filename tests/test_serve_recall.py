"""What a compacted request recalls by itself, and the model by the endpoint's own tool.

The upstream is strict: calls without results, and results without calls, are refused.
"""

import http.client
import json
import threading
from typing import Any

import anthropic
import httpx
import openai
import pytest

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.tokens import TokenMeter
from conspectus_serve.recall import NAME, ROUNDS, Chosen, Recall
from fault_server import Answer, ToolCall, Usage
from serve_support import Serving, between, running, serving, talked_about

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6
PORT = "The relay of Oslo answers on port 48213, and its log is in /var/log/oslo.log."
ASKED = "Which port has the relay of Oslo?"
KEY = {"authorization": "Bearer k"}
METER = TokenMeter(model="m")


def history(asked: str = ASKED) -> list[Any]:
    return talked_about(asked, PORT, LONG)


def both(path: Any, script: Any = lambda request: "fine", **more: Any) -> Any:
    return between(script, path, **more)


def ask(endpoint: Serving, messages: list[Any], path: str = "/v1/messages", **more: Any) -> Any:
    body = {"model": "m", "messages": messages, "max_tokens": 100}
    answer = httpx.post(f"{endpoint.url}{path}", json=body, headers=more or KEY, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.headers


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_what_the_newest_message_needs_stands_before_it(tmp_path, path):
    with both(tmp_path / "a.db") as (upstream, endpoint):
        own = ask(endpoint, history(), path)
        *_, recalled, question = upstream.requests[-1].messages
        assert question == history()[-1]
        assert recalled["role"] == "user"
        assert recalled["content"].startswith("<recalled>")
        assert "port 48213" in recalled["content"]
        assert 0 < int(own["x-conspectus-recalled-tokens"]) <= 512
        assert int(own["x-conspectus-tokens-after"]) < 4_000


def test_each_request_of_a_turn_is_sent_the_same_bytes_by_any_instance(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    more = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "The relay of Bergen is down."},
    ]
    sent = []
    for messages in (history(), [*history(), *more]):
        with both(tmp_path / "a.db") as (upstream, endpoint):
            ask(endpoint, messages, "/v1/chat/completions")
            sent.append(upstream.requests[-1].messages)
    assert sent[1] == [*sent[0], *more]


@pytest.mark.parametrize(
    ("asked", "settings"),
    [("Thanks, go on.", {}), ("What boils tungsten?", {}), (ASKED, {"recall": "off"})],
)
def test_a_turn_that_needs_nothing_is_shown_nothing(tmp_path, asked, settings):
    with both(tmp_path / "a.db", **settings) as (upstream, endpoint):
        own = ask(endpoint, history(asked))
        assert own["x-conspectus-compacted"] == "true"
        assert "x-conspectus-recalled-tokens" not in own
        assert "<recalled>" not in upstream.requests[-1].text


def test_nothing_of_another_tenant_is_recalled(tmp_path):
    named = {"x-conspectus-thread": "one"}
    with both(tmp_path / "a.db") as (upstream, endpoint):
        ask(endpoint, history(), **KEY, **named)
        assert "48213" in upstream.requests[-1].text
        other = [one for one in history() if "48213" not in str(one["content"])]
        ask(endpoint, other, authorization="Bearer other", **named)
        assert "Here is a summary" in upstream.requests[-1].text
        assert "48213" not in upstream.requests[-1].text


def test_what_is_recalled_gives_way_within_its_turn_and_to_another_record():
    with Archive.open("memory:") as archive:
        given, scope, chosen = history(), Scope("ann", "t"), Chosen(8)
        compactor = Compactor(archive=archive, window=4_000)
        compactor.compact(given, tenant="ann", thread_id="t")

        def seen(tokens: int) -> tuple[list[Any], int]:
            head = archive.chain(scope)[-1].id
            recall = Recall(archive, scope, head, TokenMeter(), 512, tokens, chosen)
            return recall.shown("", given, given[-3:])

        view, size = seen(512)
        assert "48213" in view[-2]["content"]
        assert 64 < size <= 512
        assert seen(size)[0] == view
        assert seen(size - 1)[0] == given[-3:]
        # Another record is in force, which does not answer for what was chosen.
        compactor.compact(given[4:], tenant="ann", thread_id="t")
        assert seen(512)[0] == given[-3:]


# The model's own tool

LOOK = ToolCall(NAME, {"query": "port of the relay of Oslo"})
THEIRS = ToolCall("read_file", {"path": "a.py"})
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}
Made = tuple[str, list[str], int]


def chat(endpoint: Serving, stream: bool) -> Made:
    """Text, calls and input tokens that the real client of OpenAI gets."""
    tools: Any = [{"type": "function", "function": {"name": "read_file", "parameters": TOOL}}]
    asked: Any = {"model": "m", "messages": history("Go on."), "tools": tools}
    with openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as client:
        if stream:
            asked["stream_options"] = {"include_usage": True}
            with client.chat.completions.stream(**asked) as events:
                made: Any = events.get_final_completion()
        else:
            made = client.chat.completions.create(**asked)
    message = made.choices[0].message
    calls = [one.function.name for one in message.tool_calls or ()]
    return message.content or "", calls, made.usage.prompt_tokens


def messages(endpoint: Serving, stream: bool) -> Made:
    """The same of Anthropic's client."""
    tools: Any = [{"name": "read_file", "input_schema": TOOL}]
    asked: Any = {"model": "m", "messages": history("Go on."), "max_tokens": 99, "tools": tools}
    with anthropic.Anthropic(base_url=endpoint.url, api_key="k", max_retries=0) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                made: Any = events.get_final_message()
        else:
            made = client.messages.create(**asked)
    text = "".join(one.text for one in made.content if one.type == "text")
    calls = [one.name for one in made.content if one.type == "tool_use"]
    return text, calls, made.usage.input_tokens


def responses(endpoint: Serving, stream: bool) -> Made:
    """The same of Responses; the response can be named afterwards."""
    tools: Any = [{"type": "function", "name": "read_file", "parameters": TOOL, "strict": False}]
    asked: Any = {"model": "m", "input": history("Go on."), "tools": tools}
    with openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as client:
        if stream:
            with client.responses.stream(**asked) as events:
                made: Any = events.get_final_response()
        else:
            made = client.responses.create(**asked)
    calls = [one.name for one in made.output if one.type == "function_call"]
    return made.output_text, calls, made.usage.input_tokens


CLIENTS = pytest.mark.parametrize(
    ("client", "stream"), [(one, s) for one in (chat, messages, responses) for s in (False, True)]
)


def looking(path: Any, script: Any, **more: Any) -> Any:
    return between(script, path, recall_tool=True, **more)


def offered(request: Any) -> bool:
    """Whether the model may call our tool."""
    choice = str(request.body.get("tool_choice"))
    return NAME in json.dumps(request.body["tools"]) and "none" not in choice


@CLIENTS
def test_the_model_looks_up_what_it_needs_and_the_client_gets_the_last_answer(
    tmp_path, client, stream
):
    script = [
        Answer("Let me look.", (LOOK,), usage=Usage(100, 10)),
        Answer("It is 48213.", usage=Usage(200, 5)),
    ]
    with looking(tmp_path / "a.db", script) as (upstream, endpoint):
        assert client(endpoint, stream) == ("It is 48213.", [], 200)
        first, second = upstream.requests
        assert second.messages[: len(first.messages)] == first.messages
        assert ("port 48213" in first.text, "port 48213" in second.text) == (False, True)
        assert first.body["tools"] == second.body["tools"]
        assert METER.messages(second.messages) < 4_000


@CLIENTS
def test_beside_calls_of_the_clients_tools_ours_is_left_out(tmp_path, client, stream):
    def script(request: Any) -> Answer:
        return Answer("So.", (LOOK, THEIRS) if offered(request) else (THEIRS,))

    with looking(tmp_path / "a.db", script) as (upstream, endpoint):
        assert client(endpoint, stream)[:2] == ("So.", ["read_file"])
        first, second = upstream.requests
        assert first.messages == second.messages


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_the_lookups(tmp_path, stream):
    asked, ended = threading.Event(), threading.Event()
    function = {"name": NAME, "arguments": json.dumps(LOOK.args)}
    said = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": said, "delta": said}
    body = json.dumps({"choices": [choice]}).encode()

    async def upstream(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), message.get("more_body", False)
        if b'"c1"' in raw:  # the request with the result of the call
            asked.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            ended.set()
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        whole = b"data: " + body + b"\n\ndata: [DONE]\n\n" if stream else body
        await send({"type": "http.response.body", "body": whole})

    wanted = {"model": "m", "messages": history(), "stream": stream}
    with running(upstream) as url, serving(url, tmp_path / "a.db", recall_tool=True) as endpoint:
        client = http.client.HTTPConnection(endpoint.url.removeprefix("http://"))
        client.request("POST", "/v1/chat/completions", json.dumps(wanted), KEY)
        assert asked.wait(10)
        client.close()
        assert ended.wait(10)


@pytest.mark.parametrize("client", [chat, messages, responses])
def test_a_model_that_only_looks_up_comes_to_an_end(tmp_path, client):
    def script(request: Any) -> Answer:
        return Answer("", (LOOK,)) if offered(request) else Answer("So.")

    with looking(tmp_path / "a.db", script) as (upstream, endpoint):
        assert client(endpoint, False)[:2] == ("So.", [])
        assert len(upstream.requests) == ROUNDS
        assert METER.messages(upstream.requests[-1].messages) < 4_000


def test_lookups_end_where_the_window_does(tmp_path):
    """Six results of a thousand tokens have no place in a window of four thousand."""

    def script(request: Any) -> Answer:
        query = {"query": f"Answer {request.number} tests say"}
        return Answer("", (ToolCall(NAME, query),)) if offered(request) else Answer("So.")

    with looking(tmp_path / "a.db", script, recall_tokens=2_000) as (upstream, endpoint):
        chat(endpoint, False)
        last = upstream.requests[-1]
        assert METER.messages(last.messages) + METER.tools(last.body["tools"]) < 4_000
        assert "There is no room to show any more" in last.text


def test_what_is_wrong_with_a_call_is_told_to_the_model(tmp_path):
    wrong = (ToolCall(NAME, {"id": "m99999"}), ToolCall(NAME, {}), ToolCall(NAME, {"query": 3}))
    with looking(tmp_path / "a.db", [Answer("", wrong), "I do not know."]) as (upstream, endpoint):
        assert chat(endpoint, False)[0] == "I do not know."
        text = upstream.requests[1].text
    for said in ("no archived message", "Give query, or id", "query must be a string"):
        assert said in text


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ({"tool_choice": {"type": "function", "function": {"name": "read_file"}}}, {}),
        ({"n": 2}, {}),
        ({"tools": [{"type": "function", "function": {"name": NAME, "parameters": TOOL}}]}, {}),
        ({}, {"window": 400_000}),
        ({}, {"recall_tool": False}),
    ],
)
def test_a_request_that_could_not_be_answered_as_asked_gets_no_tool(tmp_path, more, settings):
    settings = {"recall_tool": True, **settings}
    with between(["fine"], tmp_path / "a.db", **settings) as (upstream, endpoint):
        body = {"model": "m", "messages": history(), **more}
        httpx.post(f"{endpoint.openai_url}/chat/completions", json=body)
        assert upstream.requests[0].body.get("tools") == more.get("tools")
