"""Let more exchanges stay in view by showing their large messages short.

A cut falls behind the exchange that no longer fits whole, often one large tool result, and all that
was said before it would leave with it. Where the result fits short, it stays, and so does as much
before it as `keep` asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conspectus.core.items import Compact, highest

if TYPE_CHECKING:
    from conspectus.core.room import Room

SHORT = 16
"""One part in this many of the budget is the least that is shown of a large message: what was said
around it says more than its middle."""


def reaching_back(room: Room, plan: Compact, aim: int) -> Compact:
    """Return the plan with the earliest cut at which the rest fits short; else the plan itself.

    The larger messages between the two cuts are shown at one common level, as high as fits into the
    `aim`. Words of users stay whole.
    """
    assert room.budget is not None
    left, least = aim - plan.at_most, max(room.policy.clip_to, room.budget // SHORT)
    leaving = sorted(set(plan.evicted) - room.ex.orphans, reverse=True)
    users = frozenset(i for i in leaving if room.items[i].role == "user")
    shrinks = room.standing > plan.summary_tokens  # standing notes do so only if something leaves
    taken, stay = 0, 0
    for count, i in enumerate(leaving, 1):
        taken += room.size(i, least, users)
        if taken > left or i < max(room.wanted, room.first + shrinks):
            break
        stay = count if room.cuts[i] else stay
    if not stay:
        return plan
    more = leaving[:stay]

    def fits(level: int) -> bool:
        return sum(room.size(i, level, users) for i in more) <= left

    level = highest(least, max(least, *(room.items[i].tokens for i in more)), fits)
    clips = room.shortest(more[::-1], level, users)
    tried = room.divide(more[-1])
    wider = room.compact(tried, (*plan.clips, *clips), plan.summary_tokens if tried.evict else 0)
    return wider if room.is_worth_it(wider) else plan
