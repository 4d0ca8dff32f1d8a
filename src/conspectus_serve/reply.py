"""The answer to the client: the endpoint's own bytes, or an answer of the upstream."""

from __future__ import annotations

from starlette.types import Send

from conspectus_serve.headers import RawHeaders, to_client
from conspectus_serve.protocols import HttpError
from conspectus_serve.upstream_answer import UpstreamAnswer

EVENT_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class Reply:
    """The answer to a client.

    Attributes:
        has_begun: whether status and headers were sent.
        is_kept_alive: whether it is a stream that began with a keep-alive.
        status: the status that was sent; 0 before.
        failure: why the request has failed, in one word; empty if it has not.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        self.is_kept_alive = False
        self.status = 0
        self.failure = ""

    async def send(
        self, status: int, headers: RawHeaders, piece: bytes, *, is_last: bool = False
    ) -> None:
        """Send a piece of the body; before the first piece, send status and headers."""
        if not self.has_begun:
            if not 200 <= status < 600:  # no server can send this status
                raise HttpError(502, f"the upstream has answered with status {status}; try again")
            self.has_begun = True
            self.status = status
            start = {"type": "http.response.start", "status": status, "headers": headers}
            await self._send(start)
        body = {"type": "http.response.body", "body": piece, "more_body": not is_last}
        await self._send(body)

    async def relay(self, answer: UpstreamAnswer, extra_headers: RawHeaders) -> None:
        """Pass an answer on while it arrives, and its end at once."""
        headers = to_client(answer.headers) + extra_headers
        end: list[bytes] = []
        try:
            async for piece in answer.pieces():
                if answer.is_closing:
                    end.append(piece)
                else:
                    await self.send(answer.status, headers, piece)
        finally:
            answer.close()
        await self.send(answer.status, headers, b"".join(end), is_last=True)
