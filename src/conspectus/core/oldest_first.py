"""LangMem's order: once enough has gathered, the oldest part is summarised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from conspectus.core.items import Compact, Item, Keep, Plan, Stuck
from conspectus.core.ladder import OLDEST_FIRST, Ladder

WORTH = 10
"""A plan that stays above the limit saves at least one part in this many of the history."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of short-term memory, in tokens.

    `most` is the size of the result, `reach` the size that must have gathered, `share` the room for
    the text of the summary, `frame` the size of an empty summary message, `floor` the least useful
    room of one, to which `share` gives way, and `slack` the excess of a whole message over its
    parts.
    """

    most: int
    reach: int
    share: int
    frame: int
    floor: int
    slack: int = 0


def oldest_first(items: Sequence[Item], limits: Limits, *, clip: bool) -> Plan:
    """Decide in LangMem's order: once enough has gathered, the oldest part is summarised.

    The cut is the first one at which enough has gathered and the rest fits beside a summary, moved
    on to the next legal cut, and never past the last exchange. If no cut brings the history below
    the limit, it is clipped (`clip`, which needs an archive), or else as much leaves as may:
    `at_most` of a `Compact` is above its `budget` if even that is not enough. `items` are leading
    system messages, a standing summary if any, and the rest.
    """
    share = max(1, limits.share, limits.frame)
    slack = limits.share + limits.frame + limits.slack - share
    ladder = Ladder(
        items, limits.most, limit=share + slack, floor=min(share, limits.floor), slack=slack
    )
    tokens, left = ladder.tokens, ladder.kept[1:]
    over, whole = tokens > limits.most, tokens - ladder.standing
    first = items[0].tokens if items and items[0].role == "system" else 0
    enough = [i for i, kept in enumerate(left) if whole - kept >= limits.reach]
    if not enough and not (whole - first >= limits.reach and over):
        return Keep("less has gathered than is asked for", tokens)
    at = next((i for i in enough if left[i] <= limits.most - limits.share), None)
    if at is None and not over:
        return Keep("what would stay leaves no room for a summary", tokens)
    legal = [cut for cut in range(1, len(items)) if ladder.cuts[cut]]
    wanted = next((cut for cut in legal if at is not None and cut > at), legal[-1] if legal else 0)
    plan = ladder.climb(OLDEST_FIRST if clip else OLDEST_FIRST[:3], wanted, clip=clip)
    if isinstance(plan, Compact):
        return replace(plan, cause=f"{limits.reach:,} tokens have gathered")
    leave, stay = ladder.divide(legal[-1] if legal else 0)
    plan = ladder.compact(leave, stay, (), share) if legal and leave else None
    needed = plan.at_most if plan else tokens
    if plan is not None and tokens - needed >= tokens // WORTH:
        return replace(plan, cause=f"{limits.reach:,} tokens have gathered")
    if not over:
        return Keep("a summary would not make it smaller", tokens)
    return Stuck(too_large(needed, limits.most), tokens, needed, limits.most)


def too_large(needed: int, most: int) -> str:
    """Say that a history does not fit, and what to do."""
    return (
        f"what must stay in view, with its summary, takes up to {needed:,} tokens and max_tokens "
        f"is {most:,}: raise max_tokens, shorten the system prompt or the newest message, or pass "
        "archive=, so that large messages can be clipped"
    )
