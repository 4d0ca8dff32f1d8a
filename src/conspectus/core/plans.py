"""The possible plans: keep, compact (what leaves, what is clipped), or stuck."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """An item that is to be shown in at most `limit` tokens, with a pointer to its original."""

    place: int  # of the item in its view
    limit: int


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

    # why: "forced", "window", or "trigger" or "gathered" with a colon and the sizes
    cause: str
    # places of the items that leave the view, once they are archived and a summariser has read
    # them; empty if clips are enough
    evicted: tuple[int, ...]
    clips: tuple[PlannedClip, ...]  # items that stay in view, clipped, or clipped further
    # the most tokens of the new summary message that are asked for; 0 if no summary is made
    summary_tokens: int
    tokens: int  # of the history before the compaction
    at_most: int  # tokens after the compaction, with the longest summary
    budget: int | None  # tokens for the history after it; None if the window is unknown
    # the most tokens of the summary message that the caller has set; None if the caller has set
    # none, so that any summary will do that fits and is smaller than what it replaces
    summary_cap: int | None = None
    stuck: Stuck | None = None  # why even this plan, with the smallest legal view, does not fit
    # tokens in which the history was planned to fit: the free share of the window is left beside
    # them, or less if messages that must stay forbid that; None if nothing limits the plan
    planned_within: int | None = None
    # which setting leaves less than the free share, with its numbers; empty if there is none
    tight: str = ""

    @property
    def makes_summary(self) -> bool:
        """Whether a new summary message is made."""
        return self.summary_tokens > 0


@dataclass(frozen=True, slots=True)
class Stuck:
    """No plan fits."""

    reason: str  # with the numbers and a remedy
    tokens: int  # of the history
    needed: int  # tokens that must stay at least
    budget: int


Plan = Keep | Compact | Stuck
