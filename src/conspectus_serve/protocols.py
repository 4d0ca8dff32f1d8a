"""The table of protocols: paths, fields, errors, and what their streams begin and end with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

ANTHROPIC_KINDS = {401: "authentication_error", 403: "permission_error", 413: "request_too_large"}
"""Types of Anthropic's errors by status, as far as the endpoint has some of its own."""

PATHS = 64  # of which is remembered what they are; clients use few
TOO_LONG = "context_length_exceeded"  # the code of an error by which clients know a full window
LONGEST = 80  # maximum characters of a client's text in the log


REASONS = {
    401: "entrance",
    403: "entrance",
    421: "entrance",
    426: "entrance",
    500: "internal",
    502: "upstream",
    504: "upstream",
}
"""Reasons of failures by the status that the endpoint answers with; others lie in the request."""


class Refusal(Exception):
    """A request that the endpoint refuses, or that its upstream cannot answer.

    `reason` is the word for it in the log and the figures; by default it follows from the status.
    """

    def __init__(
        self, status: int, message: str, code: str | None = None, *, reason: str = ""
    ) -> None:
        super().__init__(message)
        self.status, self.code = status, code
        self.reason = reason or ("too_long" if code == TOO_LONG else REASONS.get(status, "request"))


def printable(text: str) -> str:
    """Return a client's text as it may stand in one line of the log; `-` for none."""
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in short) or "-"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol."""

    name: Literal["chat", "responses", "messages"]
    field: str  # of the body, with the history
    beside: tuple[str, ...]  # fields with text before the history
    schemas: tuple[str, ...]  # fields with schemas, which take tokens too
    begins: re.Pattern[bytes]  # parts of a stream's first events, before which an error may come
    ends: re.Pattern[bytes]  # the events behind which a stream holds nothing more
    alive: bytes = b": waiting\n\n"  # what a stream may hold while its client waits

    def history(self, body: Mapping[str, Any]) -> list[Any]:
        """Return the history of a request; nothing if it is malformed."""
        history = body.get(self.field)
        if self is RESPONSES and isinstance(history, str):
            return [{"role": "user", "content": history}]
        return history if isinstance(history, list) else []


# In JSON a line ends a text nowhere, and quotes in a text are escaped: these are events alone.
CHAT = Protocol(
    "chat",
    "messages",
    (),
    ("tools", "functions", "response_format"),
    re.compile(rb'^:|"delta": ?\{"role": ?"assistant"(?:, ?"[a-z_]+": ?(?:""|null))*+\}'),
    re.compile(rb"(?:^|\n)data: ?\[DONE\]"),
)
RESPONSES = Protocol(
    "responses",
    "input",
    ("instructions",),
    ("tools", "text"),
    re.compile(rb'^:|"type": ?"response\.(?:created|in_progress|queued)"'),
    re.compile(rb'[{,] ?"type": ?"response\.(?:completed|incomplete|failed)"'),
)
MESSAGES = Protocol(
    "messages",
    "messages",
    ("system",),
    ("tools", "output_format"),
    re.compile(rb'^:|"type": ?"(?:message_start|ping)"'),
    re.compile(rb'[{,] ?"type": ?"message_stop"'),
    b'event: ping\ndata: {"type": "ping"}\n\n',
)

_RESPONSE = re.compile(r"/responses/([^/]+)\Z")
"""End of the path of one response."""

PROTOCOLS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
COMPACT = "responses/compact"

_HISTORY = re.compile(
    r"/(chat/completions|responses(?:/compact|/input_tokens)?|messages(?:/count_tokens)?)\Z"
)
"""Ends of the paths whose requests hold a history, wherever a provider has put them."""

BARE = re.compile(r"/(?:chat/completions|responses|messages|models|embeddings|completions)(?:/|$)")
"""Paths of a client that leaves `/v1` out."""

HISTORIES = (b'"messages"', b'"contents"', b'"prompt"')
"""Fields of bodies with a history, at whatever path."""

NO_HISTORY = re.compile(r"/(?:images|audio|videos|moderations|embeddings)(?:/|$)")
"""Paths of requests that have no history, whatever their fields are called."""

_VERSIONED = re.compile(r"/(?:v\d\w*+|openai|openapi|inference|compat\w*+)$")
"""The end of an upstream's path behind which OpenAI's paths follow without `/v1`."""

_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")


@dataclass(frozen=True, slots=True)
class Route:
    """A path with a history: the end of it, its protocol, and the model that it names."""

    name: str
    protocol: Protocol
    model: str = ""

    @property
    def counts(self) -> bool:
        """Whether the request asks how large it is."""
        return self.name.endswith("_tokens")


@lru_cache(PATHS)
def route_of(path: str) -> Route | None:
    """Return what is asked for at a path; None for a path without a history.

    Example:
        >>> route_of("/openai/deployments/gpt/chat/completions").model
        'gpt'
        >>> route_of("/v1/models") is None
        True
    """
    plain = cleaned(path)
    if (end := _HISTORY.search(plain)) is None or "/threads/" in plain:
        return None
    model = _DEPLOYMENT.search(plain)
    return Route(end[1], PROTOCOLS[end[1].partition("/")[0]], model[1] if model else "")


def response_at(path: str) -> str:
    """Return the id of the response at a path; empty for another path."""
    named = _RESPONSE.search(cleaned(path))
    return named[1] if named and named[1] not in ("compact", "input_tokens") else ""


def cleaned(path: str) -> str:
    """Return a path without a slash at its end, and without two in a row."""
    return re.sub(r"/{2,}", "/", path).rstrip("/") or "/"


def target_of(upstream: str, path: str) -> str:
    """Return the path at the upstream for the path of a client.

    An upstream is written as its provider writes it for clients, with or without `/v1`; clients
    write `/v1`, leave it out, or write the upstream's own path.

    Example:
        >>> target_of("https://h/api/paas/v4", "/v1/chat/completions")
        '/api/paas/v4/chat/completions'
        >>> target_of("https://h", "/chat/completions"), target_of("https://h/v1", "/v1/files")
        ('/v1/chat/completions', '/v1/files')
    """
    base = urlsplit(upstream).path.rstrip("/")
    if base and (path == base or path.startswith(f"{base}/")):
        return path
    bare = path.removeprefix("/v1") if path.startswith("/v1/") else path
    known = bare != path or BARE.match(path) is not None
    if _VERSIONED.search(base):
        return base + bare
    if known and (not base or bare.startswith("/messages")):
        return f"{base}/v1{bare}"
    return base + path


def error_body(path: str, status: int, message: str, code: str | None = None) -> bytes:
    """Write an error in the form of the protocol of a path."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    made: dict[str, Any] = {
        "error": {"message": message, "type": kind, "param": None, "code": code}
    }
    if re.search(r"/messages(?:/|$)", path):
        kind = ANTHROPIC_KINDS.get(status, kind if status < 500 else "api_error")
        made = {"type": "error", "error": {"type": kind, "message": message}}
    return json.dumps(made).encode()


def error_event(protocol: Protocol, body: bytes) -> bytes:
    """Write an error's body, or a text that is none, as the event with which a stream ends."""
    try:
        error = json.loads(body)
        error = error.get("error", error) if isinstance(error, dict) else error
    except ValueError:
        error = body[:1_000].decode("utf-8", "replace")
    error = error if isinstance(error, dict) else {"message": str(error)}
    if protocol is CHAT:
        return f"data: {json.dumps({'error': error})}\n\ndata: [DONE]\n\n".encode()
    event: dict[str, Any] = {"type": "error", "error": error}
    if protocol is RESPONSES:
        told = {key: error.get(key) for key in ("code", "message", "param")}
        event = {"type": "error", **told, "sequence_number": 0}
    return f"event: error\ndata: {json.dumps(event)}\n\n".encode()
