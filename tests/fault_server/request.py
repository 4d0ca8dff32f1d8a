"""Hold a request of a client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["openai", "responses", "anthropic"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        number: from 1.
        protocol: Chat Completions, Responses or Messages.
        body: the JSON.
        headers: by name in lower case.
        tokens: its size, as the server counts.
        torn: objections of a provider: calls without results, results without calls;
            of a response, also wrong ids and parts.
    """

    number: int
    protocol: Protocol
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    tokens: int = 0
    torn: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """Return the requested model, by which a script can tell callers apart."""
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        """Return whether the client asks for a stream."""
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the messages or items, in the form of the protocol."""
        given = self.body["input"] if self.protocol == "responses" else self.body["messages"]
        return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)

    @property
    def text(self) -> str:
        """Join all texts of messages, system prompt and arguments of calls."""
        system = [self.body.get("system"), self.body.get("instructions")]
        return "\n".join(_texts([*system, *self.messages]))


NAMES = frozenset(("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "status"))
"""Fields without text."""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in NAMES:
                yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
