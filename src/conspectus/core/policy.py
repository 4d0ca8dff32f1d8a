"""The policy: when to compact, how much to keep, how large a summary may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conspectus.core.arguments import Arguments
from conspectus.core.items import Size
from conspectus.core.sizes import (
    ContextSize,
    TriggerClause,
    check_size,
    parse_trigger,
    share,
    tightest,
    whole,
)
from conspectus.core.stale import StaleResults

REARM = 1.1
"""Factor by which a history must grow after a failed summary, or a compaction that stayed above its
trigger, before the same trigger counts again: no step repeats without progress."""


LEAST_GAIN = 0.1
"""Share of a history that a compaction must free below the window, which delays the next one about
as long as `REARM` does."""


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, how much to keep, how large a summary may be.

    Attributes:
        trigger: clauses, any of which asks for a compaction.
        keep: how much of the newest history stays in view, as one `ContextSize`.
        max_summary_tokens: the most tokens of a summary's text; a longer one is cut. None asks for
            a third of the budget, or of the trigger's size, and at least 256 tokens, and takes a
            longer one that fits.
        summary_frame: tokens of an empty summary message: its first line, its note.
        clip_over: tool results and arguments before the kept part with more tokens are clipped
            first, which may make a summary needless; None switches that off.
        clip_to: the size of a clipped one, in tokens.
        aim: share of the budget, less leading system messages, that a compaction tries to get
            below; the size of `keep` gives way to it. 1 gives way to the budget alone.
        keep_first: the size of `keep` gives way only if it leaves no room to grow.
        keep_base: tokens of `keep` that no message takes, if the caller's count has a base.
        arguments: when large arguments of old calls are shortened; None for never.
        least_gain: share of a history that a compaction must free, with its largest summary, if
            neither the window nor force asks for it; 0 for any.
        stale: which results before the kept part are clipped first, and when that is worthwhile;
            None to go by `clip_over`, which then is for arguments alone.
    """

    trigger: tuple[TriggerClause, ...] = ()
    keep: ContextSize = ("messages", 20)
    max_summary_tokens: int | None = None
    clip_over: int | None = 1000
    clip_to: int = 200
    aim: float = 0.62
    summary_frame: int = 0
    keep_first: bool = False
    keep_base: int = 0
    arguments: Arguments | None = None
    least_gain: float = LEAST_GAIN
    stale: StaleResults | None = None

    @classmethod
    def build(
        cls,
        *,
        trigger: object = None,
        keep: object = ("messages", 20),
        max_summary_tokens: int | None = None,
        clip_over: int | None = 1000,
        clip_to: int = 200,
        aim: float = 0.62,
        keep_first: bool = False,
        least_gain: float = LEAST_GAIN,
        stale_results: object = None,
    ) -> Policy:
        """Make a policy from a user's settings; an invalid one is a `PolicyError`."""
        if max_summary_tokens is not None:
            whole(max_summary_tokens, "max_summary_tokens", SMALLEST_SUMMARY)
        if clip_over is not None:
            whole(clip_over, "clip_over", whole(clip_to, "clip_to", 50) + 1)
        return cls(
            trigger=parse_trigger(trigger),
            keep=check_size(keep, "keep"),
            max_summary_tokens=max_summary_tokens,
            clip_over=clip_over,
            clip_to=clip_to,
            aim=check_size(("fraction", aim), "aim")[1],
            keep_first=keep_first,
            least_gain=share(least_gain, "least_gain"),
            stale=StaleResults.build(stale_results),
        )

    @property
    def needs_window(self) -> bool:
        """Whether a fraction is used, which needs a known window."""
        return self.keep[0] == "fraction" or any(c.fraction is not None for c in self.trigger)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Warnings about legal settings that cannot have their effect."""
        kind, amount = self.keep
        for clause in self.trigger:
            bound = getattr(clause, kind)
            if bound is not None and amount >= bound:
                return (
                    f"keep {amount:g} {kind} can never get below the trigger ({clause}): every "
                    "compaction would be followed by another one. Lower keep or raise trigger.",
                )
        return ()

    def keep_tokens(self, limit: int | None) -> int | None:
        """Return the tokens that `keep` asks for; None when it counts messages."""
        kind, amount = self.keep
        if kind == "messages":
            return None
        if kind == "tokens":
            return int(amount) - self.keep_base
        return None if limit is None else max(1, int(limit * amount)) - self.keep_base

    def fired(
        self, size: Size, limit: int | None, last: Size | None = None
    ) -> TriggerClause | None:
        """Return the first clause that asks for a compaction now.

        `last` is the size that the latest compaction reached, or at which it failed; if it met the
        clause already, the history must have grown by `REARM` since.
        """
        for clause in self.trigger:
            if not clause.met(size, limit):
                continue
            if last is None or not clause.met(last, limit):
                return clause
            longer = clause.messages is not None and grown(size.messages, last.messages)
            if longer or grown(size.tokens, last.tokens):
                return clause
        return None

    @property
    def summary_cap(self) -> int | None:
        """The most tokens of the summary message, frame included, that a caller has set."""
        return self.max_summary_tokens and self.max_summary_tokens + self.summary_frame

    def gain(self, fired: TriggerClause | None, size: Size, floor: int) -> Size:
        """Return the tokens and messages that a compaction must free below the window.

        Nothing is asked if `least_gain` is less than the smallest summary (`floor`): sizes of such
        small histories mean little. A trigger that counts messages alone asks for fewer messages,
        and for no more tokens.
        """
        tokens = math.ceil(size.tokens * self.least_gain)
        if tokens < floor:
            return Size(0, 0)
        if fired is None or fired.tokens is not None or fired.fraction is not None:
            return Size(tokens, 0)
        return Size(1, max(1, int(size.messages * self.least_gain)))

    def summary_limit(self, budget: int | None, leading: int = 0) -> int:
        """Return the most tokens asked of the summary message, its frame included.

        `budget` is the room for all messages, or None; `leading` are tokens of leading system
        messages in it.
        """
        if self.summary_cap is not None:
            return self.summary_cap
        if budget is None:
            return LARGEST_SUMMARY
        below = tightest(self.trigger)
        room = budget if below is None else min(budget, below)
        return max(256, min(room // SUMMARY_SHARE, int((room - leading) * FREE_SHARE)))


def grown(now: int, before: int) -> bool:
    """Tell whether a history has grown enough to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


SUMMARY_SHARE = 3
"""A summary message takes at most one part in this many of the window, or of the trigger's size,
unless its size is set: the rest is for messages, present and future."""

FREE_SHARE = 0.6  # And no more than this share of the room beside leading system messages

LARGEST_SUMMARY = 4096
"""Tokens of a summary message if neither its size nor a window is known; also the most that is used
of a summariser's own text."""

SMALLEST_SUMMARY = 64  # Tokens below which a summary is not worth its frame
