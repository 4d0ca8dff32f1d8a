"""Requests that are only sent on: bodies however they come, and clients that leave."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from serve_support import Serving, running, serving


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """An upstream that answers with the body it was given."""
    if scope["type"] == "lifespan":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    archive = tmp_path_factory.mktemp("passing") / "a.db"
    with running(echo) as url, serving(url, archive) as made:
        yield made


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_a_body_in_chunks_goes_on_whole(endpoint, method):
    pieces = iter([b"one, ", b"two, ", b"three"])
    answer = httpx.request(method, endpoint.url + "/v1/embeddings", content=pieces)
    assert answer.content == b"one, two, three"


def test_a_body_that_is_asked_for_with_goes_on(endpoint):
    answer = httpx.request("GET", endpoint.url + "/v1/search", content=b"terms")
    assert answer.content == b"terms"
    assert httpx.get(endpoint.url + "/v1/models").content == b""
    assert httpx.post(endpoint.url + "/v1/x").content == b""


def test_of_a_length_and_chunks_the_chunks_count(endpoint):
    head = (
        "POST /v1/files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 3\r\n"
    )
    said = f"{head}transfer-encoding: chunked\r\n\r\n8\r\nall of i\r\n1\r\nt\r\n0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", urlsplit(endpoint.url).port or 0)) as line:
        line.sendall(said.encode())
        got = b"".join(iter(lambda: line.recv(4_000), b""))
    assert b"200" in got.split(b"\r\n")[0]
    assert b"all of it" in got


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_client_that_leaves_ends_the_upstreams_answer(tmp_path, method):
    ended = threading.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"on", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            await asyncio.sleep(0)
        ended.set()

    with running(endless) as url, serving(url, tmp_path / "a.db") as endpoint:
        content = b"{}" if method == "POST" else None
        address = endpoint.url + "/v1/responses/resp_1"
        with httpx.stream(method, address, content=content) as answer:
            assert next(answer.iter_raw()) == b"on"
        assert ended.wait(5)


def test_of_an_answers_length_and_chunks_the_chunks_count(tmp_path):
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"

    def answering(upstream: socket.socket) -> None:
        line, _ = upstream.accept()
        with line:
            line.recv(4_000)
            line.sendall(head + b"9\r\nall of it\r\n0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as upstream:
        threading.Thread(target=answering, args=(upstream,), daemon=True).start()
        address = f"http://127.0.0.1:{upstream.getsockname()[1]}"
        with serving(address, tmp_path / "a.db") as endpoint:
            assert httpx.get(endpoint.url + "/v1/models").content == b"all of it"
