"""The endpoint's own tool, by which a model looks up what has left its view while it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus._drive import Flow
from conspectus.archive import Archive
from conspectus.errors import ArchiveError, InputError
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.recall.for_agents import ABOUT, ABOUT_TOOL, answer_flow, unreadable
from conspectus_serve.answers.reading import Call, Found
from conspectus_serve.fitting import Turn
from conspectus_serve.protocols import Protocol

NAME = "conspectus_recall"
"""Name of the tool; a request whose client has one of this name gets none of ours."""

ROUNDS = 6
"""Requests that one answer takes at most."""

KINDS = {"query": "string", "id": "string", "until": "string", "start": "integer"}

SCHEMA = {
    "type": "object",
    "properties": {name: {"type": KINDS[name], "description": ABOUT[name]} for name in ABOUT},
}


def tool_in(protocol: Protocol) -> dict[str, Any]:
    """The tool, as a protocol writes it."""
    told = {"name": NAME, "description": ABOUT_TOOL}
    if protocol.name == "chat":
        return {"type": "function", "function": {**told, "parameters": SCHEMA}}
    if protocol.name == "messages":
        return {**told, "input_schema": SCHEMA}
    return {"type": "function", **told, "parameters": SCHEMA, "strict": False}


def may_have_tool(protocol: Protocol, body: Mapping[str, Any]) -> bool:
    """Whether a request can be given the tool, and its answer still be what was asked for.

    Not where the client says which tool is called, wants several answers, or an answer later, or
    speaks of functions in the way of old; nor where it has a tool of the same name.
    """
    tools = body.get("tools") or []
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "auto":
        choice = "auto"
    if not isinstance(tools, list) or choice not in (None, "auto"):
        return False
    if body.get("functions") or body.get("background") or body.get("n") not in (None, 1):
        return False
    return not any(NAME in (_name(one), _name(_function(one))) for one in tools)


def _function(tool: Any) -> Any:
    return tool.get("function") if isinstance(tool, Mapping) else None


def _name(tool: Any) -> Any:
    return tool.get("name") if isinstance(tool, Mapping) else None


@dataclass(slots=True)
class Lookups:
    """Carries out the calls of one answer.

    Attributes:
        archive: where the originals are.
        turn: the request.
        tokens: that one call may bring at most.
        before: tokens that were left in the window before these calls; None where it is unknown.
        spare: those that are left now.
    """

    archive: Archive
    turn: Turn
    tokens: int
    before: int | None
    spare: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.spare = self.before

    def found_flow(self, call: Call) -> Flow[Found]:
        """What a call finds; what is wrong with it is told to the model."""
        room = self.tokens if self.spare is None else min(self.tokens, self.spare)
        if room < LEAST_RECALL:
            return Found("There is no room to show any more. Answer with what you have.", True)
        count = self.turn.engine.meter.text
        try:
            given = _arguments(call.arguments)
            chain = yield from self.archive.chain_at_flow(self.turn.scope, self.turn.head)
            text = yield from answer_flow(
                self.archive, self.turn.scope, chain, **given, tokens=room, count=count
            )
        except ArchiveError as error:
            return Found(unreadable(error), True)
        except InputError as error:
            return Found(str(error), True)
        if self.spare is not None:
            self.spare -= count(text)
        return Found(text)

    def going_on(self, exchange: list[dict[str, Any]]) -> None:
        """Take the calls, and their results, off the room."""
        if self.before is not None:
            size = self.turn.engine.meter.messages(exchange)
            self.before = self.spare = self.before - size


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call.

    Raises:
        InputError: they are none; says so to the model.
    """
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InputError("The arguments are no JSON object. Give query, or id, or id and until.")
    known = {name: value for name, value in given.items() if name in ABOUT and value is not None}
    for name, value in known.items():
        right = int if name == "start" else str
        if not isinstance(value, right) or isinstance(value, bool):
            raise InputError(f"{name} must be a {KINDS[name]}.")
    return known
