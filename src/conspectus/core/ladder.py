"""The ladder: what leaves, what is clipped, and the order in which things give way to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from conspectus.core.bisection import highest_that_fits
from conspectus.core.exchanges import Exchanges, match_calls, must_stay
from conspectus.core.items import Item
from conspectus.core.plans import Compact, Keep, PlannedClip
from conspectus.core.policy import LARGEST_SUMMARY, REARM

BOUNDLESS = 2**62  # Tokens of an unknown window

FREE_AFTERWARDS = 0.4
"""The free share, two fifths: a compaction leaves so much of the budget, or of the size at which
the trigger fires, free for new messages, so that the next compaction is far away."""

BESIDE = 0.5
"""Where messages that must stay take much of that size, notes may take this share of its rest, even
if less than the free share is left: beside long instructions, notes are worth more than a later
compaction."""

CLIP_TO = 200  # Tokens of a stale result that is clipped

GIANT = 1 / 4  # A message of more than this share of the budget is a giant
LARGE = 1 / 8  # One of more than this share is large
SHORT = 1 / 16  # The least share that is shown of a message so that more may stay

MOST_FIXED_WITH_UNREAD = 1 / 2
"""Share of the budget that messages that never leave may take together with late results that no
model has read. Where they take more, these results may leave: a summariser reads them instead."""

KEEPS_STANDING = 0
"""`Compact.summary_tokens` of a plan that makes no summary: the one in view, if any, stays."""

BudgetRule = Literal["with_free_share", "with_room_to_grow", "whole_budget"]
CutRule = Literal["where_keep_asks", "first_that_fits", "last"]
Clippable = Literal["nothing", "giants", "large", "all"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to fit."""

    budget: BudgetRule
    # The summary gets at least this part of its full size; at 0 its least useful size.
    summary: float
    cut: CutRule
    clips: Clippable = "giants"  # what may be clipped
    # messages that no cut can remove, and that the user wrote or pinned, are shown whole
    spares_users: bool = False
    least_summary_only: bool = False  # the rest of the budget is for clipped messages


LADDER = (
    # less of the newest history is kept
    Rung("with_free_share", summary=1, cut="first_that_fits", spares_users=True),
    # large results are clipped
    Rung("with_free_share", summary=1, cut="first_that_fits", clips="large", spares_users=True),
    # the summary gets half of its size, or more
    Rung("with_free_share", summary=0.5, cut="first_that_fits", spares_users=True),
    # the summary gets its least size, and large results are clipped
    Rung("with_free_share", summary=0, cut="first_that_fits", clips="large", spares_users=True),
    # less is free than a compaction aims at
    Rung("with_room_to_grow", summary=0.5, cut="last", spares_users=True),
    # the user's newest message and pinned ones are clipped
    Rung("with_free_share", summary=0.5, cut="first_that_fits"),
    # both: less is free, and the summary gets its least size
    Rung("with_room_to_grow", summary=0, cut="last"),
    # no room is left to grow
    Rung("whole_budget", summary=0, cut="first_that_fits"),
    # all that may be clipped is, and what must stay gets what the least summary leaves
    Rung("whole_budget", summary=0, cut="last", clips="all", least_summary_only=True),
)
"""The order in which things give way: the first rung that fits is the plan."""

LADDER_BY_KEEP = (
    # what `keep` asks for is kept
    Rung("with_free_share", summary=0.5, cut="where_keep_asks"),
    *LADDER[:4],
    # where even keeping less is of no avail, `keep` does not give way for what is to be free
    Rung("with_room_to_grow", summary=0, cut="where_keep_asks"),
    *LADDER[4:],
)
"""The same where the size of `keep` is a caller's own choice."""

OLDEST_FIRST = (
    # a part of the history leaves
    Rung("whole_budget", summary=1, cut="first_that_fits", clips="nothing"),
    # the summary gets half of its size, or its least
    Rung("whole_budget", summary=0.5, cut="first_that_fits", clips="nothing"),
    Rung("whole_budget", summary=0, cut="first_that_fits", clips="nothing"),
    # all that may be clipped is
    Rung("whole_budget", summary=0, cut="last", clips="all"),
)
"""LangMem's order: the oldest part leaves, and nothing is clipped as long as that is enough."""


class Division(NamedTuple):
    """A history divided at one cut: places of messages. Summaries are in neither part."""

    evicted: Sequence[int]
    kept: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryBounds:
    """The tokens that a summary message may take, its frame included.

    Attributes:
        longest: the most tokens that a summariser is asked for.
        full: the size of which a rung asks for a part; 0 for `longest`.
        floor: the fewest tokens of a useful summary.
        says_something: the fewest tokens of a summary that has a text in its frame.
        cap: the most tokens that a caller has allowed; None if the caller has set no size.
        full_ratio_up_to: a summary may take half of the tokens that it replaces; up to this size,
            it may take all of them.
        share_beside: the largest share that the summary takes of the budget that the kept messages
            leave.
        never_larger: whether the summary must be smaller than the messages that it replaces, in
            any case.
    """

    longest: int = 0
    full: int = 0
    floor: int = 1
    says_something: int = 0
    cap: int | None = None
    full_ratio_up_to: int = LARGEST_SUMMARY
    share_beside: float = 1
    never_larger: bool = False

    @property
    def least(self) -> int:
        """The fewest tokens of a useful summary; no more than `longest`."""
        return max(1, min(self.floor, self.longest))


@dataclass(frozen=True, eq=False)
class Ladder:
    """The arithmetic of one history, and the rungs that make it fit. All sizes are tokens."""

    items: Sequence[Item]  # the history, a summary in force included
    limit: int | None  # for all messages; None for no limit
    summary: SummaryBounds = SummaryBounds()
    _: KW_ONLY
    gain: int = 0  # tokens by which a plan must make the history smaller
    clip_users: bool = True  # messages in the user's role may be clipped
    base: int = 0  # tokens that a list takes beside its messages, whichever these are
    # tokens at which the trigger fires; None if it counts messages alone
    fires_at: int | None = None
    growth: int = 0  # tokens that will have come until the plan takes effect

    # What the history is made of

    @cached_property
    def budget(self) -> int:
        """The tokens for all messages."""
        return BOUNDLESS if self.limit is None else self.limit

    @cached_property
    def tokens(self) -> int:
        """The size of the history."""
        return self.base + sum(item.tokens for item in self.items)

    @cached_property
    def standing_summary(self) -> int:
        """The size of the summaries in view, which the next one replaces."""
        return sum(item.tokens for item in self.items if item.summary)

    @cached_property
    def exchanges(self) -> Exchanges:
        """Tool calls with their results."""
        return match_calls(self.items)

    @cached_property
    def legal_cuts(self) -> list[int]:
        """The places before which the history may be divided; the first if no place is legal."""
        return [cut for cut in range(len(self.items)) if self.exchanges.cuts[cut]] or [0]

    @cached_property
    def fixed(self) -> frozenset[int]:
        """The places of messages that never leave.

        Late second results that no model has read are among them, unless all of them together
        would take more than half of the budget.
        """
        fixed = must_stay(self.items, self.exchanges)
        if sum(self.items[at].tokens for at in fixed) > self.budget * MOST_FIXED_WITH_UNREAD:
            return must_stay(self.items, self.exchanges, unread_stay=False)
        return fixed

    @cached_property
    def fixed_tokens(self) -> int:
        """The tokens of messages that never leave."""
        return self.base + sum(self.items[at].tokens for at in self.fixed)

    @cached_property
    def never_clipped(self) -> frozenset[int]:
        """The places of messages that are shown whole or not at all."""
        if self.clip_users:
            return self.exchanges.unclippable
        in_users_role = (at for at, item in enumerate(self.items) if item.role == "user")
        return self.exchanges.unclippable.union(in_users_role)

    @cached_property
    def clipped_last(self) -> frozenset[int]:
        """The places of messages that users wrote or pinned; they are clipped after all others."""
        return frozenset(
            at
            for at, item in enumerate(self.items)
            if item.pinned or (item.role == "user" and not item.by_host)
        )

    @cached_property
    def first_leaving(self) -> int:
        """The place of the first message that may leave; the length without one."""
        places = range(len(self.items))
        may_leave = (at for at in places if not self.items[at].summary and at not in self.fixed)
        return next(may_leave, len(self.items))

    @cached_property
    def first_cut(self) -> int:
        """The first cut at which a message leaves; orphans leave at any cut."""
        return 0 if self.exchanges.orphans else self.first_leaving + 1

    @cached_property
    def kept_at(self) -> list[int]:
        """For each cut, the tokens of the messages that stay, shown whole."""
        return self.sizes_at_cuts()

    # How much a history may take

    @cached_property
    def next_compaction_at(self) -> int:
        """The tokens at which the next compaction comes: the budget, or the trigger's size."""
        return min(self.budget, self.fires_at or self.budget)

    @cached_property
    def budgets(self) -> dict[BudgetRule, int]:
        """The most tokens of the history after a compaction, by the rule of a rung."""
        basis = self.next_compaction_at
        aim = int(basis * (1 - FREE_AFTERWARDS)) - self.growth
        if self.fixed_tokens < basis:
            beside = int((basis - self.fixed_tokens) * BESIDE)
            aim = max(aim, self.fixed_tokens + beside - self.growth)
        return {
            "with_free_share": min(self.budget, aim),
            "with_room_to_grow": int(self.budget / REARM),
            "whole_budget": self.budget,
        }

    # What a cut comes to

    def divide(self, cut: int) -> Division:
        """Divide the history at a cut.

        A summary is replaced, an orphan leaves anyway, and a late second result that was read stays
        as long as its call does.
        """
        evicted: list[int] = []
        kept: list[int] = []
        for at, item in enumerate(self.items):
            if item.summary:
                continue
            leaves = self._leaves_at(at, cut) and at not in self.fixed
            (evicted if leaves else kept).append(at)
        return Division(evicted, kept)

    def _leaves_at(self, at: int, cut: int) -> bool:
        """Tell whether a message that may leave does so at a cut."""
        return self._leaves_with(at) < cut or at in self.exchanges.orphans

    def _leaves_with(self, at: int) -> int:
        """Return the place of the message with which this one leaves: its own, or its call's."""
        return min(at, self.exchanges.late_results.get(at, at))

    def sizes_at_cuts(self, level: int = BOUNDLESS, spared: Set[int] = frozenset()) -> list[int]:
        """Return the tokens of the kept messages for each cut, clipped to `level` if allowed."""
        always = self.base
        movable = [0] * len(self.items)
        for at, item in enumerate(self.items):
            if item.summary:
                continue
            if at in self.fixed:
                always += self.size_at(at, level, spared)
            elif at not in self.exchanges.orphans:
                movable[self._leaves_with(at)] += self.size_at(at, level, spared)
        behind_each = [*accumulate(reversed(movable), initial=0)][::-1]
        return [always + behind for behind in behind_each]

    def size_at(self, at: int, level: int, spared: Set[int] = frozenset()) -> int:
        """Return the tokens of an item, clipped to `level` if it may be clipped."""
        tokens = self.items[at].tokens
        if tokens <= level or at in spared or at in self.never_clipped:
            return tokens
        return max(self.items[at].least, level)

    # The rungs

    def climb(self, rungs: Sequence[Rung], keeps_from: int, *, clip: bool) -> Compact | Keep | None:
        """Return the plan of the first rung that fits; a `Keep` if it would free too little.

        Args:
            rungs: the order in which things give way.
            keeps_from: the cut that keeps what `keep` asks for.
            clip: whether messages may be clipped.
        """
        later = [cut for cut in self.legal_cuts if cut >= keeps_from] or self.legal_cuts[-1:]
        cuts: dict[CutRule, list[int]] = {
            "where_keep_asks": [keeps_from] if keeps_from >= self.first_cut else [],
            "first_that_fits": later,
            "last": later[-1:],
        }
        for rung in rungs:
            if rung.clips == "all" and not clip:
                return None
            plan = next(self._plans_of(rung, cuts[rung.cut], clip=clip), None)
            if isinstance(plan, Compact) and clip and rung.budget == "with_free_share":
                return self._reach_back(plan, keeps_from)
            if plan is not None:
                return plan
        return None

    def _plans_of(self, rung: Rung, cuts: Sequence[int], *, clip: bool) -> Iterator[Compact | Keep]:
        """Yield the plans of one rung that fit."""
        budget = self.budgets[rung.budget]
        level = self._clip_level(rung.clips) if clip else BOUNDLESS
        spared = self._spared_by(rung)
        sizes = self.sizes_at_cuts(level, spared)
        for cut in cuts:
            summary_tokens = self._summary_tokens_at(cut, sizes[cut], budget, rung.summary)
            if summary_tokens is None:
                continue
            if rung.least_summary_only:
                summary_tokens = min(summary_tokens, self.summary.least)
            plan = self._fit(self.divide(cut), summary_tokens, budget, level, spared)
            if isinstance(plan, Compact) and self._is_limited(rung):
                plan = replace(plan, planned_within=budget)
            if plan is not None:
                yield plan

    def _is_limited(self, rung: Rung) -> bool:
        """Tell whether the budget of a rung follows from a window or a trigger."""
        of_trigger = rung.budget == "with_free_share" and self.fires_at is not None
        return self.limit is not None or of_trigger

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

        `KEEPS_STANDING` if nothing leaves and the summary in view may stay.

        Args:
            cut: where the history is divided.
            staying: tokens of the kept messages, clipped as the rung allows.
            budget: tokens for all messages.
            part: the part of its full size that the summary gets at least.
        """
        sizes = self.summary
        left = budget - staying
        if cut >= self.first_cut:
            largest = self._largest_summary(cut, staying)
        elif self.standing_summary <= left:
            return KEEPS_STANDING
        elif self.tokens <= self.budget:
            return None  # notes are not made shorter where nothing comes to them
        else:
            largest = sizes.longest
        summary_tokens = min(largest, left)
        if sizes.never_larger and summary_tokens < sizes.says_something:
            return None
        asked = max(sizes.least, int((sizes.full or sizes.longest) * part))
        return summary_tokens if summary_tokens >= min(largest, asked) else None

    def _largest_summary(self, cut: int, staying: int) -> int:
        """Return the most tokens of a summary of the messages that leave at a cut."""
        sizes = self.summary
        largest = self.tokens - self.kept_at[cut]  # no larger than what it replaces
        if self.gain:
            largest = self._halve_if_large(largest)
        if not sizes.never_larger:
            largest = max(sizes.least, largest)
        largest = min(sizes.longest, largest)
        if staying < self.next_compaction_at < BOUNDLESS:
            beside = int((self.next_compaction_at - staying) * sizes.share_beside)
            largest = min(largest, max(sizes.least, beside))
        return largest

    def _halve_if_large(self, replaced: int) -> int:
        """Return half of the replaced tokens; if they are few, all of them but the gain."""
        return max(replaced // 2, min(self.summary.full_ratio_up_to, replaced - self.gain))

    def _fit(
        self,
        divided: Division,
        summary_tokens: int,
        budget: int,
        level: int,
        spared: Set[int],
    ) -> Compact | Keep | None:
        """Return the plan for a division and the size of its summary; None if it cannot fit.

        Nothing is clipped below `level`. Where too little would be freed, the summary gets less.
        """
        evicted, kept = divided
        clips = self._clips(kept, self._budget_beside(budget, summary_tokens), level, spared)
        if clips is None or not (evicted or clips or summary_tokens):
            return None
        plan = self.plan_for(evicted, kept, clips, summary_tokens)
        lacking = self.gain - (plan.tokens - plan.at_most)
        if not self.gain or lacking <= 0:
            return plan
        if summary_tokens - lacking < self.summary.least:
            return Keep("a compaction would free too little", self.tokens)
        return replace(
            plan, summary_tokens=summary_tokens - lacking, at_most=plan.at_most - lacking
        )

    def _budget_beside(self, budget: int, summary_tokens: int) -> int:
        """Return the tokens for messages beside a summary, or beside the one in view."""
        return budget - self.base - (summary_tokens or self.standing_summary)

    def _clips(
        self, staying: Sequence[int], budget: int, least: int, spared: Set[int]
    ) -> tuple[PlannedClip, ...] | None:
        """Clip the largest items to one level, as high as fits and at least `least`.

        Those of the user and pinned ones are clipped only if the others are not enough, and
        `spared` ones never. None if that is not enough.
        """
        if sum(self.items[at].tokens for at in staying) <= budget:
            return ()
        for untouched in (self.clipped_last | spared, spared):
            clips = self._clips_to_one_level(staying, budget, least, untouched)
            if clips is not None:
                return clips
        return None

    def _clips_to_one_level(
        self, staying: Sequence[int], budget: int, least: int, untouched: Set[int]
    ) -> tuple[PlannedClip, ...] | None:
        """Clip all but what is untouched to the highest level that fits; None if none does."""

        def fits(level: int) -> bool:
            return sum(self.size_at(at, level, untouched) for at in staying) <= budget

        if not fits(least):
            return None
        largest = max(self.items[at].tokens for at in staying)
        level = highest_that_fits(least, max(least, largest), fits)
        sizes = ((at, self.size_at(at, level, untouched)) for at in staying)
        return tuple(PlannedClip(at, size) for at, size in sizes if size < self.items[at].tokens)

    def _reach_back(self, plan: Compact, keeps_from: int) -> Compact:
        """Let more exchanges stay by showing their large messages short.

        A cut falls behind the exchange that no longer fits whole, often one large tool result, and
        all before it would leave with it. Words of users stay whole.
        """
        left = self.budgets["with_free_share"] - plan.at_most
        level = max(CLIP_TO, int(self.budget * SHORT))
        brought_back = self._find_more_to_keep(plan, keeps_from, left, level)
        if not brought_back:
            return plan
        clips = self._clips(brought_back, left, level, self.clipped_last)
        if clips is None:
            return plan
        evicted, kept = self.divide(brought_back[0])
        summary_tokens = plan.summary_tokens if evicted else KEEPS_STANDING
        if evicted and self.summary.never_larger:
            replaced = self.standing_summary + sum(self.items[at].tokens for at in evicted)
            summary_tokens = min(summary_tokens, replaced)
            if summary_tokens < self.summary.says_something:
                return plan
        wider = self.plan_for(evicted, kept, (*plan.clips, *clips), summary_tokens)
        frees_enough = wider.tokens - wider.at_most >= self.gain
        return replace(wider, planned_within=plan.planned_within) if frees_enough else plan

    def _find_more_to_keep(
        self, plan: Compact, keeps_from: int, room: int, level: int
    ) -> Sequence[int]:
        """Return the newest evicted messages, up to a legal cut, that fit if they are clipped."""
        newest_first = self._by_cut_newest_first(set(plan.evicted) - self.exchanges.orphans)
        earliest = max(keeps_from, self.first_leaving)
        if self.standing_summary > plan.summary_tokens:
            # A shorter summary than the one in force is only made if something leaves.
            earliest = max(keeps_from, self.first_leaving + 1)
        brought_back = 0  # how many of them
        used_tokens = 0
        for considered, at in enumerate(newest_first, 1):
            used_tokens += self.size_at(at, level, self.clipped_last)
            cut = self._leaves_with(at)
            if used_tokens > room or cut < earliest:
                break
            # A late result comes back with its call, and never gives a cut of its own.
            if at == cut and self.exchanges.cuts[cut]:
                brought_back = considered
        return newest_first[:brought_back][::-1]

    def _by_cut_newest_first(self, places: Set[int]) -> list[int]:
        """Order places by the last cut at which they stay, a late result before its call."""
        return sorted(places, key=lambda at: (self._leaves_with(at), at), reverse=True)

    # Plans

    def plan_for(
        self,
        evicted: Sequence[int],
        kept: Sequence[int],
        clips: tuple[PlannedClip, ...],
        summary_tokens: int,
    ) -> Compact:
        """Return the plan with these clips and a summary of this size, or with the one in view."""
        freed = sum(self.items[clip.place].tokens - clip.limit for clip in clips)
        kept_tokens = self.base + sum(self.items[at].tokens for at in kept)
        return Compact(
            cause="",
            evicted=tuple(evicted),
            clips=clips,
            summary_tokens=summary_tokens,
            tokens=self.tokens,
            at_most=kept_tokens - freed + (summary_tokens or self.standing_summary),
            budget=self.limit,
            summary_cap=self.summary.cap,
        )

    def smallest_plan(self, *, clip: bool) -> Compact:
        """Return the plan that evicts everything evictable, and clips whatever may be clipped.

        Of the user's newest message and of pinned ones an eighth of the budget is shown: a model
        that does not see what it is asked answers something else.
        """
        evicted, kept = self.divide(self.legal_cuts[-1])
        clips: list[PlannedClip] = []
        for at in kept if clip else ():
            size = self.size_at(at, self._least_shown(at))
            if size < self.items[at].tokens:
                clips.append(PlannedClip(at, size))
        least = self.summary.least
        needs_summary = bool(evicted) or self.standing_summary > least
        summary_tokens = least if needs_summary else KEEPS_STANDING
        return self.plan_for(evicted, kept, tuple(clips), summary_tokens)

    def _least_shown(self, at: int) -> int:
        """Return the size to which a message is clipped where nothing fits."""
        is_request = at in self.clipped_last and at in self.fixed
        return max(1, int(self.budget * LARGE)) if is_request else 1
