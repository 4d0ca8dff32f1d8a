"""A server on loopback that speaks the OpenAI chat protocol, for tests with real clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Reply = str | tuple[int, dict[str, Any]]
"""The text of an answer, or a status and a body instead of one."""


class OpenAIServer:
    """Answers `POST /v1/chat/completions` with what a function says, and remembers what it got.

    Args:
        answer: gets the body of a request, and returns the text of the answer, or a status and a
            JSON body for an error.
        count: tokens of a request's body, for the usage that is reported; default: one for every
            four characters of the messages.

    Attributes:
        requests: bodies of the requests, in the order in which they came.

    Example:
        >>> with OpenAIServer(lambda body: "hello") as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], Reply],
        count: Callable[[dict[str, Any]], int] | None = None,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self._answer = answer
        self._count = count or (lambda body: len(json.dumps(body["messages"])) // 4)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                status, reply = outer._reply(json.loads(self.rfile.read(length)))
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: tests read `requests`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        answer = self._answer(body)
        if not isinstance(answer, str):
            return answer
        sent, got = self._count(body), len(answer) // 4
        return 200, {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": answer},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": sent,
                "completion_tokens": got,
                "total_tokens": sent + got,
            },
        }
