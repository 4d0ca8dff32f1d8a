"""Plan a cut that is known already, because a draft was prepared for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence, Set
from dataclasses import replace

from conspectus.core.boundaries import exchanges, must_stay
from conspectus.core.items import Clip, Compact, Item, Size, Window, spans_of
from conspectus.core.policy import REARM, Policy
from conspectus.core.room import GIANT, Room


def may_leave(items: Sequence[Item], leaving: Collection[int]) -> bool:
    """Tell whether these items may leave, and nothing else must leave with them.

    Orphaned results must leave: no provider takes them.
    """
    ex, gone = exchanges(items), set(leaving)
    whole = all(
        i in gone
        for home in {ex.group[i] for i in gone}
        for i in ex.members(home)
        if ex.group[i] == home
    )
    late = all(call not in gone or i in gone for i, call in ex.late.items())
    return whole and late and not (gone & must_stay(items, ex)) and gone >= ex.orphans


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

    `decided` is the plan without the draft, `summary` the tokens of the message, `asked` the size
    by the caller's own count, and `written` items since the draft was begun, which stay whole. None
    if too little leaves to get below the trigger, or no space is left to grow in the window.
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
    """Plan that nothing leaves, and messages are clipped until the rest fits.

    Words of tools and of the agent give way in this order: those that leave soon (`leaving`), all
    before its newest answer, and messages that alone take a quarter of the budget, newest ones and,
    with `words`, the user's too; at last the two together. The first tries leave space to grow, as
    each change of the beginning breaks the provider's cache. `decided` and `written` are as for
    `plan_given`. None if clips are not enough.
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
