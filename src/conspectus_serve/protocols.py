"""The table of protocols: paths, fields, errors, and how their streams begin and end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

ANTHROPIC_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
}
"""Types of Anthropic's errors by status, for the endpoint's own errors."""

REMEMBERED_PATHS = 64
"""Paths whose route is remembered; clients use few."""

TOO_LONG = "context_length_exceeded"
"""The error code with which clients recognise a full window."""

LONGEST_LOGGED = 80
"""The most characters of a client's text in the log."""


REASONS = {
    401: "entrance",
    403: "entrance",
    421: "entrance",
    426: "entrance",
    500: "internal",
    502: "upstream",
    504: "upstream",
}
"""Reasons of failures by the status of the endpoint's answer. Other statuses mean a fault of the
request."""


class HttpError(Exception):
    """An error that the endpoint answers a request with.

    It refuses the request, or the upstream cannot answer. `reason` is the word for it in the log
    and in the figures; by default it follows from the status.
    """

    def __init__(
        self, status: int, message: str, code: str | None = None, *, reason: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        default_reason = "too_long" if code == TOO_LONG else REASONS.get(status, "request")
        self.reason = reason or default_reason


def printable(text: str) -> str:
    """Return a client's text for one line of the log; `-` if it is empty."""
    short = text if len(text) <= LONGEST_LOGGED else f"{text[:LONGEST_LOGGED]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in short) or "-"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol."""

    name: Literal["chat", "responses", "messages"]
    field: str  # the field of the body with the history
    instruction_fields: tuple[str, ...]  # the fields with text before the history
    schema_fields: tuple[str, ...]  # the fields with schemas, which take tokens, too
    opening_events: re.Pattern[bytes]
    """What the first events of a stream have, which say nothing yet. An error may follow them."""

    closing_events: re.Pattern[bytes]  # what the last event of a stream has
    keep_alive: bytes = b": waiting\n\n"  # bytes for a stream whose client waits

    def history(self, body: Mapping[str, Any]) -> list[Any]:
        """Return the history of a request; nothing if it is malformed."""
        history = body.get(self.field)
        if self is RESPONSES and isinstance(history, str):
            return [{"role": "user", "content": history}]
        return history if isinstance(history, list) else []


# In JSON, line breaks and quotes in a text are escaped, so these match only events.
CHAT = Protocol(
    name="chat",
    field="messages",
    instruction_fields=(),
    schema_fields=("tools", "functions", "response_format"),
    opening_events=re.compile(
        rb'^:|"delta": ?\{"role": ?"assistant"(?:, ?"[a-z_]+": ?(?:""|null))*+\}'
    ),
    closing_events=re.compile(rb"(?:^|\n)data: ?\[DONE\]"),
)
RESPONSES = Protocol(
    name="responses",
    field="input",
    instruction_fields=("instructions",),
    schema_fields=("tools", "text"),
    opening_events=re.compile(rb'^:|"type": ?"response\.(?:created|in_progress|queued)"'),
    closing_events=re.compile(rb'[{,] ?"type": ?"response\.(?:completed|incomplete|failed)"'),
)
MESSAGES = Protocol(
    name="messages",
    field="messages",
    instruction_fields=("system",),
    schema_fields=("tools", "output_format"),
    opening_events=re.compile(rb'^:|"type": ?"(?:message_start|ping)"'),
    closing_events=re.compile(rb'[{,] ?"type": ?"message_stop"'),
    keep_alive=b'event: ping\ndata: {"type": "ping"}\n\n',
)

_RESPONSE_PATH = re.compile(r"/responses/([^/]+)\Z")
"""The last part of the path of one response."""

PROTOCOLS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
COMPACT = "responses/compact"

_HISTORY_PATH = re.compile(
    r"/(chat/completions|responses(?:/compact|/input_tokens)?|messages(?:/count_tokens)?)\Z"
)
"""Last parts of the paths whose requests have a history; the first parts differ by provider."""

_UNVERSIONED_PATH = re.compile(
    r"/(?:chat/completions|responses|messages|models|embeddings|completions)(?:/|$)"
)
"""Paths of a client that leaves `/v1` out."""

HISTORY_FIELDS = (b'"messages"', b'"contents"', b'"prompt"')
"""Fields of bodies that have a history, at any path."""

PATH_WITHOUT_HISTORY = re.compile(r"/(?:images|audio|videos|moderations|embeddings)(?:/|$)")
"""Paths of requests that have no history, whatever the names of their fields."""

_VERSIONED_BASE = re.compile(r"/(?:v\d\w*+|openai|openapi|inference|compat\w*+)$")
"""The end of an upstream's path that OpenAI's paths follow without `/v1`."""

_AZURE_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")


@dataclass(frozen=True, slots=True)
class Route:
    """A path whose requests have a history: its last part, its protocol, and the model in it."""

    name: str
    protocol: Protocol
    model: str = ""

    @property
    def counts(self) -> bool:
        """Whether the request asks how large it is."""
        return self.name.endswith("_tokens")


@lru_cache(REMEMBERED_PATHS)
def route_of(path: str) -> Route | None:
    """Return the route of a path; None for a path without a history.

    Example:
        >>> route_of("/openai/deployments/gpt/chat/completions").model
        'gpt'
        >>> route_of("/v1/models") is None
        True
    """
    path = without_extra_slashes(path)
    history_path = _HISTORY_PATH.search(path)
    if history_path is None or "/threads/" in path:
        return None
    name = history_path[1]
    deployment = _AZURE_DEPLOYMENT.search(path)
    protocol = PROTOCOLS[name.partition("/")[0]]
    return Route(name, protocol, deployment[1] if deployment else "")


def response_at(path: str) -> str:
    """Return the id of the response at a path; empty for another path."""
    response_path = _RESPONSE_PATH.search(without_extra_slashes(path))
    if response_path is None or response_path[1] in ("compact", "input_tokens"):
        return ""
    return response_path[1]


def without_extra_slashes(path: str) -> str:
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
    unversioned = path.removeprefix("/v1") if path.startswith("/v1/") else path
    if _VERSIONED_BASE.search(base):
        return base + unversioned
    is_providers_path = unversioned != path or _UNVERSIONED_PATH.match(path) is not None
    if is_providers_path and (not base or unversioned.startswith("/messages")):
        return f"{base}/v1{unversioned}"
    return base + path


def error_body(path: str, status: int, message: str, code: str | None = None) -> bytes:
    """Write an error in the form of the protocol of a path."""
    body: dict[str, Any]
    if re.search(r"/messages(?:/|$)", path):
        default_type = "invalid_request_error" if status < 500 else "api_error"
        error_type = ANTHROPIC_ERROR_TYPES.get(status, default_type)
        body = {"type": "error", "error": {"type": error_type, "message": message}}
    else:
        error_type = "invalid_request_error" if status < 500 else "server_error"
        body = {"error": {"message": message, "type": error_type, "param": None, "code": code}}
    return json.dumps(body).encode()


def error_event(protocol: Protocol, body: bytes) -> bytes:
    """Write an error's body, or another text, as the last event of a stream."""
    error = _error_in(body)
    if protocol is CHAT:
        return f"data: {json.dumps({'error': error})}\n\ndata: [DONE]\n\n".encode()
    event: dict[str, Any] = {"type": "error", "error": error}
    if protocol is RESPONSES:
        fields = {key: error.get(key) for key in ("code", "message", "param")}
        event = {"type": "error", **fields, "sequence_number": 0}
    return f"event: error\ndata: {json.dumps(event)}\n\n".encode()


def _error_in(body: bytes) -> dict[str, Any]:
    """Return the error in a body, or one whose message is the body."""
    try:
        error = json.loads(body)
    except ValueError:
        return {"message": body[:1_000].decode("utf-8", "replace")}
    if isinstance(error, dict):
        error = error.get("error", error)
    return error if isinstance(error, dict) else {"message": str(error)}
