"""The possible plans: keep, compact (what leaves, what is clipped), or stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conspectus.core.summary_room import SummaryRoom

CauseKind = Literal["forced", "window", "trigger", "gathered"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a history is compacted. Its text is, for example, "trigger: 4,000 tokens"."""

    kind: CauseKind
    detail: str = ""  # the sizes; empty if the kind says all

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


FORCED = Cause("forced")


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """A plan to clip one item: to show it in fewer tokens, with a pointer to its original."""

    place: int  # of the item in its view
    tokens: int  # the most that the clip takes


@dataclass(frozen=True, slots=True)
class Keep:
    """A plan that leaves the history as it is, and why."""

    reason: str
    tokens: int  # of the history
    due: bool = True  # whether the trigger or the window asks for a compaction
    preparing: bool = False  # whether its notes are being prepared in the background


@dataclass(frozen=True, slots=True)
class Compact:
    """A plan that makes the history smaller."""

    cause: Cause
    # the items that leave the view after they are archived and a summariser has read them; empty if
    # clips are enough
    evicted_places: tuple[int, ...]
    clips: tuple[PlannedClip, ...]  # items that stay in view and are clipped, or clipped further
    summary_room: SummaryRoom  # of the new summary's message; its target is 0 if no summary is made
    tokens: int  # of the history before the compaction
    at_most: int  # tokens after the compaction, with the longest summary
    budget: int | None  # tokens for the history after it; None if the window is unknown
    stuck: Stuck | None = None  # why even this plan, with the smallest legal view, does not fit
    # tokens for which the history was planned, so that the free share is left above them; None if
    # nothing limits the plan
    planned_within: int | None = None
    # which setting leaves less than the free share, with its numbers; empty if there is none
    tight: str = ""

    @property
    def fits(self) -> bool:
        """Whether the history fits its budget after the compaction, with the longest summary."""
        return self.stuck is None and (self.budget is None or self.at_most <= self.budget)

    @property
    def makes_summary(self) -> bool:
        """Whether a new summary message is made."""
        return self.summary_room.target > 0


@dataclass(frozen=True, slots=True)
class Stuck:
    """No plan fits."""

    reason: str  # with the numbers and a remedy
    tokens: int  # of the history
    needed: int  # the fewest tokens of what must stay
    budget: int


Plan = Keep | Compact | Stuck
