"""The server: takes requests, asks the script, and answers or fails."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self, cast

from conspectus.testing.fault_server import anthropic_wire, faults, openai_wire
from conspectus.testing.fault_server.faults import Answer, Broken, HttpError, Reply, Usage
from conspectus.testing.fault_server.request import Protocol as Speaks
from conspectus.testing.fault_server.request import Request
from conspectus.testing.fault_server.scripts import Script, check_reply, check_script

PIECES = 20
"""The most pieces in which a slow answer comes."""


class Wire(Protocol):
    """How one of the two protocols is written."""

    def torn(self, body: Mapping[str, Any]) -> Iterator[str]: ...

    def error(self, fault: HttpError, number: int) -> tuple[int, dict[str, Any]]: ...

    def whole(
        self, answer: Answer, body: Mapping[str, Any], number: int, usage: Usage
    ) -> dict[str, Any]: ...

    def empty(
        self, answer: Answer, body: Mapping[str, Any], number: int, usage: Usage
    ) -> dict[str, Any]: ...

    def stream(
        self,
        answer: Answer,
        body: Mapping[str, Any],
        number: int,
        usage: Usage,
        nothing: bool = False,
    ) -> Iterator[bytes]: ...

    def error_event(self, fault: HttpError, number: int) -> bytes: ...

    def bad_event(self) -> bytes: ...


WIRES: dict[str, tuple[Speaks, Wire]] = {
    "/v1/chat/completions": ("openai", openai_wire),
    "/v1/messages": ("anthropic", anthropic_wire),
}


class FaultServer:
    """Speaks OpenAI's and Anthropic's chat protocols on a free port of loopback.

    Each request is answered by the script: with a text, an `Answer`, or a fault. Answers are
    streamed to those who ask for it, with usage. Use it as a context manager.

    Args:
        script: replies in the order of the requests, or a function that gets a `Request` and
            returns one. May be replaced between requests.
        window: the most tokens of a request; a larger one is refused as too long, in the words of
            the provider, before the script is asked. Default: no limit.
        count: tokens of a request's body. Default: one for every four characters of JSON of its
            messages, system prompt and tools.
        strict: refuse requests in which calls of tools and their results are torn apart, as both
            providers do.

    Attributes:
        script: as above.
        requests: all requests so far, in the order in which they came.
        refused: those that were larger than the window.
        torn: those with torn calls.
        connections: connections that were opened.

    Raises:
        TypeError: the script is neither a list of replies nor a function, count no function, or
            strict neither True nor False.
        ValueError: the window is no number of tokens.
        RuntimeError: it is asked for its address before it was entered, or entered twice.
        Exception: on leaving, what a script or count has raised, or what could not be written,
            unless something else is raised already. The client was told 500. A list that is used
            up raises `IndexError`.

    Example:
        >>> import json, urllib.request
        >>> with FaultServer(["hello"]) as server:
        ...     url = server.openai_url + "/chat/completions"
        ...     body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        ...     said = json.load(urllib.request.urlopen(url, json.dumps(body).encode()))
        >>> said["choices"][0]["message"]["content"], server.requests[0].text
        ('hello', 'hi')
    """

    def __init__(
        self,
        script: Script,
        *,
        window: int | None = None,
        count: Callable[[dict[str, Any]], int] | None = None,
        strict: bool = True,
    ) -> None:
        if window is not None and not (isinstance(window, int) and window > 0):
            raise ValueError(f"window={window!r} is no number of tokens; give 1 or more, or None")
        if count is not None and not callable(count):
            raise TypeError(f"count={count!r} is no function of a request's body")
        if not isinstance(strict, bool):
            raise TypeError(f"strict={strict!r} is neither True nor False")
        self.script = script
        self.requests: list[Request] = []
        self.refused: list[Request] = []
        self.torn: list[Request] = []
        self.connections = 0
        self.window, self._strict = window, strict
        self._count = count
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._failures: list[Exception] = []
        self._place = 0
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.daemon = True

    @property
    def script(self) -> Script:
        """What answers the requests."""
        return self._script

    @script.setter
    def script(self, script: Script) -> None:
        check_script(script)
        self._script = script

    @property
    def openai_url(self) -> str:
        """The `base_url` for a client of OpenAI."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` for a client of Anthropic."""
        if self._thread.ident is None:  # the port is taken, and nobody would ever answer
            raise RuntimeError(
                "this server answers nobody yet; enter it: with FaultServer(...) as server"
            )
        return f"http://127.0.0.1:{self._server.server_port}"

    def restart(self, script: Script) -> None:
        """Begin with another script, and forget what was asked, and what a script raised so far."""
        with self._lock:
            self.script, self._place = script, 0
            self._failures.clear()
            for seen in (self.requests, self.refused, self.torn):
                seen.clear()

    def __enter__(self) -> Self:
        if self._thread.ident is not None:
            raise RuntimeError(
                "a server is entered once; make another one, or give this one another script "
                "with restart() inside its `with`"
            )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.close_all()
        if self._failures and error is None:
            raise self._failures[0]

    # One request

    def _take(self, speaks: Speaks, wire: Wire, body: dict[str, Any], headers: Any) -> Request:
        torn = tuple(wire.torn(body))
        named = {name.lower(): value for name, value in headers.items()}
        with self._lock:
            number = len(self.requests) + 1
            made = Request(number, speaks, body, named, self._counted(body), torn)
            self.requests.append(made)
            if torn:
                self.torn.append(made)
            if self.window is not None and made.tokens > self.window:
                self.refused.append(made)
        return made

    def _counted(self, body: dict[str, Any]) -> int:
        if self._count is None:
            return _count(body)
        try:
            tokens = self._count(body)
            if not isinstance(tokens, int):
                raise TypeError(f"count must return a number of tokens, and returned {tokens!r}")
        except Exception as error:
            raise _OwnMistake from error
        return tokens

    def _reply(self, request: Request) -> Answer | HttpError | Broken:
        if not request.messages:
            return faults.bad_request("messages: at least one message is required")
        if request.torn and self._strict:
            return faults.bad_request("; ".join(request.torn))
        if self.window is not None and request.tokens > self.window:
            return faults.context_length(self.window, request.tokens)
        try:
            reply = self._scripted(request)
            check_reply(reply)
            return Answer(reply) if isinstance(reply, str) else reply
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> HttpError:
        """What a client is told of a mistake in the script, which is raised at the end."""
        self._failures.append(error)
        return faults.HttpError(500, f"the script failed: {error}", "api_error", "server_error")

    def _scripted(self, request: Request) -> Reply:
        script = self.script
        if callable(script):
            return script(request)
        with self._lock:
            place, self._place = self._place, self._place + 1
        if place >= len(script):
            raise IndexError(
                f"the script has {len(script)} replies and this is request {place + 1}; add one, "
                "or give a function"
            )
        return script[place]

    def _closes_within(self, seconds: float) -> bool:
        return self._closing.wait(seconds)


class _OwnMistake(Exception):
    """The caller's own function has failed, as its cause says."""


class _Server(ThreadingHTTPServer):
    """Keeps the connections that are open, to close them when it ends."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner: FaultServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
            self.owner.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error of the server."""

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
        owner = cast("_Server", self.server).owner
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        speaks, wire = WIRES.get(self.path.partition("?")[0], (None, cast("Wire", openai_wire)))
        if speaks is None:
            known = " and ".join(WIRES)
            self._error(wire, faults.not_found(f"{self.path} (there are {known})"), 0)
            return
        try:
            body = json.loads(raw)
            request = owner._take(speaks, wire, body, self.headers)
        except _OwnMistake as mistake:
            self._error(wire, owner._failed(cast("Exception", mistake.__cause__)), 0)
            return
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            said = f"this is no request: {type(error).__name__}: {error}"
            self._error(wire, faults.bad_request(said), 0)
            return
        try:
            self._answer(wire, request, owner._reply(request))
        except OSError:
            raise  # the client has gone
        except Exception as error:  # what cannot be written, such as arguments that are no JSON
            self._error(wire, owner._failed(error), request.number)

    def _answer(self, wire: Wire, request: Request, reply: Answer | HttpError | Broken) -> None:
        if isinstance(reply, HttpError):
            self._error(wire, reply, request.number)
        elif isinstance(reply, Broken):
            self._broken(wire, request, reply)
        elif request.stream:
            self._stream(list(self._events(wire, request, reply)))
        else:
            self._whole(self._body(wire, request, reply))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: tests read `requests`."""

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
                self._stream(list(self._events(wire, request, answer, nothing=True)))
            else:
                usage = _usage(answer, request)
                body = wire.empty(answer, request.body, request.number, usage)
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
        events = list(self._events(wire, request, fault.answer))
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
    ) -> Iterator[bytes]:
        usage = _usage(answer, request)
        return wire.stream(answer, request.body, request.number, usage, nothing)

    def _whole(
        self,
        body: bytes,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
        *,
        sent: int | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Send a body: only `sent` bytes of it, or all of it in so many seconds."""
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
        owner = cast("_Server", self.server).owner
        try:
            for piece in pieces:
                if seconds:
                    self.wfile.flush()
                    if owner._closes_within(seconds / len(pieces)):
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


def _count(body: Mapping[str, Any]) -> int:
    parts = [body.get("system"), body["messages"], body.get("tools")]
    return sum(len(json.dumps(part, ensure_ascii=False)) for part in parts if part) // 4
