"""Share the parts of the readers of all three protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

CALLS = ("tool_use", "function_call")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
"""Types of blocks that belong to the block after them, and leave with a call of our tool."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A call of the endpoint's own tool; `arguments` is JSON as the model wrote it."""

    id: str
    arguments: str


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The result of a call: text for the model; `failed` if nothing was looked up."""

    text: str
    failed: bool = False


class AnswerReader(ABC):
    """Read one answer that may take several requests to the upstream; the client sees one.

    Feed it each event with `event`, or a whole body with `whole`. After each request `asks` lists
    the calls to look up. `exchange` begins the next request; `end` or `body` finishes the answer.
    """

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._earlier: list[Mapping[str, Any]] = []
        self._usage: Mapping[str, Any] | None = None
        self._round = 0

    @property
    @abstractmethod
    def asks(self) -> Sequence[Lookup]:
        """List the calls to look up before the answer goes on.

        Empty if the answer also calls a tool of the client's: only the client can answer that.
        """

    @abstractmethod
    def event(self, raw: bytes) -> list[bytes]:
        """Add an event, and return the events that the client is sent now."""

    @abstractmethod
    def whole(self, body: Mapping[str, Any]) -> None:
        """Read an answer that is not streamed.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is not of this protocol.
        """

    @abstractmethod
    def exchange(self, found: Sequence[LookupResult]) -> list[dict[str, Any]]:
        """Return the calls and their results as messages, and begin the next request."""

    @abstractmethod
    def end(self) -> list[bytes]:
        """Return the last events for the client."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """Return the whole answer for the client."""

    @abstractmethod
    def failed(self, said: Any) -> bytes:
        """Return the event for a refusal within an answer, from the refusal's JSON."""

    # What the readers share

    @abstractmethod
    def _begin(self) -> None:
        """Forget the last request to the upstream."""

    def _next(self) -> None:
        if self._usage is not None:
            self._earlier.append(self._usage)
        self._usage = None
        self._round += 1
        self._begin()

    def _total(self) -> dict[str, Any]:
        """Return the usage of all requests together."""
        return reduce(summed, [*self._earlier, self._usage or {}], dict[str, Any]())

    def _is_ours(self, block: Mapping[str, Any]) -> bool:
        return block.get("type") in CALLS and block.get("name") == self._tool

    def _visible(
        self, blocks: Mapping[int, dict[str, Any]], *, on: bool = False
    ) -> list[dict[str, Any]]:
        """List the blocks that the client sees, without thoughts before our calls if `on`."""
        made: list[dict[str, Any]] = []
        thoughts: list[dict[str, Any]] = []
        for _, one in sorted(blocks.items()):
            if self._is_ours(one):
                continue
            if one.get("type") in THOUGHTS:
                thoughts.append(one)
            else:
                made, thoughts = [*made, *thoughts, one], []
        return made if on else [*made, *thoughts]


def summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add two reports of usage: numbers add up, of other values the later one counts.

    Example:
        >>> summed({"in": 2, "more": {"cached": 1}}, {"in": 3, "more": {"cached": 4}, "tier": "a"})
        {'in': 5, 'more': {'cached': 5}, 'tier': 'a'}
    """
    made = dict(one)
    for key, value in other.items():
        known = made.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            made[key] = summed(known, value)
        elif _is_number(known) and _is_number(value):
            made[key] = known + value
        elif value is not None or key not in made:
            made[key] = value
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
