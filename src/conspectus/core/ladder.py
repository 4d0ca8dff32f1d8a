"""How a history is made to fit: what leaves, what is clipped, and what gives way in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from conspectus.core.bisection import highest_that_fits
from conspectus.core.exchanges import Exchanges, match_calls, must_stay
from conspectus.core.growth import REARM
from conspectus.core.items import Item
from conspectus.core.plan_types import FORCED, Cause, Compact, Keep, PlannedClip
from conspectus.core.summary_room import BOUNDLESS, LARGEST_SUMMARY, NO_ROOM, SummaryRoom

FREE_AFTERWARDS = 0.4
"""The free share, two fifths. After a compaction, this share of the budget, or of the size at which
the trigger fires, is free for new messages, so that the next compaction is far away."""

SUMMARY_SHARE_OF_REST = 0.5
"""If messages that must stay take much of that size, the summary may take this share of the rest,
even if less than the free share is left. Next to long instructions, a long summary is worth more
than a later compaction."""

CLIP_TO = 200
"""Tokens to which a stale result is clipped."""

GIANT = 1 / 4
"""A message of more than this share of the budget is a giant."""

LARGE = 1 / 8
"""A message of more than this share of the budget is large."""

SHORTEST_CLIP = 1 / 16
"""The smallest share of the budget to which a message is clipped so that other messages stay."""

MOST_FIXED_WITH_UNREAD = 1 / 2
"""The share of the budget that messages that never leave may take together with late results that
no model has read. If they take more, these results may leave: a summariser reads them instead."""

NO_NEW_SUMMARY = 0
"""The target of a plan that makes no summary: the one in view, if any, stays."""

BudgetChoice = Literal["with_free_share", "with_room_to_grow", "whole_budget"]
CutChoice = Literal["where_keep_asks", "first_that_fits", "last"]
Clippable = Literal["nothing", "giants", "large", "all"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to fit.

    Attributes:
        budget_choice: how much the history may take afterwards.
        summary_part: the summary gets at least this part of its full size; with 0 its least useful
            size.
        cut: which legal cuts are tried.
        clips: what may be clipped.
        spares_users: whether messages that never leave, and that the user wrote or pinned, are not
            clipped.
        least_summary_only: whether the summary gets its least size, and clipped messages get the
            rest of the budget.
    """

    budget_choice: BudgetChoice
    summary_part: float
    cut: CutChoice
    clips: Clippable = "giants"
    spares_users: bool = False
    least_summary_only: bool = False


LADDER = (
    # fewer of the newest messages are kept
    Rung("with_free_share", summary_part=1, cut="first_that_fits", spares_users=True),
    # large results are clipped
    Rung(
        "with_free_share", summary_part=1, cut="first_that_fits", clips="large", spares_users=True
    ),
    # the summary gets half of its size, or more
    Rung("with_free_share", summary_part=0.5, cut="first_that_fits", spares_users=True),
    # the summary gets its least size, and large results are clipped
    Rung(
        "with_free_share", summary_part=0, cut="first_that_fits", clips="large", spares_users=True
    ),
    # less is free than a compaction aims at
    Rung("with_room_to_grow", summary_part=0.5, cut="last", spares_users=True),
    # the user's newest message and pinned messages are clipped
    Rung("with_free_share", summary_part=0.5, cut="first_that_fits"),
    # both: less is free, and the summary gets its least size
    Rung("with_room_to_grow", summary_part=0, cut="last"),
    # no room is left to grow
    Rung("whole_budget", summary_part=0, cut="first_that_fits"),
    # all that may be clipped is clipped; what must stay gets the room that the least summary leaves
    Rung("whole_budget", summary_part=0, cut="last", clips="all", least_summary_only=True),
)
"""The order in which things give way: the first rung that fits is the plan."""

LADDER_BY_KEEP = (
    # what `keep` asks for is kept
    Rung("with_free_share", summary_part=0.5, cut="where_keep_asks"),
    *LADDER[:4],
    # if it does not help to keep less, `keep` does not give way to the free share
    Rung("with_room_to_grow", summary_part=0, cut="where_keep_asks"),
    *LADDER[4:],
)
"""The same if the caller has set the size of `keep`."""

OLDEST_FIRST = (
    # a part of the history leaves
    Rung("whole_budget", summary_part=1, cut="first_that_fits", clips="nothing"),
    # the summary gets half of its size, or its least
    Rung("whole_budget", summary_part=0.5, cut="first_that_fits", clips="nothing"),
    Rung("whole_budget", summary_part=0, cut="first_that_fits", clips="nothing"),
    # all that may be clipped is clipped
    Rung("whole_budget", summary_part=0, cut="last", clips="all"),
)
"""LangMem's order: the oldest part leaves, and nothing is clipped as long as that is enough."""


class Division(NamedTuple):
    """A history divided at one cut, as places. Summaries are in neither part."""

    evicted: Sequence[int]
    kept: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryBounds:
    """What limits the target of a summary while the ladder lowers it. All sizes are tokens.

    Attributes:
        room: how long the message of the summary may be. Its target is the largest one.
        full: the size of which a rung asks for a part; 0 for the largest target.
        floor: the size below which a summary is of little use.
        says_something: the size from which a summary has a text in its frame.
        full_ratio_up_to: a summary may take half of the tokens that it replaces. Up to this size,
            it may take all of them.
        share_of_rest: the largest share that the summary takes of the budget that the kept messages
            leave.
        never_larger: whether the summary must always be smaller than the messages that it replaces.
    """

    room: SummaryRoom = NO_ROOM
    full: int = 0
    floor: int = 1
    says_something: int = 0
    full_ratio_up_to: int = LARGEST_SUMMARY
    share_of_rest: float = 1
    never_larger: bool = False

    @property
    def longest(self) -> int:
        """The largest target."""
        return self.room.target

    @property
    def least(self) -> int:
        """The smallest target: `floor`, or the largest target if that is smaller."""
        return max(1, min(self.floor, self.longest))


@dataclass(frozen=True, eq=False)
class Ladder:
    """The arithmetic of one history, and the rungs that make it fit. All sizes are tokens.

    Attributes:
        items: the history, a summary in force included.
        known_budget: the tokens for all messages; None if there is no limit.
        bounds: what limits the summary.
        gain: a plan must make the history smaller by so many tokens.
        clip_users: whether messages in the user's role may be clipped.
        base: the tokens that a list takes in addition to its messages, whichever these are.
        fires_at: the size at which the trigger fires. None if it counts only messages, or is so
            near the window that the window counts in its place.
        growth: the tokens that will be added before the plan takes effect.
        cause: why its plans compact the history.
    """

    items: Sequence[Item]
    known_budget: int | None
    bounds: SummaryBounds = SummaryBounds()
    _: KW_ONLY
    gain: int = 0
    clip_users: bool = True
    base: int = 0
    fires_at: int | None = None
    growth: int = 0
    cause: Cause = FORCED

    # What the history is made of

    @cached_property
    def budget(self) -> int:
        """The tokens for all messages."""
        return BOUNDLESS if self.known_budget is None else self.known_budget

    @cached_property
    def tokens(self) -> int:
        """The size of the history."""
        return self.base + sum(item.tokens for item in self.items)

    @cached_property
    def standing_tokens(self) -> int:
        """The size of the summaries in view, which the next one replaces."""
        return sum(item.tokens for item in self.items if item.is_summary)

    @cached_property
    def exchanges(self) -> Exchanges:
        """Tool calls with their results."""
        return match_calls(self.items)

    @cached_property
    def legal_cuts(self) -> list[int]:
        """The places before which the history may be divided; the first if no place is legal."""
        return [cut for cut in range(len(self.items)) if self.exchanges.may_cut_before[cut]] or [0]

    @cached_property
    def fixed(self) -> frozenset[int]:
        """The places of messages that never leave.

        Late results that no model has read are among them, unless all of them together would take
        more than half of the budget.
        """
        fixed = must_stay(self.items, self.exchanges)
        if sum(self.items[place].tokens for place in fixed) > self.budget * MOST_FIXED_WITH_UNREAD:
            return must_stay(self.items, self.exchanges, unread_stay=False)
        return fixed

    @cached_property
    def fixed_tokens(self) -> int:
        """The tokens of messages that never leave."""
        return self.base + sum(self.items[place].tokens for place in self.fixed)

    @cached_property
    def never_clipped(self) -> frozenset[int]:
        """The places of messages that are not clipped."""
        if self.clip_users:
            return self.exchanges.unclippable
        in_users_role = (place for place, item in enumerate(self.items) if item.role == "user")
        return self.exchanges.unclippable.union(in_users_role)

    @cached_property
    def clipped_last(self) -> frozenset[int]:
        """The places of messages that users wrote or pinned; they are clipped after all others."""
        return frozenset(
            place
            for place, item in enumerate(self.items)
            if item.pinned or (item.role == "user" and not item.by_host)
        )

    @cached_property
    def first_leaving(self) -> int:
        """The place of the first message that may leave; the length if there is none."""
        for place, item in enumerate(self.items):
            if place not in self.fixed and not item.is_summary:
                return place
        return len(self.items)

    @cached_property
    def first_cut(self) -> int:
        """The first cut at which a message leaves. Orphans leave at any cut."""
        return 0 if self.exchanges.orphans else self.first_leaving + 1

    @cached_property
    def kept_at(self) -> list[int]:
        """For each cut, the tokens of the messages that stay, if none is clipped."""
        return self.sizes_at_cuts()

    # How much a history may take

    @cached_property
    def next_compaction_at(self) -> int:
        """The tokens at which the next compaction is due, by the budget or by the trigger."""
        return min(self.budget, self.fires_at or self.budget)

    @cached_property
    def budgets(self) -> dict[BudgetChoice, int]:
        """The most tokens of the history after a compaction, as a rung chooses them."""
        basis = self.next_compaction_at
        aim = int(basis * (1 - FREE_AFTERWARDS)) - self.growth
        if self.fixed_tokens < basis:
            for_summary = int((basis - self.fixed_tokens) * SUMMARY_SHARE_OF_REST)
            aim = max(aim, self.fixed_tokens + for_summary - self.growth)
        return {
            "with_free_share": min(self.budget, aim),
            "with_room_to_grow": int(self.budget / REARM),
            "whole_budget": self.budget,
        }

    # What a cut leaves

    def divide(self, cut: int) -> Division:
        """Divide the history at a cut.

        A summary is replaced, an orphan leaves at any cut, and a late result that was read stays as
        long as its call may.
        """
        evicted: list[int] = []
        kept: list[int] = []
        for place, item in enumerate(self.items):
            if item.is_summary:
                continue
            if self._leaves_at(place, cut) and place not in self.fixed:
                evicted.append(place)
            else:
                kept.append(place)
        return Division(evicted, kept)

    def _leaves_at(self, place: int, cut: int) -> bool:
        """Tell whether a message that may leave does so at a cut."""
        return self._leaves_with(place) < cut or place in self.exchanges.orphans

    def _leaves_with(self, place: int) -> int:
        """Return the place of the message with which this one leaves: its own, or its call's."""
        return min(place, self.exchanges.late_results.get(place, place))

    def sizes_at_cuts(self, level: int = BOUNDLESS, spared: Set[int] = frozenset()) -> list[int]:
        """Return the tokens of the kept messages for each cut, clipped to `level` if allowed."""
        always = self.base
        tokens_leaving_with = [0] * len(self.items)
        for place, item in enumerate(self.items):
            if item.is_summary:
                continue
            if place in self.fixed:
                always += self.size_at(place, level, spared)
            elif place not in self.exchanges.orphans:
                tokens_leaving_with[self._leaves_with(place)] += self.size_at(place, level, spared)
        after_each_cut = [*accumulate(reversed(tokens_leaving_with), initial=0)][::-1]
        return [always + after for after in after_each_cut]

    def size_at(self, place: int, level: int, spared: Set[int] = frozenset()) -> int:
        """Return the tokens of an item, clipped to `level` if it may be clipped."""
        tokens = self.items[place].tokens
        if tokens <= level or place in spared or place in self.never_clipped:
            return tokens
        return max(self.items[place].least, level)

    # The rungs

    def climb(self, rungs: Sequence[Rung], keeps_from: int, *, clip: bool) -> Compact | Keep | None:
        """Return the plan of the first rung that fits; a `Keep` if it would free too little.

        Args:
            rungs: the order in which things give way.
            keeps_from: the cut that keeps what `keep` asks for.
            clip: whether messages may be clipped.
        """
        later = [cut for cut in self.legal_cuts if cut >= keeps_from] or self.legal_cuts[-1:]
        cuts: dict[CutChoice, list[int]] = {
            "where_keep_asks": [keeps_from] if keeps_from >= self.first_cut else [],
            "first_that_fits": later,
            "last": later[-1:],
        }
        for rung in rungs:
            if rung.clips == "all" and not clip:
                continue
            plan = next(self._plans_of(rung, cuts[rung.cut], clip=clip), None)
            if isinstance(plan, Compact) and clip and rung.budget_choice == "with_free_share":
                return self._clip_to_keep_more(plan, keeps_from)
            if plan is not None:
                return plan
        return None

    def _plans_of(self, rung: Rung, cuts: Sequence[int], *, clip: bool) -> Iterator[Compact | Keep]:
        """Yield the plans of one rung that fit."""
        budget = self.budgets[rung.budget_choice]
        level = self._clip_level(rung.clips) if clip else BOUNDLESS
        spared = self._spared_by(rung)
        sizes = self.sizes_at_cuts(level, spared)
        for cut in cuts:
            summary_tokens = self._summary_tokens_at(cut, sizes[cut], budget, rung.summary_part)
            if summary_tokens is None:
                continue
            if rung.least_summary_only:
                summary_tokens = min(summary_tokens, self.bounds.least)
            plan = self._fit(self.divide(cut), summary_tokens, budget, level, spared)
            if isinstance(plan, Compact) and self._is_limited(rung):
                plan = replace(plan, planned_within=budget)
            if plan is not None:
                yield plan

    def _is_limited(self, rung: Rung) -> bool:
        """Tell whether the budget of a rung follows from a window or a trigger."""
        of_trigger = rung.budget_choice == "with_free_share" and self.fires_at is not None
        return self.known_budget is not None or of_trigger

    def _spared_by(self, rung: Rung) -> frozenset[int]:
        """Return the places of messages that a rung shows whole."""
        return self.clipped_last & self.fixed if rung.spares_users else frozenset()

    def _clip_level(self, clips: Clippable) -> int:
        """Return the size to which messages may be clipped."""
        levels: dict[Clippable, int] = {
            "nothing": BOUNDLESS,
            "giants": int(self.budget * GIANT),
            "large": int(self.budget * LARGE),
            "all": 1,
        }
        return levels[clips]

    def _summary_tokens_at(self, cut: int, staying: int, budget: int, part: float) -> int | None:
        """Return the size of the summary at a cut; None if it would get less than a rung asks for.

        `NO_NEW_SUMMARY` if nothing leaves and the summary in view may stay.

        Args:
            cut: where the history is divided.
            staying: tokens of the kept messages, clipped as the rung allows.
            budget: tokens for all messages.
            part: the part of its full size that the summary gets at least.
        """
        bounds = self.bounds
        left = budget - staying
        if cut >= self.first_cut:
            largest = self._largest_summary(cut, staying)
        elif self.standing_tokens <= left:
            return NO_NEW_SUMMARY
        elif self.tokens <= self.budget:
            return None  # a summary is not made shorter if nothing is added to it
        else:
            largest = bounds.longest
        summary_tokens = min(largest, left)
        if bounds.never_larger and summary_tokens < bounds.says_something:
            return None
        asked = max(bounds.least, int((bounds.full or bounds.longest) * part))
        return summary_tokens if summary_tokens >= min(largest, asked) else None

    def _largest_summary(self, cut: int, staying: int) -> int:
        """Return the most tokens of a summary of the messages that leave at a cut."""
        bounds = self.bounds
        largest = self.tokens - self.kept_at[cut]  # not larger than what it replaces
        if self.gain:
            largest = self._halve_if_large(largest)
        if not bounds.never_larger:
            largest = max(bounds.least, largest)
        largest = min(bounds.longest, largest)
        if staying < self.next_compaction_at < BOUNDLESS:
            rest = self.next_compaction_at - staying
            largest = min(largest, max(bounds.least, int(rest * bounds.share_of_rest)))
        return largest

    def _halve_if_large(self, replaced: int) -> int:
        """Return half of the replaced tokens; if they are few, all of them but the gain."""
        return max(replaced // 2, min(self.bounds.full_ratio_up_to, replaced - self.gain))

    def _fit(
        self,
        divided: Division,
        summary_tokens: int,
        budget: int,
        level: int,
        spared: Set[int],
    ) -> Compact | Keep | None:
        """Return the plan for a division and the size of its summary; None if it cannot fit.

        No message is clipped below `level`. If the plan would free too little, the summary gets
        less.
        """
        evicted, kept = divided
        clips = self._clips(kept, self._budget_for_messages(budget, summary_tokens), level, spared)
        if clips is None or not (evicted or clips or summary_tokens):
            return None
        plan = self.plan_for(evicted, kept, clips, summary_tokens)
        lacking = self.gain - (plan.tokens - plan.at_most)
        if not self.gain or lacking <= 0:
            return plan
        if summary_tokens - lacking < self.bounds.least:
            return Keep("a compaction would free too little", self.tokens)
        smaller = plan.summary_room.with_target(summary_tokens - lacking)
        return replace(plan, summary_room=smaller, at_most=plan.at_most - lacking)

    def _budget_for_messages(self, budget: int, summary_tokens: int) -> int:
        """Return the tokens for messages next to a new summary, or to the one in view."""
        return budget - self.base - (summary_tokens or self.standing_tokens)

    def _clips(
        self, staying: Sequence[int], budget: int, least: int, spared: Set[int]
    ) -> tuple[PlannedClip, ...] | None:
        """Clip the largest items to one level, as high as fits and at least `least`.

        Messages of the user and pinned ones are clipped only if clipping the others is not enough.
        Those in `spared` are never clipped. None if all that is not enough.
        """
        if sum(self.items[place].tokens for place in staying) <= budget:
            return ()
        for untouched in (self.clipped_last | spared, spared):
            clips = self._clips_to_one_level(staying, budget, least, untouched)
            if clips is not None:
                return clips
        return None

    def _clips_to_one_level(
        self, staying: Sequence[int], budget: int, least: int, untouched: Set[int]
    ) -> tuple[PlannedClip, ...] | None:
        """Clip all but the untouched items to the highest level that fits; None if none does."""

        def fits(level: int) -> bool:
            return sum(self.size_at(place, level, untouched) for place in staying) <= budget

        if not fits(least):
            return None
        largest = max(self.items[place].tokens for place in staying)
        level = highest_that_fits(least, max(least, largest), fits)
        clips = (PlannedClip(place, self.size_at(place, level, untouched)) for place in staying)
        return tuple(clip for clip in clips if clip.tokens < self.items[clip.place].tokens)

    def _clip_to_keep_more(self, plan: Compact, keeps_from: int) -> Compact:
        """Keep more exchanges by clipping their large messages.

        The cut is after the first exchange that does not fit whole. Often one large tool result of
        it is the reason, and all earlier exchanges would leave, too. Messages of users are not
        clipped for this.
        """
        left = self.budgets["with_free_share"] - plan.at_most
        level = max(CLIP_TO, int(self.budget * SHORTEST_CLIP))
        kept_again = self._find_more_to_keep(plan, keeps_from, left, level)
        if not kept_again:
            return plan
        clips = self._clips(kept_again, left, level, self.clipped_last)
        if clips is None:
            return plan
        evicted, kept = self.divide(kept_again[0])
        summary_tokens = plan.summary_room.target if evicted else NO_NEW_SUMMARY
        if evicted and self.bounds.never_larger:
            replaced = self.standing_tokens + sum(self.items[place].tokens for place in evicted)
            summary_tokens = min(summary_tokens, replaced)
            if summary_tokens < self.bounds.says_something:
                return plan
        wider = self.plan_for(evicted, kept, (*plan.clips, *clips), summary_tokens)
        frees_enough = wider.tokens - wider.at_most >= self.gain
        return replace(wider, planned_within=plan.planned_within) if frees_enough else plan

    def _find_more_to_keep(
        self, plan: Compact, keeps_from: int, room: int, level: int
    ) -> Sequence[int]:
        """Return the newest evicted messages, back to a legal cut, that fit if they are clipped."""
        newest_first = self._by_cut_newest_first(set(plan.evicted_places) - self.exchanges.orphans)
        earliest = max(keeps_from, self.first_leaving)
        if self.standing_tokens > plan.summary_room.target:
            # A shorter summary than the one in force is only made if something leaves.
            earliest = max(keeps_from, self.first_leaving + 1)
        kept_again = 0  # how many of them
        used_tokens = 0
        for considered, place in enumerate(newest_first, 1):
            used_tokens += self.size_at(place, level, self.clipped_last)
            cut = self._leaves_with(place)
            if used_tokens > room or cut < earliest:
                break
            # A late result comes back with its call; it is no place for a cut.
            if place == cut and self.exchanges.may_cut_before[cut]:
                kept_again = considered
        return newest_first[:kept_again][::-1]

    def _by_cut_newest_first(self, places: Set[int]) -> list[int]:
        """Order places by the last cut at which they stay, a late result before its call."""
        return sorted(places, key=lambda place: (self._leaves_with(place), place), reverse=True)

    # Plans

    def plan_for(
        self,
        evicted: Sequence[int],
        kept: Sequence[int],
        clips: tuple[PlannedClip, ...],
        summary_tokens: int,
    ) -> Compact:
        """Return the plan with these clips. If `summary_tokens` is 0, the summary in view stays."""
        freed = sum(self.items[clip.place].tokens - clip.tokens for clip in clips)
        kept_tokens = self.base + sum(self.items[place].tokens for place in kept)
        return Compact(
            cause=self.cause,
            evicted_places=tuple(evicted),
            clips=clips,
            summary_room=self.bounds.room.with_target(summary_tokens),
            tokens=self.tokens,
            at_most=kept_tokens - freed + (summary_tokens or self.standing_tokens),
            budget=self.known_budget,
        )

    def smallest_plan(self, *, clip: bool) -> Compact:
        """Return the plan that evicts all that may leave, and clips all that may be clipped.

        The user's newest message and pinned ones get an eighth of the budget: a model that does not
        see the question answers another one.
        """
        evicted, kept = self.divide(self.legal_cuts[-1])
        clips: list[PlannedClip] = []
        for place in kept if clip else ():
            size = self.size_at(place, self._least_shown(place))
            if size < self.items[place].tokens:
                clips.append(PlannedClip(place, size))
        least = self.bounds.least
        needs_summary = bool(evicted) or self.standing_tokens > least
        summary_tokens = least if needs_summary else NO_NEW_SUMMARY
        return self.plan_for(evicted, kept, tuple(clips), summary_tokens)

    def _least_shown(self, place: int) -> int:
        """Return the size to which a message is clipped if nothing fits."""
        is_request = place in self.clipped_last and place in self.fixed
        return max(1, int(self.budget * LARGE)) if is_request else 1
