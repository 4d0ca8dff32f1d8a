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

PART = 256  # after a plan that changed nothing, the next waits for 1/PART more messages
NO_CHECKPOINTER = (
    "preview=True needs a graph that can be resumed after the question: give create_agent "
    "checkpointer=InMemorySaver(), or another one; or preview= a function, which is asked at once"
)
NO_TRIGGER = 'no trigger is set: nothing is summarised; give one, such as trigger=("tokens", 4000)'


def is_quiet(channel: Channel) -> bool:
    """Return whether sizes alone say that a step has nothing to do. No store is asked."""
    state, setup = channel.state, channel.setup
    if state.get(Asked.CHANNEL) or state.get(FORKED) or setup.engine.background is not None:
        return False
    # What left the view may have to be shown again, or written to files.
    beside = channel.preserve or setup.recalled
    if channel.held.head is not None and (beside or channel.held.pending):
        return False
    if channel.brings_summary or channel.may_be_ahead(turn=True):
        return False
    return not Step(channel, channel.messages).is_due(None)


async def step(channel: Channel, focus: str | None) -> Update | None:
    """Return the update of the state that a step makes; with a `focus` compact in any case."""
    asked, update = Asked.read(channel.state), None
    if focus is None and asked is not None:
        focus = asked.focus
    try:
        update = await _stepped(channel, focus)
    except ArchiveError as error:
        # Nothing has been changed; the guard, if there is one, bridges this one request.
        if channel.setup.engine.settings.on_failure == "raise":
            raise
        said = await channel.redacted(error)
        log("history_kept", "the history was kept as it was: %s", said)
    return update if asked is None else {**(update or {}), Asked.CHANNEL: {}}


async def _stepped(channel: Channel, focus: str | None) -> Update | None:
    begun, messages = channel.held, channel.messages
    if channel.preserve:
        name_messages(messages)
    if channel.may_be_known():
        await channel.inherit()
    await channel.follow(turn=True)
    if (held := channel.held).head is not None and (channel.preserve or held.pending):
        messages = (await channel.view()).messages
        if channel.held is not held:
            # Whoever recalls without a state goes by the archive's pointer: it follows.
            await channel.follow(turn=False)
    now = Step(channel, messages)
    if now.is_due(focus):
        if await _drop_resent(channel):
            now = Step(channel, channel.messages)
        force = focus is not None
        result = await compact_messages(
            now.history(), channel.messages, force=force, focus=focus or ""
        )
        return now.update(result, begun)
    now.prepare()
    return channel.held.update() if channel.held is not begun else None


async def _drop_resent(channel: Channel) -> bool:
    """Drop evicted messages where a client has sent all again; return whether it has.

    LangGraph puts them behind those that were kept, as their ids have left the state.
    """
    messages, since = channel.messages, channel.held.messages_after
    users = [one for one in messages[since:-1] if one.type == "human"]
    if channel.held.head is None or channel.preserve or not users:
        return False
    chain = (await channel.history(None).in_force()).chain
    covered = {key.partition("-")[0] for record in chain for key in record.covers}
    if not any(read_message(one).stem in covered for one in users):
        return False
    entries = [one for one in read_messages(messages) if not one.id.startswith(DERIVED)]
    asked = newest_user(messages)  # who may ask the same once more
    newest = None if asked is None else messages[asked]
    again = {id(e.source): e.stem for e in entries if e.stem in covered and e.source is not newest}
    # All of them, or none: a call stays with its result, and one alone is another message.
    all_came = bool(covered) and covered == {*again.values()}
    channel.resent = all_came and any(map(is_summary_message, messages))
    if channel.resent:
        channel.messages = [message for message in messages if id(message) not in again]
    return channel.resent


class Step:
    """A history at one step: its sizes, and what they ask for."""

    def __init__(self, channel: Channel, view: list[BaseMessage]) -> None:
        setup, messages, meter = channel.setup, channel.messages, channel.setup.engine.meter
        self._channel, self._setup, self._view = channel, setup, view
        self._held, room = channel.held, setup.room(channel.state)
        # What a message really takes is counted beside, where a window is there to be exceeded.
        metered = [meter.message] if room is not None and not meter.exact else []
        self._sizes = sizes = channel.sizes("view", view, *setup.counting.columns, *metered)
        if not channel.preserve and sizes.fresh < len(messages):
            name_messages(messages[sizes.fresh :], messages)
        # Reports of models are of this history from here on. Nobody knows which answers came after
        # the summary of another library.
        foreign = self._held.head is None and bool(view) and is_summary_message(view[0])
        self._since = len(view) if foreign else self._held.messages_after
        self._size = Size(setup.counting.asked(sizes, self._since), len(view))
        self._tokens, self._ratio, self._over = setup.counting.total(sizes), 1.0, False
        if room is not None:
            # The turn may be shown originals again.
            beside = setup.room_to_recall(channel.state, setup.recalled)
            room = replace(room, reserved=room.reserved + beside)
            if metered:
                known = meter.known_ratio(self._held.corrections)
                reports = sizes.reports(self._since, 1)
                self._ratio = correction(reports, room.reserved, room.limit, known=known)
                self._tokens = math.ceil(sizes.total(1) * self._ratio)
            self._over = self._tokens > room.budget
        self._room = room

    def history(self) -> HistoryContext:
        ratio = None if self._room is None else self._ratio
        history = self._channel.history(self._room, ratio)
        sizes: Any = {"trigger_size": self._size, "count_view": self._channel.size_of}
        return replace(history, reached=self._reached, **sizes)

    def prepare(self) -> None:
        """Prepare the next notes in the background, once the trigger is near."""
        jobs = self._setup.engine.background
        if jobs is None:
            return
        history, size, head = self.history(), self._size, self._held.head_id
        if history.nears_trigger(size) and jobs.may_begin(history.scope, head, size):
            begin(history, read_messages(self._channel.messages), head, size)

    def is_due(self, focus: str | None) -> bool:
        """Return whether to read and plan; `focus` is that of a compaction that was asked for."""
        setup = self._setup
        run = self._channel.run
        if setup.settings.preview is True and not run.has_checkpointer:
            raise PolicyError(NO_CHECKPOINTER)
        if focus is not None or self._held.pending:
            return True
        head, over, tried = self._channel.cache.tried
        same = (head, over) == (self._held.head_id, self._over)
        if same and 0 <= len(self._view) - tried < tried // PART:
            return False
        if not setup.engine.policy.trigger:
            setup.say_once(NO_TRIGGER)
            return False
        limit, policy = None if self._room is None else self._room.limit, setup.engine.policy
        if self._over or policy.fired(self._size, limit) is None:
            return self._over
        return policy.fired(self._size, limit, self._reached) is not None

    @cached_property
    def _reached(self) -> Size | None:
        """The size that the latest compaction reached, as the trigger counts.

        The first answer after it may say more than was counted; or less, where the counter reads
        its usage.
        """
        after, counting = self._held.after, self._setup.counting
        if after is None:
            return None
        if counting.by_list and counting.meter is not None:
            answer = next(iter(self._sizes.since(self._since)), None)
            if answer is not None and self._since:
                counted = counting.meter.whole(self._view[: answer.place + 1])
                after = replace(after, tokens=min(after.tokens, counted))
        reported = counting.reached(self._sizes, self._since)
        return replace(after, tokens=max(after.tokens, reported))

    def update(self, result: CompactionResult, begun: object) -> Update | None:
        """Return the update of the state for a result; `begun` is the head in the state."""
        preserve = self._channel.preserve
        if result.failed is not None:
            self._channel.held = self._channel.with_failure()
        held = self._channel.held if result.failed is not None else self._held
        view = cast("list[BaseMessage]", result.messages)
        if result.record is None and not result.preparing:
            self._channel.cache.tried = held.head_id, self._over, len(self._view)
        if result.outcome == "stuck":
            log("history_does_not_fit", "the history does not fit: %s", result.reason)
        # A caller may have sent the whole history with its summary: what that covers goes again.
        rest = bool(result.dropped or self._channel.resent) and not preserve
        if result.record is None and not held.pending and not rest:
            return held.update() if held is not begun else None
        self._channel.held = held = replace(held, pending=False)
        if result.record is not None:
            held = self._channel.put_in_force(result.record, view, whole=preserve)
        if preserve:
            return held.update()
        hide_from_streams(one for one in view if is_summary_message(one))
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *view], **held.update()}
