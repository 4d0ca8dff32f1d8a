"""A request as the server got it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["openai", "anthropic"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        number: its place among all, from 1.
        protocol: whose it speaks.
        body: the JSON.
        headers: by name in lower case.
        tokens: its size, as the server counts.
        torn: what a provider would turn it down for: calls without results, results without calls.
    """

    number: int
    protocol: Protocol
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    tokens: int = 0
    torn: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The model that is asked for, by which a script can tell callers apart."""
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        """Whether the answer is to be streamed."""
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, in the form of the protocol."""
        return list(self.body["messages"])

    @property
    def text(self) -> str:
        """All that the messages and the system prompt say, arguments of calls included."""
        return "\n".join(_texts([self.body.get("system"), self.body["messages"]]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in ("role", "type", "id", "tool_call_id", "tool_use_id"):
                yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
