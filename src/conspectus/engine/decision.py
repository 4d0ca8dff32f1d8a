"""Decide about one view: the plan of the core, checked by the caller's own counter if there is one.

A caller's counter measures whole lists, and its counts need not add up. So its total is divided
among the messages in proportion (`share_out_count`). The view that a plan leaves is measured here,
before a summary is written. If it would not fit, another plan is made for less room.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from conspectus.core.bisection import highest_that_fits
from conspectus.core.growth import has_grown
from conspectus.core.items import Size
from conspectus.core.plan_types import Compact, Keep, Plan, PlannedClip, Stuck
from conspectus.core.planner import BELOW, STUCK, PastSizes, PlanOptions, divide_size, make_plan
from conspectus.core.policy import keep_tokens
from conspectus.core.records import Draft
from conspectus.engine.clips import clip_item
from conspectus.engine.engine import Engine
from conspectus.engine.failures import take_over_failure
from conspectus.engine.history import PREPARE_FROM
from conspectus.engine.measuring import share_out_count, size_known_by_answer
from conspectus.engine.memory import FailedSummary
from conspectus.engine.view import View, ViewItem
from conspectus.engine.viewing import messages_to_send, remaining_items

ID_MARGIN = 16
"""The most tokens that are left free for the id of a record, which is not known yet."""

TRIES = 6
"""Plans that are made and measured before the smallest view is tried."""

SUMMARY_FLOOR = 120
"""Tokens of text below which a summary holds little more than one rule."""

FAILED_BEFORE = (
    "the last compaction, at %d messages, failed or was declined; it is tried again once the "
    "history has grown by a tenth, or by more after failures in a row, or no longer fits the window"
)

PlanWithin = Callable[[int], Plan]
"""A function that plans for a window that is smaller by so many tokens."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What a caller asks for."""

    force: bool = False  # compact although nothing asks for it
    focus: str = ""  # the subject to keep above all, in plain words


@dataclass(frozen=True, slots=True)
class UnchangedDecision:
    """The decision to leave a view as it is."""

    view: View
    plan: Keep | Stuck


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """The decision to compact a view."""

    view: View
    plan: Compact
    draft: Draft | None = None  # a draft that was prepared for just this plan, if any
    waited: float = 0.0  # seconds that the caller has waited for such a draft


Decision = UnchangedDecision | CompactionDecision


def decision_of(view: View, plan: Plan) -> Decision:
    """Return the decision that a plan makes of a view."""
    if isinstance(plan, Compact):
        return CompactionDecision(view, plan)
    return UnchangedDecision(view, plan)


Decide = Callable[[View, CompactionRequest], Awaitable[Decision]]


async def decide(view: View, request: CompactionRequest) -> Decision:
    """Plan for a view, in tokens of a caller's counter if there is one.

    A failure that another process has noted is remembered here, too.
    """
    history = view.history
    nears_trigger = history.nears_trigger(history.size_for_trigger(view.size))
    if request.force or nears_trigger or history.is_due(view.size):
        view = share_out_count(view)
    plan_within = partial(plan_for, view, force=request.force)
    plan = measured_plan(view, plan_within, force=request.force)
    if not request.force:
        failure_is_new = await take_over_failure(view, plan)
        if failure_is_new:  # another plan may follow from it
            plan = measured_plan(view, plan_within)
    return decision_of(view, plan)


# The plan of the core


def plan_for(
    view: View, also_reserved: int = 0, *, force: bool = False, for_preparation: bool = False
) -> Plan:
    """Plan for a view. After a failed summary, none is made until the history has grown by a tenth.

    Args:
        view: what the model sees.
        also_reserved: tokens of the window that the plan leaves free.
        force: compact although nothing asks for it.
        for_preparation: plan as if the trigger fired at the size at which notes are prepared, and
            as if nothing had failed.
    """
    history = view.history
    engine = history.engine
    size = view.size
    if engine.meter.counts_lists and not (force or for_preparation or history.is_due(size)):
        return Keep(BELOW, size.tokens, due=False)
    window = history.window
    if also_reserved and window is not None:
        window = replace(window, reserved=window.reserved + also_reserved)
    failed: FailedSummary | None = None
    if for_preparation:
        trigger_size: Size | None = divide_size(history.size_for_trigger(size), PREPARE_FROM)
        past = PastSizes(stuck_at=stuck_at(view))
    else:
        exceeds_window = history.exceeds_window(size)
        failed = history.memory.failure_of(view.head_id, size.messages, exceeds_window)
        trigger_size = history.trigger_size
        past = _past_sizes(view, failed)
    if also_reserved:
        past = replace(past, stuck_at=None)
    plan = make_plan(
        view.items,
        engine.policy,
        window,
        trigger_size=trigger_size,
        first_kept=_first_kept_by_counter(view),
        base=base_of(view),
        past=past,
        options=PlanOptions(
            force=force,
            clip=engine.clip_pointer is not None,
            clip_users=history.store.keeps_originals,
            floor=engine.empty_summary_tokens + _least_text(engine),
            never_larger=engine.writes_without_model,
            growth=1 - PREPARE_FROM if for_preparation else 0,
        ),
    )
    if failed is None or not isinstance(plan, Keep) or plan.due:
        return plan
    if not _would_be_due(view):
        return plan  # no compaction is due
    return replace(plan, reason=FAILED_BEFORE % failed.size.messages)


def _past_sizes(view: View, failed: FailedSummary | None) -> PastSizes:
    """Return the sizes from which a history must grow before it is compacted again."""
    return PastSizes(
        rearm_from=_rearm_from(view) if failed is None else failed.next_try_from,
        failed_at=failed.size.tokens if failed is not None and failed.over else None,
        stuck_at=stuck_at(view),
    )


def _would_be_due(view: View) -> bool:
    """Tell whether a history would be compacted now, if its last compaction had not failed."""
    history = view.history
    if history.exceeds_window(view.size):
        return True
    return history.fires(history.size_for_trigger(view.size), rearm_from=_rearm_from(view))


def _rearm_from(view: View) -> Size | None:
    """Return the size that the latest compaction reached, as the trigger counts."""
    history = view.history
    if history.counts is not None:
        return history.counts.rearm_from
    head = view.head
    if head is None:
        return None
    meter = history.engine.meter
    if not meter.counts_lists:
        return head.size_after
    places = range(head.messages_after, len(view.items))
    first_answer = next((place for place in places if view.items[place].role == "assistant"), None)
    if first_answer is None:
        return head.size_after
    size = Size(head.tokens_after, head.messages_after)
    return size_known_by_answer(size, meter, view.sources[: first_answer + 1])


def _least_text(engine: Engine) -> int:
    """Return the tokens of text below which a summary holds little, as a caller counts them."""
    ratio = max(1.0, engine.meter.ratio) if engine.meter.counts_lists else 1.0
    return math.ceil(SUMMARY_FLOOR * ratio)


def base_of(view: View) -> int:
    """Return the tokens that a caller's counter adds to any list."""
    return min(view.history.engine.meter.base, view.size.tokens)


def stuck_at(view: View) -> int | None:
    """Return the tokens that the latest compaction reached, if that was over the window."""
    head = view.head
    if head is None or not view.history.exceeds_window(head.size_after):
        return None
    return head.tokens_after


def _first_kept_by_counter(view: View) -> int | None:
    """Find the first message that `keep` keeps, by a caller's counter, as LangChain does.

    None if `keep` counts messages, or if there is no such counter.
    """
    history = view.history
    meter = history.engine.meter
    kept_tokens = keep_tokens(history.engine.policy.keep, history.limit)
    if kept_tokens is None or not meter.counts_lists:
        return None
    sources = view.sources

    def fits(kept: int) -> bool:
        return meter.count_list(sources[len(sources) - kept :]) <= kept_tokens

    return len(sources) - highest_that_fits(0, len(sources), fits)


# Plans that fit by a caller's counter


def measured_plan(view: View, plan_within: PlanWithin, *, force: bool = False) -> Plan:
    """Return a plan whose view fits by the caller's counter, if one is found.

    If none is found, return the plan of the smallest view, with the numbers in `stuck`. If the last
    compaction has reached that size already, and the history has hardly grown since, return
    `Stuck`.
    """
    first = plan_within(0)
    budget = view.history.budget
    if budget is None or not view.history.engine.meter.counts_lists:
        return first
    if not isinstance(first, Compact):
        return first
    # If the caller makes the summary's message, it has no id of a record.
    is_callers_own = view.history.engine.caller_format.owns_summary_message
    aim = budget if is_callers_own else budget - min(ID_MARGIN, budget // 64)
    attempts = _plan_in_less_and_less_room(view, first, plan_within, aim, budget)
    return attempts.fitting or _smallest_plan(view, attempts.last, plan_within, aim, force=force)


class _TriedPlans(NamedTuple):
    """Plans that were made and measured."""

    fitting: Compact | None  # the best one whose view fits; None if none does
    last: Compact


def _plan_in_less_and_less_room(
    view: View, first: Compact, plan_within: PlanWithin, aim: int, budget: int
) -> _TriedPlans:
    """Plan until a view takes at most `aim` tokens; if none does, at most `budget` is accepted."""
    attempt = first
    also_reserved = 0
    barely_fitting: Compact | None = None
    for _ in range(TRIES):
        if attempt.stuck is not None:
            break
        excess = _size_with_summary(view, attempt) - aim
        if excess <= 0:
            return _TriedPlans(replace(attempt, budget=budget), attempt)
        if excess <= budget - aim:
            barely_fitting = barely_fitting or replace(attempt, budget=budget)
        also_reserved += excess
        again = plan_within(also_reserved)
        if not isinstance(again, Compact):
            break
        attempt = replace(again, cause=first.cause)
    return _TriedPlans(barely_fitting, attempt)


def _smallest_plan(
    view: View, last: Compact, plan_within: PlanWithin, aim: int, *, force: bool
) -> Plan:
    """Return the plan of the smallest view, which may not fit either.

    `last` is the plan that was tried before it.
    """
    window = view.history.window
    assert window is not None, "only a window can be exceeded"
    smallest = plan_within(window.limit)
    if not isinstance(smallest, Compact):
        return _keep_or_stuck(view, view.size.tokens, window.budget)
    smallest = replace(smallest, cause=last.cause, budget=window.budget, stuck=None)
    size = _size_with_summary(view, smallest)
    if size <= window.budget:
        return _with_larger_clips(view, smallest, aim)
    stuck = _keep_or_stuck(view, size, window.budget)
    if not isinstance(stuck, Stuck):
        return stuck
    reached = stuck_at(view)
    if reached is not None and not has_grown(view.size.tokens, reached) and not force:
        return stuck
    if last.stuck is not None:
        smallest = replace(last, budget=window.budget)  # it shows what the user asks
    return replace(smallest, stuck=stuck, at_most=max(size, smallest.at_most))


def _with_larger_clips(view: View, smallest: Compact, room: int) -> Compact:
    """Return a plan with clips as large as the room allows, all of one size."""

    def with_level(level: int) -> Compact:
        clips: list[PlannedClip] = []
        for clip in smallest.clips:
            item = view.items[clip.place]
            tokens = clip.tokens if item.came_clipped else max(clip.tokens, level)
            if tokens < item.tokens or item.came_clipped:
                clips.append(replace(clip, tokens=tokens))
        return replace(smallest, clips=tuple(clips))

    def fits(level: int) -> bool:
        return _size_with_summary(view, with_level(level)) <= room

    largest = max((view.items[clip.place].tokens for clip in smallest.clips), default=0)
    return with_level(highest_that_fits(0, largest, fits))


def _keep_or_stuck(view: View, needed: int, budget: int) -> Keep | Stuck:
    """Return why nothing is done, with the numbers if the history does not fit."""
    tokens = view.size.tokens
    if tokens <= budget:
        return Keep("no view that is smaller would fit", tokens)
    return Stuck(STUCK.format(needed=needed, budget=budget), tokens, needed, budget)


def fits_by_counter(view: View, plan: Compact) -> bool:
    """Tell whether the view that a plan leaves fits by the caller's counter, if there is one."""
    budget = view.history.budget
    if budget is None or not view.history.engine.meter.counts_lists:
        return True
    return _size_with_summary(view, plan) <= budget


def _size_with_summary(view: View, plan: Compact) -> int:
    """Measure the view that a plan leaves, with its summary as large as planned."""
    engine = view.history.engine
    clips: dict[int, ViewItem] = {}
    for clip in plan.clips:
        item = view.items[clip.place]
        if item.entry is not None and not item.came_clipped:  # else its original is in the archive
            clips[clip.place] = clip_item(item, item.entry, clip, engine)
    remaining = remaining_items(view, plan, clips)
    summaries_in_view = [item.tokens for item in view.items if item.is_summary]
    if not (plan.summary_room.target or summaries_in_view):
        return engine.count_as_sent(messages_to_send(view, remaining)) or 0
    empty = engine.count_as_sent(messages_to_send(view, remaining, body="")) or 0
    summary_tokens = plan.summary_room.target or sum(summaries_in_view)
    return empty + max(0, summary_tokens - engine.empty_summary_tokens)
