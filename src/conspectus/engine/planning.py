"""Decide about one view: the plan of the core, measured by the caller's own counter if any.

A caller's counter measures whole lists: the parts need not add up. So its total is divided among
the messages in proportion (`share_out_count`). What a plan leaves in view is measured here before a
summary is written, and a plan that would not fit is made again in less room.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from conspectus.core.bisection import highest_that_fits
from conspectus.core.items import Size
from conspectus.core.plan import BELOW, STUCK, PastSizes, PlanOptions, divide_size, plan
from conspectus.core.plans import Compact, Keep, Plan, PlannedClip, Stuck
from conspectus.core.policy import EMBEDDED, has_grown, keep_tokens, size_has_grown
from conspectus.core.records import Chain, Cost, Draft
from conspectus.engine.attempts import attempts_of
from conspectus.engine.engine import Engine
from conspectus.engine.history import PREPARE_FROM
from conspectus.engine.history_store import PREPARATION_FAILED, SUMMARY_FAILED
from conspectus.engine.measuring import share_out_count
from conspectus.engine.memory import FailedSummary
from conspectus.engine.view import View, ViewItem, clip_item, messages_to_send, remaining_items
from conspectus.errors import ArchiveOvertaken

ID_MARGIN = 16
"""Tokens left free at most for the ids of a record, which are not known yet."""

TRIES = 6
"""Plans that are made and measured before the smallest view is taken."""

SUMMARY_FLOOR = 120
"""Tokens beside its frame below which a summary holds little more than one rule."""

FAILED_BEFORE = (
    "the last compaction, at %d messages, failed or was refused; it is tried again once the "
    "history has grown by a tenth, or by more after failures in a row, or no longer fits the window"
)

PlanWithin = Callable[[int], Plan]
"""Plans for a window that is smaller by so many tokens."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What a caller asks for."""

    force: bool = False  # compact although nothing asks for it
    focus: str = ""  # the subject to keep above all, in plain words
    spent: Cost = field(default_factory=Cost)  # by the tries before this one
    chain_before: Chain | None = None  # the records of the history at the first try; None in it
    overtaken: ArchiveOvertaken | None = None  # why there is another try

    def for_retry(self, view: View, error: ArchiveOvertaken) -> CompactionRequest:
        """Return the request after another worker was first with the history of a view."""
        chain_before = view.chain if self.chain_before is None else self.chain_before
        spent = self.spent + attempts_of(error).spent
        return replace(self, spent=spent, chain_before=chain_before, overtaken=error)

    def unless_done(self, view: View) -> CompactionRequest:
        """Return the request without `force` if another worker has compacted the history since."""
        is_done = self.chain_before is not None and view.chain != self.chain_before
        return replace(self, force=False) if is_done else self


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan for a view."""

    view: View
    plan: Plan
    draft: Draft | None = None  # a draft that was prepared for just this plan, if any
    waited: float = 0.0  # seconds that the caller has waited for such a draft


Decide = Callable[[View, CompactionRequest], Awaitable[Decision]]


async def decide(view: View, request: CompactionRequest) -> Decision:
    """Plan for a view, in tokens of a caller's counter if there is one."""
    history = view.history
    nears_trigger = history.nears_trigger(history.trigger_size or view.size)
    if request.force or nears_trigger or history.is_due(view.size):
        view = share_out_count(view)
    plan_within = partial(plan_for, view, force=request.force)
    decided = measured_plan(view, plan_within, force=request.force)
    if not request.force and await take_over_noted_failure(view, decided):
        decided = measured_plan(view, partial(plan_for, view))
    return Decision(view, decided)


# The plan of the core


def plan_for(
    view: View, also_reserved: int = 0, *, force: bool = False, for_preparation: bool = False
) -> Plan:
    """Plan for a view; after a failed summary only once the history has grown by a tenth.

    Args:
        view: what the model sees.
        also_reserved: tokens of the window that the plan leaves free.
        force: compact although nothing asks for it.
        for_preparation: plan as if the trigger fired where notes are prepared, and nothing had
            failed.
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
    growth_until_used = 0.0
    if for_preparation:
        growth_until_used = 1 - PREPARE_FROM
        trigger_size: Size | None = divide_size(history.trigger_size or size, PREPARE_FROM)
        reached: Size | None = None
    else:
        over = history.exceeds_window(size)
        failed = history.memory.failure_of(view.head_id, size.messages, over)
        trigger_size = history.trigger_size
        reached = failed.retry_base if failed is not None else _reached(view)
    decided = plan(
        view.items,
        engine.policy,
        window,
        trigger_size=trigger_size,
        first_kept=_first_kept(view),
        base=base_of(view),
        past=PastSizes(
            reached=reached,
            failed_at=failed.size.tokens if failed is not None and failed.over else None,
            stuck_at=None if also_reserved else stuck_at(view),
        ),
        options=PlanOptions(
            force=force,
            clip=engine.clip_pointer is not None,
            clip_users=history.store.keeps_originals,
            floor=engine.empty_summary_tokens + _least_text(engine),
            never_larger=[*engine.summarizers] == [EMBEDDED],
            growth=growth_until_used,
        ),
    )
    if failed is None or not isinstance(decided, Keep) or decided.due:
        return decided
    if not _would_be_due(view):
        return decided  # nothing waits for another try
    return replace(decided, reason=FAILED_BEFORE % failed.size.messages)


def _would_be_due(view: View) -> bool:
    """Tell whether a history would be compacted now, if its last compaction had not failed."""
    history = view.history
    over = history.exceeds_window(view.size)
    return over or history.fires(history.trigger_size or view.size, since=_reached(view))


def _reached(view: View) -> Size | None:
    """Return the size that the latest compaction reached, as the trigger counts.

    A counter that reads the usage of an answer says after the next one what was reached.
    """
    history = view.history
    if history.trigger_size is not None:
        return history.reached
    head = view.head
    meter = history.engine.meter
    if head is None:
        return None
    if not meter.counts_lists:
        return head.size_after
    since = head.messages_after
    places = range(since, len(view.items))
    first_answer = next((at for at in places if view.items[at].role == "assistant"), None)
    if first_answer is None:
        return head.size_after
    counted = meter.whole(view.sources[: first_answer + 1])
    return Size(min(head.tokens_after, counted), since)


def _least_text(engine: Engine) -> int:
    """Return the tokens of text below which a summary holds little, as a caller counts them."""
    scale = max(1.0, engine.meter.ratio) if engine.meter.counts_lists else 1.0
    return math.ceil(SUMMARY_FLOOR * scale)


def base_of(view: View) -> int:
    """Return the tokens that a caller's counter adds to any list."""
    return min(view.history.engine.meter.base, view.size.tokens)


def stuck_at(view: View) -> int | None:
    """Return the tokens that the latest compaction reached, if that was over the window."""
    head = view.head
    if head is None or not view.history.exceeds_window(head.size_after):
        return None
    return head.tokens_after


def _first_kept(view: View) -> int | None:
    """Find the first message that `keep` keeps by a caller's counter, as LangChain finds it.

    None where messages are kept by number, or where nobody's counter counts.
    """
    history = view.history
    meter = history.engine.meter
    kept_tokens = keep_tokens(history.engine.policy.keep, history.limit)
    if kept_tokens is None or not meter.counts_lists:
        return None
    sources = view.sources

    def fits(kept: int) -> bool:
        return meter.whole(sources[len(sources) - kept :]) <= kept_tokens

    return len(sources) - highest_that_fits(0, len(sources), fits)


# Plans that hold by a caller's counter


def measured_plan(view: View, plan_within: PlanWithin, *, force: bool = False) -> Plan:
    """Return a plan whose view fits by the caller's counter, as far as one is found.

    Else it is the plan of the smallest view, with the numbers in `stuck`; or `Stuck` where the last
    compaction came no further, and the history has hardly grown since.
    """
    first = plan_within(0)
    budget = view.history.budget
    if budget is None or not view.history.engine.meter.counts_lists:
        return first
    if not isinstance(first, Compact):
        return first
    # Where the summary's message is the caller's own, it bears no id of a record.
    is_callers_own = view.history.engine.surface.summary_size is not None
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
    """Plan until a view takes at most `aim` tokens; else one of at most `budget` will do."""
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

    `last` is the last plan that was tried before.
    """
    window = view.history.window
    assert window is not None, "without a window nothing is too large"
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
        smallest = replace(last, budget=window.budget)  # what the user asks is shown in it
    return replace(smallest, stuck=stuck, at_most=max(size, smallest.at_most))


def _with_larger_clips(view: View, smallest: Compact, room: int) -> Compact:
    """Return a plan with its clips as large as the room allows, all to one level."""

    def with_level(level: int) -> Compact:
        clips: list[PlannedClip] = []
        for clip in smallest.clips:
            item = view.items[clip.place]
            limit = clip.limit if item.came_clipped else max(clip.limit, level)
            if limit < item.tokens or item.came_clipped:
                clips.append(replace(clip, limit=limit))
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


def fits_by_counter(view: View, decided: Compact) -> bool:
    """Tell whether the view that a plan leaves fits by the caller's counter, if there is one."""
    budget = view.history.budget
    if budget is None or not view.history.engine.meter.counts_lists:
        return True
    return _size_with_summary(view, decided) <= budget


def _size_with_summary(view: View, decided: Compact) -> int:
    """Measure the view that a plan leaves, with its summary as large as planned."""
    engine = view.history.engine
    clips: dict[int, ViewItem] = {}
    for clip in decided.clips:
        item = view.items[clip.place]
        if item.entry is not None and not item.came_clipped:  # else its original is in the archive
            clips[clip.place] = clip_item(item, item.entry, clip, engine)
    remaining = remaining_items(view, decided, clips)
    standing = [item.tokens for item in view.items if item.summary]
    if not (decided.summary_tokens or standing):
        return engine.count_as_sent(messages_to_send(view, remaining)) or 0
    empty = engine.count_as_sent(messages_to_send(view, remaining, body="")) or 0
    summary_tokens = decided.summary_tokens or sum(standing)
    return empty + max(0, summary_tokens - engine.empty_summary_tokens)


# Failures that somebody has noted


async def take_over_noted_failure(view: View, decided: Plan) -> bool:
    """Take over a failure of this history that another process has noted, and tell whether it did.

    It is looked for only where a plan asks for a summary.
    """
    if not (isinstance(decided, Compact) and decided.makes_summary):
        return False
    session = view.history.memory
    noted = await view.history.store.noted_failure(SUMMARY_FAILED)
    remembered = session.latest_failure
    if noted is None or noted == remembered or noted.head_id != view.head_id:
        return False
    is_of_same_record = remembered is not None and remembered.head_id == noted.head_id
    if remembered is not None and is_of_same_record and remembered.times > noted.times:
        return False
    session.latest_failure = noted
    return True


async def has_prepared_in_vain(view: View) -> bool:
    """Tell whether preparing has failed for this history, which has hardly grown since."""
    noted = await view.history.store.noted_failure(PREPARATION_FAILED)
    if noted is None or noted.head_id != view.head_id:
        return False
    size = view.history.trigger_size or view.size
    has_gone_back = size.messages < noted.trigger_size.messages
    return not has_gone_back and not size_has_grown(size, noted.trigger_size)
