"""Decide one step of an agent, and update its state.

Most steps need nothing. They are decided from sizes, without reading a message twice or asking a
store; the history is read and planned only when something is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus._langchain import hide_from_streams
from conspectus.core.items import Size, Window
from conspectus.engine.background import begin_preparation
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import HistoryContext
from conspectus.engine.result import CompactionResult
from conspectus.errors import ArchiveError, PolicyError
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.cache import VainPlan
from conspectus.langchain.history_sizes import HistorySizes
from conspectus.langchain.state import (
    DERIVED,
    FORKED,
    HeadState,
    RequestedCompaction,
    name_messages,
)
from conspectus.messages import is_summary_message, read_message, read_messages
from conspectus.messages.users import newest_user_message
from conspectus.observe import log
from conspectus.tokens import correction

Update = dict[str, Any]

PART = 256  # After a plan that changed nothing, the next waits for 1/PART more messages.
NO_CHECKPOINTER = (
    "preview=True needs a graph that can be resumed after the question: give create_agent "
    "checkpointer=InMemorySaver(), or another one; or preview= a function, which is asked at once"
)
NO_TRIGGER = 'no trigger is set: nothing is summarised; give one, such as trigger=("tokens", 4000)'


def is_quiet(step: AgentStep) -> bool:
    """Return whether sizes alone say that a step has nothing to do. No store is asked."""
    state = step.state
    setup = step.setup
    if setup.engine.preparations is not None:
        return False
    if state.get(RequestedCompaction.CHANNEL) or state.get(FORKED):
        return False
    # Messages that left the view may have to be shown again, or written to files.
    shows_evicted = step.preserve or setup.recall_tokens
    if step.held.head is not None and (shows_evicted or step.held.pending):
        return False
    if step.brings_summary or step.archive_may_lag(turn=True):
        return False
    return not measure_step(step, step.messages).is_due(forced=False)


async def plan_step(step: AgentStep, requested: RequestedCompaction | None = None) -> Update | None:
    """Return the update of the state that a step makes.

    A compaction that is requested, here or in the state, is made although no trigger is reached.
    """
    noted = RequestedCompaction.read(step.state)
    update: Update | None = None
    try:
        update = await _decide_update(step, noted if requested is None else requested)
    except ArchiveError as error:
        # Nothing has been changed; the guard, if there is one, bridges this one request.
        if step.setup.engine.settings.on_failure == "raise":
            raise
        reason = await step.redacted(error)
        log("history_kept", "the history was kept as it was: %s", reason)
    return update if noted is None else {**(update or {}), RequestedCompaction.CHANNEL: {}}


async def _decide_update(step: AgentStep, requested: RequestedCompaction | None) -> Update | None:
    begun = step.held
    messages = step.messages
    if step.preserve:
        name_messages(messages)
    if step.may_be_known():
        await step.inherit()
    await step.bring_archive_along(turn=True)
    held = step.held
    if held.head is not None and (step.preserve or held.pending):
        messages = (await step.view()).messages
        if step.held is not held:
            # Whoever recalls without a state goes by the head in the archive: it follows.
            await step.bring_archive_along(turn=False)
    measured = measure_step(step, messages)
    if not measured.is_due(forced=requested is not None):
        measured.prepare()
        return step.held.as_update() if step.held is not begun else None
    if await _drop_resent(step):
        measured = measure_step(step, step.messages)
    force = requested is not None
    focus = "" if requested is None else requested.focus
    result = await compact_messages(measured.history(), step.messages, force=force, focus=focus)
    return measured.update(result, begun)


async def _drop_resent(step: AgentStep) -> bool:
    """Drop evicted messages where a client has sent all again; return whether it has.

    LangGraph puts them behind those that were kept, as their ids have left the state.
    """
    messages = step.messages
    since = step.held.messages_after
    users = [message for message in messages[since:-1] if message.type == "human"]
    if step.held.head is None or step.preserve or not users:
        return False
    chain = (await step.history(None).in_force()).chain
    covered = {key.partition("-")[0] for record in chain for key in record.covers}
    if not any(read_message(message).stem in covered for message in users):
        return False
    newest_place = newest_user_message(messages)  # who may ask the same once more
    newest = None if newest_place is None else messages[newest_place]
    resent: dict[int, str] = {}
    for entry in read_messages(messages):
        has_own_id = not entry.id.startswith(DERIVED)
        if has_own_id and entry.stem in covered and entry.source is not newest:
            resent[id(entry.source)] = entry.stem
    # All of them, or none: a call stays with its result, and one alone is another message.
    all_came = bool(covered) and covered == {*resent.values()}
    step.resent = all_came and any(map(is_summary_message, messages))
    if step.resent:
        step.messages = [message for message in messages if id(message) not in resent]
    return step.resent


def measure_step(step: AgentStep, view: list[BaseMessage]) -> MeasuredStep:
    """Measure the view of a step, as the trigger counts and, if there is a window, as that does.

    Where the state is not preserved, new messages get ids.
    """
    setup = step.setup
    held = step.held
    counting = setup.counting
    meter = setup.engine.meter
    window = setup.window_for(step.state)
    columns = list(counting.columns)
    # A second column: the tokens of each message as the model counts them. They are needed where
    # there is a window to exceed.
    is_metered = window is not None and not meter.exact
    if is_metered:
        columns.append(meter.message)
    sizes = step.sizes("view", view, *columns)
    if not step.preserve and sizes.first_new < len(step.messages):
        name_messages(step.messages[sizes.first_new :], step.messages)
    # Reports of models are of this history from here on. Nobody knows which answers came after the
    # summary of another library.
    is_foreign = held.head is None and bool(view) and is_summary_message(view[0])
    reports_from = len(view) if is_foreign else held.messages_after
    trigger_size = Size(counting.trigger_size(sizes, reports_from), len(view))
    tokens = counting.total(sizes)
    ratio = 1.0
    exceeds_window = False
    if window is not None:
        # The turn may be shown originals again.
        recalled = setup.recall_budget(step.state, setup.recall_tokens)
        window = replace(window, reserved=window.reserved + recalled)
        if is_metered:
            known_ratio = meter.known_ratio(held.corrections)
            reports = sizes.reports(reports_from, 1)
            ratio = correction(reports, window.reserved, window.limit, known=known_ratio)
            tokens = math.ceil(sizes.total(1) * ratio)
        exceeds_window = tokens > window.budget
    return MeasuredStep(
        step=step,
        view=view,
        held=held,
        window=window,
        sizes=sizes,
        reports_from=reports_from,
        trigger_size=trigger_size,
        ratio=ratio,
        exceeds_window=exceeds_window,
    )


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """A history at one step: its sizes, and what they ask for."""

    step: AgentStep
    view: list[BaseMessage]
    held: HeadState  # as it was when the step was measured
    window: Window | None
    sizes: HistorySizes
    reports_from: int  # the first message of which reports of models count
    trigger_size: Size
    ratio: float  # of what models count to what is estimated
    exceeds_window: bool

    def history(self) -> HistoryContext:
        """Return the history with its sizes, to be compacted."""
        ratio = None if self.window is None else self.ratio
        history = self.step.history(self.window, ratio)
        sizes: Any = {"trigger_size": self.trigger_size, "count_view": self.step.size_of}
        return replace(history, reached=self._reached, **sizes)

    def prepare(self) -> None:
        """Prepare the next notes in the background, once the trigger is near."""
        jobs = self.step.setup.engine.preparations
        if jobs is None:
            return
        history = self.history()
        head_id = self.held.head_id
        if not history.nears_trigger(self.trigger_size):
            return
        if jobs.may_begin(history.scope, head_id, self.trigger_size):
            begin_preparation(
                history, read_messages(self.step.messages), head_id, self.trigger_size
            )

    def is_due(self, *, forced: bool) -> bool:
        """Return whether to read and plan the history; `forced` if a compaction was requested."""
        setup = self.step.setup
        if setup.settings.preview is True and not self.step.run.has_checkpointer:
            raise PolicyError(NO_CHECKPOINTER)
        if forced or self.held.pending:
            return True
        if self._is_planned_in_vain():
            return False
        policy = setup.engine.policy
        if not policy.trigger:
            setup.say_once(NO_TRIGGER)
            return False
        if self.exceeds_window:
            return True
        limit = None if self.window is None else self.window.limit
        if policy.fired(self.trigger_size, limit) is None:
            return False
        # Only now, as the size that was reached may have to be counted.
        return policy.fired(self.trigger_size, limit, self._reached) is not None

    def _is_planned_in_vain(self) -> bool:
        """Tell whether a plan for nearly this history changed nothing."""
        vain = self.step.cache.vain_plan
        if (vain.head, vain.exceeded_window) != (self.held.head_id, self.exceeds_window):
            return False
        return 0 <= len(self.view) - vain.messages < vain.messages // PART

    @cached_property
    def _reached(self) -> Size | None:
        """The size that the latest compaction reached, as the trigger counts.

        The first answer after it may say more than was counted; or less, where the counter reads
        its usage.
        """
        reached = self.held.size_after
        if reached is None:
            return None
        counting = self.step.setup.counting
        if counting.by_list and counting.meter is not None:
            answer = next(iter(self.sizes.since(self.reports_from)), None)
            if answer is not None and self.reports_from:
                counted = counting.meter.whole(self.view[: answer.place + 1])
                reached = replace(reached, tokens=min(reached.tokens, counted))
        reported = counting.size_reported_after(self.sizes, self.reports_from)
        return replace(reached, tokens=max(reached.tokens, reported))

    def update(self, result: CompactionResult, begun: object) -> Update | None:
        """Return the update of the state for a result; `begun` is the head in the state."""
        step = self.step
        held = self.held
        if result.failed is not None:
            held = step.with_failure()
            step.held = held
        view = cast("list[BaseMessage]", result.messages)
        if result.record is None and not result.preparing:
            step.cache.vain_plan = VainPlan(held.head_id, self.exceeds_window, len(self.view))
        if result.outcome == "stuck":
            log("history_does_not_fit", "the history does not fit: %s", result.reason)
        # A caller may have sent the whole history with its summary: what that covers goes again.
        drops = bool(result.dropped or step.resent) and not step.preserve
        if result.record is None and not held.pending and not drops:
            return held.as_update() if held is not begun else None
        held = replace(held, pending=False)
        step.held = held
        if result.record is not None:
            held = step.put_in_force(result.record, view, whole=step.preserve)
        if step.preserve:
            return held.as_update()
        hide_from_streams(message for message in view if is_summary_message(message))
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *view], **held.as_update()}
