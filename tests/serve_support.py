"""The real endpoint on a free port of loopback, in a thread, before a scripted upstream."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve import load_settings, make_app
from conspectus_serve.tenants import Secret
from fault_server import FaultServer

SECRET = Secret(b"s" * 32)
WINDOW = 4_000


@dataclass(frozen=True)
class Serving:
    """An endpoint that answers.

    Attributes:
        url: its address.
        tenant: the tenant of a client's key.
    """

    url: str

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
    **settings: Any,
) -> Iterator[Serving]:
    """Serve until the end of the block."""
    where = None if isinstance(archive, Archive) else str(archive)
    given = {"upstream": upstream, "window": WINDOW, "archive": where, "tenants": "key", **settings}
    made, default = load_settings(given=given)
    opened = archive if isinstance(archive, Archive) else None
    app = make_app(made, config or default, archive=opened, secret=SECRET)
    with running(app) as url:
        yield Serving(url)


class _Server(uvicorn.Server):
    async def main_loop(self) -> None:
        """Notice the end at once, not at the next tenth of a second."""
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(0.01)


@contextmanager
def between(
    script: Any, archive: str | Path | Archive, config: Any = None, **settings: Any
) -> Iterator[tuple[FaultServer, Serving]]:
    """A scripted upstream, and an endpoint before it."""
    with (
        FaultServer(script) as upstream,
        serving(upstream.anthropic_url, archive, config, **settings) as endpoint,
    ):
        yield upstream, endpoint


def talked_about(asked: str, detail: str, long: str, turns: int = 30) -> list[Any]:
    """A pasted log with one detail in its middle, which no notes hold, and much after it."""
    rows = [f"2031-01-02 10:00:{n:02} INFO cage {n} was cleaned" for n in range(40)]
    rows[20] = f"2031-01-02 10:00:20 INFO {detail}"
    made: list[Any] = [
        {"role": "user", "content": "\n".join(["The log:", *rows])},
        {"role": "assistant", "content": f"I have read it. {long * 2}"},
    ]
    for turn in range(turns):
        made.append({"role": "user", "content": f"Question {turn}."})
        made.append({"role": "assistant", "content": f"Answer {turn}. {long}"})
    return [*made, {"role": "user", "content": asked}]


@contextmanager
def running(app: Any) -> Iterator[str]:
    """An ASGI application on a free port, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            app, log_level="error", access_log=False, ws="none", timeout_graceful_shutdown=2
        )
        server = _Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        until = time.monotonic() + 10
        while not server.started and time.monotonic() < until:
            time.sleep(0.005)
        assert server.started
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()
