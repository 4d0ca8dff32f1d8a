"""How long the message of a summary may be, from the settings to the message that is sent.

One `SummaryRoom` goes all the way, and each step only narrows it:

1. `Policy.summary_room`: what the settings allow in a window.
2. `Ladder`: lowers the target, until messages and summary fit. `SummaryBounds` has the limits for
   this. The plan has the result, as `Compact.summary_room`.
3. `narrowed`: lowers all sizes to what was measured of the view that will be sent. `Leaving.room`
   is the result, and nothing changes it any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conspectus.core.growth import REARM

BOUNDLESS = 2**62
"""Tokens where nothing sets a limit."""

LARGEST_SUMMARY = 4096
"""Tokens above which a shorter summary is asked for, if its size is not set. It is also the target
if no window is known."""

SMALLEST_SUMMARY = 64
"""Tokens below which a summary is not worth its frame."""


@dataclass(frozen=True, slots=True)
class SummaryRoom:
    """The tokens that the message of a summary may take, its frame included.

    Attributes:
        target: what a summariser is asked for; 0 if no summary is made.
        soft: above this size a shorter text is asked for once, so that the budget keeps some room.
        hard: a longer summary is not used; `BOUNDLESS` if the caller has set no size and nothing
            was measured yet.
        roomy: up to this size, the history stays within the size for which it was planned.
    """

    target: int = 0
    soft: int = LARGEST_SUMMARY
    hard: int = BOUNDLESS
    roomy: int = BOUNDLESS

    @classmethod
    def capped(cls, target: int, cap: int | None) -> SummaryRoom:
        """Return the room of a summary whose size a caller has set; with None it is not set."""
        return cls(target) if cap is None else cls(target, soft=cap, hard=cap)

    @property
    def is_capped(self) -> bool:
        """Whether a caller has set the largest size."""
        return self.hard < BOUNDLESS

    def with_target(self, tokens: int) -> SummaryRoom:
        """Return the room with another target."""
        return replace(self, target=tokens)


NO_ROOM = SummaryRoom()
"""The room of a summary that is not made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSizes:
    """What was measured of a compaction, in tokens.

    Attributes:
        replaced: what the summary replaces.
        without_summary: the view that will be sent, without the summary.
        always_allowed: a summary may take so many, even if it replaces fewer.
    """

    replaced: int
    without_summary: int
    always_allowed: int


def narrowed(
    room: SummaryRoom,
    sizes: MeasuredSizes,
    *,
    budget: int | None,
    planned_within: int | None,
    fits: bool,
    is_callers_own: bool,
) -> SummaryRoom:
    """Narrow the room of a plan's summary to what was measured.

    Args:
        room: as it was planned.
        sizes: what was measured.
        budget: tokens for the view with the summary; None if the window is unknown.
        planned_within: tokens in which the plan has fitted the history; None if nothing limits it.
        fits: whether the plan fits its budget. If not, the summary gets its target at most.
        is_callers_own: whether the caller makes the message of the summary. In a budget below
            `SMALLEST_SUMMARY` it then need only fit by itself.
    """
    useful = min(room.hard, max(sizes.replaced, sizes.always_allowed))
    free = free_with_growth = BOUNDLESS
    tiny_budget: int | None = None
    if budget is not None:
        free = budget - sizes.without_summary
        free_with_growth = int(budget / REARM) - sizes.without_summary
        if is_callers_own and budget < SMALLEST_SUMMARY:
            tiny_budget = budget

    if not fits:
        hard = min(useful, room.target)
    elif tiny_budget is not None:
        hard = max(min(useful, free), tiny_budget)
    else:
        hard = min(useful, free)
    hard = max(1, hard)  # clips may be larger than planned, so that nothing is left
    target = min(room.target, hard)
    if not fits:
        soft = target
    elif tiny_budget is not None:
        soft = hard
    else:
        soft = max(target, min(room.soft, useful, free_with_growth))
    roomy = hard
    if planned_within is not None:
        roomy = min(hard, max(target, planned_within - sizes.without_summary))
    return SummaryRoom(target=target, soft=soft, hard=hard, roomy=roomy)
