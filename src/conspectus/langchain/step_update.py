"""Decide one step of an agent, and update its state.

Most steps need nothing. Sizes alone tell that: no message is read a second time, and no store is
asked. The history is read and planned only when something is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus._langchain import hide_from_streams
from conspectus.core.items import Size, Window
from conspectus.engine.background import prepare_messages
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import CallerCounts, HistoryContext
from conspectus.engine.measuring import size_known_by_answer
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
    RequestedUndo,
    name_messages,
)
from conspectus.langchain.taking_back import take_back
from conspectus.messages import is_summary_message, read_message, read_messages
from conspectus.messages.users import newest_user_message
from conspectus.observe import log
from conspectus.tokens import correction

Update = dict[str, Any]

VAIN_PLAN_DIVISOR = 256
"""After a plan that changed nothing, the next waits until one part in so many was added."""

NO_CHECKPOINTER = (
    "preview=True needs a graph that can be resumed after the question: give create_agent "
    "checkpointer=InMemorySaver(), or another one; or preview= a function, which is asked at once"
)
NO_TRIGGER = 'no trigger is set: nothing is summarised; give one, such as trigger=("tokens", 4000)'


def is_quiet(step: AgentStep) -> bool:
    """Tell whether sizes alone say that a step has nothing to do. No store is asked."""
    state = step.state
    setup = step.setup
    if setup.engine.preparations is not None:
        return False
    if state.get(RequestedCompaction.CHANNEL) or state.get(RequestedUndo.CHANNEL):
        return False
    if state.get(FORKED):
        return False
    # Evicted messages may have to be shown again, or written to files.
    shows_evicted = step.preserve or setup.recall_tokens
    if step.held.head_id and (shows_evicted or step.held.pending):
        return False
    if step.brings_summary or step.archive_may_lag(turn=True):
        return False
    _check_settings(step)
    measured = measure_step(step, step.messages)
    _name_new_messages(measured)
    return not measured.is_due(forced=False)


def _check_settings(step: AgentStep) -> None:
    """Log once that no trigger is set.

    Raises:
        PolicyError: a person approves summaries, and the graph has no checkpointer.
    """
    setup = step.setup
    if setup.settings.preview is True and not step.run.parent_checkpointed:
        raise PolicyError(NO_CHECKPOINTER)
    if not setup.engine.policy.trigger:
        setup.say_once(NO_TRIGGER)


class StepUpdate(NamedTuple):
    """How a step ended: with the record that is then in force, and the update of the state."""

    step: AgentStep
    update: Update | None  # None if the state stays as it is


async def compact_step(step: AgentStep, requested: RequestedCompaction | None = None) -> StepUpdate:
    """Compact the history of a step if that is due; return the step after it, and the update.

    A compaction that is requested, here or in the state, is made although no trigger is reached. In
    the step that takes a compaction back, no other one is made unless it is requested.
    """
    _check_settings(step)
    requested_in_state = RequestedCompaction.read(step.state)
    requested = requested_in_state if requested is None else requested
    ended = StepUpdate(step, None)
    try:
        undone = await take_back(step)
        if undone is not None:
            ended = StepUpdate(*undone)
        if undone is None or requested is not None:
            later = await _compact_if_due(ended.step, requested)
            ended = later._replace(update=_merged(ended.update, later.update))
    except ArchiveError as error:
        # Nothing was changed. If the request does not fit, `ContextGuard` compacts it alone.
        if step.setup.engine.settings.on_failure == "raise":
            raise
        reason = await step.redact_error(error)
        log("history_kept", "the history was kept as it was: %s", reason)
    if requested_in_state is None:
        return ended
    return ended._replace(update={**(ended.update or {}), RequestedCompaction.CHANNEL: {}})


def _merged(earlier: Update | None, later: Update | None) -> Update | None:
    """Return what two updates of one step make together."""
    return later if earlier is None else {**earlier, **(later or {})}


async def _compact_if_due(step: AgentStep, requested: RequestedCompaction | None) -> StepUpdate:
    held_at_first = step.held
    messages = step.messages
    if step.preserve:
        name_messages(messages)
    if step.may_be_known():
        step = await step.inherit()
    step = await step.bring_archive_along(turn=True)
    if step.held.head_id and (step.preserve or step.held.pending):
        view = await step.fold_view()
        messages = view.messages
        if view.step is not step:
            # An earlier record is in force. Readers without a state use the head in the archive.
            step = await view.step.bring_archive_along(turn=False)
    measured = measure_step(step, messages)
    _name_new_messages(measured)
    if not measured.is_due(forced=requested is not None):
        measured.prepare()
        return StepUpdate(step, _update_if_changed(step.held, held_at_first))
    without_resent = await _take_out_resent(step)
    if without_resent is not step:
        measured = measure_step(without_resent, without_resent.messages)
        _name_new_messages(measured)
    force = requested is not None
    focus = "" if requested is None else requested.focus
    messages = measured.step.messages
    result = await compact_messages(measured.prepare_history(), messages, force=force, focus=focus)
    return measured.step_after(result, held_at_first)


def _update_if_changed(held: HeadState, held_at_first: HeadState) -> Update | None:
    """Return the update that stores the record in force; None if it was in the state already."""
    return None if held is held_at_first else held.as_update()


async def _take_out_resent(step: AgentStep) -> AgentStep:
    """Return a step without evicted messages, if a client has sent all of them again.

    Their ids have left the state, so LangGraph puts them after the messages that were kept.
    """
    messages = step.messages
    since = step.held.messages_after
    users = [message for message in messages[since:-1] if message.type == "human"]
    if not step.held.head_id or step.preserve or not users:
        return step
    chain = (await step.prepare_history(None).read_in_force()).chain
    covered = {key.partition("-")[0] for record in chain for key in record.covers}
    if not any(read_message(message).stem in covered for message in users):
        return step
    newest_place = newest_user_message(messages)  # the user may have asked the same again
    newest = None if newest_place is None else messages[newest_place]
    resent: dict[int, str] = {}
    for entry in read_messages(messages):
        has_own_id = not entry.id.startswith(DERIVED)
        if has_own_id and entry.stem in covered and entry.source is not newest:
            resent[id(entry.source)] = entry.stem
    # A single message with the same content is a new one. And a call stays with its result.
    all_came = bool(covered) and covered == {*resent.values()}
    if not all_came or not any(map(is_summary_message, messages)):
        return step
    remaining = [message for message in messages if id(message) not in resent]
    return replace(step, messages=remaining, has_resent_messages=True)


def _name_new_messages(measured: MeasuredStep) -> None:
    """Give the messages ids that were not measured before, unless the state keeps all of them."""
    step = measured.step
    first_new = measured.sizes.first_new
    if not step.preserve and first_new < len(step.messages):
        name_messages(step.messages[first_new:], step.messages)


def measure_step(step: AgentStep, view: list[BaseMessage]) -> MeasuredStep:
    """Measure the view of a step: for the trigger and, if there is one, for the window."""
    setup = step.setup
    held = step.held
    counting = setup.counting
    meter = setup.engine.meter
    window = setup.window_for(step.state)
    columns = list(counting.columns)
    # A second column has the tokens of each message as the model counts them. It is needed only if
    # there is a window.
    is_metered = window is not None and not meter.exact
    if is_metered:
        columns.append(meter.count_message)
    sizes = step.sizes("view", view, *columns)
    # Reports of usage from here onwards are about this view. If it begins with the summary of
    # another library, nobody knows which answers came after that.
    is_foreign = not held.head_id and bool(view) and is_summary_message(view[0])
    reports_from = len(view) if is_foreign else held.messages_after
    trigger_size = Size(counting.trigger_size(sizes, reports_from), len(view))
    tokens = counting.total(sizes)
    ratio = 1.0
    exceeds_window = False
    if window is not None:
        # Leave room for recalled originals.
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
        window=window,
        sizes=sizes,
        reports_from=reports_from,
        trigger_size=trigger_size,
        ratio=ratio,
        exceeds_window=exceeds_window,
    )


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """A history at one step: its sizes, and whether they make a compaction due."""

    step: AgentStep
    view: list[BaseMessage]
    window: Window | None
    sizes: HistorySizes
    reports_from: int  # the first message whose reported usage counts
    trigger_size: Size
    ratio: float  # by which reports of usage correct the estimate
    exceeds_window: bool

    def prepare_history(self) -> HistoryContext:
        """Return the history with its sizes, to be compacted."""
        ratio = None if self.window is None else self.ratio
        return replace(
            self.step.prepare_history(self.window, ratio),
            counts=CallerCounts(
                trigger_size=self.trigger_size,
                count_view=self.step.size_of,
                rearm_from=self._rearm_from,
            ),
        )

    def prepare(self) -> None:
        """Prepare the next notes in the background, if the trigger is near."""
        preparations = self.step.setup.engine.preparations
        if preparations is None:
            return
        history = self.prepare_history()
        head_id = self.step.held.head_id
        if not history.nears_trigger(self.trigger_size):
            return
        if preparations.may_begin(history.scope, head_id, self.trigger_size):
            prepare_messages(history, read_messages(self.step.messages), head_id, self.trigger_size)

    def is_due(self, *, forced: bool) -> bool:
        """Tell whether to read and plan the history; `forced` if a compaction was requested."""
        if forced or self.step.held.pending:
            return True
        policy = self.step.setup.engine.policy
        if not policy.trigger or self._is_planned_in_vain():
            return False
        if self.exceeds_window:
            return True
        limit = None if self.window is None else self.window.limit
        if policy.fired(self.trigger_size, limit) is None:
            return False
        # Checked last, because that size may have to be counted.
        return policy.fired(self.trigger_size, limit, self._rearm_from) is not None

    def _is_planned_in_vain(self) -> bool:
        """Tell whether a plan for nearly the same history has changed nothing."""
        vain = self.step.cache.vain_plan
        if (vain.head_id, vain.exceeds_window) != (self.step.held.head_id, self.exceeds_window):
            return False
        return 0 <= len(self.view) - vain.messages < vain.messages // VAIN_PLAN_DIVISOR

    @cached_property
    def _rearm_from(self) -> Size | None:
        """The size that the latest compaction reached, as the trigger counts.

        The first answer after the compaction may report more than was counted, or less if the
        caller's counter reads reported usage.
        """
        size = self.step.held.size_after
        if size is None:
            return None
        counting = self.step.setup.counting
        if counting.by_list and counting.meter is not None:
            answer = next(iter(self.sizes.answers_since(self.reports_from)), None)
            if answer is not None and self.reports_from:
                size = size_known_by_answer(size, counting.meter, self.view[: answer.place + 1])
        reported = counting.size_reported_after(self.sizes, self.reports_from)
        return replace(size, tokens=max(size.tokens, reported))

    def step_after(self, result: CompactionResult, held_at_first: HeadState) -> StepUpdate:
        """Return how the step ends with the result of its compaction.

        `held_at_first` is the record in force as the state has it.
        """
        step = self.step
        if result.failed is not None:
            step = step.with_latest_failure()
        held = step.held
        view = cast("list[BaseMessage]", result.messages)
        if result.record is None and not result.preparing:
            step.cache.vain_plan = VainPlan(held.head_id, self.exceeds_window, len(self.view))
        if result.outcome == "stuck":
            log("history_does_not_fit", "the history does not fit: %s", result.reason)
        # If a caller has sent the whole history with its summary, the evicted part leaves again.
        drops = bool(result.dropped or step.has_resent_messages) and not step.preserve
        if result.record is None and not held.pending and not drops:
            return StepUpdate(step, _update_if_changed(held, held_at_first))
        step = step.with_head(replace(held, pending=False))
        if result.record is not None:
            step = step.put_in_force(result.record, view, whole=step.preserve)
        update = step.held.as_update()
        if step.preserve:
            return StepUpdate(step, update)
        hide_from_streams(message for message in view if is_summary_message(message))
        removal = RemoveMessage(id=REMOVE_ALL_MESSAGES)
        return StepUpdate(step, {"messages": [removal, *view], **update})
