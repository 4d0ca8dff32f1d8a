"""Decide for one history: keep it, make it smaller, or give up.

A plan aims below the budget, at `Policy.aim` of it, so that the next message does not ask for the
next compaction; the whole budget is used only if the aim cannot be reached. A plan gives way in
this order: stale large tool results are clipped; then the older part, up to the legal cut that
`keep` asks for, is summarised, but for what stays if a large message behind it is clipped; then
messages that alone take a quarter of the budget are clipped; then the cut moves on; then the
summary gets the rest, at least half of its room; then the user's newest message and pinned ones are
clipped, too, if they are as large; then the summary gets the least; then everything that may be
clipped is, the largest first. The first that fits is the plan;
otherwise it is `Stuck`. A standing summary is not shortened if nothing leaves and the history fits.

If the history fits and nothing forces it, a plan must free `Policy.least_gain`, or it would cost a
summary without delaying the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.boundaries import exchanges, never_clipped
from conspectus.core.items import Clip, Compact, Item, Keep, Plan, Size, Stuck, Window
from conspectus.core.policy import SMALLEST_SUMMARY, Policy, grown
from conspectus.core.room import Room
from conspectus.core.sizes import tightest

BELOW = "below the trigger"
"""Why nothing is done while nothing is due."""


def plan(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None = None,
    *,
    asked: Size | None = None,
    last: Size | None = None,
    failed: int | None = None,
    force: bool = False,
    clip: bool = True,
    words: bool = True,
    floor: int = SMALLEST_SUMMARY,
) -> Plan:
    """Decide what to do with one history; deterministic.

    Args:
        items: the history as the model would see it now, a standing summary included.
        policy: when to compact and what to keep.
        window: the room for a request; None if unknown, and then no budget holds.
        asked: the size for the trigger by the caller's own count; None for the sum of the items.
        last: the size that the latest compaction reached, or at which the latest one failed.
        failed: tokens of the history when its latest summary failed over the window; None if none
            did. It must grow before another is made.
        force: compact although nothing asks for it.
        clip: whether messages may be clipped, which needs a place for their originals.
        words: whether those of the user may be, too; else only results and the agent's own.
        floor: the smallest useful summary message, in tokens, its frame included.
    """
    size = Size(sum(item.tokens for item in items), len(items))
    short = _old_arguments(items, policy, asked or size, window) if clip else {}
    if short:
        saved = sum(items[i].kept_as - short[i].kept_as for i in short)
        rest = plan(
            [short.get(i, item) for i, item in enumerate(items)],
            replace(policy, arguments=None),
            window,
            asked=asked and Size(max(0, asked.tokens - saved), asked.messages),
            last=last,
            failed=failed,
            force=force,
            clip=clip,
            words=words,
            floor=floor,
        )
        return _with_arguments(rest, short, policy, size, window)
    budget = None if window is None else window.budget
    limit = None if window is None else window.limit
    fired = policy.fired(asked or size, limit, last)
    over = budget is not None and size.tokens > budget
    if not (force or fired or over):
        return Keep(BELOW, size.tokens)
    cause = "forced" if force else "window" if over and not fired else f"trigger: {fired}"
    if budget is not None and budget <= 0:
        return _no_room(window, size.tokens)
    gain = Size(0, 0) if force or over else policy.gain(fired, size, floor)
    room = Room(
        items, policy, window, tokens=size.tokens, words=words, floor=floor, cause=cause, gain=gain
    )
    if not force and clip and (policy.clip_over is not None or policy.stale is not None):
        waits_for = fired.threshold(limit) if fired else budget
        if waits_for is not None and fired and asked is not None and asked.tokens:
            waits_for = waits_for * size.tokens // asked.tokens  # it counts in its own way
        if waits_for is not None and (relief := room.clip_stale(waits_for)):
            return relief
    if over and not force and failed is not None and not grown(size.tokens, failed):
        return room.held_back()
    found = room.summarise(clip)
    waits_for = fired.threshold(limit) if fired and fired.messages is None else None
    if waits_for is None or isinstance(found, Stuck):
        return found
    return replace(found, beyond=room.out_of_reach(found, waits_for, (asked or size).tokens))


def _old_arguments(
    items: Sequence[Item], policy: Policy, asked: Size, window: Window | None
) -> dict[int, Item]:
    """Return items with large old arguments as they are once these are shortened."""
    limit = None if window is None else window.limit
    how = policy.arguments
    if how is None or not how.fired(asked, limit):
        return {}
    old = how.old([item.kept_as for item in items], limit)
    whole = never_clipped(items, exchanges(items))
    return {
        i: replace(item, tokens=item.brief, counted=-1 if item.counted < 0 else item.brief_counted)
        for i, item in enumerate(items[:old])
        if 0 <= item.brief < item.tokens and not (item.clipped or item.pinned or i in whole)
    }


def _with_arguments(
    rest: Plan, short: dict[int, Item], policy: Policy, size: Size, window: Window | None
) -> Plan:
    """Add the shortened arguments of all that stays to a plan."""
    how = policy.arguments
    assert how is not None
    if isinstance(rest, Stuck):
        return rest
    done = rest.evicted if isinstance(rest, Compact) else ()
    clips = rest.clips if isinstance(rest, Compact) else ()
    left = [i for i in short if i not in {*done, *(clip.index for clip in clips)}]
    own = tuple(Clip(i, short[i].tokens, how.longest, how.ending) for i in left)
    if isinstance(rest, Compact):
        return replace(rest, clips=(*clips, *own), tokens=size.tokens)
    budget = None if window is None else window.budget
    return Compact("old arguments", (), own, 0, size.tokens, rest.tokens, budget)


def _no_room(window: Window | None, tokens: int) -> Stuck:
    assert window is not None
    reason = (
        f"{window.reserved:,} tokens are reserved in a window of {window.limit:,}, which leaves "
        "none for messages: use a model with a larger window or reserve less"
    )
    return Stuck(reason, tokens, max(1, tokens), window.budget)


def budget_of(policy: Policy, window: Window | None) -> Window | None:
    """Return the window; if it is unknown, the smallest token trigger."""
    if window is not None:
        return window
    tokens = tightest(policy.trigger)
    return None if tokens is None else Window(tokens)
