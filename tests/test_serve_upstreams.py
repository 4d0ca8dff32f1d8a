"""What upstreams refuse, how they answer, and where their paths are."""

import asyncio
import gzip
import json
import logging
import shutil
import socket
import socketserver
import subprocess
import threading
import time
import zlib
from itertools import pairwise
from typing import Any

import brotli
import httpx
import pytest
import zstandard

import serve_support
from conspectus.messages.alternation import alternating
from conspectus.tokens import TokenMeter
from serve_support import (
    EVENTS,
    UpstreamRequest,
    chat_reply,
    conspectus_header,
    error_reply,
    message_reply,
    post,
    proxied_upstream,
    serving,
    talk,
)

METER = TokenMeter(model="m")
DONE = b'data: {"choices": [{"index": 0, "delta": {"content": "ok"}}]}\n\ndata: [DONE]\n\n'
ROLE = b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}\n\n'
COMPLETED = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}
COMPLETED["response"] |= {"output": []}  # type: ignore[operator]


def request_tokens(request: UpstreamRequest) -> int:
    body = request.body or {}
    return METER.count_messages(body.get("messages") or body.get("input") or [])


def event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


LONG = "This endpoint's maximum context length is 3000 tokens. However, you requested 21000 tokens"
IN_STREAMS = {
    "/v1/chat/completions": (
        [b": ok\n\n", ROLE, f'data: {{"error": {{"message": "{LONG}"}}}}\n\n'.encode()],
        [DONE],
    ),
    "/v1/responses": (
        [
            event({"type": "response.created", "response": {"id": "r"}}),
            event({
                "type": "response.failed",
                "response": {"error": {"code": "context_length_exceeded", "message": "Too long."}},
            }),
        ],
        [event(COMPLETED)],
    ),
    "/v1/messages": (
        [event({"type": "error", "error": {"message": "prompt is too long: 21000 > 3000"}})],
        [event({"type": "message_start", "message": {}}), event({"type": "message_stop"})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", IN_STREAMS)
def test_a_refusal_in_a_stream_is_fitted_unseen(tmp_path, path):
    bad, good = IN_STREAMS[path]

    def answer(request: UpstreamRequest) -> Any:
        return 200, EVENTS, bad if request_tokens(request) > 3_000 else good

    field = "input" if "responses" in path else "messages"
    body = {"model": "m", field: talk(), "stream": True}
    with proxied_upstream(answer, tmp_path, window=None) as (_upstream, endpoint):
        response = post(endpoint, path, body)
    assert response.content.replace(b' "sequence_number": 0,', b"") == b"".join(good)
    assert conspectus_header(response, "compacted") == "true"


REFUSED = json.dumps({"error": {"message": LONG}}).encode()
FLAT = json.dumps({"message": LONG}).encode()
BESIDE = json.dumps({"error": {"message": LONG}, "choices": [{"delta": {"content": ""}}]}).encode()
UNUSUAL = {
    "a body of 200 in pieces": (False, [b"\n", REFUSED[:20], REFUSED[20:]]),
    "a body for a stream": (True, REFUSED),
    "the last event has no end": (True, [b": ok\n\n", b"data: " + REFUSED]),
    "an event without data": (True, [b"retry: 3000\n\ndata: " + REFUSED + b"\n\n"]),
    "beside an empty delta": (True, [b"data: " + BESIDE + b"\n\n"]),  # OpenRouter
    "a line of its own": (True, [b"error: " + FLAT + b"\n\n"]),  # llama.cpp
    "an event named so": (True, [b"event: error\ndata: " + FLAT + b"\n\n"]),
    "an object named so": (True, [b'data: {"object": "error", ' + FLAT[1:] + b"\n\n"]),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_a_refusal_is_known_however_an_answer_of_200_holds_it(tmp_path, case):
    streamed, bad = UNUSUAL[case]
    good = (200, EVENTS, [DONE]) if streamed else chat_reply()

    def answer(request: UpstreamRequest) -> Any:
        return (200, EVENTS, bad) if request_tokens(request) > 3_000 else good

    with proxied_upstream(answer, tmp_path, window=None) as (_upstream, endpoint):
        body = {"model": "m", "messages": talk(), "stream": streamed}
        response = post(endpoint, "/v1/chat/completions", body)
    assert b"error" not in response.content
    assert conspectus_header(response, "compacted") == "true"


def raw_deflate(raw: bytes) -> bytes:
    """Deflate without the header of zlib, as some write it."""
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(raw) + packing.flush()


COMPRESSIONS: list[tuple[str, Any]] = [
    ("identity", bytes),
    ("gzip", gzip.compress),
    ("x-gzip", lambda raw: gzip.compress(raw[:9]) + gzip.compress(raw[9:])),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli.compress),
    ("zstd", zstandard.compress),
    ("zstd", lambda raw: zstandard.compress(raw[:9]) + zstandard.compress(raw[9:])),
    ("gzip, br", lambda raw: brotli.compress(gzip.compress(raw))),
]


@pytest.mark.parametrize(("coding", "pack"), COMPRESSIONS)
def test_an_answer_that_is_compressed_unasked_is_read(tmp_path, coding, pack):
    body = {"id": "r1", "status": "completed", "output": [], "object": "response"}

    def answer(request: UpstreamRequest) -> Any:
        good = request_tokens(request) <= 3_000
        raw = json.dumps(body).encode() if good else REFUSED
        return 200 if good else 400, "application/json", pack(raw), coding

    with proxied_upstream(answer, tmp_path, window=None) as (_upstream, endpoint):
        response = post(endpoint, "/v1/responses", {"model": "m", "input": talk()})
        next_request = {"model": "m", "input": "Go on.", "previous_response_id": "r1"}
        held = conspectus_header(post(endpoint, "/v1/responses", next_request), "state")
    assert (response.status_code, response.json(), held) == (200, body, "held")
    assert "content-encoding" not in response.headers


@pytest.mark.parametrize(("coding", "pack"), COMPRESSIONS[1:])
def test_a_compressed_answer_without_its_end_is_refused(tmp_path, coding, pack):
    cut = pack(b'{"id": "c", "choices": []}')[:-6]
    with proxied_upstream(lambda request: (200, "application/json", cut, coding), tmp_path) as (
        _,
        endpoint,
    ):
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": talk(1)})
    assert response.status_code == 502
    assert "serve.upstream" in response.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstandard.compress)],
)
def test_an_answer_that_grows_past_all_measure_is_refused(tmp_path, coding, pack):
    bomb = pack(bytes(100_000_000))
    with proxied_upstream(lambda request: (200, "application/json", bomb, coding), tmp_path) as (
        _,
        endpoint,
    ):
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": talk(1)})
    assert response.status_code == 502
    assert "too large" in response.json()["error"]["message"]


def test_an_answer_in_an_unknown_coding_goes_on_as_it_came(tmp_path):
    packed = b"\x00\x01 what only its client reads"
    with proxied_upstream(lambda request: (200, "application/json", packed, "lzw"), tmp_path) as (
        _,
        endpoint,
    ):
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": talk(1)})
    assert (response.content, response.headers["content-encoding"]) == (packed, "lzw")


def test_an_answer_that_ends_without_its_items_is_held_with_them(tmp_path):
    item = {"type": "message", "role": "assistant", "content": "The answer."}
    events = [event({"type": "response.output_item.done", "item": item}), event(COMPLETED)]
    body = {"model": "m", "input": "Go on.", "stream": True}
    with proxied_upstream(lambda request: (200, EVENTS, events), tmp_path) as (upstream, endpoint):
        for continuation in ({}, {"previous_response_id": "r"}):
            post(endpoint, "/v1/responses", {**body, **continuation})
    assert upstream.posts[-1].body["input"][1] == item


WHOLE = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE += b"%x\r\n%s\r\n" % (len(DONE), DONE)
PACKED = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}"
BROKEN = {
    "its last event has come": (WHOLE, ""),
    "it ends at once": (b"", "broken off"),
    "its body is cut": (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", "broken off"),
    "its coding is another": (PACKED, "not in gzip"),
    "it is no HTTP": (b"SSH-2.0-OpenSSH\r\n", "no HTTP"),
    "its status is none": (b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n", "status 999"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_failing_upstream_is_an_error_with_a_remedy(tmp_path, case):
    raw, problem = BROKEN[case]

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            while (line := self.rfile.readline()).strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.rfile.read(length)
            self.wfile.write(raw)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with serving(address, tmp_path / "a.db") as endpoint:
            body = {"model": "m", "messages": talk(1), "stream": raw == WHOLE}
            response = post(endpoint, "/v1/chat/completions", body)
        server.shutdown()
    if raw == WHOLE:
        assert (response.status_code, response.content) == (200, DONE)
        return
    assert response.status_code == 502
    assert problem in response.json()["error"]["message"]
    assert response.json()["error"]["message"].endswith(("; try again", "; check serve.upstream"))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [b"data: [DONE]\n", b"data: [DONE]\n\n: bye"])
def test_a_stream_that_stays_open_behind_its_last_event_ends(tmp_path, ending):
    async def stays_open() -> Any:
        yield ROLE + ending
        await asyncio.sleep(5)

    with proxied_upstream(lambda request: (200, EVENTS, stays_open()), tmp_path) as (_, endpoint):
        begun = time.monotonic()
        body = {"model": "m", "messages": talk(1), "stream": True}
        assert post(endpoint, "/v1/chat/completions", body).content == ROLE + ending
        assert time.monotonic() - begun < 4


def test_a_slow_refusal_keeps_its_status_where_nothing_is_compacted(tmp_path):
    def answer(request: UpstreamRequest) -> Any:
        time.sleep(0.4)
        return error_reply("busy", 429)

    body = {"model": "m", "messages": talk(1), "stream": True}
    with proxied_upstream(answer, tmp_path, keep_alive=0.1) as (_, endpoint):
        assert post(endpoint, "/v1/chat/completions", body).status_code == 429


def test_only_what_users_said_is_joined():
    messages = [{"role": "user", "content": content} for content in ([{"type": "image"}], None, "")]
    assert alternating(messages) == messages[:1]


@pytest.mark.parametrize("max_tokens", [None, 9, -1])
def test_no_room_for_an_answer_is_too_long(tmp_path, max_tokens):
    def answer(request: UpstreamRequest) -> Any:
        left = min(3_000 - request_tokens(request), max_tokens or 3_000)
        return (
            chat_reply() if left > 0 else error_reply(f"max_tokens must be at least 1, got {left}.")
        )

    with proxied_upstream(answer, tmp_path, window=None) as (upstream, endpoint):
        body = {"model": "m", "messages": talk(), "max_tokens": max_tokens}
        response = post(endpoint, "/v1/chat/completions", body, idempotency_key="one")
        first_key, *more_keys = (request.headers["idempotency-key"] for request in upstream.posts)
    assert (response.status_code, bool(more_keys)) == (
        (400, False) if max_tokens == -1 else (200, True)
    )
    assert {first_key, *(key.partition("-")[0] for key in more_keys)} == {"one"} != {*more_keys}


BARE = [(500, "context length exceeded"), (429, "Extra usage is required for long context.")]
BARE += [(413, "413 Too Large: the limit is 20000 bytes")]  # which says nothing of the model


@pytest.mark.parametrize(("status", "message"), BARE)
def test_a_bare_refusal_teaches_the_window(tmp_path, status, message):
    def answer(request: UpstreamRequest) -> Any:
        return error_reply(message, status) if request_tokens(request) > 3_000 else chat_reply()

    history = talk()
    with proxied_upstream(answer, tmp_path, window=None) as (upstream, endpoint):
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history[:3]})
        assert "its window is not known" in (conspectus_header(response, "note") or "")
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history})
        assert conspectus_header(response, "compacted") == "true"
        assert ("window of this model counts as" in str(conspectus_header(response, "note"))) is (
            status != 413
        )
        tries = len(upstream.posts)
        for n in range(20):
            history += [*talk(1)[1:], {"role": "user", "content": f"Go on {n}."}]
            response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history})
            assert response.status_code == 200
    assert len(upstream.posts) <= tries + (25 if status != 413 else 120)


AZURE = "/openai/deployments/gpt/chat/completions"


@pytest.mark.parametrize(
    ("base", "path", "sent_path"),
    [
        ("/api/coding/paas/v4", "/v1/chat/completions", "/api/coding/paas/v4/chat/completions"),
        ("/v1beta/openai", "/v1/chat/completions", "/v1beta/openai/chat/completions"),
        ("/v1beta/openai", "/chat/completions", "/v1beta/openai/chat/completions"),
        ("/openai/v1", "/v1/responses", "/openai/v1/responses"),
        ("/api/anthropic", "/v1/messages", "/api/anthropic/v1/messages"),
        ("/api/anthropic", "/messages", "/api/anthropic/v1/messages"),
        ("/api/v3", "/v1/models", "/api/v3/models"),
        ("/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/p/openapi", "/v1/chat/completions", "/v1/p/openapi/chat/completions"),
        ("", "/chat/completions", "/v1/chat/completions"),
        ("", "/v1//chat/completions/", "/v1/chat/completions"),
        ("", "/anthropic/v1/messages", "/anthropic/v1/messages"),
        ("", AZURE, AZURE),
    ],
)
def test_histories_are_compacted_at_every_path_of_providers_and_clients(
    tmp_path, base, path, sent_path
):
    def answer(request: UpstreamRequest) -> Any:
        return message_reply() if "messages" in request.path else chat_reply()

    with proxied_upstream(answer, tmp_path, base) as (upstream, endpoint):
        if path.endswith("models"):
            httpx.get(endpoint.url + path)
        else:
            field = "input" if "responses" in path else "messages"
            response = post(endpoint, path, {"model": "m", field: talk(), "max_tokens": 9})
            assert conspectus_header(response, "compacted") == "true"
            assert request_tokens(upstream.requests[-1]) < 4_000
    assert upstream.requests[-1].path == sent_path


def test_a_history_at_an_unknown_path_passes_with_a_note(tmp_path, caplog):
    caplog.set_level(logging.INFO, "conspectus.serve")
    paths = ("/v1beta/models/gemini:generateContent", "/v1/completions")
    with proxied_upstream(lambda request: chat_reply(), tmp_path) as (_upstream, endpoint):
        for path in paths:
            response = post(endpoint, path, {"contents": talk()})
            assert "not read" in (conspectus_header(response, "note") or "")
        assert conspectus_header(post(endpoint, "/v1/embeddings", {"input": "x"}), "note") is None
    lines = [line for line in caplog.messages if "not read" in line]
    assert [line.split()[1] for line in lines] == [*paths]


def test_counted_tokens_are_those_of_the_sent_request(tmp_path):
    def answer(request: UpstreamRequest) -> Any:
        if "tokens" in request.path:
            return (
                200,
                "application/json",
                json.dumps({"input_tokens": request_tokens(request)}).encode(),
            )
        return message_reply()

    body = {"model": "m", "max_tokens": 9, "messages": talk()}
    with proxied_upstream(answer, tmp_path) as (upstream, endpoint):
        post(endpoint, "/v1/messages", body)
        sent_tokens = request_tokens(upstream.posts[-1])
        counted = post(endpoint, "/v1/messages/count_tokens?beta=true", body)
        counted_input = post(
            endpoint, "/v1/responses/input_tokens", {"model": "m", "input": talk()}
        )
    assert counted.json() == {"input_tokens": sent_tokens}
    assert counted_input.json()["input_tokens"] < 4_000


def test_a_websocket_is_refused_so_that_clients_fall_back(tmp_path):
    asking = {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-key": "eA==",
              "sec-websocket-version": "13"}  # fmt: skip
    with proxied_upstream(lambda request: chat_reply(), tmp_path) as (upstream, endpoint):
        response = httpx.get(endpoint.url + "/v1/responses", headers=asking)
    assert (response.status_code, upstream.requests) == (426, [])


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", lambda raw: b"".join(map(gzip.compress, (raw[:9], raw[9:])))),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("br", brotli.compress),
        ("gzip, br", lambda raw: brotli.compress(gzip.compress(raw))),
        ("zstd", lambda raw: zstandard.ZstdCompressor().compress(raw)),
        ("zstd", lambda raw: zstandard.ZstdCompressor(write_content_size=False).compress(raw)),
        ("zstd", lambda raw: b"".join(map(zstandard.compress, (raw[:9], raw[9:])))),
    ],
)  # fmt: skip
def test_a_compressed_body_is_read_and_sent_on_plainly(tmp_path, coding, pack):
    raw = json.dumps({"model": "m", "messages": talk()}).encode()
    with proxied_upstream(lambda request: chat_reply(), tmp_path) as (upstream, endpoint):
        response = post(endpoint, "/v1/chat/completions", pack(raw), content_encoding=coding)
    assert conspectus_header(response, "compacted") == "true"
    assert "content-encoding" not in upstream.posts[-1].headers
    assert upstream.posts[-1].body["model"] == "m"


def strict_template_error(messages: list[Any]) -> str:
    """What a template of Mistral says of a history."""
    roles = [m["role"] for m in messages if m["role"] in ("user", "assistant")]
    if any(a == b == "user" for a, b in pairwise(roles)):
        return "conversation roles must alternate user/assistant/user/assistant/..."
    return ""


@pytest.mark.parametrize(
    ("setting", "model", "refused"), [("auto", "gpt-5", 1), ("auto", "own", 0), ("on", "gpt-5", 0)]
)
def test_user_messages_are_joined_where_an_upstream_asks_for_it(tmp_path, setting, model, refused):
    def answer(request: UpstreamRequest) -> Any:
        wrong = strict_template_error(request.body["messages"])
        return error_reply(wrong) if wrong else chat_reply()

    history = talk()
    with proxied_upstream(answer, tmp_path, alternate_roles=setting) as (upstream, endpoint):
        for n in range(3):
            response = post(endpoint, "/v1/chat/completions", {"model": model, "messages": history})
            assert (response.status_code, conspectus_header(response, "compacted")) == (200, "true")
            history += [*talk(1)[1:2], {"role": "user", "content": f"And {n}?"}]
    assert len(upstream.posts) == 3 + refused


@pytest.mark.parametrize(
    "listed",
    [
        {"data": [{"id": "m", "max_model_len": 3_000}]},
        {"data": [{"id": "x", "context_length": 9}, {"id": "m", "context_window": 3_000}]},
        {"models": [{"name": "models/m", "inputTokenLimit": 3_000}]},
        {"data": [{"id": "/a/path.gguf", "meta": {"n_ctx": 3_000}}]},
    ],
)
def test_a_window_is_learned_from_the_upstreams_list(tmp_path, listed):
    def answer(request: UpstreamRequest) -> Any:
        if request.method == "GET":
            return 200, "application/json", json.dumps(listed).encode()
        return chat_reply()

    with proxied_upstream(answer, tmp_path, window=None) as (upstream, endpoint):
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": talk()})
    assert conspectus_header(response, "compacted") == "true"
    assert upstream.requests[0].headers["authorization"] == "Bearer k"


def test_a_window_is_learned_where_an_upstream_cuts_silently(tmp_path):
    def answer(request: UpstreamRequest) -> Any:
        return chat_reply(usage={"prompt_tokens": min(request_tokens(request), 4_090)})

    history = talk()
    sent_tokens = []
    with proxied_upstream(answer, tmp_path, window=None) as (upstream, endpoint):
        for _ in range(4):
            post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history})
            sent_tokens.append(request_tokens(upstream.posts[-1]))
            history += talk(20)[1:]
    assert min(sent_tokens[:2]) > 20_000
    assert max(sent_tokens[2:]) < 4_096


@pytest.mark.parametrize("cached", [False, True])
def test_what_an_upstream_does_not_count_is_no_window(tmp_path, cached):
    def answer(request: UpstreamRequest) -> Any:
        messages = (request.body or {}).get("messages", [])
        texts = [{**message, "reasoning_content": ""} for message in messages]
        counted = 1_500 if cached and len(messages) > 9 else METER.count_messages(texts)
        return chat_reply(usage={"prompt_tokens": counted})

    history = talk(1, 1_500)
    uncounted = {} if cached else {"reasoning_content": "So. " * 2_000}
    with proxied_upstream(answer, tmp_path, window=None) as (_, endpoint):
        for _ in range(8):
            history += [{**talk(1, 5)[1], **uncounted}, talk(1, 900 if cached else 5)[0]]
            response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history})
            assert conspectus_header(response, "compacted") == "false"


@pytest.mark.slow
def test_a_client_that_asks_for_a_million_tokens_has_them(tmp_path):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": talk(300, 120)}
    with proxied_upstream(lambda request: message_reply(), tmp_path, window=None) as (_, endpoint):
        betas = [("anthropic-beta", "x"), ("anthropic-beta", "context-1m-2025-08-07")]
        wide = httpx.post(f"{endpoint.url}/v1/messages", json=body, headers=betas, timeout=600)
        narrow = post(endpoint, "/v1/messages", body)
    assert [conspectus_header(response, "compacted") for response in (wide, narrow)] == [
        "false",
        "true",
    ]


def test_an_unreachable_upstreams_error_names_the_cause(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with serving(address, tmp_path / "b.db") as endpoint:
        response = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": talk(1)})
    assert response.status_code == 502
    assert "refused" in response.json()["error"]["message"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl makes a certificate")
def test_a_private_authority_is_believed_where_it_is_named(tmp_path, monkeypatch):
    key = tmp_path / "key.pem"
    cert = tmp_path / "cert.pem"
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    line += ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost"]
    line += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(line, check=True, capture_output=True)
    body = {"model": "m", "messages": talk(1)}
    upstream = serve_support.Upstream(lambda request: chat_reply())
    with serve_support.served_app(upstream, ssl_certfile=cert, ssl_keyfile=key) as url:
        address = url.replace("http://127.0.0.1", "https://localhost")
        with serving(address, tmp_path / "a.db") as endpoint:
            not_named = post(endpoint, "/v1/chat/completions", body)
        with serving(address, tmp_path / "a.db", ca_file=cert) as endpoint:
            by_setting = post(endpoint, "/v1/chat/completions", body)
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with serving(address, tmp_path / "a.db") as endpoint:
            from_environment = post(endpoint, "/v1/chat/completions", body)
    assert not_named.status_code == 502
    assert "serve.ca_file" in not_named.json()["error"]["message"]
    assert (by_setting.status_code, from_environment.status_code) == (200, 200)
