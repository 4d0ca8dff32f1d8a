"""The decision for one history: keep it, make it smaller, or say that nothing helps.

A plan aims below the budget, at `Policy.aim` of it, so that the next message does not ask for the
next compaction; only where that cannot be reached is the whole budget used. The order in which a
plan gives way: stale large tool results are clipped; then the older part, up
to the legal cut that `keep` asks for, is summarised; then messages that alone take a quarter of
the budget are clipped; then the cut moves on; then the summary gets less room; then everything
that may be clipped is, the largest first. What fits first is the plan; otherwise it is `Stuck`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus._core.boundaries import (
    Exchanges,
    exchanges,
    legal_cuts,
    must_stay,
    never_clipped,
)
from conspectus._core.items import Clip, Compact, Item, Keep, Plan, Size, Stuck, Window, spans_of
from conspectus._core.policy import (
    LARGEST_SUMMARY,
    REARM,
    SMALLEST_SUMMARY,
    Policy,
    grown,
    tightest,
)

GIANT = 4
"""A message larger than one part in this many of the budget is clipped before the cut moves."""

SPARE = 3
"""One part in this many of the room that is left goes to a summary whose size nobody has set."""

RELIEF = 2
"""Clips alone are enough when they bring a history to one part in this many of its trigger."""


def plan(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None = None,
    *,
    asked: Size | None = None,
    last: Size | None = None,
    failed: int | None = None,
    force: bool = False,
    clip: bool = True,
    floor: int = SMALLEST_SUMMARY,
) -> Plan:
    """Decide what to do with one history.

    Args:
        items: the history as the model would see it now, a standing summary included.
        policy: when to compact and what to keep.
        window: the room for a request; None where it is unknown, and then no budget holds.
        asked: the size that the trigger is compared with, where the caller counts in its own way;
            None for the sum of the items.
        last: the size that the latest compaction reached, or at which the latest one failed.
        failed: tokens that the history had when its latest summary failed or was refused although
            the window was exceeded; None where none was. It must grow before another is made.
        force: compact although nothing asks for it.
        clip: whether messages may be clipped, which needs an archive for their originals.
        floor: the smallest useful summary message, in tokens, its frame included.

    Returns:
        `Keep`, `Compact` or `Stuck`. The same arguments give the same answer.
    """
    size = Size(sum(item.tokens for item in items), len(items))
    budget = None if window is None else window.budget
    limit = None if window is None else window.limit
    fired = policy.fired(asked or size, limit, last)
    over = budget is not None and size.tokens > budget
    if not (force or fired or over):
        return Keep("below the trigger", size.tokens)
    cause = "forced" if force else "window" if over and not fired else f"trigger: {fired}"
    if budget is not None and budget <= 0:
        return _no_room(window, size.tokens)
    room = _Room(items, policy, limit, budget, floor, cause, size.tokens)
    if not force and clip and policy.clip_over is not None:
        waits_for = fired.threshold(limit) if fired else budget
        if waits_for is not None and (relief := room.clip_stale(waits_for)):
            return relief
    if over and not force and failed is not None and not grown(size.tokens, failed):
        return room.held_back()
    return room.summarise(clip)


@dataclass(frozen=True, slots=True)
class _Division:
    """What leaves and what stays if the history is cut before one index."""

    evict: tuple[int, ...]
    stay: tuple[int, ...]


class _Room:
    """The arithmetic of one plan."""

    def __init__(
        self,
        items: Sequence[Item],
        policy: Policy,
        limit: int | None,
        budget: int | None,
        floor: int,
        cause: str,
        tokens: int,
    ) -> None:
        self.items, self.policy, self.budget = items, policy, budget
        self.floor, self.cause, self.tokens = floor, cause, tokens
        self.ex: Exchanges = exchanges(items)
        self.cuts = legal_cuts(items, self.ex)
        self.fixed = must_stay(items, self.ex)
        self.whole = never_clipped(items, self.ex)
        self.standing = sum(item.tokens for item in items if item.summary)
        self.wanted = self._wanted_cut(limit)

    def _wanted_cut(self, limit: int | None) -> int:
        """The latest legal cut that keeps at least what `keep` asks for."""
        count = len(self.items)
        tokens = self.policy.keep_tokens(limit)
        if tokens is None:
            wanted = count - int(self.policy.keep[1])
        else:
            suffix = [0, *accumulate(item.kept_as for item in reversed(self.items))]
            # The most messages from the end that fit in so many tokens; at least one.
            wanted = count - max(1, bisect_left(suffix, tokens + 1) - 1)
        while wanted > 0 and not self.cuts[wanted]:
            wanted -= 1
        return max(0, wanted)

    def _divide(self, cut: int) -> _Division:
        """A summary is replaced: it neither leaves nor stays. An orphan leaves wherever it is."""
        evict: list[int] = []
        stay: list[int] = []
        for i, item in enumerate(self.items):
            if not item.summary:
                leaves = i not in self.fixed and (i < cut or i in self.ex.orphans)
                (evict if leaves else stay).append(i)
        return _Division(tuple(evict), tuple(stay))

    def _kept(self, sizes: Sequence[int]) -> list[int]:
        """For every cut, the tokens that stay if items had these sizes: one pass for all cuts."""
        always, movable = 0, []
        for i, item in enumerate(self.items):
            stays = not item.summary and i in self.fixed
            always += sizes[i] if stays else 0
            free = not (item.summary or stays or i in self.ex.orphans)
            movable.append(sizes[i] if free else 0)
        return [always + rest for rest in accumulate(reversed(movable), initial=0)][::-1]

    def _size(self, i: int, level: int, spared: frozenset[int] = frozenset()) -> int:
        """What item `i` takes if all that may be are clipped to `level`."""
        item = self.items[i]
        if i in spared or i in self.whole:
            return item.tokens
        return min(item.tokens, max(item.smallest(), level))

    def clip_stale(self, waits_for: int) -> Compact | None:
        """Large old tool results and arguments, shown short: often all that is needed."""
        over = self.policy.clip_over
        assert over is not None
        saved, clips = 0, []
        for i in range(self.wanted):
            item = self.items[i]
            short = max(item.smallest(), self.policy.clip_to)
            stays = item.clipped or item.pinned or i in self.whole
            stale = item.role in ("tool", "assistant") and not stays
            if stale and item.tokens > over and short < item.tokens // 2:
                clips.append(Clip(i, short))
                saved += item.tokens - short
        after, enough = self.tokens - saved, waits_for // RELIEF
        if self.budget is not None:
            enough = min(enough, int(self.budget * self.policy.aim))
        if not clips or after > enough:
            return None
        return Compact(self.cause, (), tuple(clips), 0, self.tokens, after, self.budget)

    def summarise(self, clip: bool) -> Plan:
        """Cut where `keep` asks, and give way in the order of the module's docstring."""
        if self.budget is None or self.tokens <= self.budget:
            wanted = self._divide(self.wanted)
            if not wanted.evict:
                return Keep("everything is within keep", self.tokens)
            if self.budget is None:
                return self._compact(wanted, (), self.policy.summary_limit(None))
        limit = self.policy.summary_limit(self.budget)
        level = self.budget // GIANT if clip else max(item.tokens for item in self.items)
        least = self._kept([self._size(i, level) for i in range(len(self.items))])
        later = [c for c in range(self.wanted, len(self.items)) if self.cuts[c]] or [0]
        shares = dict.fromkeys((limit, max(self.floor, limit // 2), min(self.floor, limit)))
        if self.policy.keep_first:
            roomy = int(self.budget / REARM)
            whole = self._kept([item.tokens for item in self.items])
            if whole[self.wanted] + limit <= roomy and (
                found := self._fit(self.wanted, limit, level, roomy)
            ):
                return found
        for room in dict.fromkeys((int(self.budget * self.policy.aim), self.budget)):
            for share in shares:
                cut = next((c for c in later if least[c] + share <= room), None)
                if cut is not None and (found := self._fit(cut, share, level, room)):
                    return found
        share = min(self.floor, limit)
        if clip and (found := self._fit(later[-1], share, 1, self.budget)):
            return found
        if self.tokens <= self.budget:
            return Keep("a summary would not make it smaller", self.tokens)
        return self._stuck(self._divide(later[-1]), share, clip)

    def _fit(self, cut: int, share: int, level: int, room: int) -> Compact | None:
        """Cut here, with a summary of `share` tokens, clipping nothing below `level`."""
        tried = self._divide(cut)
        if not tried.evict and self.standing <= share:
            share = 0  # the standing summary stays as it is
        clips = self._clips(tried.stay, room - (share or self.standing), level)
        if clips is None:
            return None
        plan = self._compact(tried, clips, share)
        if share and self.policy.max_summary_tokens is None:
            # Room that nothing else takes: a part of it says more of what leaves.
            more = min(LARGEST_SUMMARY, share + (room - plan.at_most) // SPARE)
            plan = self._compact(tried, clips, max(share, more))
        return plan

    def _clips(self, stay: Sequence[int], room: int, least: int) -> tuple[Clip, ...] | None:
        """Clip the largest to one common level, as high as fits and at least `least`.

        Tool results and the agent's own words give way before the user's and the pinned ones.
        """
        theirs = frozenset(i for i in stay if self.items[i].role == "user" or self.items[i].pinned)
        for spared in (theirs, frozenset[int]()):
            low, high = least, max([least, *(self.items[i].tokens for i in stay)])
            if sum(self._size(i, low, spared) for i in stay) > room:
                continue
            while low < high:
                middle = (low + high + 1) // 2
                if sum(self._size(i, middle, spared) for i in stay) <= room:
                    low = middle
                else:
                    high = middle - 1
            sizes = {i: self._size(i, low, spared) for i in stay}
            return tuple(Clip(i, n) for i, n in sizes.items() if n < self.items[i].tokens)
        return None

    def _stuck(self, tried: _Division, share: int, clip: bool) -> Stuck:
        assert self.budget is not None
        smallest = (self._size(i, 1) if clip else self.items[i].tokens for i in tried.stay)
        needed = sum(smallest) + (share if tried.evict or self.standing else 0)
        reason = (
            f"what must stay in view takes at least {needed:,} tokens and there are "
            f"{self.budget:,}: use a model with a larger window, reserve less of it, "
            "or shorten the system prompt or the newest message"
        )
        if not clip:
            reason += "; with an archive, large messages could be clipped"
        return Stuck(reason, self.tokens, needed, self.budget)

    def held_back(self) -> Stuck:
        """Too large, and the summary that would help failed or was refused a moment ago."""
        assert self.budget is not None
        reason = (
            f"the history takes {self.tokens:,} tokens of {self.budget:,}, and its latest summary "
            "failed or was refused; another one is made once it has grown by a tenth, or when it "
            "is asked for by force"
        )
        return Stuck(reason, self.tokens, self.tokens, self.budget)

    def _compact(self, tried: _Division, clips: tuple[Clip, ...], share: int) -> Compact:
        shown = {clip.index: clip.limit for clip in clips}
        kept = sum(shown.get(i, self.items[i].tokens) for i in tried.stay)
        return Compact(
            cause=self.cause,
            evict=spans_of(tried.evict),
            clips=clips,
            summary_tokens=share,
            tokens=self.tokens,
            at_most=kept + (share or self.standing),
            budget=self.budget,
        )


def _no_room(window: Window | None, tokens: int) -> Stuck:
    assert window is not None
    reason = (
        f"{window.reserved:,} tokens are reserved in a window of {window.limit:,}, which leaves "
        "none for messages: use a model with a larger window or reserve less"
    )
    return Stuck(reason, tokens, max(1, tokens), window.budget)


def budget_of(policy: Policy, window: Window | None) -> Window | None:
    """The window, or where none is known the smallest token trigger in its place."""
    if window is not None:
        return window
    tokens = tightest(policy.trigger)
    return None if tokens is None else Window(tokens)
