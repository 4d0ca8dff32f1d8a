"""Describe the three protocols: the history's field, the fields beside it, the form of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
    """

    name: Name
    field: str
    beside: tuple[str, ...]
    schemas: tuple[str, ...]

    def history(self, body: Mapping[str, Any]) -> list[Any] | None:
        """Return the history of a request; None if it is malformed."""
        found = body.get(self.field)
        if self.name == "responses" and isinstance(found, str):
            return [{"role": "user", "content": found}]
        return found if isinstance(found, list) else None


CHAT = Protocol("chat", "messages", (), ("tools", "functions", "response_format"))
RESPONSES = Protocol("responses", "input", ("instructions",), ("tools", "text"))
MESSAGES = Protocol("messages", "messages", ("system",), ("tools", "output_format"))

PATHS = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/responses/compact": RESPONSES,
    "/v1/messages": MESSAGES,
}
"""Paths whose requests hold a history."""


def error_body(path: str, status: int, message: str, code: str | None = None) -> bytes:
    """Write an error in the form of the protocol of a path.

    Example:
        >>> error_body("/v1/messages", 413, "too large")
        b'{"type": "error", "error": {"type": "request_too_large", "message": "too large"}}'
    """
    said: dict[str, Any]
    if path.startswith("/v1/messages"):
        kind = ANTHROPIC_KINDS.get(status, "api_error")
        said = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        kind = "invalid_request_error" if status < 500 else "server_error"
        said = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json.dumps(said).encode()
