"""What the readers of all three protocols have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the endpoint's own tool.

    Attributes:
        id: of the call.
        arguments: JSON, as the model has written it.
    """

    id: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a call has found.

    Attributes:
        text: for the model.
        failed: it says why nothing was looked up.
    """

    text: str
    failed: bool = False


class Reading(ABC):
    """One answer, which may take several requests to the upstream; the client sees one.

    Feed it each event with `event`, or a whole body with `whole`. After each request `asks` says
    what is to be looked up. With `exchange` the next request begins; without it, `end` or `body`
    gives what is left for the client.

    Args:
        tool: name of the endpoint's own tool.
    """

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._earlier: list[Mapping[str, Any]] = []
        self._usage: Mapping[str, Any] | None = None

    @property
    @abstractmethod
    def asks(self) -> Sequence[Call]:
        """What is to be looked up before the answer goes on.

        None where the answer calls a tool of the client's, too: it must be answered first, and
        only the client can do that.
        """

    @abstractmethod
    def event(self, raw: bytes) -> list[bytes]:
        """Take in an event, and give what the client is sent now."""

    @abstractmethod
    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in an answer that is not streamed.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is none of this protocol.
        """

    @abstractmethod
    def exchange(self, found: Sequence[Found]) -> list[dict[str, Any]]:
        """The calls with what they found, as messages behind the history; the answer goes on.

        Args:
            found: for each of `asks`.
        """

    @abstractmethod
    def end(self) -> list[bytes]:
        """The last events for the client."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The whole answer for the client."""

    @abstractmethod
    def failed(self, said: Any) -> bytes:
        """The event for a refusal in the middle of an answer.

        Args:
            said: the JSON of the refusal; anything where it has none.
        """

    # Usage

    def _next(self) -> None:
        if self._usage is not None:
            self._earlier.append(self._usage)
        self._usage = None

    def _total(self) -> dict[str, Any]:
        """The usage of all requests together."""
        used = [*self._earlier, *([] if self._usage is None else [self._usage])]
        total: dict[str, Any] = {}
        for one in used:
            total = summed(total, one)
        return total


def summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two reports of usage as one: numbers are added up, of all else the later counts.

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
