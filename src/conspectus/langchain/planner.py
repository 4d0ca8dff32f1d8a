"""Decide one step of an agent, and update its state.

Most steps need nothing. They are decided from sizes, without reading a message twice or asking a
store; the history is read and planned only when something is due.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus._langchain import hide_from_streams
from conspectus.core.items import Size
from conspectus.engine.background import begin
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import HistoryContext
from conspectus.engine.result import CompactionResult
from conspectus.errors import ArchiveError, PolicyError
from conspectus.langchain.channel import Channel
from conspectus.langchain.state import DERIVED, FORKED, Asked, name_messages
from conspectus.messages import is_summary_message, read_message, read_messages
from conspectus.messages.requests import newest_user
from conspectus.observe import log
from conspectus.tokens import correction

Update = dict[str, Any]

PART = 256  # After a plan that changed nothing, the next waits for 1/PART more messages.
NO_CHECKPOINTER = (
    "preview=True needs a graph that can be resumed after the question: give create_agent "
    "checkpointer=InMemorySaver(), or another one; or preview= a function, which is asked at once"
)
NO_TRIGGER = 'no trigger is set: nothing is summarised; give one, such as trigger=("tokens", 4000)'


def is_quiet(channel: Channel) -> bool:
    """Return whether sizes alone say that a step has nothing to do. No store is asked."""
    state = channel.state
    setup = channel.setup
    if state.get(Asked.CHANNEL) or state.get(FORKED) or setup.engine.background is not None:
        return False
    # Messages that left the view may have to be shown again, or written to files.
    shows_evicted = channel.preserve or setup.recalled
    if channel.held.head is not None and (shows_evicted or channel.held.pending):
        return False
    if channel.brings_summary or channel.may_be_ahead(turn=True):
        return False
    return not MeasuredStep(channel, channel.messages).is_due(None)


async def step(channel: Channel, focus: str | None) -> Update | None:
    """Return the update of the state that a step makes; with a `focus` compact in any case."""
    request = Asked.read(channel.state)
    if focus is None and request is not None:
        focus = request.focus
    update: Update | None = None
    try:
        update = await _stepped(channel, focus)
    except ArchiveError as error:
        # Nothing has been changed; the guard, if there is one, bridges this one request.
        if channel.setup.engine.settings.on_failure == "raise":
            raise
        reason = await channel.redacted(error)
        log("history_kept", "the history was kept as it was: %s", reason)
    return update if request is None else {**(update or {}), Asked.CHANNEL: {}}


async def _stepped(channel: Channel, focus: str | None) -> Update | None:
    begun = channel.held
    messages = channel.messages
    if channel.preserve:
        name_messages(messages)
    if channel.may_be_known():
        await channel.inherit()
    await channel.follow(turn=True)
    held = channel.held
    if held.head is not None and (channel.preserve or held.pending):
        messages = (await channel.view()).messages
        if channel.held is not held:
            # Whoever recalls without a state goes by the archive's pointer: it follows.
            await channel.follow(turn=False)
    measured = MeasuredStep(channel, messages)
    if not measured.is_due(focus):
        measured.prepare()
        return channel.held.update() if channel.held is not begun else None
    if await _drop_resent(channel):
        measured = MeasuredStep(channel, channel.messages)
    force = focus is not None
    result = await compact_messages(
        measured.history(), channel.messages, force=force, focus=focus or ""
    )
    return measured.update(result, begun)


async def _drop_resent(channel: Channel) -> bool:
    """Drop evicted messages where a client has sent all again; return whether it has.

    LangGraph puts them behind those that were kept, as their ids have left the state.
    """
    messages = channel.messages
    since = channel.held.messages_after
    users = [message for message in messages[since:-1] if message.type == "human"]
    if channel.held.head is None or channel.preserve or not users:
        return False
    chain = (await channel.history(None).in_force()).chain
    covered = {key.partition("-")[0] for record in chain for key in record.covers}
    if not any(read_message(message).stem in covered for message in users):
        return False
    newest_place = newest_user(messages)  # who may ask the same once more
    newest = None if newest_place is None else messages[newest_place]
    resent: dict[int, str] = {}
    for entry in read_messages(messages):
        has_own_id = not entry.id.startswith(DERIVED)
        if has_own_id and entry.stem in covered and entry.source is not newest:
            resent[id(entry.source)] = entry.stem
    # All of them, or none: a call stays with its result, and one alone is another message.
    all_came = bool(covered) and covered == {*resent.values()}
    channel.resent = all_came and any(map(is_summary_message, messages))
    if channel.resent:
        channel.messages = [message for message in messages if id(message) not in resent]
    return channel.resent


class MeasuredStep:
    """A history at one step: its sizes, and what they ask for."""

    def __init__(self, channel: Channel, view: list[BaseMessage]) -> None:
        setup = channel.setup
        counting = setup.counting
        meter = setup.engine.meter
        messages = channel.messages
        self._channel = channel
        self._setup = setup
        self._view = view
        self._held = channel.held
        self._room = setup.room(channel.state)
        # A second column: the tokens of each message as the model counts them. They are needed
        # where there is a window to exceed.
        columns = list(counting.columns)
        is_metered = self._room is not None and not meter.exact
        if is_metered:
            columns.append(meter.message)
        sizes = channel.sizes("view", view, *columns)
        self._sizes = sizes
        if not channel.preserve and sizes.fresh < len(messages):
            name_messages(messages[sizes.fresh :], messages)
        # Reports of models are of this history from here on. Nobody knows which answers came after
        # the summary of another library.
        is_foreign = self._held.head is None and bool(view) and is_summary_message(view[0])
        self._since = len(view) if is_foreign else self._held.messages_after
        self._size = Size(counting.asked(sizes, self._since), len(view))
        self._tokens = counting.total(sizes)
        self._ratio = 1.0
        self._over = False
        if self._room is not None:
            # The turn may be shown originals again.
            recalled = setup.room_to_recall(channel.state, setup.recalled)
            room = replace(self._room, reserved=self._room.reserved + recalled)
            self._room = room
            if is_metered:
                ratio = meter.known_ratio(self._held.corrections)
                reports = sizes.reports(self._since, 1)
                self._ratio = correction(reports, room.reserved, room.limit, known=ratio)
                self._tokens = math.ceil(sizes.total(1) * self._ratio)
            self._over = self._tokens > room.budget

    def history(self) -> HistoryContext:
        """Return the history with its sizes, to be compacted."""
        ratio = None if self._room is None else self._ratio
        history = self._channel.history(self._room, ratio)
        sizes: Any = {"trigger_size": self._size, "count_view": self._channel.size_of}
        return replace(history, reached=self._reached, **sizes)

    def prepare(self) -> None:
        """Prepare the next notes in the background, once the trigger is near."""
        jobs = self._setup.engine.background
        if jobs is None:
            return
        history = self.history()
        head_id = self._held.head_id
        if not history.nears_trigger(self._size):
            return
        if jobs.may_begin(history.scope, head_id, self._size):
            begin(history, read_messages(self._channel.messages), head_id, self._size)

    def is_due(self, focus: str | None) -> bool:
        """Return whether to read and plan; `focus` is that of a compaction that was asked for."""
        setup = self._setup
        if setup.settings.preview is True and not self._channel.run.has_checkpointer:
            raise PolicyError(NO_CHECKPOINTER)
        if focus is not None or self._held.pending:
            return True
        head, over, length = self._channel.cache.tried
        is_same = (head, over) == (self._held.head_id, self._over)
        if is_same and 0 <= len(self._view) - length < length // PART:
            return False
        policy = setup.engine.policy
        if not policy.trigger:
            setup.say_once(NO_TRIGGER)
            return False
        limit = None if self._room is None else self._room.limit
        if self._over or policy.fired(self._size, limit) is None:
            return self._over
        return policy.fired(self._size, limit, self._reached) is not None

    @cached_property
    def _reached(self) -> Size | None:
        """The size that the latest compaction reached, as the trigger counts.

        The first answer after it may say more than was counted; or less, where the counter reads
        its usage.
        """
        reached = self._held.after
        if reached is None:
            return None
        counting = self._setup.counting
        if counting.by_list and counting.meter is not None:
            answer = next(iter(self._sizes.since(self._since)), None)
            if answer is not None and self._since:
                counted = counting.meter.whole(self._view[: answer.place + 1])
                reached = replace(reached, tokens=min(reached.tokens, counted))
        reported = counting.reached(self._sizes, self._since)
        return replace(reached, tokens=max(reached.tokens, reported))

    def update(self, result: CompactionResult, begun: object) -> Update | None:
        """Return the update of the state for a result; `begun` is the head in the state."""
        channel = self._channel
        held = self._held
        if result.failed is not None:
            held = channel.with_failure()
            channel.held = held
        view = cast("list[BaseMessage]", result.messages)
        if result.record is None and not result.preparing:
            channel.cache.tried = held.head_id, self._over, len(self._view)
        if result.outcome == "stuck":
            log("history_does_not_fit", "the history does not fit: %s", result.reason)
        # A caller may have sent the whole history with its summary: what that covers goes again.
        drops = bool(result.dropped or channel.resent) and not channel.preserve
        if result.record is None and not held.pending and not drops:
            return held.update() if held is not begun else None
        held = replace(held, pending=False)
        channel.held = held
        if result.record is not None:
            held = channel.put_in_force(result.record, view, whole=channel.preserve)
        if channel.preserve:
            return held.update()
        hide_from_streams(message for message in view if is_summary_message(message))
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *view], **held.update()}
