"""Plans that hold by a caller's counter, which counts lists and need not be a sum.

A plan shares the count of the whole list out among the messages. What it leaves in view is measured
here before anybody writes a summary, and a plan that would not fit is made again in less room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conspectus.core.items import Clip, Compact, Keep, Plan, Stuck, highest
from conspectus.core.plan import STUCK
from conspectus.core.policy import grown
from conspectus.engine.thread import Thread
from conspectus.engine.view import History, ViewItem, clipped, sent_with, staying

MARGIN = 16  # Tokens left free at most for the ids of a record, which are not known yet
TRIES = 6  # Plans that are made and measured before the smallest view is taken

Planning = Callable[[int], Plan]
"""Plans for a window that is smaller by so many tokens."""


def fitting(thread: Thread, history: History, planned: Planning, *, force: bool = False) -> Plan:
    """Return a plan whose view fits by the caller's counter, as far as one is found.

    Else it is the plan of the smallest view, with the numbers in `stuck`; or `Stuck` where the last
    compaction came no further, and the history has hardly grown since.
    """
    plan = planned(0)
    budget = thread.budget
    if budget is None or not thread.engine.meter.counts_lists or not isinstance(plan, Compact):
        return plan
    tighter = 0
    aim = budget - min(MARGIN, budget // 64)
    barely: Compact | None = None
    for _ in range(TRIES):
        if plan.stuck is not None:
            break
        excess = _size_with_summary(thread, history, plan) - aim
        if excess <= 0:
            return replace(plan, budget=budget)
        if excess <= budget - aim:
            barely = barely or replace(plan, budget=budget)
        tighter += excess
        again = planned(tighter)
        if not isinstance(again, Compact):
            break
        plan = replace(again, cause=plan.cause)
    if barely is not None:
        return barely
    smallest = planned(thread.room.limit if thread.room else budget)
    if not isinstance(smallest, Compact):
        return _stuck(history, history.size.tokens, budget)
    smallest = replace(smallest, cause=plan.cause, budget=budget, stuck=None)
    size = _size_with_summary(thread, history, smallest)
    if size <= budget:
        return _showing_more(thread, history, smallest, aim)
    stuck = _stuck(history, size, budget)
    reached = thread.stuck_at(history)
    if not isinstance(stuck, Stuck):
        return stuck
    if reached is not None and not grown(history.size.tokens, reached) and not force:
        return stuck
    if plan.stuck is not None:
        smallest = replace(plan, budget=budget)  # what the user asks is shown in it
    return replace(smallest, stuck=stuck, at_most=max(size, smallest.at_most))


def _showing_more(thread: Thread, history: History, plan: Compact, room: int) -> Compact:
    """Return the plan with its clips as large as the room allows, all to one level."""

    def with_level(level: int) -> Compact:
        clips = list[Clip]()
        for clip in plan.clips:
            item = history.items[clip.index]
            limit = clip.limit if item.back else max(clip.limit, level)
            if limit < item.tokens or item.back:
                clips.append(replace(clip, limit=limit))
        return replace(plan, clips=tuple(clips))

    def is_within(level: int) -> bool:
        return _size_with_summary(thread, history, with_level(level)) <= room

    largest = max((history.items[clip.index].tokens for clip in plan.clips), default=0)
    return with_level(highest(0, largest, is_within))


def _stuck(history: History, needed: int, budget: int) -> Keep | Stuck:
    """Return why nothing is done, with the numbers if the history does not fit."""
    tokens = history.size.tokens
    if tokens <= budget:
        return Keep("no view that is smaller would fit", tokens)
    return Stuck(STUCK.format(needed=needed, budget=budget), tokens, needed, budget)


def fits(thread: Thread, history: History, plan: Compact) -> bool:
    """Tell whether the view that a plan leaves fits by the caller's counter, if there is one."""
    if thread.budget is None or not thread.engine.meter.counts_lists:
        return True
    return _size_with_summary(thread, history, plan) <= thread.budget


def _size_with_summary(thread: Thread, history: History, plan: Compact) -> int:
    """Measure the view that a plan leaves, with its summary as large as planned."""
    engine = thread.engine
    clips = dict[int, ViewItem]()
    for clip in plan.clips:
        item = history.items[clip.index]
        if item.entry is not None and not item.back:  # else its original is in the archive
            clips[clip.index] = clipped(item, item.entry, clip, engine)
    remaining = staying(history, plan, clips)
    if not (plan.summary_tokens or any(item.summary for item in history.items)):
        return engine.counted(sent_with(history, remaining, engine)) or 0
    empty = engine.counted(sent_with(history, remaining, engine, "")) or 0
    standing = sum(item.tokens for item in history.items if item.summary)
    return empty + max(0, (plan.summary_tokens or standing) - engine.frame)
