"""Run the server: take requests, ask the script, and answer whole, in pieces, or broken."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

from fault_server import faults
from fault_server.faults import Answer, Broken, HttpError, Reply, Usage
from fault_server.wires import WIRES, Wire

PIECES = 20  # maximum pieces of a slow answer

NAMES = frozenset(("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "status"))
"""Fields without text."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `refusals` has the objections of a provider, `tokens` what the server counts."""

    number: int
    protocol: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    tokens: int = 0
    refusals: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages or items, in the form of the protocol."""
        messages = self.body["input"] if self.protocol == "responses" else self.body["messages"]
        return (
            [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        )

    @property
    def text(self) -> str:
        """All texts of messages, system prompt and arguments of calls."""
        system = [self.body.get("system"), self.body.get("instructions")]
        return "\n".join(_texts([*system, *self.messages]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([part for key, part in value.items() if key not in NAMES])
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


Script = Sequence[Reply] | Callable[[Request], Reply]
Count = Callable[[dict[str, Any]], int]


class FaultServer:
    """A server of OpenAI's and Anthropic's protocols on a free port of loopback.

    The script answers each request with a text, an `Answer`, or a fault, streamed if the client
    asks for it, with usage. Use it as a context manager; on leaving it raises what the script did.

    Args:
        script: replies in the order of the requests, or a function that gets a `Request`.
        window: maximum tokens of a request; a larger one is refused as too long, in the words of
            the provider, before the script is asked.
        count: tokens of a request's body. Default: one for four characters of JSON.
    """

    def __init__(
        self, script: Script, *, window: int | None = None, count: Count | None = None
    ) -> None:
        self.script = script
        self.window = window
        self.requests: list[Request] = []
        self.too_long: list[Request] = []
        self.invalid: list[Request] = []
        self._count = count or _count
        self._place = 0
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self._failures: list[Exception] = []
        self._server = _Http(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.daemon = True

    @property
    def openai_url(self) -> str:
        """The `base_url` for a client of OpenAI."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` for a client of Anthropic."""
        if self._thread.ident is None:  # the port is taken, and nobody would ever answer
            raise RuntimeError("this server answers nobody yet; enter it")
        return f"http://127.0.0.1:{self._server.server_port}"

    def restart(self, script: Script) -> None:
        """Start another script, and forget all requests and errors so far."""
        with self._lock:
            self.script = script
            self._place = 0
            for list_of_requests in (self._failures, self.requests, self.too_long, self.invalid):
                list_of_requests.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, error_type: object, *raised: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.close_all()
        if self._failures and error_type is None:
            raise self._failures[0]

    def reply(
        self, wire: Wire, body: dict[str, Any], headers: Mapping[str, str]
    ) -> tuple[Request, Answer | HttpError | Broken]:
        """Take a request, and return what answers it."""
        refusals = tuple(wire.refusals(body))
        tokens = self._count(body)
        with self._lock:
            request = Request(len(self.requests) + 1, wire.name, body, headers, tokens, refusals)
            over_window = self.window is not None and tokens > self.window
            self.requests.append(request)
            self.invalid += [request] if refusals else []
            self.too_long += [request] if over_window else []
        if not request.messages:
            return request, faults.bad_request("messages: at least one message is required")
        if refusals:
            return request, faults.bad_request("; ".join(refusals))
        if over_window:
            return request, faults.context_length(self.window or 0, tokens)
        reply = self._scripted(request)
        return request, Answer(reply) if isinstance(reply, str) else reply

    def failed(self, error: Exception) -> HttpError:
        """Refuse because of a mistake in the script, which is raised at the end."""
        self._failures.append(error)
        return HttpError(500, f"the script failed: {error}", "api_error", "server_error")

    def _scripted(self, request: Request) -> Reply:
        script = self.script
        if callable(script):
            return script(request)
        with self._lock:
            index = self._place
            self._place = self._place + 1
        if index >= len(script):
            raise IndexError(
                f"the script has {len(script)} replies and this is request {index + 1}; add one, "
                "or give a function"
            )
        return script[index]


def _count(body: Mapping[str, Any]) -> int:
    messages = body["input"] if "input" in body else body["messages"]
    texts = [body.get("system"), body.get("instructions"), messages, body.get("tools")]
    return sum(len(json.dumps(text, ensure_ascii=False)) for text in texts if text) // 4


class _Http(ThreadingHTTPServer):
    """A server that closes every connection when it is closed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner: FaultServer) -> None:
        self.owner = owner
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has gone."""

    def close_all(self) -> None:
        self.server_close()
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        owner = cast("_Http", self.server).owner
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        path = self.path.partition("?")[0]
        wire = WIRES.get(path) or WIRES["/v1/chat/completions"]
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(raw)
            list(wire.refusals(body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            fault = faults.bad_request(f"this is no request: {type(error).__name__}: {error}")
            self._error(wire, fault if path in WIRES else faults.not_found(self.path), 0)
            return
        if path not in WIRES:
            self._error(wire, faults.not_found(self.path), 0)
            return
        number = 0
        try:
            request, reply = owner.reply(wire, body, headers)
            number = request.number
            self._answer(wire, request, reply)
        except OSError:
            raise  # the client has gone
        except Exception as error:  # a script's, or arguments that are no JSON
            self._error(wire, owner.failed(error), number)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: tests read `requests`."""

    def _error(self, wire: Wire, error: HttpError, number: int) -> None:
        status, body = wire.error(error, number)
        self._whole(json.dumps(body).encode(), status, error.headers)

    def _answer(self, wire: Wire, request: Request, reply: Answer | HttpError | Broken) -> None:
        if isinstance(reply, HttpError):
            self._error(wire, reply, request.number)
            return
        broken = reply if isinstance(reply, Broken) else Broken("", reply)
        how_it_breaks = broken.how
        answer = broken.answer
        seconds = broken.seconds
        error = broken.error or faults.unavailable()
        usage = answer.usage or Usage(request.tokens, -(-len(answer.text) // 4))
        arguments = (answer, request.body, request.number, usage)
        if how_it_breaks == "cut before headers":
            self.close_connection = True
        elif request.stream:
            events = list(wire.stream(*arguments, how_it_breaks == "empty"))
            half = events[: max(1, len(events) // 2)]
            ends = dict.fromkeys(("ends early", "cut in the middle"), half)
            ends["invalid JSON"] = [*half, wire.bad_event]
            ends["error in the stream"] = [*half, wire.error_event(error, request.number)]
            self._stream(
                ends.get(how_it_breaks, events),
                ends=how_it_breaks != "cut in the middle",
                seconds=seconds,
            )
        elif how_it_breaks == "error in the stream":
            self._error(wire, error, request.number)
        else:
            empty = {wire.content: []} if how_it_breaks == "empty" else {}
            body = json.dumps(wire.whole(*arguments) | empty).encode()
            cut = len(body) // 2 if how_it_breaks in ("cut in the middle", "ends early") else None
            body = body[: len(body) // 2] if how_it_breaks == "invalid JSON" else body
            self._whole(body, sent=cut, seconds=seconds)

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
        self._head(status, "application/json", [*headers, ("content-length", str(len(body)))])
        size = -(-len(body) // PIECES) if seconds else max(1, len(body))
        self._pieces([body[at : at + size] for at in range(0, len(body), size)], sent, seconds)
        self.close_connection = self.close_connection or sent is not None

    def _stream(self, events: list[bytes], *, ends: bool = True, seconds: float = 0.0) -> None:
        """Send events, and cut the connection if the stream is not to end."""
        self._head(200, "text/event-stream", [("transfer-encoding", "chunked")])
        chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in events]
        self._pieces([*chunks, b"0\r\n\r\n"] if ends else chunks, None, seconds)
        self.close_connection = self.close_connection or not ends

    def _head(self, status: int, content_type: str, headers: Sequence[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in (("content-type", content_type), *headers):
            self.send_header(name, value)
        self.end_headers()

    def _pieces(self, pieces: Sequence[bytes], sent: int | None, seconds: float) -> None:
        closing = cast("_Http", self.server).owner.closing
        try:
            for piece in pieces:
                if seconds:
                    self.wfile.flush()
                    if closing.wait(seconds / len(pieces)):
                        self.close_connection = True
                        return
                self.wfile.write(piece[:sent])
            self.wfile.flush()
        except OSError:  # the client did not want to wait
            self.close_connection = True
