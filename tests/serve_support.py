"""The real endpoint on a free port of loopback, in a thread, before upstreams that tests write."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.tokens import TokenMeter
from conspectus_serve import load_settings, make_app
from conspectus_serve.entrance import TenantSecret
from conspectus_serve.http import Http
from fault_server import FaultServer

SECRET = TenantSecret(b"s" * 32)
WINDOW = 4_000
METER = TokenMeter(model="m")


def provider_tokens(body: dict[str, Any]) -> int:
    """What the provider would count: with the same estimate, so that a window means the same."""
    tools = METER.count_tools(body["tools"]) if body.get("tools") else 0
    instructions = body.get("system") or body.get("instructions")
    system = [{"role": "system", "content": instructions}] if instructions else []
    items = body["messages"] if "messages" in body else body["input"]
    messages = [{"role": "user", "content": items}] if isinstance(items, str) else items
    return METER.count_messages([*system, *messages]) + tools


@dataclass(frozen=True)
class Serving:
    """An endpoint that answers."""

    url: str

    @property
    def anthropic_url(self) -> str:
        return self.url

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @staticmethod
    def tenant(key: str) -> str:
        return SECRET.tenant(key)


@contextmanager
def serving(
    upstream: str,
    archive: str | Path | Archive,
    config: SummarizationConfig | None = None,
    worker_process: bool = False,
    **settings: Any,
) -> Iterator[Serving]:
    """Serve until the end of the block."""
    address = None if isinstance(archive, Archive) else str(archive)
    overrides = {
        "upstream": upstream,
        "window": WINDOW,
        "archive": address,
        "tenants": "key",
        **settings,
    }
    loaded, default = load_settings(given=overrides)
    opened = archive if isinstance(archive, Archive) else None
    app = make_app(
        loaded, config or default, archive=opened, secret=SECRET, worker_process=worker_process
    )
    with served_app(app) as url:
        yield Serving(url)


class _Server(uvicorn.Server):
    async def main_loop(self) -> None:
        """Notice the end at once, not at the next tenth of a second."""
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(0.01)


@contextmanager
def proxied_script(
    script: Any,
    archive: str | Path | Archive,
    config: Any = None,
    *,
    limit: int | None = None,
    count: Any = None,
    **settings: Any,
) -> Iterator[tuple[FaultServer, Serving]]:
    """A scripted upstream, which may count and have a limit, and an endpoint before it."""
    with (
        FaultServer(script, window=limit, count=count) as upstream,
        serving(upstream.anthropic_url, archive, config, **settings) as endpoint,
    ):
        yield upstream, endpoint


@contextmanager
def served_app(app: Any, **options: Any) -> Iterator[str]:
    """An ASGI application on a free port, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        quiet: Any = {"log_level": "error", "access_log": False, "ws": "none"}
        config = uvicorn.Config(app, http=Http, timeout_graceful_shutdown=2, **quiet, **options)
        server = _Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        deadline = time.monotonic() + 120
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        assert server.started
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(120)
            assert not thread.is_alive()


JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass
class UpstreamRequest:
    """A request as it came to the upstream."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


Reply = (
    tuple[int, str, bytes | list[bytes] | AsyncIterator[bytes]] | tuple[int, str, bytes, str]
)  # the last is a coding of the body


async def _body_pieces(body: bytes | list[bytes]) -> AsyncIterator[bytes]:
    for piece in [body] if isinstance(body, bytes) else body:
        yield piece


@dataclass
class Upstream:
    """An upstream whose answers a function writes: status, type, and body whole or in pieces."""

    answer: Callable[[UpstreamRequest], Reply]
    requests: list[UpstreamRequest] = field(default_factory=list)
    url: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        raw = b""
        more_follows = True
        while more_follows:
            message = await receive()
            raw = raw + message.get("body", b"")
            more_follows = message.get("more_body", False)
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        request = UpstreamRequest(scope["method"], scope["path"], headers, raw)
        self.requests.append(request)
        status, content_type, body, *coding = self.answer(request)
        start = [(b"content-type", content_type.encode())]
        start += [(b"content-encoding", name.encode()) for name in coding]
        if isinstance(body, bytes):
            start.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": start})
        async for piece in body if isinstance(body, AsyncIterator) else _body_pieces(body):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    @property
    def posts(self) -> list[UpstreamRequest]:
        return [request for request in self.requests if request.method == "POST"]


@contextmanager
def proxied_upstream(
    answer: Callable[[UpstreamRequest], Reply], folder: Path, base: str = "", **settings: Any
) -> Iterator[tuple[Upstream, Serving]]:
    """An upstream, and an endpoint before it."""
    upstream = Upstream(answer)
    with served_app(upstream) as url, serving(url + base, folder / "a.db", **settings) as endpoint:
        upstream.url = url
        yield upstream, endpoint


def post(endpoint: Serving, path: str, body: Any, **headers: str) -> httpx.Response:
    all_headers = {
        "authorization": "Bearer k",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    if isinstance(body, bytes):
        return httpx.post(endpoint.url + path, content=body, headers=all_headers, timeout=600)
    return httpx.post(endpoint.url + path, json=body, headers=all_headers, timeout=600)


def chat_reply(text: str = "fine", **fields: Any) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    body = {"id": "c", "choices": [{**choice, "finish_reason": "stop"}], **fields}
    return 200, JSON, json.dumps(body).encode()


def message_reply(text: str = "fine") -> Reply:
    body = {"id": "m", "type": "message", "role": "assistant", "stop_reason": "end_turn"}
    filled = {**body, "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 9}}
    return 200, JSON, json.dumps(filled).encode()


def error_reply(text: str, status: int = 400) -> Reply:
    return status, JSON, json.dumps({"error": {"message": text}}).encode()


def talk(turns: int = 60, words: int = 60) -> list[dict[str, Any]]:
    """A history of more than 16,000 tokens."""
    messages = []
    for n in range(turns):
        messages.append({"role": "user", "content": f"Look at module_{n}. " + "Think. " * words})
        messages.append({"role": "assistant", "content": f"module_{n} is fine. " + "So. " * words})
    return [*messages, {"role": "user", "content": "Which was first?"}]


def conspectus_header(response: httpx.Response, name: str) -> str | None:
    return response.headers.get(f"x-conspectus-{name}")
