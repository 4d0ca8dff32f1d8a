"""Bodies, paths and headers that are not what they should be; keys; clients that break off."""

import asyncio
import gzip
import json
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import zstandard

import serve_support
from conspectus.archive import Archive
from conspectus.errors import ConfigError
from conspectus_serve.entrance import secret_beside
from conspectus_serve.settings import LARGEST_BODY
from fault_server import FaultServer, faults
from serve_support import SECRET, Serving, served_app, serving, talk

KEY = "sk-live-very-secret-4711"


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with FaultServer(lambda request: "fine") as server:
        yield server


@pytest.fixture
def endpoint(upstream: FaultServer, tmp_path: Path) -> Iterator[Serving]:
    with serving(
        upstream.anthropic_url, tmp_path / "a.db", max_body_bytes=200_000
    ) as serving_endpoint:
        yield serving_endpoint


post = partial(serve_support.post, authorization=f"Bearer {KEY}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"[" * 100_000, 400),
        (b'{"messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', 400),
        ('{"messages": []}'.encode("utf-16"), 400),
        (b"no json", 400),
        (b"[1, 2]", 400),
        (b"", 400),
        (b" " * 200_001, 413),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_an_invalid_body_gets_an_error_of_the_protocol(endpoint, upstream, path, content, status):
    answer = post(endpoint, path, content)
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body.get("type") == "error") == (path == "/v1/messages")
    assert body["error"]["message"]
    assert body["error"]["type"]
    assert upstream.requests == []
    assert post(endpoint, "/v1/chat/completions", PLAIN).status_code == 200


def test_a_history_that_is_none_goes_on_with_a_word_why(endpoint):
    answer = post(endpoint, "/v1/chat/completions", b'{"model": "m", "messages": "hi"}')
    assert "not understood" in answer.headers["x-conspectus-note"]


PLAIN: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.slow
def test_only_bodies_up_to_the_limit_pass(upstream, tmp_path):
    body = json.dumps(PLAIN).encode()
    with serving(upstream.anthropic_url, tmp_path / "a.db", window=10**9) as endpoint:
        for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
            refused = post(endpoint, path, body + b" " * (LARGEST_BODY - len(body) + 1))
            assert refused.status_code == 413
            assert upstream.requests == []
        whole = body.replace(b"hi", b"hi " * (LARGEST_BODY // 3 - len(body)))
        assert LARGEST_BODY - 1_000 < len(whole) <= LARGEST_BODY
        assert post(endpoint, "/v1/chat/completions", whole).status_code == 200
        assert len(upstream.requests[0].text) > LARGEST_BODY - 1_000


def test_unknown_broken_or_huge_codings_are_refused(endpoint):
    bomb = (gzip.compress(b" " * 200_001), "gzip", 413)
    broken = [(b"x", coding, 400) for coding in ("gzip", "zstd", "br")]
    broken += [(zstandard.compress(b"{}" * 99)[:-4], "zstd", 400)]
    broken.append((gzip.compress(b"") * 2_000, "gzip", 400))  # each takes as long as a large one
    for body, coding, status in (*broken, (b"x", "lzw", 415), bomb):
        answer = post(endpoint, "/v1/chat/completions", body, content_encoding=coding)
        assert (answer.status_code, coding) == (status, coding)
        assert status == 413 or coding in answer.json()["error"]["message"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "path", ["/v1/../admin", "/v1/%2e%2e/admin", "//other.example/v1", "/v1/..%2fadmin", "/v1/.."]
)
def test_a_path_cannot_lead_elsewhere(endpoint, path):
    with socket.create_connection(("127.0.0.1", urlsplit(endpoint.url).port or 0)) as line:
        line.sendall(
            f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
        )
        assert line.recv(100).split()[1] == b"400"


def test_headers_of_one_connection_and_ours_do_not_go_on(endpoint, upstream):
    sent_headers = {
        "connection": "close, x-mine",
        "x-mine": "1",
        "te": "trailers",
        "proxy-authorization": "Basic x",
        "x-conspectus-thread": "t",
        "x-conspectus-token": "whatever",
        "x-theirs": "2",
    }
    post(endpoint, "/v1/chat/completions", PLAIN, **sent_headers)
    received_headers = upstream.requests[0].headers
    assert received_headers["x-theirs"] == "2"
    assert received_headers["authorization"] == f"Bearer {KEY}"
    assert not {"x-mine", "te", "proxy-authorization"} & received_headers.keys()
    assert not [name for name in received_headers if name.startswith("x-conspectus")]
    assert received_headers["host"] == urlsplit(upstream.anthropic_url).netloc


def test_what_is_no_history_goes_through(tmp_path):
    async def provider(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        size = 0
        more_follows = True
        while more_follows:
            message = await receive()
            size = size + len(message.get("body", b""))
            more_follows = message.get("more_body", False)
        request_line = (
            f"{scope['method']} {scope['raw_path'].decode()}?{scope['query_string'].decode()}"
        )
        await send({"type": "http.response.start", "status": 207, "headers": [(b"x-a", b"b")]})
        await send({"type": "http.response.body", "body": f"{request_line} {size}".encode()})

    with served_app(provider) as url, serving(f"{url}/v1", tmp_path / "a.db") as endpoint:
        listed = httpx.get(endpoint.openai_url + "/models?limit=3")
        assert (listed.status_code, listed.headers["x-a"]) == (207, "b")
        assert listed.text == "GET /v1/models?limit=3 0"
        retrieved = httpx.get(endpoint.openai_url + "/models/maker%2Fmodel.v1")
        assert retrieved.text == "GET /v1/models/maker%2Fmodel.v1? 0"
        uploaded = httpx.put(endpoint.url + "/v1/files/a%20b", content=iter([b"x" * 100_000] * 3))
        assert uploaded.text == "PUT /v1/files/a%20b? 300000"


def test_no_key_is_kept_logged_or_told(upstream, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    upstream.restart(lambda request: faults.cut_before_headers())
    body = json.dumps({"model": "m", "messages": talk()}).encode()
    answers = []
    with serving(upstream.anthropic_url, tmp_path / "a.db") as endpoint:
        for path in ("/v1/chat/completions", "/v1/messages"):
            answers.append(post(endpoint, path, body, **{"x-api-key": KEY}))
    assert [answer.status_code for answer in answers] == [502, 502]
    assert not any(KEY in answer.text or KEY in str(answer.headers) for answer in answers)
    files = b"".join(file.read_bytes() for file in tmp_path.glob("a.db*"))
    assert files
    for form_of_key in (KEY, KEY.encode().hex()):
        assert form_of_key.encode() not in files
    # The clients of this test say what they send; the endpoint's own lines do not.
    lines = [line.getMessage() for line in caplog.records if line.name.startswith("conspectus")]
    assert not any(KEY in line for line in lines)
    with Archive.open(tmp_path / "a.db") as archive:
        assert archive.threads(KEY) == ()
        assert archive.threads(SECRET.tenant(KEY)) != ()


def test_clients_with_one_placeholder_and_keys_of_their_own_are_walled(endpoint, upstream):
    headers_of_clients: list[list[tuple[str, str]]] = [
        [("authorization", "Bearer none"), ("x-api-key", "anns-key")],
        [("authorization", "Bearer none"), ("x-api-key", "bobs-key")],
        [("authorization", "Bearer none"), ("authorization", "Bearer bobs-key")],
        [("authorization", "Bearer none")],
    ]
    address = f"{endpoint.openai_url}/chat/completions"
    answers = [httpx.post(address, json=PLAIN, headers=headers) for headers in headers_of_clients]
    threads = [answer.headers["x-conspectus-thread"] for answer in answers]
    # The third has the keys of the second, in another place.
    assert threads[1] == threads[2]
    assert len(set(threads)) == 3


def test_the_token_is_asked_for(upstream, tmp_path):
    token = "0123456789abcdef"
    with serving(upstream.anthropic_url, tmp_path / "a.db", token=token) as endpoint:
        assert post(endpoint, "/v1/chat/completions", PLAIN).status_code == 401
        assert post(endpoint, "/v1/models", b"").status_code == 401
        wrong = post(endpoint, "/v1/messages", PLAIN, **{"x-conspectus-token": token[:-1]})
        assert wrong.json()["error"]["type"] == "authentication_error"
        assert upstream.requests == []
        headers = {"x-conspectus-token": token, "host": "proxy.example"}
        assert post(endpoint, "/v1/chat/completions", PLAIN, **headers).status_code == 200


HERE = ["127.0.0.1:8377", "localhost", "LOCALHOST:1", "[::1]:8377", "mine.example:80"]
THERE = ["evil.example", "127.0.0.1.evil.example:8377", "localhost.evil.example", "10.0.0.7", ""]
PAGES = [None, "http://localhost:3000", "https://mine.example", "app://mine.example"]
FOREIGN = ["https://evil.example", "http://127.0.0.1.evil.example", "null", "HTTP://evil.example"]
FOREIGN += ["file://", "file:///x", "FILE://", "app://chat", "chrome-extension://x", "", "data:"]
FOREIGN += ["file://localhost", "ftp://127.0.0.1"]


@pytest.mark.parametrize(
    ("hosts", "origins", "status"),
    [(HERE, PAGES, 200), (THERE, [None, "http://localhost"], 421), (HERE[:1], FOREIGN, 403)],
)
def test_pages_of_other_sites_are_kept_out(upstream, tmp_path, hosts, origins, status):
    requests = [("POST", "/v1/chat/completions"), ("GET", "/v1/models")]
    cases = [
        (host, origin, *method_and_path)
        for host in hosts
        for origin in origins
        for method_and_path in requests
    ]
    with serving(upstream.anthropic_url, tmp_path / "a.db", hosts=["mine.example"]) as endpoint:
        for host, origin, method, path in cases:
            headers = {"host": host, **({} if origin is None else {"origin": origin})}
            body = json.dumps(PLAIN).encode() if method == "POST" else b""
            answer = httpx.request(method, endpoint.url + path, content=body, headers=headers)
            passed = answer.headers.get("x-conspectus-error") is None
            assert (answer.status_code if method == "POST" or not passed else 200) == status
    assert bool(upstream.requests) == (status == 200)


def test_the_secret_is_made_once_for_its_owner_alone(tmp_path):
    archive = str(tmp_path / "a.db")
    with ThreadPoolExecutor(8) as pool:
        tenants = set(pool.map(lambda _: secret_beside(archive, None).tenant("k"), range(8)))
    assert len(tenants) == 1
    [file] = tmp_path.iterdir()
    assert file.name == "a.db.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="several instances"):
        secret_beside("postgresql://h/d", None)
    file.write_text("short")
    with pytest.raises(ConfigError, match="hexadecimal"):
        secret_beside(archive, None)


@pytest.mark.slow
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

    with served_app(endless) as url, serving(url, tmp_path / "a.db") as endpoint:
        content = b"{}" if method == "POST" else None
        address = endpoint.url + "/v1/responses/resp_1"
        with httpx.stream(method, address, content=content) as answer:
            assert next(answer.iter_raw()) == b"on"
        assert ended.wait(60)
