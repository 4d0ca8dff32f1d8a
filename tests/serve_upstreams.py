"""Upstreams of which a test writes each answer, and histories for them."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from serve_support import Serving, running, serving

JSON, EVENTS = "application/json", "text/event-stream"


@dataclass
class Asked:
    """A request as it came to the upstream."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


Reply = tuple[int, str, bytes | list[bytes] | AsyncIterator[bytes]]


@dataclass
class Upstream:
    """An upstream whose answers a function writes: status, type, and body whole or in pieces."""

    answer: Callable[[Asked], Reply]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), message.get("more_body", False)
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        asked = Asked(scope["method"], scope["path"], headers, raw)
        self.asked.append(asked)
        status, kind, body = self.answer(asked)
        start = [(b"content-type", kind.encode())]
        if isinstance(body, bytes):
            start.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": start})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
            return
        if isinstance(body, list):
            for piece in body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        else:
            async for piece in body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    @property
    def posts(self) -> list[Asked]:
        return [one for one in self.asked if one.method == "POST"]


@contextmanager
def before(
    answer: Callable[[Asked], Reply], folder: Path, base: str = "", **settings: Any
) -> Iterator[tuple[Upstream, Serving]]:
    """An upstream, and an endpoint before it."""
    upstream = Upstream(answer)
    with (
        running(upstream) as url,
        serving(url + base, folder / "a.db", **settings) as endpoint,
    ):
        upstream.url = url
        yield upstream, endpoint


def post(endpoint: Serving, path: str, body: Any, **headers: str) -> httpx.Response:
    given = {"authorization": "Bearer k", **{k.replace("_", "-"): v for k, v in headers.items()}}
    if isinstance(body, bytes):
        return httpx.post(endpoint.url + path, content=body, headers=given, timeout=60)
    return httpx.post(endpoint.url + path, json=body, headers=given, timeout=60)


def chat(text: str = "fine", **more: Any) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    body = {"id": "c", "choices": [{**choice, "finish_reason": "stop"}], **more}
    return 200, JSON, json.dumps(body).encode()


def message(text: str = "fine") -> Reply:
    body = {"id": "m", "type": "message", "role": "assistant", "stop_reason": "end_turn"}
    said = {**body, "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 9}}
    return 200, JSON, json.dumps(said).encode()


def refusal(text: str, status: int = 400) -> Reply:
    return status, JSON, json.dumps({"error": {"message": text}}).encode()


def talk(turns: int = 60, words: int = 60) -> list[dict[str, Any]]:
    """A history of 20,000 tokens."""
    made = []
    for n in range(turns):
        made.append({"role": "user", "content": f"Look at module_{n}. " + "Think. " * words})
        made.append({"role": "assistant", "content": f"module_{n} is fine. " + "So. " * words})
    return [*made, {"role": "user", "content": "Which was first?"}]


def own(answer: httpx.Response, name: str) -> str | None:
    return answer.headers.get(f"x-conspectus-{name}")
