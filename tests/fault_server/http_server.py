"""Serve HTTP: read requests, and answer whole, in pieces, or broken."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, cast

from fault_server import anthropic_wire, faults, openai_wire, responses_wire
from fault_server.faults import Answer, Broken, HttpError, Usage
from fault_server.request import Protocol as Speaks
from fault_server.request import Request

PIECES = 20
"""Maximum pieces of a slow answer."""


Wire = ModuleType
"""A module that reads and writes one protocol; all of them have the same functions."""

WIRES: dict[str, tuple[Speaks, Wire]] = {
    "/v1/chat/completions": ("openai", openai_wire),
    "/v1/responses": ("responses", responses_wire),
    "/v1/messages": ("anthropic", anthropic_wire),
}


@dataclass(frozen=True, slots=True)
class Owner:
    """The callbacks that decide on each request.

    Attributes:
        take: records a request from its protocol, its torn pairs, its body and its headers.
        reply: returns the answer to a request.
        failed: returns the answer to a client after an error of the caller's own function.
        connected: called at each connection.
        closes_within: waits so many seconds; True once the server ends.
    """

    take: Callable[[Speaks, tuple[str, ...], dict[str, Any], Mapping[str, str]], Request]
    reply: Callable[[Request], Answer | HttpError | Broken]
    failed: Callable[[Exception], HttpError]
    connected: Callable[[], None]
    closes_within: Callable[[float], bool]


class HttpServer(ThreadingHTTPServer):
    """A server that closes every connection when it is closed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
            self.owner.connected()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has gone."""

    @property
    def open_connections(self) -> int:
        with self._guard:
            return len(self._open)

    def close_all(self) -> None:
        """Close the port and every connection."""
        self.server_close()
        with self._guard:
            left = list(self._open)
        for one in left:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        owner = cast("HttpServer", self.server).owner
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        speaks, wire = WIRES.get(self.path.partition("?")[0], (None, openai_wire))
        if speaks is None:
            known = ", ".join(WIRES)
            self._error(wire, faults.not_found(f"{self.path} (there are {known})"), 0)
            return
        try:
            body = json.loads(raw)
            torn = tuple(wire.torn(body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            said = f"this is no request: {type(error).__name__}: {error}"
            self._error(wire, faults.bad_request(said), 0)
            return
        named = {name.lower(): value for name, value in self.headers.items()}
        try:
            request = owner.take(speaks, torn, body, named)
        except Exception as error:
            self._error(wire, owner.failed(error), 0)
            return
        try:
            self._answer(wire, request, owner.reply(request))
        except OSError:
            raise  # the client has gone
        except Exception as error:  # what cannot be written, such as arguments that are no JSON
            self._error(wire, owner.failed(error), request.number)

    def _answer(self, wire: Wire, request: Request, reply: Answer | HttpError | Broken) -> None:
        if isinstance(reply, HttpError):
            self._error(wire, reply, request.number)
        elif isinstance(reply, Broken):
            self._broken(wire, request, reply)
        elif request.stream:
            self._stream(self._events(wire, request, reply))
        else:
            self._whole(self._body(wire, request, reply))

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: tests read `requests`."""

    def _error(self, wire: Wire, error: HttpError, number: int) -> None:
        status, body = wire.error(error, number)
        self._whole(json.dumps(body).encode(), status, error.headers)

    def _broken(self, wire: Wire, request: Request, fault: Broken) -> None:
        answer, how = fault.answer, fault.how
        if how == "error in the stream" and not request.stream:
            self._error(wire, fault.error or faults.unavailable(), request.number)
        elif how == "cut before headers":
            self.close_connection = True
        elif how == "empty":
            if request.stream:
                self._stream(self._events(wire, request, answer, nothing=True))
            else:
                body = json.loads(self._body(wire, request, answer)) | {wire.CONTENT: []}
                self._whole(json.dumps(body).encode())
        elif request.stream:
            self._broken_stream(wire, request, fault)
        else:
            whole = self._body(wire, request, answer)
            if how == "slow":
                self._whole(whole, seconds=fault.seconds)
            elif how == "invalid JSON":
                self._whole(whole[: len(whole) // 2])
            else:
                self._whole(whole, sent=len(whole) // 2)

    def _broken_stream(self, wire: Wire, request: Request, fault: Broken) -> None:
        events = self._events(wire, request, fault.answer)
        half = events[: max(1, len(events) // 2)]
        match fault.how:
            case "slow":
                self._stream(events, seconds=fault.seconds)
            case "invalid JSON":
                self._stream([*half, wire.bad_event()])
            case "error in the stream":
                error = fault.error or faults.unavailable()
                self._stream([*half, wire.error_event(error, request.number)])
            case "ends early":
                self._stream(half)
            case _:
                self._stream(half, ends=False)

    def _body(self, wire: Wire, request: Request, answer: Answer) -> bytes:
        usage = _usage(answer, request)
        return json.dumps(wire.whole(answer, request.body, request.number, usage)).encode()

    def _events(
        self, wire: Wire, request: Request, answer: Answer, nothing: bool = False
    ) -> list[bytes]:
        usage = _usage(answer, request)
        return list(wire.stream(answer, request.body, request.number, usage, nothing))

    def _whole(
        self,
        body: bytes,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
        *,
        sent: int | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Send a body: `sent` bytes of it, or all of it in this number of seconds."""
        more = [*headers, ("content-length", str(len(body)))]
        self._head(status, "application/json", more)
        self._pieces([body] if seconds == 0 else _divided(body), sent, seconds)
        if sent is not None:
            self.close_connection = True

    def _stream(self, events: list[bytes], *, ends: bool = True, seconds: float = 0.0) -> None:
        """Send events, and cut the connection if the stream is not to end."""
        self._head(200, "text/event-stream", [("transfer-encoding", "chunked")])
        chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in events]
        self._pieces([*chunks, b"0\r\n\r\n"] if ends else chunks, None, seconds)
        if not ends:
            self.close_connection = True

    def _head(self, status: int, kind: str, headers: Sequence[tuple[str, str]]) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _pieces(self, pieces: Sequence[bytes], most: int | None, seconds: float) -> None:
        owner = cast("HttpServer", self.server).owner
        try:
            for piece in pieces:
                if seconds:
                    self.wfile.flush()
                    if owner.closes_within(seconds / len(pieces)):
                        self.close_connection = True
                        return
                self.wfile.write(piece[:most])
            self.wfile.flush()
        except OSError:  # the client did not want to wait
            self.close_connection = True


def _divided(body: bytes) -> list[bytes]:
    size = -(-len(body) // PIECES)
    return [body[at : at + size] for at in range(0, len(body), size)]


def _usage(answer: Answer, request: Request) -> Usage:
    return answer.usage or Usage(request.tokens, -(-len(answer.text) // 4))
