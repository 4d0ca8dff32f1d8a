"""The plan where it is known already what leaves: a draft that was prepared stands for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from conspectus._core.boundaries import exchanges, must_stay
from conspectus._core.items import Clip, Compact, Item, Size, Window, spans_of
from conspectus._core.policy import REARM, Policy
from conspectus._core.room import GIANT, Room


def may_leave(items: Sequence[Item], leaving: Collection[int]) -> bool:
    """Whether these items may leave, and nothing else must leave with them.

    A result whose call is nowhere must: no provider takes it.
    """
    ex, gone = exchanges(items), set(leaving)
    whole = all(
        i in gone
        for home in {ex.group[i] for i in gone}
        for i in ex.members(home)
        if ex.group[i] == home
    )
    return whole and not (gone & must_stay(items, ex)) and gone >= ex.orphans


def plan_given(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None,
    decided: Compact,
    leaving: Sequence[int],
    summary: int,
    *,
    asked: Size | None = None,
    clip: bool = True,
    words: bool = True,
) -> Compact | None:
    """The plan by which exactly these items leave, for a summary message that is there already.

    Args:
        items: the history as the model would see it now.
        policy: when to compact and what to keep.
        window: the room for a request; None where it is unknown.
        decided: the plan that would be made without the draft.
        leaving: indexes of the items that leave.
        summary: size of the summary message, in tokens.
        asked: the size that the trigger is compared with, where the caller counts in its own way.
        clip: whether messages may be clipped.
        words: whether those of the user may be, too.

    Returns:
        The plan; None where so little leaves that it would not get below the trigger, or would
        leave no room to grow in the window.
    """
    gone = set(leaving)
    stay = [i for i, item in enumerate(items) if i not in gone and not item.summary]
    size = asked or Size(decided.tokens, len(items))
    freed = sum(items[i].kept_as for i in range(len(items)) if i in gone or items[i].summary)
    after = Size(size.tokens - freed + summary, len(stay) + 1)
    limit = None if window is None else window.limit
    if policy.fired(after, limit) is not None:
        return None
    clips: tuple[Clip, ...] = ()
    kept = sum(items[i].tokens for i in stay)
    if window is not None and kept + summary > (roomy := int(window.budget / REARM)):
        if not clip:
            return None
        room = Room(items, policy, limit, window.budget, 0, "", decided.tokens, words, Size(0, 0))
        theirs = frozenset(i for i in stay if items[i].role == "user" or items[i].pinned)
        level = window.budget // GIANT
        found = room.clips(stay, roomy - summary, level, never=theirs)
        if found is None:
            return None
        clips = found
    own = {one.index for one in clips}
    staying = set(stay)
    clips += tuple(one for one in decided.clips if one.longest and one.index in staying - own)
    shown = {one.index: one.limit for one in clips}
    return replace(
        decided,
        evict=spans_of(sorted(gone)),
        clips=tuple(sorted(clips, key=lambda one: one.index)),
        summary_tokens=summary,
        at_most=summary + sum(shown.get(i, items[i].tokens) for i in stay),
        beyond=None,
    )


def only_clipped(
    items: Sequence[Item],
    policy: Policy,
    window: Window,
    decided: Compact,
    leaving: Collection[int] = (),
    *,
    words: bool = True,
) -> Compact | None:
    """The plan by which nothing leaves and messages are shown short, so that the rest fits.

    First what tools and the agent said among the messages that leave soon anyway, then messages
    that alone take a quarter of the budget.

    Args:
        items: the history as the model would see it now.
        policy: when to compact and what to keep.
        window: the room for a request.
        decided: the plan by which messages would leave.
        leaving: indexes of the items that a draft in the making stands for.
        words: whether those of the user may be shown short.

    Returns:
        The plan; None where that alone does not make it fit.
    """
    budget, tokens, soon = window.budget, decided.tokens, set(leaving)
    room = Room(items, policy, window.limit, budget, 0, "", tokens, words, Size(0, 0))
    old = [i for i in soon if items[i].role in ("tool", "assistant") and not items[i].pinned]
    whole = tokens - sum(items[i].tokens for i in old)
    clips = room.clips(sorted(old), budget - whole, policy.clip_to)
    if clips is None:
        stay = [i for i, item in enumerate(items) if not item.summary]
        left = budget - sum(item.tokens for item in items if item.summary)
        clips = room.clips(stay, left, budget // GIANT)
    if not clips:
        return None
    after = tokens - sum(items[one.index].tokens - one.limit for one in clips)
    return replace(decided, evict=(), clips=clips, summary_tokens=0, at_most=after, beyond=None)


def foreseen(size: Size, share: float) -> Size:
    """The size that a trigger is compared with so that it fires at a share of itself."""
    return Size(math.ceil(size.tokens / share), math.ceil(size.messages / share))
