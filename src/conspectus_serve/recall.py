"""Recall archived originals in compacted requests: unasked for a turn, and by the model's own tool.

What is shown unasked is chosen when a turn begins and kept beside the thread, so that every
instance sends the same bytes for each request of the turn, and the provider's cache stays valid.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.bridge import run
from conspectus.core.records import Chain
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
from conspectus_serve.answers import Lookup, LookupResult
from conspectus_serve.protocols import Protocol

logger = logging.getLogger("conspectus.serve")

NAME = "conspectus_recall"
"""Name of the tool; it is not given beside a client's tool of this name."""

ROUNDS = 6
"""Maximum requests to the upstream for one answer."""

KINDS = {"query": "string", "id": "string", "until": "string", "at": "integer"}

SCHEMA = {
    "type": "object",
    "properties": {name: {"type": KINDS[name], "description": ABOUT[name]} for name in ABOUT},
}


def shown(
    archive: Archive,
    scope: Scope,
    head: str,
    turn: str,
    history: Sequence[Any],
    view: Sequence[Any],
    meter: TokenMeter,
    tokens: int,
) -> tuple[list[Any], int]:
    """Put what the user's newest message needs directly before it.

    Args:
        archive, scope, head: of the originals.
        turn: names the history that was answered before the turn.
        history: all of it, as it is archived.
        view: the messages to send.
        meter: counts tokens.
        tokens: maximum of them.

    Returns:
        The messages to send, and the tokens of those that were recalled.
    """
    last, made = newest_user(history), list(view)
    place = newest_user(made)
    if last is None or place is None:
        return made, 0
    first = last
    while first and is_users(history[first - 1]):  # the user's messages of a turn stay together
        first -= 1
    while place and is_users(made[place - 1]):
        place -= 1
    turn = json.dumps([turn, *history[first : last + 1]], sort_keys=True)
    name = hashlib.sha256(turn.encode()).hexdigest()[:32]
    try:
        chain = archive.chain_at(scope, head)
        note = archive.notes(scope, "recalled", [name]).get(name)
        if note is None and chain:
            note = _chosen(archive, scope, chain, history[first : last + 1], meter, tokens)
            archive.note(scope, "recalled", {name: note})
    except ArchiveError as error:
        logger.warning("nothing could be recalled for a request: %s", error)
        return made, 0
    # A record may be gone or replaced; then the thread holds fewer originals.
    if note is None or not note["text"] or not set(note["keys"]).issubset(manifest(chain)):
        return made, 0
    message = {"role": "user", "content": str(note["text"])}
    size = meter.message(message)
    if size > tokens:
        return made, 0
    if brings_results(made[place]):  # nothing may stand between a call and its result
        place += 1
    return [*made[:place], message, *made[place:]], size


def _chosen(
    archive: Archive,
    scope: Scope,
    chain: Chain,
    asked: Sequence[Any],
    meter: TokenMeter,
    tokens: int,
) -> dict[str, Any]:
    entries = read_messages(asked)
    found = None
    if tokens >= LEAST_RECALL:
        flow = unasked_flow(
            archive,
            scope,
            chain,
            query=question_of([entry.own for entry in entries]),
            own=frozenset(entry.id for entry in entries),
            tokens=tokens,
            count=lambda text: meter.message({"role": "user", "content": recalled_text(text)}),
        )
        found = run(flow)
    if found is None:
        return {"text": "", "keys": []}
    keys = list(dict.fromkeys(hit.key for hit in found.hits))
    return {"text": recalled_text(found.text), "keys": keys}


def tool_in(protocol: Protocol) -> dict[str, Any]:
    """Write the tool in the form of a protocol."""
    named = {"name": NAME, "description": ABOUT_TOOL}
    if protocol.name == "chat":
        return {"type": "function", "function": {**named, "parameters": SCHEMA}}
    if protocol.name == "messages":
        return {**named, "input_schema": SCHEMA}
    return {"type": "function", **named, "parameters": SCHEMA, "strict": False}


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


class Lookups:
    """Carry out the calls of one answer.

    Args:
        archive, scope, head: of the originals.
        meter: counts tokens.
        tokens: maximum of one call.
        spare: free tokens of the window; None if unknown.
    """

    def __init__(
        self,
        archive: Archive,
        scope: Scope,
        head: str,
        meter: TokenMeter,
        tokens: int,
        spare: int | None,
    ) -> None:
        self._archive, self._scope, self._head = archive, scope, head
        self._meter, self._tokens, self._spare = meter, tokens, spare

    def all(
        self, calls: Sequence[Lookup], exchange: Callable[[Any], list[dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Look up calls, and return them with their results as messages of the protocol."""
        results, spare = [], self._spare
        for call in calls:
            result = self._result(call, spare)
            spare = None if spare is None else spare - self._meter.text(result.text)
            results.append((call, result))
        messages = exchange(results)
        if self._spare is not None:
            self._spare -= self._meter.messages(messages)
        return messages

    def _result(self, call: Lookup, spare: int | None) -> LookupResult:
        """Look up a call; its errors are text for the model."""
        room = self._tokens if spare is None else min(self._tokens, spare)
        if room < LEAST_RECALL:
            text = "There is no room to show any more. Answer with what you have."
            return LookupResult(text, True)
        try:
            given = _arguments(call.arguments)
            chain = self._archive.chain_at(self._scope, self._head)
            count = self._meter.text
            flow = answer_flow(self._archive, self._scope, chain, **given, tokens=room, count=count)
            return LookupResult(run(flow))
        except ArchiveError as error:
            return LookupResult(unreadable(error), True)
        except InputError as error:
            return LookupResult(str(error), True)


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
