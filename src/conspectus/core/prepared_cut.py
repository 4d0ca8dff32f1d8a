"""Plans around a draft that was prepared: for exactly what it read, or without it for now."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence, Set
from dataclasses import replace

from conspectus.core.boundaries import exchanges, must_stay
from conspectus.core.items import Clip, Compact, Item, Size, Window
from conspectus.core.ladder import CLIP_TO, GIANT, Ladder
from conspectus.core.policy import Policy


def foreseen(size: Size, share: float) -> Size:
    """Scale a size so that a trigger fires at a share of itself."""
    return Size(math.ceil(size.tokens / share), math.ceil(size.messages / share))


def may_leave(items: Sequence[Item], leaving: Collection[int]) -> bool:
    """Tell whether these items may leave, and nothing else must leave with them.

    Orphaned results must leave: no provider takes them.
    """
    ex, gone = exchanges(items), set(leaving)
    homes = {ex.group[i] for i in gone}
    whole = all(i in gone for i, home in enumerate(ex.group) if home in homes)
    late = all(call not in gone or i in gone for i, call in ex.late.items())
    return whole and late and not (gone & must_stay(items, ex)) and gone >= ex.orphans


def plan_draft(
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
    """Plan that exactly these items leave, for a summary message that is written already.

    `decided` is the plan without the draft, `summary` the tokens of the message, `asked` the size
    by the caller's own count, and `written` items since the draft was begun, which stay whole. None
    if too little leaves to get below the trigger, or no space is left to grow in the window.
    """
    gone = set(leaving)
    stay = [i for i, item in enumerate(items) if i not in gone and not item.summary]
    size = asked or Size(decided.tokens, len(items))
    freed = sum(items[i].kept_as for i in range(len(items)) if i in gone or items[i].summary)
    after = Size(size.tokens - freed + summary, len(stay) + 1)
    if policy.fired(after, None if window is None else window.limit) is not None:
        return None
    ladder = Ladder(items, None if window is None else window.budget, words=words)
    never = {*written, *ladder.theirs} if clip else set(stay)
    clips = ladder.clips(stay, ladder.rooms["roomy"] - summary, ladder.budget // GIANT, never)
    if clips is None:
        return None
    own = {*gone, *(one.index for one in clips)}
    clips += tuple(one for one in decided.clips if one.longest and one.index not in own)
    plan = ladder.compact(sorted(gone), stay, tuple(sorted(clips, key=_place)), summary)
    return _as(decided, plan)


def _as(decided: Compact, plan: Compact) -> Compact:
    cause, cap = decided.cause, decided.summary_cap
    return replace(plan, cause=cause, tokens=decided.tokens, summary_cap=cap)


def _place(clip: Clip) -> int:
    return clip.index


def only_clipped(
    items: Sequence[Item],
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
    `plan_draft`. None if clips are not enough.
    """
    ladder = Ladder(items, window.budget, words=words)
    answer = max((i for i, item in enumerate(items) if item.role == "assistant"), default=0)
    old = [
        i
        for i, item in enumerate(items[:answer])
        if item.role in ("tool", "assistant") and not (item.summary or item.pinned or i in written)
    ]
    stay = [i for i, item in enumerate(items) if not item.summary]
    soon = [i for i in old if i in set(leaving)]
    roomy, budget, giant = ladder.rooms["roomy"], window.budget, window.budget // GIANT
    tries = [(soon, roomy, CLIP_TO), (soon, budget, CLIP_TO), (old, roomy, CLIP_TO)]
    tries += [(old, budget, CLIP_TO), (stay, budget, giant)]
    clips: tuple[Clip, ...] | None = None
    for some, room, least in tries:
        rest = decided.tokens - sum(items[i].tokens for i in some)
        clips = clips or ladder.clips(some, room - rest, least, written)
    if not clips:
        short = ladder.shortest(old, CLIP_TO, written)
        rest = sum(one.limit for one in short) + ladder.standing
        rest += sum(items[i].tokens for i in old if i not in {one.index for one in short})
        others = [i for i in stay if i not in old]
        giants = ladder.clips(others, budget - rest, giant, written)
        clips = None if giants is None else tuple(sorted((*short, *giants), key=_place))
    if not clips:
        return None
    plan = ladder.compact((), stay, clips, 0)
    return _as(decided, plan)
