"""Describe the three protocols: their paths, the history's field, the form of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

Name = Literal["chat", "responses", "messages"]

ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""Types of Anthropic's errors by status (its API reference); others: `api_error`."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol.

    Attributes:
        field: of the body, with the history.
        beside: fields with text before the history.
        schemas: fields with schemas, which take tokens too.
        begins: parts of a stream's first events, before which an error may come.
        ends: the events behind which a stream holds nothing more.
    """

    name: Name
    field: str
    beside: tuple[str, ...]
    schemas: tuple[str, ...]
    begins: re.Pattern[bytes]
    ends: re.Pattern[bytes]

    def history(self, body: Mapping[str, Any]) -> list[Any] | None:
        """Return the history of a request; None if it is malformed."""
        found = body.get(self.field)
        if self.name == "responses" and isinstance(found, str):
            return [{"role": "user", "content": found}]
        return found if isinstance(found, list) else None


# In JSON a line ends a text nowhere, and quotes in a text are escaped: these are events alone.
CHAT = Protocol(
    "chat",
    "messages",
    (),
    ("tools", "functions", "response_format"),
    re.compile(rb"^:"),
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
)

ENDINGS = {
    "chat/completions": CHAT,
    "responses": RESPONSES,
    "responses/compact": RESPONSES,
    "responses/input_tokens": RESPONSES,
    "messages": MESSAGES,
    "messages/count_tokens": MESSAGES,
}
"""Ends of the paths whose requests hold a history, wherever a provider has put them."""

COUNTS = ("responses/input_tokens", "messages/count_tokens")
"""Of these, the ones that ask how large a request is."""

BARE = re.compile(r"/(?:chat/completions|responses|messages|models|embeddings|completions)(?:/|$)")
"""Paths of a client that leaves `/v1` out."""

WITHOUT_HISTORY = re.compile(
    r"/(?:embeddings|files|uploads|batches|audio|images|videos|moderations|rerank|tokenize|"
    r"detokenize|vector_stores|fine_tuning|assistants|threads|evals|containers|realtime|telemetry|"
    r"event_logging|responses/[^/]+|completions/[^/]+|v1/completions)(?:/|$)"
)
"""Paths whose requests hold no history that a window could be too small for."""

_VERSIONED = re.compile(r"/(?:v\d\w*+|openai|inference|compat\w*+)$")
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
        return self.name in COUNTS


def route_of(path: str) -> Route | None:
    """Return what is asked for at a path; None for a path without a history.

    Example:
        >>> route_of("/openai/deployments/gpt/chat/completions").model
        'gpt'
        >>> route_of("/v1/models") is None
        True
    """
    plain = cleaned(path)
    for name, protocol in ENDINGS.items():
        if plain.endswith(f"/{name}") and "/threads/" not in plain:
            model = _DEPLOYMENT.search(plain)
            return Route(name, protocol, model[1] if model else "")
    return None


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
    if base.endswith("/v1"):
        return base + bare
    if known and bare.startswith("/messages") and not re.search(r"/v\d\w*+$", base):
        return f"{base}/v1{bare}"
    if _VERSIONED.search(base):
        return base + bare
    return f"{base}/v1{bare}" if known and not base else base + path


def error_body(path: str, status: int, message: str, code: str | None = None) -> bytes:
    """Write an error in the form of the protocol of a path.

    Example:
        >>> error_body("/v1/messages", 413, "too large")
        b'{"type": "error", "error": {"type": "request_too_large", "message": "too large"}}'
    """
    said: dict[str, Any]
    if re.search(r"/messages(?:/|$)", path):
        kind = ANTHROPIC_KINDS.get(status, "api_error")
        said = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        kind = "invalid_request_error" if status < 500 else "server_error"
        said = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json.dumps(said).encode()


def error_event(protocol: Protocol, body: bytes) -> bytes:
    """Write an error as the event with which a stream of a protocol ends.

    Args:
        protocol: of the stream.
        body: the error as a body; another text than JSON is wrapped.
    """
    try:
        said = json.loads(body)
        said = said if isinstance(said, dict) and "error" in said else {"error": said}
    except ValueError:
        said = {"error": {"message": body[:1_000].decode("utf-8", "replace")}}
    if not isinstance(said["error"], dict):
        said["error"] = {"message": str(said["error"])}
    if protocol is CHAT:
        return f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode()
    if protocol is MESSAGES:
        said = {"type": "error", **said}
    else:
        known = said["error"]
        said = {
            "type": "error",
            "sequence_number": 0,
            "code": known.get("code"),
            "message": str(known.get("message") or "the upstream has refused the request"),
            "param": known.get("param"),
        }
    return f"event: error\ndata: {json.dumps(said)}\n\n".encode()


def sign_of_life(protocol: Protocol) -> bytes:
    """Write what a stream may hold while its client waits."""
    return b'event: ping\ndata: {"type": "ping"}\n\n' if protocol is MESSAGES else b": waiting\n\n"
