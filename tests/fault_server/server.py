"""Run the server: take requests, ask the script, and answer or fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from fault_server import faults
from fault_server.faults import Answer, Broken, HttpError, Reply
from fault_server.http_server import HttpServer, Owner
from fault_server.request import Protocol as Speaks
from fault_server.request import Request

Script = Sequence[Reply] | Callable[[Request], Reply]


class FaultServer:
    """A server of OpenAI's and Anthropic's protocols on a free port of loopback.

    The script answers each request with a text, an `Answer`, or a fault, streamed if the client
    asks for it, with usage. Use it as a context manager.

    Args:
        script: replies in the order of the requests, or a function that gets a `Request` and
            returns one. May be replaced between requests.
        window: maximum tokens of a request; a larger one is refused as too long, in the words of
            the provider, before the script is asked. Default: no limit.
        count: tokens of a request's body. Default: one for every four characters of JSON of its
            messages or items, system prompt and tools.
        strict: refuse requests with torn pairs of calls and results, as the providers do.

    Attributes:
        requests: all requests so far.
        refused: requests larger than the window.
        torn: requests with torn pairs.
        connections: connections that were opened.
        open_connections: connections that are open now.

    Raises:
        RuntimeError: it is entered twice, or asked for its address before that.
        Exception: on leaving, the error of a script or count, or of writing an answer, unless
            another one is raised already. The client got 500. A list that is used up raises
            `IndexError`.

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
        self.script = script
        self.requests: list[Request] = []
        self.refused: list[Request] = []
        self.torn: list[Request] = []
        self.connections = 0
        self.window, self._strict = window, strict
        self._count = count or _count
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._failures: list[Exception] = []
        self._place = 0
        self._server = HttpServer(
            Owner(self._take, self._reply, self._failed, self._connected, self._closing.wait)
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.daemon = True

    @property
    def open_connections(self) -> int:
        """Count the connections that are open now."""
        return self._server.open_connections

    @property
    def openai_url(self) -> str:
        """Return the `base_url` for a client of OpenAI."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """Return the `base_url` for a client of Anthropic."""
        if self._thread.ident is None:  # the port is taken, and nobody would ever answer
            raise RuntimeError(
                "this server answers nobody yet; enter it: with FaultServer(...) as server"
            )
        return f"http://127.0.0.1:{self._server.server_port}"

    def restart(self, script: Script) -> None:
        """Start another script, and forget all requests and errors so far."""
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

    def __exit__(self, kind: object, *raised: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.close_all()
        if self._failures and kind is None:
            raise self._failures[0]

    # One request

    def _connected(self) -> None:
        with self._lock:
            self.connections += 1

    def _take(
        self,
        speaks: Speaks,
        torn: tuple[str, ...],
        body: dict[str, Any],
        headers: Mapping[str, str],
    ) -> Request:
        with self._lock:
            number = len(self.requests) + 1
            made = Request(number, speaks, body, headers, self._count(body), torn)
            self.requests.append(made)
            if torn:
                self.torn.append(made)
            if self.window is not None and made.tokens > self.window:
                self.refused.append(made)
        return made

    def _reply(self, request: Request) -> Answer | HttpError | Broken:
        if not request.messages:
            return faults.bad_request("messages: at least one message is required")
        if request.torn and self._strict:
            return faults.bad_request("; ".join(request.torn))
        if self.window is not None and request.tokens > self.window:
            return faults.context_length(self.window, request.tokens)
        try:
            reply = self._scripted(request)
            return Answer(reply) if isinstance(reply, str) else reply
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> HttpError:
        """Refuse because of a mistake in the script, which is raised at the end."""
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


def _count(body: Mapping[str, Any]) -> int:
    said = body["input"] if "input" in body else body["messages"]
    parts = [body.get("system"), body.get("instructions"), said, body.get("tools")]
    return sum(len(json.dumps(part, ensure_ascii=False)) for part in parts if part) // 4
