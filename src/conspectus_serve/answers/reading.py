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

    An answer consists of blocks, or items. A reader keeps those of the last request in `_blocks` by
    their place, and those of the requests before that the client sees in `_seen`.
    """

    place_field = ""  # Of an event of a block

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._earlier: list[Mapping[str, Any]] = []
        self._usage: Mapping[str, Any] | None = None
        self._round = 0
        self._seen: list[dict[str, Any]] = []
        self._count = 0
        self._last: dict[str, Any] = {}
        self._begin()

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

    def _begin(self) -> None:
        """Forget the last request to the upstream."""
        self._blocks: dict[int, dict[str, Any]] = {}
        self._places: dict[int, int] = {}
        self._pending: list[dict[str, Any]] = []

    def _next(self) -> None:
        self._seen += self._visible(on=True)
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

    def _visible(self, *, on: bool = False) -> list[dict[str, Any]]:
        """List the blocks that the client sees, without thoughts before our calls if `on`."""
        made: list[dict[str, Any]] = []
        thoughts: list[dict[str, Any]] = []
        for _, one in sorted(self._blocks.items()):
            if self._is_ours(one):
                continue
            if one.get("type") in THOUGHTS:
                thoughts.append(one)
            else:
                made, thoughts = [*made, *thoughts, one], []
        return made if on else [*made, *thoughts]

    def _place(self, at: int) -> int:
        """Return the client's place of a block."""
        if at not in self._places:
            self._places[at] = self._count
            self._count += 1
        return self._places[at]

    def _shown(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events to send for one of a block, in the client's places.

        Thoughts are held back until a block of the client's follows them.
        """
        at = data[self.place_field]
        block = self._blocks.get(at, {})
        if self._is_ours(block):
            return []
        if self._tool and block.get("type") in THOUGHTS and at not in self._places:
            self._pending.append(data)
            return []
        return self._released(data)

    def _released(self, *more: dict[str, Any]) -> list[dict[str, Any]]:
        """Release held thoughts, and more events behind them."""
        held, self._pending = [*self._pending, *more], []
        name = self.place_field
        return [{**one, name: self._place(one[name])} for one in held]


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
