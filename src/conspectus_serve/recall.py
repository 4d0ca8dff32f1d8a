"""Recall archived originals in compacted requests: unasked for a turn, and by the model's own tool.

What is shown unasked is chosen once a turn and record, so that each request of the turn has the
same bytes, and the provider's cache stays valid.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.errors import ArchiveError, InputError
from conspectus.messages import read_messages
from conspectus.messages.recalled import (
    LEAST_RECALL,
    brings_results,
    is_users,
    newest_user,
    recalled_text,
)
from conspectus.recall.for_agents import (
    ABOUT,
    ABOUT_TOOL,
    answer_flow,
    question_of,
    unasked_flow,
    unreadable,
)
from conspectus.tokens import TokenMeter
from conspectus_serve.answers import Answer, Call, results_in

logger = logging.getLogger("conspectus.serve")

NAME = "conspectus_recall"  # of the tool; it is not given beside a client's tool of this name
ROUNDS = 6  # maximum requests to the upstream for one answer
KINDS = {"query": "string", "id": "string", "until": "string", "at": "integer"}

Chosen = Newest[tuple[Scope, str, str], str]
"""The text that is shown in a turn, by thread, record in force and name of the turn."""


@dataclass(slots=True)
class Recall:
    """The originals of one thread, for one request."""

    archive: Archive
    scope: Scope
    head: str
    meter: TokenMeter
    tokens: int  # maximum of what is shown unasked; a call has twice as many
    spare: int | None  # free tokens of the window; None if unknown
    chosen: Chosen  # what was shown before

    def shown(
        self, turn: str, history: Sequence[Any], view: Sequence[Any]
    ) -> tuple[list[Any], int]:
        """Put what the user's newest message needs directly before it; return its tokens, too.

        `turn` names what was said before; `history` is whole, `view` is to be sent.
        """
        last, place, made = newest_user(history), newest_user(view), list(view)
        if last is None or place is None:
            return made, 0
        first = last
        while first and is_users(history[first - 1]):  # the user's messages of a turn stay together
            first -= 1
        while place and is_users(made[place - 1]):
            place -= 1
        key = (self.scope, self.head, turn)
        text = self.chosen.get(key)
        if text is None:
            try:
                text = self._chosen(history[first : last + 1])
            except ArchiveError as error:
                logger.warning("nothing could be recalled for a request: %s", error)
                return made, 0
            self.chosen.put(key, text)
        message = {"role": "user", "content": text}
        size = self.meter.message(message)
        if not text or (self.spare is not None and size > self.spare):
            return made, 0
        place += brings_results(made[place])  # nothing may stand between a call and its result
        return [*made[:place], message, *made[place:]], size

    def _chosen(self, asked: Sequence[Any]) -> str:
        tokens = self.tokens if self.spare is None else min(self.tokens, self.spare)
        if tokens < LEAST_RECALL:
            return ""
        entries, meter = read_messages(asked), self.meter
        flow = unasked_flow(
            self.archive,
            self.scope,
            self.archive.chain_at(self.scope, self.head),
            query=question_of([entry.own for entry in entries]),
            own=frozenset(entry.id for entry in entries),
            tokens=tokens,
            count=lambda text: meter.message({"role": "user", "content": recalled_text(text)}),
        )
        found = run(flow)
        return recalled_text(found.text) if found is not None else ""

    def looked_up(self, protocol: str, answer: Answer) -> list[dict[str, Any]]:
        """Carry out the calls of an answer, and return it with their results as messages."""
        results, spare = [], self.spare
        for call in answer.calls:
            text = self._result(call, spare)
            spare = None if spare is None else spare - self.meter.text(text)
            results.append((call, text))
        messages = [*answer.messages, *results_in(protocol, results)]
        if self.spare is not None:
            self.spare -= self.meter.messages(messages)
        return messages

    def _result(self, call: Call, spare: int | None) -> str:
        """Look up a call; its errors are text for the model."""
        room = 2 * self.tokens if spare is None else min(2 * self.tokens, spare)
        if room < LEAST_RECALL:
            return "There is no room to show any more. Answer with what you have."
        try:
            chain = self.archive.chain_at(self.scope, self.head)
            words, count = _arguments(call.arguments), self.meter.text
            flow = answer_flow(self.archive, self.scope, chain, **words, tokens=room, count=count)
            return run(flow)
        except ArchiveError as error:
            return unreadable(error)
        except InputError as error:
            return str(error)


def _arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call; an InputError is for the model."""
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise InputError("The arguments are no JSON object. Give query, or id, or id and until.")
    known = {name: value for name, value in parsed.items() if name in ABOUT and value is not None}
    for name, value in known.items():
        right = int if name == "at" else str
        if not isinstance(value, right) or isinstance(value, bool):
            raise InputError(f"{name} must be a {KINDS[name]}.")
    return known


def tool_in(protocol: str) -> dict[str, Any]:
    """Write the tool in the form of a protocol."""
    fields = {name: {"type": KINDS[name], "description": ABOUT[name]} for name in ABOUT}
    named = {"name": NAME, "description": ABOUT_TOOL}
    schema = {"type": "object", "properties": fields}
    if protocol == "chat":
        return {"type": "function", "function": {**named, "parameters": schema}}
    if protocol == "messages":
        return {**named, "input_schema": schema}
    return {"type": "function", **named, "parameters": schema, "strict": False}


def may_have_tool(body: Mapping[str, Any]) -> bool:
    """Return whether a request can be given the tool without changing its answer.

    Not if the client chooses the tool to call, wants several answers or a later one, uses the old
    `functions`, or has a tool of the same name.
    """
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    choice = choice.get("type") if isinstance(choice, Mapping) else choice
    if not isinstance(tools, list) or choice not in (None, "auto"):
        return False
    if body.get("functions") or body.get("background") or body.get("n") not in (None, 1):
        return False
    known = [one for one in tools if isinstance(one, Mapping)]
    known += [one["function"] for one in known if isinstance(one.get("function"), Mapping)]
    return not any(one.get("name") == NAME for one in known)


def without_tool(protocol: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Take the tool, which is the last one, from a request; alone, it must stay and is not called.

    Calls of it may stand in the history, and a provider may ask for the tools of these.
    """
    if len(body["tools"]) > 1:
        return {**body, "tools": body["tools"][:-1]}
    return {**body, "tool_choice": {"type": "none"} if protocol == "messages" else "none"}
