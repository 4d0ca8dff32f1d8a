"""The possible plans: keep, compact (what leaves, what is clipped), or stuck."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """An item shown in at most `limit` tokens, with a pointer to its original."""

    index: int
    limit: int


@dataclass(frozen=True, slots=True)
class Keep:
    """A plan that leaves the history as it is, and why."""

    reason: str
    tokens: int
    due: bool = True  # the trigger or the window asks for a compaction
    preparing: bool = False  # its notes are being prepared in the background


@dataclass(frozen=True, slots=True)
class Compact:
    """A plan that makes the history smaller."""

    # why: "forced", "window", or "trigger" or "gathered" with a colon and the sizes
    cause: str
    # indexes of the items that leave the view once archived and read; none if clips are enough
    evicted: tuple[int, ...]
    clips: tuple[PlannedClip, ...]  # items that stay, clipped further
    summary_tokens: int  # the most tokens asked of the new summary message
    tokens: int  # size before
    at_most: int  # size after, with the longest summary
    budget: int | None  # tokens that the result must fit in; None without a known window
    # the most tokens of the summary message that a caller set; None if any length will do that
    # fits and replaces more
    summary_cap: int | None = None
    stuck: Stuck | None = None  # why even this, the smallest view that is legal, does not fit
    # tokens within which the result was planned: two fifths of the window are free beside them,
    # or less where what must stay forbids that; None for no such size
    planned_within: int | None = None
    # which setting leaves too little free, with its numbers; empty for none
    tight: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """The failure of all plans, with a remedy; `needed` tokens must stay at least."""

    reason: str
    tokens: int
    needed: int
    budget: int


Plan = Keep | Compact | Stuck
