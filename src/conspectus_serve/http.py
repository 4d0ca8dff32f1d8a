"""Speak HTTP/1 with clients: uvicorn's protocol, mended where it fails a client or lets one cheat.

- Trailer fields of a chunked request are dropped. As headers, a client could send what the checks
  of the entrance have not seen.
- A client of HTTP/1.0 gets its answer without chunks; the end of the connection ends it.
- A client that closes its own half of the connection behind a whole request gets its answer.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FIRST_PROBE = 1.0  # seconds after which it is looked whether a client that closed its half is there
LONGEST_PROBE = 30.0  # seconds between two such looks; each waits twice as long as the one before
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
"""What every client of HTTP/1.1 skips before the answer. One that is gone resets the connection."""


class Http(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app: Any = _unframed(self.app)
        self._in_body = False
        self._probe: asyncio.TimerHandle | None = None

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        self._in_body = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header, and drop a trailer field."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer a request."""
        self._in_body = True
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            self.cycle.waiting_for_100_continue = False  # which HTTP/1.0 does not know

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep the connection while a whole request waits for its answer; else it is closed.

        Clients that close their half do so right behind the request. One that does so later, in the
        middle of the answer, has gone: the connection looks alike, and nothing may follow for long.
        """
        cycle = self.cycle
        if cycle is None or cycle.response_started or cycle.more_body:
            return None
        cycle.keep_alive = False
        if cycle.scope["http_version"] != "1.0":
            self._probe_later(FIRST_PROBE)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application that the client has gone."""
        if self._probe is not None:
            self._probe.cancel()
        super().connection_lost(exc)

    def _probe_later(self, seconds: float) -> None:
        self._probe = self.loop.call_later(seconds, self._look_for_client, seconds)

    def _look_for_client(self, waited: float) -> None:
        """Write what a client skips: only so it shows whether one that closed its half has gone."""
        if self.transport.is_closing() or self.cycle.response_started:
            return
        self.transport.write(INTERIM)
        self._probe_later(min(2 * waited, LONGEST_PROBE))


def _unframed(app: Any) -> ASGIApp:
    """Answer clients of HTTP/1.0 without chunks; uvicorn sends them chunks, which they cannot read.

    uvicorn counts what a body may still hold. So it gets a number that is never reached, and at the
    end the true one.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        cycle = getattr(send, "__self__", None)
        if scope.get("http_version") != "1.0" or not isinstance(cycle, RequestResponseCycle):
            await app(scope, receive, send)
            return

        async def send_unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = (name.lower() for name, _ in message.get("headers", ()))
                if b"content-length" not in named:
                    cycle.chunked_encoding = False
                    cycle.expected_content_length = sys.maxsize
            elif cycle.expected_content_length > sys.maxsize // 2 and not message.get("more_body"):
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, send_unframed)

    return answer
