"""Share the parts of the three protocols' answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

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


class Answers(Protocol):
    """Read and join the answers of one protocol; `tool` is the name of the endpoint's own tool.

    All of them raise KeyError, TypeError, AttributeError, IndexError or ValueError for an answer
    that is not of the protocol.
    """

    def lookups(self, body: Mapping[str, Any], tool: str) -> list[Lookup]:
        """List the calls to look up before the answer goes on.

        Empty if the answer also calls a tool of the client's, as only the client can answer that,
        or was broken off.
        """

    def exchange(
        self, body: Mapping[str, Any], results: Sequence[tuple[Lookup, LookupResult]]
    ) -> list[dict[str, Any]]:
        """Return an answer's calls and their results as messages for the next request."""

    def joined(self, bodies: Sequence[Mapping[str, Any]], tool: str) -> dict[str, Any]:
        """Return the client's answer of those to all requests, without calls of the tool."""

    def events(self, body: Mapping[str, Any]) -> list[bytes]:
        """Write an answer as a stream."""


def visible(
    blocks: Sequence[Mapping[str, Any]], tool: str, *, last: bool = True
) -> list[dict[str, Any]]:
    """List the blocks that the client sees.

    Thoughts before calls of the tool leave with these, and those at the end of an answer that is
    not the `last`.
    """
    made: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    for one in blocks:
        if one.get("type") in CALLS and one.get("name") == tool:
            continue
        if one.get("type") in THOUGHTS:
            thoughts.append(dict(one))
        else:
            made, thoughts = [*made, *thoughts, dict(one)], []
    return [*made, *thoughts] if last else made


def total(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the usage of all answers together."""
    return reduce(summed, [one.get("usage") or {} for one in bodies], dict[str, Any]())


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
