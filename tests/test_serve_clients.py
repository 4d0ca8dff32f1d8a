"""Real clients at the real endpoint: sessions of ten windows, and an upstream that counts."""

import asyncio
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

from conspectus.archive import Archive, Scope
from conspectus.config import SummarizationConfig
from conspectus.tokens import TokenMeter
from conspectus_serve.settings import PLAINLY
from fault_server import Answer, FaultServer, ToolCall, faults
from serve_support import SECRET, WINDOW, Serving, running, serving

METER = TokenMeter(model="m")
LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 12
FILLER = "The function reads its input, checks it, and gives back what it has found there. " * 4


def sent_tokens(body: dict[str, Any]) -> int:
    """What the provider would count: with the same estimate, so that a window means the same."""
    tools = METER.tools(body["tools"]) if body.get("tools") else 0
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return METER.messages([*system, *body["messages"]]) + tools


def answering(request: Any) -> Answer:
    """A call of a tool after each question, and a text after each result."""
    last = request.messages[-1]
    content = last["content"]
    answered = last["role"] == "tool" or (
        isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)
    )
    if answered:
        return Answer(f"Answer {request.number}. {LONG}")
    return Answer("", (ToolCall("read_file", {"path": f"module_{request.number}.py"}),))


@contextmanager
def both(path: Path, **more: Any) -> Iterator[tuple[FaultServer, Serving]]:
    with (
        FaultServer(answering, window=WINDOW, count=sent_tokens) as upstream,
        serving(upstream.anthropic_url, path, **more) as endpoint,
    ):
        yield upstream, endpoint


TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}


def openai_session(endpoint: Serving, turns: int, key: str = "key-a", **more: Any) -> list[Any]:
    """An agent loop over the real client; it sends its whole history each time."""
    client = openai.OpenAI(base_url=endpoint.openai_url, api_key=key, max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": "read_file", "parameters": TOOL}}]
    history: list[Any] = [{"role": "system", "content": "You are a careful agent."}]
    for turn in range(turns):
        history.append({"role": "user", "content": f"Question {turn} of {key}. {LONG}"})
        while True:
            made = client.chat.completions.create(
                model="m", messages=history, tools=tools, max_tokens=200, **more
            )
            message = made.choices[0].message
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                text = f"Contents of {call.function.arguments}: {LONG}"
                history.append({"role": "tool", "tool_call_id": call.id, "content": text})
    client.close()
    return history


def anthropic_session(endpoint: Serving, turns: int, key: str = "key-a") -> list[Any]:
    """The same over Anthropic's client, streamed, with marks for its cache that move."""
    client = anthropic.Anthropic(base_url=endpoint.url, api_key=key, max_retries=0)
    tools: Any = [{"name": "read_file", "input_schema": TOOL}]
    history: list[Any] = []
    for turn in range(turns):
        history.append({"role": "user", "content": f"Question {turn} of {key}. {LONG}"})
        while True:
            last = history[-1]
            content = last["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            marked = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
            shown = [*history[:-1], {**last, "content": marked}]
            with client.messages.stream(
                model="m", system="You are a careful agent.", messages=shown, tools=tools,
                max_tokens=200,
            ) as stream:  # fmt: skip
                made = stream.get_final_message()
            said = [block.model_dump(exclude_none=True) for block in made.content]
            history.append({"role": "assistant", "content": said})
            uses = [block for block in said if block["type"] == "tool_use"]
            if not uses:
                break
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": use["id"],
                    "content": f"Contents of {use['input']}: {LONG}",
                }
                for use in uses
            ]
            history.append({"role": "user", "content": results})
    client.close()
    return history


def talked(turns: int) -> list[Any]:
    """Questions and answers, and a last question."""
    said = [
        {"role": role, "content": f"{role} {turn}: {FILLER}"}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return [*said, {"role": "user", "content": "Go on."}]


def in_view_or_archived(path: Path, key: str, texts: list[str], last: str) -> None:
    """Each text is in the last request, or comes back out of the tenant's only thread."""
    with Archive.open(path) as archive:
        threads = archive.threads(SECRET.tenant(key))
        assert len(threads) == 1
        rows = json.dumps(archive.export(Scope(SECRET.tenant(key), threads[0])))
    for text in texts:
        assert text in rows or text in last


@pytest.mark.slow
@pytest.mark.parametrize("session", [openai_session, anthropic_session])
def test_ten_windows_go_through_one(session, tmp_path):
    turns = 45
    with both(tmp_path / "a.db") as (upstream, endpoint):
        history = session(endpoint, turns)
        assert METER.messages(history) > 10 * WINDOW
        assert upstream.refused == []
        assert upstream.torn == []
        last = upstream.requests[-1].text
    asked = [f"Question {turn} of key-a." for turn in range(turns)]
    in_view_or_archived(tmp_path / "a.db", "key-a", asked, last)


def test_what_was_left_out_is_said_in_headers(tmp_path):
    history = talked(30)
    with both(tmp_path / "a.db") as (upstream, endpoint):
        first = post(endpoint, history[:1])
        whole = post(endpoint, history)
        again = post(endpoint, [*history, {"role": "assistant", "content": "x"}, history[-1]])
    assert first.headers["x-conspectus-compacted"] == "false"
    assert first.headers["x-conspectus-messages-archived"] == "0"
    assert whole.headers["x-conspectus-compacted"] == "true"
    left_out = int(whole.headers["x-conspectus-messages-archived"])
    sent = upstream.requests[1].body["messages"]
    assert len(sent) == len(history) - left_out + 1
    before, after = (
        int(whole.headers[f"x-conspectus-tokens-{one}"]) for one in ("before", "after")
    )
    assert before == METER.messages(history)
    assert after == METER.messages(sent)
    for name in ("thread", "record", "messages-archived"):
        assert again.headers[f"x-conspectus-{name}"] == whole.headers[f"x-conspectus-{name}"]
    assert again.json()["usage"]["prompt_tokens"] == upstream.requests[2].tokens


def post(endpoint: Serving, history: list[Any], key: str = "key-a", **headers: str) -> Any:
    body = {"model": "m", "messages": history}
    named = {"authorization": f"Bearer {key}", **headers}
    return httpx.post(f"{endpoint.openai_url}/chat/completions", json=body, headers=named)


def test_a_request_that_fits_goes_on_byte_for_byte_and_so_does_its_stream(tmp_path):
    raw = b'{"messages" : [{"role":"user","content":"h\\u00e9"}],\n "model":"m", "stream":true}'
    with both(tmp_path / "a.db") as (upstream, endpoint):
        upstream.restart(lambda request: faults.slow(0.2, FILLER))
        answers = [
            httpx.post(f"{url}/chat/completions", content=raw)
            for url in (upstream.openai_url, endpoint.openai_url)
        ]
        direct, through = (one.content.replace(b"cmpl-2", b"cmpl-1") for one in answers)
        assert direct == through
        assert upstream.requests[0].body == upstream.requests[1].body
        length = {one.headers["content-length"] for one in upstream.requests}
        assert length == {str(len(raw))}


def test_a_stream_comes_piece_by_piece(tmp_path):
    seen = threading.Event()

    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        await receive()
        head = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await asyncio.to_thread(seen.wait, 20)
        await send({"type": "http.response.body", "body": b"data: 2\n\n"})

    with (
        running(waiting) as url,
        serving(url, tmp_path / "a.db") as endpoint,
        httpx.stream(
            "POST",
            f"{endpoint.openai_url}/chat/completions",
            json={"model": "m", "messages": [USER], "stream": True},
            timeout=10,
        ) as answer,
    ):
        pieces = answer.iter_raw()
        assert next(pieces) == b"data: 1\n\n"
        seen.set()
        assert b"".join(pieces) == b"data: 2\n\n"


def test_a_restart_goes_on_with_the_thread(tmp_path):
    history = talked(30)
    more = [*history, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "?"}]
    with both(tmp_path / "a.db") as (_, endpoint):
        first = post(endpoint, history)
    with both(tmp_path / "a.db") as (_, endpoint):
        second = post(endpoint, more)
    for name in ("thread", "record"):
        assert first.headers[f"x-conspectus-{name}"] == second.headers[f"x-conspectus-{name}"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("window", [WINDOW, None])
@pytest.mark.parametrize("keep", [("messages", 20), ("fraction", 0.5)])
def test_a_refused_request_is_sent_once_more_and_smaller(tmp_path, window, keep):
    plainly = {**PLAINLY, "keep": {"type": keep[0], "value": keep[1]}}
    config = SummarizationConfig.model_validate(plainly)
    history = talked(10)
    with (
        FaultServer(["fine", "fine"], window=1_200, count=sent_tokens) as upstream,
        serving(upstream.anthropic_url, tmp_path / "a.db", config, window=window) as endpoint,
    ):
        answer = post(endpoint, history)
        assert answer.status_code == 200
        assert answer.headers["x-conspectus-compacted"] == "true"
        assert len(upstream.requests) == 2
        more = [*history, {"role": "assistant", "content": "fine"}, history[-1]]
        assert post(endpoint, more).status_code == 200
        assert len(upstream.refused) == 1  # the limit is known now


def test_what_cannot_be_smaller_is_told_as_the_provider_would(tmp_path):
    with both(tmp_path / "a.db") as (upstream, endpoint):
        client = openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0)
        with pytest.raises(openai.BadRequestError, match="tokens") as caught:
            client.chat.completions.create(
                model="m", messages=[{"role": "system", "content": FILLER * 200}, USER]
            )
        assert caught.value.code == "context_length_exceeded"
        client.close()
        other = anthropic.Anthropic(base_url=endpoint.url, api_key="k", max_retries=0)
        with pytest.raises(anthropic.BadRequestError, match="tokens"):
            other.messages.create(model="m", system=FILLER * 200, messages=[USER], max_tokens=9)
        other.close()
        assert upstream.requests == []


USER: Any = {"role": "user", "content": "hi"}
