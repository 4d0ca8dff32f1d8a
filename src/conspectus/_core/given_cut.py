"""The plan for a cut that is known already, as a prepared draft stands for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence, Set
from dataclasses import replace

from conspectus._core.boundaries import exchanges, must_stay
from conspectus._core.items import Clip, Compact, Item, Size, Window, spans_of
from conspectus._core.policy import REARM, Policy
from conspectus._core.room import GIANT, Room


def may_leave(items: Sequence[Item], leaving: Collection[int]) -> bool:
    """Tell whether these items may leave, and nothing else must leave with them.

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
    written: Set[int] = frozenset(),
) -> Compact | None:
    """Plan that exactly these items leave, for an existing summary message.

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
        written: indexes of what the agent has written since the draft was begun: it stays whole.

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
        room = Room(items, policy, window, tokens=decided.tokens, words=words)
        theirs = frozenset(i for i in stay if items[i].role == "user" or items[i].pinned)
        level = window.budget // GIANT
        found = room.clips(stay, roomy - summary, level, never=frozenset(theirs | written))
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
    written: Set[int] = frozenset(),
) -> Compact | None:
    """Plan that nothing leaves, and messages are shown short until the rest fits.

    The words of tools and of the agent give way in this order: those that leave soon anyway, all
    before its newest answer, and messages that alone take a quarter of the budget, newest ones and,
    where they may be, the user's too; at last the two together. First so much that there is room to
    grow, as each change of the beginning breaks the provider's cache.

    Args:
        items: the history as the model would see it now.
        policy: when to compact and what to keep.
        window: the room for a request.
        decided: the plan by which messages would leave.
        leaving: indexes of the items that a draft in the making stands for.
        words: whether those of the user may be shown short.
        written: as for `plan_given`.

    Returns:
        The plan; None where that alone does not make it fit.
    """
    budget, tokens, soon = window.budget, decided.tokens, set(leaving)
    room = Room(items, policy, window, tokens=tokens, words=words)
    answer = max((i for i, item in enumerate(items) if item.role == "assistant"), default=0)
    said = [i for i in range(len(items)) if items[i].role in ("tool", "assistant")]
    spared = frozenset(written) | {i for i in said if items[i].summary or items[i].pinned}
    older = [i for i in said if i < answer and i not in spared]
    stay = [i for i, item in enumerate(items) if not item.summary]

    def within(
        most: int, some: Sequence[int], least: int, gone: int = 0
    ) -> tuple[Clip, ...] | None:
        rest = tokens - gone - sum(items[i].tokens for i in some)
        return room.clips(some, most - rest, least, never=frozenset(written))

    def freed(clips: Sequence[Clip]) -> int:
        return sum(items[one.index].tokens - one.limit for one in clips)

    old = [i for i in older if i in soon]
    tries = [(most, some) for some in (old, older) for most in (int(budget / REARM), budget)]
    found = (within(most, some, policy.clip_to) for most, some in tries)
    clips = next(filter(None, found), None) or within(budget, stay, budget // GIANT)
    if clips is None:
        short = room.shortest(older, policy.clip_to)
        rest = [i for i in stay if i not in older]
        giants = within(budget, rest, budget // GIANT, freed(short))
        clips = None if giants is None else tuple(sorted(short + giants, key=lambda c: c.index))
    if not clips:
        return None
    after = tokens - freed(clips)
    return replace(decided, evict=(), clips=clips, summary_tokens=0, at_most=after, beyond=None)


def foreseen(size: Size, share: float) -> Size:
    """Scale a size so that a trigger fires at a share of itself."""
    return Size(math.ceil(size.tokens / share), math.ceil(size.messages / share))
