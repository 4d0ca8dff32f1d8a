"""The arithmetic of one plan: which messages leave or are clipped.

`plan` uses it, and documents the order in which it gives way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from conspectus.core.boundaries import Exchanges, exchanges, legal_cuts, must_stay, never_clipped
from conspectus.core.items import (
    Clip,
    Compact,
    Item,
    Keep,
    OutOfReach,
    Plan,
    Size,
    Stuck,
    Window,
    highest,
    spans_of,
)
from conspectus.core.policy import LARGEST_SUMMARY, REARM, Policy
from conspectus.core.reaching_back import reaching_back

GIANT = 4
"""A message larger than one part in this many of the budget is clipped before the cut moves."""

RELIEF = 2
"""Clips alone are enough when they bring a history to one part in this many of its trigger."""


@dataclass(frozen=True, slots=True)
class Division:
    """Items that leave and items that stay if the history is cut before one index."""

    evict: tuple[int, ...]
    stay: tuple[int, ...]


class Room:
    """The arithmetic of one plan."""

    def __init__(
        self,
        items: Sequence[Item],
        policy: Policy,
        window: Window | None,
        *,
        tokens: int,
        words: bool,
        floor: int = 0,
        cause: str = "",
        gain: Size = Size(0, 0),  # noqa: B008
    ) -> None:
        self.items, self.policy = items, policy
        self.budget = None if window is None else window.budget
        self.gain, self.too_little = gain, False
        self.limit = 0
        self.floor, self.cause, self.tokens = floor, cause, tokens
        self.ex: Exchanges = exchanges(items)
        self.cuts = legal_cuts(items, self.ex)
        self.fixed = must_stay(items, self.ex)
        self.whole = never_clipped(items, self.ex)
        if not words:
            self.whole |= {i for i, item in enumerate(items) if item.role == "user"}
        self.standing = sum(item.tokens for item in items if item.summary)
        free = (i for i, m in enumerate(items) if not m.summary and i not in self.fixed)
        self.first = next(free, len(items))
        self.wanted = self._wanted_cut(None if window is None else window.limit)

    def _wanted_cut(self, limit: int | None) -> int:
        """Return the latest legal cut that keeps at least the amount of `keep`."""
        count = len(self.items)
        tokens = self.policy.keep_tokens(limit)
        if tokens is None:
            wanted = count - int(self.policy.keep[1])
        else:
            suffix = [0, *accumulate(item.kept_as for item in reversed(self.items))]
            # The most messages from the end that fit in these tokens; at least one.
            wanted = count - max(1, bisect_left(suffix, tokens + 1) - 1)
        while wanted > 0 and not self.cuts[wanted]:
            wanted -= 1
        return max(0, wanted)

    def divide(self, cut: int) -> Division:
        """Divide the items at a cut; a summary is replaced, an orphan leaves anyway."""
        evict: list[int] = []
        stay: list[int] = []
        for i, item in enumerate(self.items):
            if not item.summary:
                # A late second result stays as long as its call does.
                before = min(i, self.ex.late.get(i, i))
                leaves = i not in self.fixed and (before < cut or i in self.ex.orphans)
                (evict if leaves else stay).append(i)
        return Division(tuple(evict), tuple(stay))

    def _kept(self, sizes: Sequence[int]) -> list[int]:
        """Return, for every cut, the tokens that stay if items had these sizes."""
        always, movable = 0, []
        for i, item in enumerate(self.items):
            stays = not item.summary and i in self.fixed
            always += sizes[i] if stays else 0
            free = not (item.summary or stays or i in self.ex.orphans)
            movable.append(sizes[i] if free and i not in self.ex.late else 0)
        for i, call in self.ex.late.items():
            movable[call] += 0 if i in self.fixed else sizes[i]
        return [always + rest for rest in accumulate(reversed(movable), initial=0)][::-1]

    def size(self, i: int, level: int, spared: frozenset[int] = frozenset()) -> int:
        """Return the size of item `i` if all that may be are clipped to `level`."""
        item = self.items[i]
        if i in spared or i in self.whole:
            return item.tokens
        return min(item.tokens, max(item.smallest(), level))

    def clip_stale(self, waits_for: int) -> Compact | None:
        """Clip large old tool results and arguments: often that is enough."""
        over, how = self.policy.clip_over, self.policy.stale
        results = None if how is None else how.stale(self.items)
        saved, clips = 0, []
        for i in range(self.wanted):
            item = self.items[i]
            short = item.smallest()
            if how is None or not item.expendable:
                short = max(short, self.policy.clip_to)
            stays = item.clipped or item.pinned or i in self.whole
            if results is not None and item.role == "tool":
                stale = i in results
            else:
                large = over is not None and item.tokens > over
                stale = large and item.role in ("tool", "assistant")
            if stale and not stays and short < item.tokens // 2:
                clips.append(Clip(i, short))
                saved += item.tokens - short
        after, enough = self.tokens - saved, waits_for // RELIEF
        if how is not None and how.least is not None:
            if saved < how.least:
                return None
            enough = int(waits_for / REARM)  # else the same trigger would count again at once
        if self.budget is not None:
            enough = min(enough, self._aim(self.budget))
        if not clips or after > enough:
            return None
        return Compact(self.cause, (), tuple(clips), 0, self.tokens, after, self.budget)

    def summarise(self, clip: bool) -> Plan:
        """Cut where `keep` asks, and give way in the order of the module's docstring."""
        if self.budget is None or self.tokens <= self.budget:
            wanted = self.divide(self.wanted)
            # The size of `keep` gives way to the aim, unless a caller's own cut comes first.
            small = self.budget is None or self.tokens <= self._aim(self.budget)
            if not wanted.evict and (small or self.policy.keep_first):
                return Keep("everything is within keep", self.tokens)
            if self.budget is None:
                return self._without_window(wanted)
        limit = self.limit = self.policy.summary_limit(self.budget, self._leading())
        level = self.budget // GIANT if clip else max(item.tokens for item in self.items)
        least = self._kept([self.size(i, level) for i in range(len(self.items))])
        later = [c for c in range(self.wanted, len(self.items)) if self.cuts[c]] or [0]
        floor = min(self.floor, limit)
        shares = dict.fromkeys((limit, max(floor, limit // 2), floor))
        if self.policy.keep_first:
            roomy = int(self.budget / REARM)
            kept = self._kept([item.tokens for item in self.items])[self.wanted]
            # At last `keep` holds beside short notes and a quarter of the room to grow.
            tight, half = (3 * self.budget + roomy) // 4, (self.tokens - kept) // 2
            short = (min(limit, tight - kept, half), floor) if self._leaves(self.wanted) else ()
            tries = [(limit, roomy), (self._beside(kept, roomy, limit), roomy)]
            tries += [(share, tight) for share in short if share >= floor]
            for share, room in tries:
                if 0 < share <= room - kept and (
                    found := self._fit(self.wanted, share, level, room)
                ):
                    return found
        aim = self._aim(self.budget)
        if found := self._roomiest(list(shares), later, level, aim):
            return reaching_back(self, found, aim) if clip else found
        for share in shares:
            cut = next((c for c in later if least[c] + self._notes(c, share) <= self.budget), None)
            if cut is not None and (found := self._fit(cut, share, level, self.budget)):
                return found
        share = floor
        if self.too_little:
            return self._not_worth_it()
        if clip and (found := self._fit(later[-1], share, 1, aim, theirs=False)):
            return found
        if clip and (found := self._fit(later[-1], share, 1, self.budget)):
            return found
        if self.tokens <= self.budget:
            return Keep("a summary would not make it smaller", self.tokens)
        return self._stuck(self.divide(later[-1]), share, clip)

    def _beside(self, kept: int, roomy: int, limit: int) -> int:
        """Return the room of a summary beside all of `keep`; 0 if that is too little.

        It is half of the part that leaves: the other half stays free until the next compaction. If
        nothing leaves, notes are not shortened for a few messages.
        """
        if not self._leaves(self.wanted):
            return 0
        share = min(roomy - kept, (self.tokens - kept) // 2)
        least = max(min(self.floor, limit), min(limit // 4, LARGEST_SUMMARY))
        return min(limit, share) if share >= least else 0

    def _roomiest(
        self, shares: Sequence[int], later: Sequence[int], level: int, aim: int
    ) -> Compact | None:
        """Find the plan that leaves room to grow and gives way least.

        Less is kept before the notes get less room, as they repeat the messages. They get all that
        is left, and at least half, before words are clipped that no cut can remove.
        """
        assert self.budget is not None
        users = (i for i in self.fixed if self.items[i].role == "user" or self.items[i].pinned)
        lasting, half = frozenset(users), shares[:2]
        roomy = int(self.budget / REARM)
        for spared, tried in ((lasting, half), (frozenset[int](), shares)):
            least = self._kept([self.size(i, level, spared) for i in range(len(self.items))])
            # All the room beside the smallest rest that leaves a gain, and half of what leaves
            # where `keep` asks: the other half stays free until the next compaction.
            beside = min(roomy, self.tokens - self.gain.tokens) - least[later[-1]]
            between = {beside, (self.tokens - least[later[0]]) // 2}
            fit = {share for share in between if tried[0] > share > tried[-1]}
            for share in sorted({*tried, *fit}, reverse=True):
                for room, cuts in ((aim, later), (roomy, later[-1:])):
                    cut = next((c for c in cuts if least[c] + self._notes(c, share) <= room), None)
                    if cut is None:
                        continue
                    if found := self._fit(cut, share, level, room, spared=spared):
                        return found
                    break  # it fits and frees too little: the notes get less, and `keep` holds
        return None

    def _notes(self, cut: int, share: int) -> int:
        """Return the size of the summary message; a standing one stays if nothing leaves."""
        return share if self._leaves(cut) or self.standing > share else self.standing

    def _leaves(self, cut: int) -> bool:
        return cut > self.first or bool(self.ex.orphans)

    def _leading(self) -> int:
        """Return the tokens of the leading system messages, which never leave."""
        tokens = 0
        for item in self.items:
            if item.role != "system" or item.summary:
                break
            tokens += item.tokens
        return tokens

    def _aim(self, budget: int) -> int:
        """Return the tokens to get below: a share of the budget after system messages."""
        leading = self._leading()
        return min(budget, leading + int(max(0, budget - leading) * self.policy.aim))

    def _fit(
        self,
        cut: int,
        share: int,
        level: int,
        room: int,
        theirs: bool = True,
        spared: frozenset[int] = frozenset(),
    ) -> Compact | None:
        """Cut here, with a summary of `share` tokens, and clip nothing below `level`.

        The user's own words are clipped only with `theirs`, and spared items never.
        """
        tried = self.divide(cut)
        if not tried.evict:
            if self.standing <= share:
                share = 0  # the standing summary stays as it is
            elif share < self.limit and self.tokens <= (self.budget or 0):
                return None  # notes are not made shorter where nothing comes to them
        clips = self.clips(tried.stay, room - (share or self.standing), level, theirs, spared)
        if clips is None or not (tried.evict or clips or share):
            return None
        plan = self.compact(tried, clips, share)
        return plan if self.is_worth_it(plan) else None

    def _without_window(self, wanted: Division) -> Plan:
        """Plan without a budget, by the freed tokens alone."""
        limit = self.policy.summary_limit(None)
        plan = self.compact(wanted, (), limit)
        if self.gain.tokens:
            less = limit - max(0, self.gain.tokens - (plan.tokens - plan.at_most))
            plan = self.compact(wanted, (), max(less, min(self.floor, limit)))
        return plan if self.is_worth_it(plan) else self._not_worth_it()

    def is_worth_it(self, plan: Compact) -> bool:
        """Tell whether a plan frees `least_gain`, with its summary at its largest."""
        freed = plan.tokens - plan.at_most
        fewer = len(plan.evicted)
        if plan.summary_tokens:
            fewer += sum(item.summary for item in self.items) - 1
        enough = not self.gain.tokens or (freed >= self.gain.tokens and fewer >= self.gain.messages)
        self.too_little = self.too_little or not enough
        return enough

    def _not_worth_it(self) -> Keep:
        messages, tokens = self.gain.messages, self.gain.tokens
        asks = f"{messages:,} messages" if messages else f"{tokens:,} tokens"
        return Keep(f"a compaction would not free the {asks} that least_gain asks for", self.tokens)

    def out_of_reach(self, plan: Keep | Compact, trigger: int, asked: int) -> OutOfReach | None:
        """Return the trigger if it lies below the reach of any plan."""
        if isinstance(plan, Compact):
            gone, clips = plan.evicted, plan.clips
            summary = min(self.floor, plan.summary_tokens)
        else:
            gone, clips = self.divide(self.wanted).evict, ()
            summary = self.floor if gone else 0
        least = asked - sum(self.items[i].kept_as for i in gone)
        least -= sum(self.items[clip.index].tokens - clip.limit for clip in clips)
        replaced = [item.kept_as for item in self.items if item.summary and summary]
        least += summary - sum(replaced)
        stay = len(self.items) - len(gone) - len(replaced)
        return OutOfReach(trigger, least, stay) if least >= trigger else None

    def clips(
        self,
        stay: Sequence[int],
        room: int,
        least: int,
        words: bool = True,
        never: frozenset[int] = frozenset(),
    ) -> tuple[Clip, ...] | None:
        """Clip the largest to one common level, as high as fits and at least `least`.

        Tool results and the agent's own words give way before the user's and the pinned ones; items
        in `never` do not.
        """
        theirs = frozenset(i for i in stay if self.items[i].role == "user" or self.items[i].pinned)
        most = max([least, *(self.items[i].tokens for i in stay)])
        for spared in (theirs | never, never)[: 1 + words]:
            fits = partial(self._fits_at, stay, room, spared)
            if fits(least):
                return self.shortest(stay, highest(least, most, fits), spared)
        return None

    def shortest(
        self, some: Sequence[int], level: int, spared: frozenset[int] = frozenset()
    ) -> tuple[Clip, ...]:
        """Clip these items to a level, as far as they may be."""
        sizes = {i: self.size(i, level, spared) for i in some}
        return tuple(Clip(i, n) for i, n in sizes.items() if n < self.items[i].tokens)

    def _fits_at(self, stay: Sequence[int], room: int, spared: frozenset[int], level: int) -> bool:
        return sum(self.size(i, level, spared) for i in stay) <= room

    def _stuck(self, tried: Division, share: int, clip: bool) -> Stuck:
        assert self.budget is not None
        smallest = (self.size(i, 1) if clip else self.items[i].tokens for i in tried.stay)
        needed = sum(smallest) + (share if tried.evict or self.standing else 0)
        reason = (
            f"what must stay in view takes at least {needed:,} tokens and there are "
            f"{self.budget:,}: use a model with a larger window, reserve less of it, "
            "or shorten the system prompt or the newest message, its images and files included"
        )
        if not clip:
            reason += "; with an archive, large messages could be clipped"
        return Stuck(reason, self.tokens, needed, self.budget)

    def held_back(self) -> Stuck:
        """Give up for now: a summary has failed or was refused a moment ago."""
        assert self.budget is not None
        reason = (
            f"the history takes {self.tokens:,} tokens of {self.budget:,}, and its latest summary "
            "failed or was refused; another one is made once it has grown by a tenth, or when it "
            "is asked for by force"
        )
        return Stuck(reason, self.tokens, self.tokens, self.budget)

    def compact(self, tried: Division, clips: tuple[Clip, ...], share: int) -> Compact:
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
            summary_cap=self.policy.summary_cap,
        )
