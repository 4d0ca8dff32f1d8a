"""Offer a tool by which a model looks up archived messages while it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus.archive import Archive
from conspectus.errors import ArchiveError, InputError
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.recall.for_agents import ABOUT, ABOUT_TOOL, answer_flow, unreadable
from conspectus_serve.answers.joining import Lookup, LookupResult
from conspectus_serve.fitting import Turn
from conspectus_serve.protocols import Protocol

NAME = "conspectus_recall"
"""Name of the tool; it is not given beside a client's tool of this name."""

ROUNDS = 6
"""Maximum requests to the upstream for one answer."""

KINDS = {"query": "string", "id": "string", "until": "string", "at": "integer"}

SCHEMA = {
    "type": "object",
    "properties": {name: {"type": KINDS[name], "description": ABOUT[name]} for name in ABOUT},
}


def tool_in(protocol: Protocol) -> dict[str, Any]:
    """Write the tool in the form of a protocol."""
    named = {"name": NAME, "description": ABOUT_TOOL}
    if protocol.name == "chat":
        return {"type": "function", "function": {**named, "parameters": SCHEMA}}
    if protocol.name == "messages":
        return {**named, "input_schema": SCHEMA}
    return {"type": "function", **named, "parameters": SCHEMA, "strict": False}


def may_have_tool(protocol: Protocol, body: Mapping[str, Any]) -> bool:
    """Return whether a request can be given the tool without changing its answer.

    Not if the client chooses the tool to call, wants several answers or a later one, uses the old
    `functions`, or has a tool of the same name.
    """
    tools = body.get("tools") or []
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "auto":
        choice = "auto"
    if not isinstance(tools, list) or choice not in (None, "auto"):
        return False
    if body.get("functions") or body.get("background") or body.get("n") not in (None, 1):
        return False
    shapes = (
        one for tool in tools if isinstance(tool, Mapping) for one in (tool, tool.get("function"))
    )
    return not any(isinstance(one, Mapping) and one.get("name") == NAME for one in shapes)


@dataclass(slots=True)
class Lookups:
    """Carry out the calls of one answer.

    Attributes:
        tokens: maximum of one call.
        before: free tokens of the window before these calls; None if unknown.
        spare: free tokens now.
    """

    archive: Archive
    turn: Turn
    tokens: int
    before: int | None
    spare: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.spare = self.before

    async def found_flow(self, call: Lookup) -> LookupResult:
        """Look up a call; its errors are text for the model."""
        room = self.tokens if self.spare is None else min(self.tokens, self.spare)
        if room < LEAST_RECALL:
            return LookupResult(
                "There is no room to show any more. Answer with what you have.", True
            )
        count = self.turn.engine.meter.text
        try:
            given = _arguments(call.arguments)
            chain = await self.archive.flow(self.archive.chain_at, self.turn.scope, self.turn.head)
            text = await answer_flow(
                self.archive, self.turn.scope, chain, **given, tokens=room, count=count
            )
        except ArchiveError as error:
            return LookupResult(unreadable(error), True)
        except InputError as error:
            return LookupResult(str(error), True)
        if self.spare is not None:
            self.spare -= count(text)
        return LookupResult(text)

    def going_on(self, exchange: list[dict[str, Any]]) -> None:
        """Subtract the calls and their results from the free tokens."""
        if self.before is not None:
            size = self.turn.engine.meter.messages(exchange)
            self.before = self.spare = self.before - size


def _arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call.

    Raises:
        InputError: they are malformed; the text is for the model.
    """
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InputError("The arguments are no JSON object. Give query, or id, or id and until.")
    known = {name: value for name, value in given.items() if name in ABOUT and value is not None}
    for name, value in known.items():
        right = int if name == "at" else str
        if not isinstance(value, right) or isinstance(value, bool):
            raise InputError(f"{name} must be a {KINDS[name]}.")
    return known
