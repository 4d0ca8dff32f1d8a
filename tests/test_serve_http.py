"""Clients that speak HTTP plainly, by raw sockets; numbers that JSON has and Python has not."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from serve_support import (
    EVENTS,
    Serving,
    chat_reply,
    conspectus_header,
    message_reply,
    post,
    proxied_upstream,
    served_app,
    serving,
    talk,
)

SMALL = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello."}]}).encode()
LONG = json.dumps({"model": "m", "messages": talk()}).encode()
HOST = b"Host: 127.0.0.1\r\n"
DONE = b'data: {"choices": [{"delta": {"content": "fine"}}]}\n\n'


@contextmanager
def connected(endpoint: Serving) -> Iterator[socket.socket]:
    port = urlsplit(endpoint.url).port or 0
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        yield line


def all_of(line: socket.socket) -> bytes:
    """What comes until the server closes."""
    return b"".join(iter(lambda: line.recv(65_536), b""))


def head_of(version: str, body: bytes, more: bytes = HOST) -> bytes:
    begin = f"POST /v1/chat/completions HTTP/{version}\r\n".encode() + more
    return begin + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)


@pytest.mark.parametrize("together", [True, False])
def test_trailer_fields_of_a_request_never_become_headers(tmp_path, together):
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(SMALL), SMALL)
    trailer = b"X-Conspectus-Token: t\r\nAuthorization: Bearer forged\r\nX-Smuggled: yes\r\n\r\n"
    request = b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + b"Authorization: Bearer mine\r\n"
    request += b"Transfer-Encoding: chunked\r\nTrailer: X-Smuggled\r\nConnection: close\r\n\r\n"
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (upstream, endpoint):
        with connected(endpoint) as line:
            for piece in [request + chunk + trailer] if together else [request, chunk, trailer]:
                line.sendall(piece)
            answer = all_of(line)
        # The next request of a connection has its own headers.
        assert post(endpoint, "/v1/models", b"").status_code == 200
    assert answer.startswith(b"HTTP/1.1 200")
    headers = upstream.requests[0].headers
    assert headers["authorization"] == "Bearer mine"
    assert "x-smuggled" not in headers
    assert upstream.requests[0].raw == SMALL


@pytest.mark.parametrize("host", [HOST, b""])
@pytest.mark.parametrize("body", [SMALL, LONG])
def test_a_client_of_http_1_0_gets_its_answer_without_chunks(tmp_path, host, body):
    with (
        proxied_upstream(lambda asked: chat_reply("fine"), tmp_path) as (_, endpoint),
        connected(endpoint) as line,
    ):
        line.sendall(head_of("1.0", body, host) + body)
        head, _, text = all_of(line).partition(b"\r\n\r\n")
    assert b" 200 " in head
    assert b"transfer-encoding" not in head.lower()
    assert json.loads(text)["choices"][0]["message"]["content"] == "fine"


def test_a_stream_for_http_1_0_comes_as_it_is_written(tmp_path):
    go_on = threading.Event()

    async def events() -> AsyncIterator[bytes]:
        yield DONE
        await asyncio.to_thread(go_on.wait, 60)
        yield b"data: [DONE]\n\n"

    body = json.dumps({**json.loads(SMALL), "stream": True}).encode()
    with (
        proxied_upstream(lambda asked: (200, EVENTS, events()), tmp_path) as (_, endpoint),
        connected(endpoint) as line,
    ):
        line.sendall(head_of("1.0", body, b"") + body)
        came = b""
        while DONE not in came:
            came += line.recv(65_536)
        go_on.set()
        came += all_of(line)
    head, _, text = came.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert text == DONE + b"data: [DONE]\n\n"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("body", [SMALL, LONG])
def test_a_client_that_closes_its_half_gets_its_answer(tmp_path, version, body):
    with (
        proxied_upstream(lambda asked: chat_reply("fine"), tmp_path) as (_, endpoint),
        connected(endpoint) as line,
    ):
        line.sendall(head_of(version, body) + body)
        line.shutdown(socket.SHUT_WR)
        answer = all_of(line)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"fine" in answer


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_half_closed_client_gets_its_whole_answer(tmp_path, version):
    go_on = threading.Event()

    async def events() -> AsyncIterator[bytes]:
        yield DONE
        await asyncio.to_thread(go_on.wait, 60)
        for _ in range(20):
            yield DONE
            await asyncio.sleep(0.01)
        yield b"data: [DONE]\n\n"

    body = json.dumps({**json.loads(SMALL), "stream": True}).encode()
    with (
        proxied_upstream(lambda asked: (200, EVENTS, events()), tmp_path) as (_, endpoint),
        connected(endpoint) as line,
    ):
        line.sendall(head_of(version, body) + body)
        came = b""
        while DONE not in came:
            came += line.recv(65_536)
        line.shutdown(socket.SHUT_WR)
        go_on.set()
        came += all_of(line)
    assert came.count(DONE) == 21
    assert b"data: [DONE]" in came


def test_half_a_request_and_then_the_end_is_no_request(tmp_path):
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (upstream, endpoint):
        with connected(endpoint) as line:
            line.sendall(head_of("1.1", SMALL) + SMALL[:-1])
            line.shutdown(socket.SHUT_WR)
            assert all_of(line) == b""
        assert upstream.requests == []


@pytest.mark.slow
def test_a_client_that_leaves_before_the_answer_ends_the_upstreams_work(tmp_path):
    begun = threading.Event()
    ended = threading.Event()

    async def thinking(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        while (event := await receive())["type"] != "http.disconnect":
            if not event.get("more_body"):
                begun.set()
        ended.set()

    with served_app(thinking) as url, serving(url, tmp_path / "a.db") as endpoint:
        with connected(endpoint) as line:
            line.sendall(head_of("1.1", SMALL) + SMALL)
            assert begun.wait(60)
        assert ended.wait(60)


ODD = {
    "1e999": "1e999",
    "-1e999": "-1e999",
    "1e3": "1e3",
    "-0": "-0",
    "0.10": "0.10",
    "123456789012345678901234567890.5": "123456789012345678901234567890.5",
    "9" * 5_000: "9" * 5_000,
    "1E+2": "1E+2",
}


@pytest.mark.parametrize("number", ODD)
@pytest.mark.parametrize("history", [talk(1), talk()])
def test_a_number_keeps_its_text_in_every_request(tmp_path, number, history):
    call = {"type": "tool_use", "id": "toolu_1", "name": "put", "input": {"n": "NUMBER"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    newest = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body = {"model": "m", "max_tokens": 9, "metadata": {"n": "NUMBER"}}
    raw = json.dumps({**body, "messages": [*history, *newest]}).replace('"NUMBER"', number)

    with proxied_upstream(lambda asked: message_reply(), tmp_path) as (upstream, endpoint):
        got = post(endpoint, "/v1/messages", raw.encode())
    assert got.status_code == 200
    assert conspectus_header(got, "compacted") == ("true" if len(history) > 9 else "false")
    sent = upstream.posts[0].raw.decode()
    json.loads(sent, parse_constant=pytest.fail, parse_int=str)
    texts = re.findall(r'"n": ?([^}]+)', sent)
    assert texts == [number, number]


def test_an_invalid_number_passes_or_is_refused(tmp_path):
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (upstream, endpoint):
        for number in ("NaN", "Infinity", "-Infinity"):
            raw = {
                history: json.dumps({"t": "N", "messages": talk(history)}) for history in (1, 60)
            }
            small, long = (one.replace('"N"', number).encode() for one in raw.values())
            assert post(endpoint, "/v1/chat/completions", small).status_code == 200
            assert upstream.posts[-1].raw == small
            asked = len(upstream.posts)
            refused = post(endpoint, "/v1/chat/completions", long)
            assert (refused.status_code, len(upstream.posts)) == (400, asked)
            assert number in refused.json()["error"]["message"]


def test_what_is_not_touched_goes_on_byte_for_byte(tmp_path):
    begin = b'{"a": 1, "a": 2, "model": "gpt-4o", "x": "\\ud800", "messages": '
    raw = (
        begin + b'[{"role": "user", "role": "user", "content": "\\udfff \\u00e9"}] , "b": [ 1.50 ]}'
    )
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (upstream, endpoint):
        assert post(endpoint, "/v1/chat/completions", raw).status_code == 200
        assert upstream.posts[0].raw == raw
        odd = json.loads(raw) | {"messages": [*talk(), {"role": "user", "content": "\udfff"}]}
        got = post(endpoint, "/v1/chat/completions", json.dumps(odd).encode())
        assert conspectus_header(got, "compacted") == "true"
    sent = upstream.posts[1].body
    assert (sent["x"], sent["messages"][-1]["content"]) == ("\ud800", "\udfff")
