"""Speak HTTP/1 with clients: uvicorn's protocol, with three corrections.

- Trailer fields of a chunked request are dropped. uvicorn makes them headers, which the checks of
  the entrance would not have seen.
- A client of HTTP/1.0 gets its answer without chunks; the connection is closed at the end.
- A client that closes its own half of the connection after a whole request gets its whole answer.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FIRST_PROBE_SECONDS = 1.0
"""Seconds until the first probe of a client that has closed its half."""

LONGEST_PROBE_SECONDS = 30.0
"""The most seconds between two probes; each waits twice as long as the one before."""

MOST_ZEROS = 8
"""The most zeros before the size of a chunk: RFC 9112, 7.1 allows any number."""

INTERIM_ANSWER = b"HTTP/1.1 100 Continue\r\n\r\n"
"""An interim answer, which every client of HTTP/1.1 skips. If the client has gone, its system
resets the connection."""


class Http(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app: Any = _without_chunks(self.app)
        self._in_body = False
        self._zeros = 0  # written before the size of the next chunk
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
        """Keep the connection while a whole request is answered; else close it.

        A client may close its half after its request. A client that has gone looks the same.
        """
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return None
        cycle.keep_alive = False
        if cycle.scope["http_version"] != "1.0":
            self._probe_later(FIRST_PROBE_SECONDS)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application that the client has gone."""
        if self._probe is not None:
            self._probe.cancel()
        super().connection_lost(exc)

    def _probe_later(self, seconds: float) -> None:
        self._probe = self.loop.call_later(seconds, self._look_for_client, seconds)

    def _look_for_client(self, waited: float) -> None:
        """Write bytes that change nothing: only a write shows whether the client has gone.

        Before the answer, these are an interim answer; between two chunks of an answer, a zero
        before the size of the next chunk.
        """
        cycle = self.cycle
        if self.transport.is_closing() or cycle.response_complete:
            return
        if not cycle.response_started:
            self.transport.write(INTERIM_ANSWER)
        elif cycle.chunked_encoding and self._zeros < MOST_ZEROS:
            self._zeros += 1
            self.transport.write(b"0")
        self._probe_later(min(2 * waited, LONGEST_PROBE_SECONDS))


def _without_chunks(app: Any) -> ASGIApp:
    """Answers clients of HTTP/1.0 without chunks, which they cannot read, but uvicorn sends.

    uvicorn counts the remaining bytes of a body. It gets a number that is never reached, and the
    true one at the end.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        cycle = getattr(send, "__self__", None)
        if scope.get("http_version") != "1.0" or not isinstance(cycle, RequestResponseCycle):
            await app(scope, receive, send)
            return

        async def send_without_chunks(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = [name.lower() for name, _ in message.get("headers", ())]
                if b"content-length" not in names:
                    cycle.chunked_encoding = False
                    cycle.expected_content_length = sys.maxsize
            elif cycle.expected_content_length > sys.maxsize // 2 and not message.get("more_body"):
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, send_without_chunks)

    return answer
