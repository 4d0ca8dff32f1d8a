"""Recall at each turn: show the model originals that a user's message needs.

They are chosen before the first call of the model in a turn and kept in the state, so that each
call of the turn is sent the same bytes, in whatever process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage

from conspectus.errors import ArchiveError
from conspectus.langchain.channel import Channel
from conspectus.langchain.planner import Planner, Update
from conspectus.langchain.state import RECALLED, Recalled, read_recalled, read_requested, turn_of
from conspectus.messages import read_messages
from conspectus.messages.recalled import (
    is_users,
    newest_user,
    recalled_message,
    recalled_text,
    with_recalled,
)
from conspectus.observe import log
from conspectus.recall.for_agents import asks_for_something, question_of, unasked_flow


class TurnRecall:
    """Choose the originals that each turn is shown, of at most so many tokens as planned."""

    def __init__(self, planner: Planner) -> None:
        self._planner, self._graph = planner, planner.graph

    async def step(self, state: Mapping[str, Any], runtime: object) -> Update | None:
        """Take a step of the planner; choose originals at the start of a turn."""
        update = await self._planner.step(state, runtime)
        after: dict[str, Any] = {**state, **(update or {})}
        messages = [m for m in after["messages"] if not isinstance(m, RemoveMessage)]
        after["messages"] = messages
        known = read_recalled(after)
        turn = turn_of(messages, known)
        if not turn:
            return update
        channel = Channel.of(self._graph, after, runtime)
        if known is not None and known.turn == turn:
            try:
                if await _within_reach(known, channel):
                    return update
            except ArchiveError:
                return update  # it is not shown until that can be checked
        chosen = await self._chosen(turn, channel)
        return {**(update or {}), RECALLED: chosen.to_json()}

    async def shown(
        self, channel: Channel, messages: Sequence[BaseMessage]
    ) -> Sequence[BaseMessage]:
        """Put the originals recalled for the turn into the messages of a request."""
        known = read_recalled(channel.state)
        if known is None or not known.text or known.turn != turn_of(channel.messages, known):
            return messages
        try:
            within = await _within_reach(known, channel)
        except ArchiveError as error:
            said = "what was recalled cannot be checked, and is not shown: %s"
            log("recall_unchecked", said, error)
            within = False
        return with_recalled(messages, known.message) if within else messages

    async def _chosen(self, turn: str, channel: Channel) -> Recalled:
        nothing = Recalled(turn)
        archive = self._graph.archive(channel.runtime)
        query, own = asked_in(channel.messages)
        if channel.held.data is None or archive is None or not asks_for_something(query):
            return nothing
        meter = self._graph.engine.meter
        try:
            chain, _ = await channel.reached()
            view = await channel.view()
            requested = read_requested(channel.state)
            found = await unasked_flow(
                archive,
                channel.scope,
                chain,
                query=query,
                own=own,
                tokens=max(1, self._planner.room_for(self._planner.recalled, requested, view)),
                count=lambda text: meter.message(recalled_message(recalled_text(text), turn)),
            )
        except ArchiveError as error:
            log("recall_failed", "nothing could be recalled for this turn: %s", error)
            return nothing
        if found is None:
            return nothing
        keys = tuple(dict.fromkeys(hit.key for hit in found.hits))
        return Recalled(turn, recalled_text(found.text), keys)


async def _within_reach(known: Recalled, channel: Channel) -> bool:
    """Return whether all that was chosen is still of this branch; an edit may have left it."""
    if not known.keys:
        return True
    return (await channel.reached())[1].issuperset(known.keys)


def asked_in(messages: Sequence[BaseMessage]) -> tuple[str, frozenset[str]]:
    last = newest_user(messages)
    if last is None:
        return "", frozenset()
    first = last
    while first and is_users(messages[first - 1]):
        first -= 1
    said = read_messages(messages[first : last + 1])
    return question_of([entry.own for entry in said]), frozenset(entry.id for entry in said)
