"""Recall at each turn: the originals that a user's message needs, put before the model unasked.

They are chosen before the first call of the model in a turn and kept in the state, so that each
call of the turn is sent the same bytes, in whatever process it is made.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage

from conspectus._drive import Flow
from conspectus.agents.engine import GraphEngine
from conspectus.agents.state import (
    RECALLED,
    Held,
    Recalled,
    read_held,
    read_recalled,
    read_requested,
    scope_of,
    turn_of,
)
from conspectus.errors import ArchiveError
from conspectus.events.notes import noted
from conspectus.messages import read_messages
from conspectus.messages.recalled import (
    is_users,
    newest_user,
    recalled_message,
    recalled_text,
    with_recalled,
)
from conspectus.middleware.planner import Planner, Update
from conspectus.recall.for_agents import question_of, unasked_flow
from conspectus.recall.relevance import asks_for_something

logger = logging.getLogger("conspectus")


class Recalling:
    """Chooses what each turn is shown.

    Args:
        graph: what compactions work with, the archive among it.
        planner: knows the room that there is.
        tokens: the most that is shown at a turn, the message around it included.
    """

    def __init__(self, graph: GraphEngine, planner: Planner, tokens: int) -> None:
        self._graph, self._planner, self._tokens = graph, planner, tokens

    def step(self, state: Mapping[str, Any], runtime: object) -> Flow[Update | None]:
        """What a step of the planner changes in the state, with what is chosen if a turn begins.

        Args:
            state: before the step.
            runtime: of the run.
        """
        update = yield from self._planner.step(state, runtime)
        after: dict[str, Any] = {**state, **(update or {})}
        messages = [m for m in after["messages"] if not isinstance(m, RemoveMessage)]
        after["messages"] = messages
        known = read_recalled(after)
        turn = turn_of(messages, known)
        if not turn:
            return update
        held = read_held(after, runtime, messages)
        if known is not None and known.turn == turn:
            try:
                if (yield from self._within_reach(known, held, messages, runtime)):
                    return update
            except ArchiveError:
                return update  # it is not shown as long as that cannot be told
        chosen = yield from self._chosen(turn, held, after, runtime)
        return {**(update or {}), RECALLED: chosen.to_json()}

    def shown(
        self,
        state: Mapping[str, Any],
        held: Held,
        messages: Sequence[BaseMessage],
        runtime: object,
    ) -> Flow[Sequence[BaseMessage]]:
        """The messages of a request with what was chosen for its turn.

        Args:
            state: as the request has it.
            held: what it holds of us.
            messages: of the request.
            runtime: of the run.
        """
        known = read_recalled(state)
        channel: list[BaseMessage] = state["messages"]
        if known is None or not known.text or known.turn != turn_of(channel, known):
            return messages
        try:
            within = yield from self._within_reach(known, held, channel, runtime)
        except ArchiveError as error:
            logger.warning(
                "what was recalled cannot be checked, and is not shown: %s",
                error,
                extra=noted("recall_unchecked"),
            )
            within = False
        if not within:
            return messages
        return with_recalled(messages, known.message)

    def _within_reach(
        self, known: Recalled, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[bool]:
        """Whether all that was chosen is still of this branch: a history may have been edited."""
        if not known.keys:
            return True
        reach = yield from self._graph.reach(held, channel, runtime)
        return reach.issuperset(known.keys)

    def _chosen(
        self, turn: str, held: Held, state: Mapping[str, Any], runtime: object
    ) -> Flow[Recalled]:
        nothing = Recalled(turn)
        messages: list[BaseMessage] = state["messages"]
        archive = self._graph.archive(runtime)
        query, own = asked_in(messages)
        if held.data is None or archive is None or not asks_for_something(query):
            return nothing
        meter = self._graph.engine.tools.meter
        try:
            chain = yield from self._graph.chain(held, messages, runtime)
            view = yield from self._graph.now(held, messages, runtime)
            found = yield from unasked_flow(
                archive,
                scope_of(held, self._graph.tenant, runtime),
                chain,
                query=query,
                own=own,
                tokens=max(1, self._planner.room_for(self._tokens, read_requested(state), view)),
                count=lambda text: meter.message(recalled_message(recalled_text(text), turn)),
            )
        except ArchiveError as error:
            logger.warning(
                "nothing could be recalled for this turn: %s", error, extra=noted("recall_failed")
            )
            return nothing
        if found is None:
            return nothing
        keys = tuple(dict.fromkeys(hit.key for hit in found.hits))
        return Recalled(turn, recalled_text(found.text), keys)


def asked_in(messages: Sequence[BaseMessage]) -> tuple[str, frozenset[str]]:
    """What the user said at the start of the turn under way, and the ids of the messages."""
    last = newest_user(messages)
    if last is None:
        return "", frozenset()
    first = last
    while first and is_users(messages[first - 1]):
        first -= 1
    said = read_messages(messages[first : last + 1])
    return question_of([entry.own for entry in said]), frozenset(entry.id for entry in said)
