"""Decide one step of an agent, and update its state.

Most steps need nothing. They are decided from running sums, without reading a message twice or
asking a store; the history is read and planned only when something is due.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus._langchain import hide_from_streams
from conspectus.core.items import Size, Window
from conspectus.core.policy import grown
from conspectus.engine.calls import adopt_flow, compact_flow
from conspectus.engine.prepared import begin_flow
from conspectus.engine.result import CompactionResult
from conspectus.engine.session import Session
from conspectus.errors import ArchiveError
from conspectus.langchain.channel import Channel
from conspectus.langchain.counting import Counting
from conspectus.langchain.graph import GraphEngine
from conspectus.langchain.identity import is_checkpointed, name_messages, run_of_subgraph
from conspectus.langchain.migration import foreign_summary
from conspectus.langchain.state import (
    ASKED,
    FORKED,
    HELD,
    HeadState,
    Requested,
    read_asked,
    read_requested,
)
from conspectus.langchain.waiting import OldArguments, Waiting
from conspectus.messages import is_summary_message
from conspectus.messages.recalled import newest_user
from conspectus.observe import log
from conspectus.tokens import correction
from conspectus.tokens.tally import Sizes, Tallies

Update = dict[str, Any]

RECALL_SHARE = 0.25
"""Largest share of the room for messages that recalled originals take."""


@dataclass(frozen=True, slots=True)
class _Now:
    """A history at one step, with a key of its own among all tenants.

    `copied`: its head changes whatever the step does.
    """

    channel: Channel
    key: str
    view: list[BaseMessage]
    copied: bool
    sizes: Sizes
    room: Window | None
    over: bool = False

    @property
    def held(self) -> HeadState:
        return self.channel.held


class Planner:
    """Decide and carry out the steps of every thread of one middleware.

    `recalled` are the tokens of the originals recalled for a turn, 0 for no recall.
    """

    def __init__(
        self, graph: GraphEngine, counting: Counting, preserve: bool, recalled: int = 0
    ) -> None:
        self.graph, self.preserve, self.recalled = graph, preserve, recalled
        self._counting = counting
        self._policy = graph.engine.policy
        self._meter = graph.engine.meter
        # What a message really takes is counted beside, where a window is there to be exceeded.
        metered = graph.window is not None and not self._meter.exact
        counts = [counting.message, self._meter.message] if metered else [counting.message]
        # LangChain's own count is cheaper than to know a message again by its content.
        self._tallies = Tallies(*counts, by_content=not counting.approximate)
        self._metered = Tallies(self._meter.message)
        self._waiting = Waiting()
        how = self._policy.arguments
        self._arguments = None if how is None else OldArguments(how, counting.message)

    async def step(
        self, state: Mapping[str, Any], runtime: object, focus: str | None = None
    ) -> Update | None:
        """Return the update of the state that a step makes, or None.

        With a `focus`, which may be empty, compact whatever the trigger says; without one go by the
        trigger, unless the state asks for a compaction.
        """
        asked = read_asked(state)
        focus = asked if focus is None else focus
        update: Update | None = None
        try:
            now = await self._look(state, runtime)
            if isinstance(now, _Now):
                result = await self._taken_over(now, focus)
                if result is None and self._is_due(now, focus):
                    session, messages = self._session(now), now.channel.messages
                    forced = focus is not None
                    result = await compact_flow(session, messages, forced, focus or "")
                elif result is None:
                    await self._prepare(now)
                update = self._update(now, result)
            else:
                update = now
        except ArchiveError as error:
            # Nothing has been changed; the guard, if there is one, bridges this one request.
            if self.graph.engine.on_failure == "raise":
                raise
            said = await self.graph.redacted_error(error)
            log("history_kept", "the history was kept as it was: %s", said)
        if asked is not None:
            update = {**(update or {}), ASKED: {}}
        return update

    async def _look(self, state: Mapping[str, Any], runtime: object) -> _Now | Update:
        """Read the history; for a fork that fits its parent's records, return an update."""
        found = Channel.of(self.graph, state, runtime)
        messages = found.messages
        if self.preserve:
            name_messages(messages)
        known = found
        if found.held.data is None and self._may_be_known(state, messages):
            known = await found.inherited(replaced=not self.preserve)
            if self.preserve and state.get(FORKED) and known.held.data is not None:
                return {HELD: known.held.to_json()}
        channel = await known.follow(turn=True)
        view = messages
        if channel.held.data is not None and (self.preserve or channel.held.pending):
            before = channel
            channel, view = await channel.fitting()
            if channel is not before:
                # Whoever recalls without a state goes by the archive's pointer: it follows.
                held = channel.held
                held = replace(held, after=self._size(view) if held.data is not None else None)
                channel = await channel.holding(held).follow(turn=False)
                self.graph.views.keep(channel.scope, channel.held.head_id, messages, view)
        held = channel.held
        key = f"{channel.scope.tenant}\0{held.name}"
        sizes = self._tallies.follow(key, view)
        if not self.preserve and sizes.fresh < len(messages):
            name_messages(messages[sizes.fresh :], messages[: sizes.fresh])
        requested = read_requested(state)
        room = self.graph.room(requested)
        beside = self._counting.base + self.room_for(self.recalled, requested, view)
        room = room and replace(room, reserved=room.reserved + beside)
        now = _Now(channel, key, view, held is not found.held, sizes, room)
        return replace(now, over=room is not None and self._tokens(now)[0] > room.budget)

    def _session(self, now: _Now) -> Session:
        metered = len(now.sizes.totals) > 1  # else the session goes by the reports in its history
        ratio = self._tokens(now)[1] if metered or self._meter.exact else None
        return now.channel.session(now.room, asked=self._asked(now), ratio=ratio)

    async def _prepare(self, now: _Now) -> None:
        jobs, head = self.graph.engine.background, now.held.head_id
        if jobs is None or not jobs.setting.near(self._policy, asked := self._asked(now), now.room):
            return
        if jobs.wanted(now.channel.scope, head, asked):
            messages = list(now.channel.messages)
            await begin_flow(self._session(now), lambda own: own.fold(messages), head)

    def _may_be_known(self, state: Mapping[str, Any], messages: Sequence[BaseMessage]) -> bool:
        """Return whether there may be records of a history that came without any.

        Such are a forked subagent's, one that a client sends again without a checkpointer, and that
        of an agent in another graph, at the first step of each run.
        """
        if state.get(FORKED):
            return self.preserve
        if run := run_of_subgraph():
            asked = self.graph.runs.get(run)
            self.graph.runs.put(run, True)
            return len(messages) > 1 and not asked
        turn = len(messages) > 1 and isinstance(messages[-1], HumanMessage)
        return turn and not is_checkpointed()

    def _size(self, view: Sequence[BaseMessage]) -> Size:
        return Size(sum(map(self._counting.message, view)), len(view))

    async def _taken_over(self, now: _Now, focus: str | None) -> CompactionResult | None:
        """Take over a summary of another library; return None if nothing of it may leave."""
        foreign = foreign_summary(now.channel.state) if now.held.data is None else None
        if foreign is None or self._waits(now, focus):
            return None
        if self._waiting.useless(now.key, hash(foreign)):
            return None
        session, messages = self._session(now), now.channel.messages
        covers, text = foreign.covers, foreign.text
        result = await adopt_flow(session, messages, covers, text, foreign.by)
        if result.record is not None or result.failed:
            return result
        self._waiting.found_useless(now.key, hash(foreign))
        return None

    # Whether anything is due

    def _waits(self, now: _Now, focus: str | None) -> bool:
        """Return whether it is too early to try again; not if a compaction was asked for."""
        return focus is None and self._waiting.waits(
            now.key, now.held.head_id, now.over, now.sizes.messages
        )

    def _is_due(self, now: _Now, focus: str | None) -> bool:
        if focus is not None or now.held.pending:
            return True
        if self._waits(now, focus):
            return False
        policy, held, sizes = self._policy, now.held, now.sizes
        limit = now.room.limit if now.room is not None else None
        if (
            self._arguments is not None
            and self.graph.clips(now.channel.runtime)
            and self._arguments.due(now.view, held, self._asked(now), limit, now.key)
        ):
            return True
        if not policy.trigger:
            said = "no trigger is set, or summarising is switched off: nothing is summarised"
            self.graph.say_once(said)
            return False
        failed = now.channel.failure(sizes.messages, now.over)
        if now.over:
            return failed is None or grown(self._tokens(now)[0], failed.size.tokens)
        asked = self._asked(now)
        if policy.fired(asked, limit, self._reached(now)) is None:
            return False
        if failed is not None and policy.fired(asked, limit, failed.asked) is None:
            return False
        kind, amount = policy.keep
        if kind == "messages":
            return sizes.messages > amount
        return sizes.totals[0] > (policy.keep_tokens(limit) or 0)

    def _asked(self, now: _Now) -> Size:
        return Size(self._counting.asked(now.sizes, _since(now)), now.sizes.messages)

    def _reached(self, now: _Now) -> Size | None:
        """Return the size after the latest compaction, or None."""
        after = now.held.after
        if after is None:
            return None
        told = self._counting.reached(now.sizes, _since(now))
        return replace(after, tokens=max(after.tokens, told))

    def _tokens(self, now: _Now) -> tuple[int, float]:
        """Return the meter's size of the view, and the ratio that reports correct it by."""
        sizes, room = now.sizes, now.room
        if self._meter.exact:
            return sizes.totals[0] + self._counting.base, 1.0
        if len(sizes.totals) == 1:  # the guard has measured the window, if there is one
            sizes = self._metered.follow(now.key, now.view)
        column = len(sizes.totals) - 1
        reserved, limit = (room.reserved, room.limit) if room is not None else (0, None)
        ratio = correction(sizes.reports(_since(now), column), reserved, limit)
        return math.ceil(sizes.totals[column] * ratio), ratio

    def room_for(self, recalled: int, requested: Requested, messages: Sequence[BaseMessage]) -> int:
        """Return the most tokens of recalled text: a share of the room that is free."""
        room = self.graph.room(requested)
        if not recalled or room is None:
            return recalled
        newest = newest_user(messages)
        said = 0 if newest is None else self._meter.message(messages[newest])
        free = room.budget - self._counting.base - said
        return max(0, int(min(recalled, free * RECALL_SHARE)))

    # What is done about it

    def _update(self, now: _Now, result: CompactionResult | None) -> Update | None:
        held, unchanged = now.held, {HELD: now.held.to_json()} if now.copied else None
        if result is None:
            return unchanged
        if result.record is None and not result.preparing:
            self._waiting.helped_nothing(now.key, held.head_id, now.over, now.sizes.messages)
        if result.outcome == "stuck":
            log("history_does_not_fit", "the history does not fit: %s", result.reason)
        view = result.messages
        # A caller may have sent the whole history with its summary: what that covers goes again.
        rest = bool(result.dropped) and not self.preserve
        if result.record is None and not held.pending and not rest:
            return unchanged
        if result.record is not None:
            held = held.with_record(result.record, self._size(view))
        held = held.settled(whole=self.preserve)
        if self.preserve:
            self.graph.views.keep(now.channel.scope, held.head_id, now.channel.messages, view)
            return {HELD: held.to_json()}
        removal = RemoveMessage(id=REMOVE_ALL_MESSAGES)
        hide_from_streams(one for one in view if is_summary_message(one))
        return {"messages": [removal, *view], HELD: held.to_json()}


def _since(now: _Now) -> int:
    """Return the place from which on models' reports are of this history."""
    if now.held.data is None and now.view and is_summary_message(now.view[0]):
        return len(now.view)  # somebody else's summary: nobody knows which answers came after it
    return now.held.messages_after
