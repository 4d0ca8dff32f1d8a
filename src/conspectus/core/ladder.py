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
from conspectus.core.plans import Clip, Compact, Keep
from conspectus.core.policy import LARGEST_SUMMARY, REARM

BOUNDLESS = 2**62  # Tokens of an unknown window

FREE = 0.4
"""A compaction leaves this share of the budget free, or of the size at which the trigger fires, so
that the next one is far away."""

BESIDE = 0.5
"""Where what must stay takes more than a fifth of that size, this share of the rest may be taken:
notes on histories with long instructions are worth more than a later compaction."""

CLIP_TO = 200  # Tokens of a stale result that is clipped

GIANT = 4  # A message of more than one part in so many of the budget is a giant
LARGE = 8  # One of more than one part in so many is large
SHORT = 16  # The least that is shown of a message so that more may stay: one part in so many

Room = Literal["with_free_share", "with_room_to_grow", "whole_budget"]
Cut = Literal["where_keep_asks", "first_that_fits", "last"]
Clippable = Literal["nothing", "giants", "large", "all"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to fit."""

    room: Room
    # The summary gets at least this part of its largest size; at 0 its least useful size.
    summary: float
    cut: Cut
    clips: Clippable = "giants"  # what may be shown short
    # messages that no cut can remove, and that the user wrote or pinned, are shown whole
    spares_users: bool = False
    least_summary_only: bool = False  # the rest of the room is for what is shown short


LADDER = (
    # less of the newest history is kept
    Rung("with_free_share", summary=1, cut="first_that_fits", spares_users=True),
    # large results are shown short
    Rung("with_free_share", summary=1, cut="first_that_fits", clips="large", spares_users=True),
    # the summary gets half of its size, or more
    Rung("with_free_share", summary=0.5, cut="first_that_fits", spares_users=True),
    # the summary gets its least size, and large results are shown short
    Rung("with_free_share", summary=0, cut="first_that_fits", clips="large", spares_users=True),
    # less is free than a compaction aims at
    Rung("with_room_to_grow", summary=0.5, cut="last", spares_users=True),
    # the user's newest message and pinned ones are shown short
    Rung("with_free_share", summary=0.5, cut="first_that_fits"),
    # both: less is free, and the summary gets its least size
    Rung("with_room_to_grow", summary=0, cut="last"),
    # no room is left to grow
    Rung("whole_budget", summary=0, cut="first_that_fits"),
    # all that may be shown short is, and what must stay gets what the least summary leaves
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
    # all that may be shown short is
    Rung("whole_budget", summary=0, cut="last", clips="all"),
)
"""LangMem's order: the oldest part leaves, and nothing is clipped as long as that is enough."""


class Division(NamedTuple):
    """A history at one cut: places of what leaves, and of what stays; summaries are in neither."""

    leaving: Sequence[int]
    staying: Sequence[int]


@dataclass(frozen=True, eq=False)
class Ladder:
    """The arithmetic of one history, and the rungs that make it fit. All sizes are tokens."""

    items: Sequence[Item]  # the history, a summary in force included
    limit: int | None  # for all messages; None for no limit
    _: KW_ONLY
    longest: int = 0  # the largest summary message that is asked for
    floor: int = 1  # the least useful one
    asked: int = 0  # the summary of which a rung asks a part; 0 for `longest`
    cap: int | None = None  # the largest that a caller has allowed
    gain: int = 0  # that a plan must free
    free: int = LARGEST_SUMMARY  # a summary up to this size may exceed half of what it replaces
    clip_users: bool = True  # messages in the user's role may be clipped
    base: int = 0  # that any list of messages takes beside them
    fires_at: int | None = None  # at which the trigger fires; None if it counts no tokens
    expected: int = 0  # that will come until the plan takes effect
    notes_share: float = 1  # the most of the room beside what stays that the summary takes
    never_larger: bool = False  # the summary must be smaller than what it replaces, in any case
    least_frame: int = 0  # a summary message of less says nothing

    # What the history is made of

    @cached_property
    def budget(self) -> int:
        """The room for all messages."""
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
    def least_summary(self) -> int:
        """The least useful size of the summary, where its largest is not less."""
        return max(1, min(self.floor, self.longest))

    @cached_property
    def exchanges(self) -> Exchanges:
        """Tool calls with their results."""
        return match_calls(self.items)

    @cached_property
    def legal_cuts(self) -> list[int]:
        """The places before which the history may be divided; the first if there is none."""
        return [cut for cut in range(len(self.items)) if self.exchanges.cuts[cut]] or [0]

    @cached_property
    def fixed(self) -> frozenset[int]:
        """The places of what never leaves."""
        fixed = must_stay(self.items, self.exchanges)
        if sum(self.items[at].tokens for at in fixed) > self.budget // 2:
            return must_stay(self.items, self.exchanges, news=False)
        return fixed

    @cached_property
    def fixed_tokens(self) -> int:
        """The size of what never leaves."""
        return self.base + sum(self.items[at].tokens for at in self.fixed)

    @cached_property
    def never_clipped(self) -> frozenset[int]:
        """The places of what is shown whole or not at all."""
        if self.clip_users:
            return self.exchanges.whole
        in_users_role = (at for at, item in enumerate(self.items) if item.role == "user")
        return self.exchanges.whole.union(in_users_role)

    @cached_property
    def clipped_last(self) -> frozenset[int]:
        """The places of what users wrote or pinned, which is clipped after all else."""
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
        """The first cut at which something leaves; orphans leave at any."""
        return 0 if self.exchanges.orphans else self.first_leaving + 1

    @cached_property
    def kept_at(self) -> list[int]:
        """The size of what stays at each cut, shown whole."""
        return self.sizes_at_cuts()

    # How much room there is

    @cached_property
    def next_compaction_at(self) -> int:
        """The size at which the next compaction comes: the budget, or the trigger's."""
        return min(self.budget, self.fires_at or self.budget)

    @cached_property
    def rooms(self) -> dict[Room, int]:
        """The size of the history after a compaction, by the room that a rung asks for."""
        basis = self.next_compaction_at
        aim = int(basis * (1 - FREE)) - self.expected
        if self.fixed_tokens < basis:
            beside = int((basis - self.fixed_tokens) * BESIDE)
            aim = max(aim, self.fixed_tokens + beside - self.expected)
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
        leaving: list[int] = []
        staying: list[int] = []
        for at, item in enumerate(self.items):
            if item.summary:
                continue
            leaves = self._leaves_at(at, cut) and at not in self.fixed
            (leaving if leaves else staying).append(at)
        return Division(leaving, staying)

    def _leaves_at(self, at: int, cut: int) -> bool:
        """Tell whether a message that may leave does so at a cut."""
        return self._leaves_with(at) < cut or at in self.exchanges.orphans

    def _leaves_with(self, at: int) -> int:
        """Return the place of the message with which this one leaves: its own, or its call's."""
        return min(at, self.exchanges.late.get(at, at))

    def sizes_at_cuts(self, level: int = BOUNDLESS, spared: Set[int] = frozenset()) -> list[int]:
        """Return, for every cut, what stays, clipped to `level` where that is allowed."""
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
        """Return the size of an item if all that may be are clipped to `level`."""
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
        cuts: dict[Cut, list[int]] = {
            "where_keep_asks": [keeps_from] if keeps_from >= self.first_cut else [],
            "first_that_fits": later,
            "last": later[-1:],
        }
        for rung in rungs:
            if rung.clips == "all" and not clip:
                return None
            for plan in self._plans_of(rung, cuts[rung.cut], clip=clip):
                if isinstance(plan, Compact) and clip and rung.room == "with_free_share":
                    return self._reaching_back(plan, keeps_from)
                return plan
        return None

    def _plans_of(self, rung: Rung, cuts: Sequence[int], *, clip: bool) -> Iterator[Compact | Keep]:
        """Yield the plans of one rung that fit."""
        room = self.rooms[rung.room]
        level = self._clip_level(rung.clips) if clip else BOUNDLESS
        spared = self._spared_by(rung)
        sizes = self.sizes_at_cuts(level, spared)
        for cut in cuts:
            share = self._summary_share(cut, sizes[cut], room, rung.summary)
            if share is None:
                continue
            if rung.least_summary_only:
                share = min(share, self.least_summary)
            plan = self._fit(self.divide(cut), share, room, level, spared)
            if isinstance(plan, Compact) and room < BOUNDLESS // 2:
                plan = replace(plan, room=room)
            if plan is not None:
                yield plan

    def _spared_by(self, rung: Rung) -> frozenset[int]:
        """Return the places of what a rung shows whole."""
        return self.clipped_last & self.fixed if rung.spares_users else frozenset()

    def _clip_level(self, clips: Clippable) -> int:
        """Return the size to which messages may be clipped."""
        levels: dict[Clippable, int] = {
            "nothing": BOUNDLESS,
            "giants": self.budget // GIANT,
            "large": self.budget // LARGE,
            "all": 1,
        }
        return levels[clips]

    def _summary_share(self, cut: int, staying: int, room: int, part: float) -> int | None:
        """Return the size of the summary at a cut; 0 for the one in force; None for too little.

        `staying` is the size of what stays, clipped as it may be.
        """
        left = room - staying
        if cut >= self.first_cut:
            largest = self._largest_summary(cut, staying)
        elif self.standing_summary <= left:
            return 0
        elif self.tokens <= self.budget:
            return None  # notes are not made shorter where nothing comes to them
        else:
            largest = self.longest
        share = min(largest, left)
        if self.never_larger and share < self.least_frame:
            return None
        asked = max(self.least_summary, int((self.asked or self.longest) * part))
        return share if share >= min(largest, asked) else None

    def _largest_summary(self, cut: int, staying: int) -> int:
        """Return the largest summary of what leaves at a cut."""
        replaced = self.tokens - self.kept_at[cut]
        if self.gain:
            replaced = self._half_of(replaced)
        if not self.never_larger:
            replaced = max(self.least_summary, replaced)
        largest = min(self.longest, replaced)
        if staying < self.next_compaction_at < BOUNDLESS:
            beside = int((self.next_compaction_at - staying) * self.notes_share)
            largest = min(largest, max(self.least_summary, beside))
        return largest

    def _half_of(self, replaced: int) -> int:
        """Return half of what leaves, if it is much: the rest is free until the next compaction."""
        return max(replaced // 2, min(self.free, replaced - self.gain))

    def _fit(
        self, divided: Division, share: int, room: int, level: int, spared: Set[int]
    ) -> Compact | Keep | None:
        """Return the plan for a division with a summary of `share` tokens; None if it cannot fit.

        Nothing is clipped below `level`. Where too little would be freed, the summary gets less.
        """
        leaving, staying = divided
        clips = self._clips(staying, self._room_beside(room, share), level, spared)
        if clips is None or not (leaving or clips or share):
            return None
        plan = self.plan_for(leaving, staying, clips, share)
        lacking = self.gain - (plan.tokens - plan.at_most)
        if not self.gain or lacking <= 0:
            return plan
        if share - lacking < self.least_summary:
            return Keep("a compaction would free too little", self.tokens)
        return replace(plan, summary_tokens=share - lacking, at_most=plan.at_most - lacking)

    def _room_beside(self, room: int, share: int) -> int:
        """Return the room for messages beside a summary of `share` tokens, or the one in force."""
        return room - self.base - (share or self.standing_summary)

    def _clips(
        self, staying: Sequence[int], room: int, least: int, spared: Set[int]
    ) -> tuple[Clip, ...] | None:
        """Clip the largest items to one level, as high as fits and at least `least`.

        Those of the user and pinned ones are clipped only if the others are not enough, and
        `spared` ones never. None if that is not enough.
        """
        if sum(self.items[at].tokens for at in staying) <= room:
            return ()
        for untouched in (self.clipped_last | spared, spared):
            clips = self._clips_to_one_level(staying, room, least, untouched)
            if clips is not None:
                return clips
        return None

    def _clips_to_one_level(
        self, staying: Sequence[int], room: int, least: int, untouched: Set[int]
    ) -> tuple[Clip, ...] | None:
        """Clip all but what is untouched to the highest level that fits; None if none does."""

        def fits(level: int) -> bool:
            return sum(self.size_at(at, level, untouched) for at in staying) <= room

        if not fits(least):
            return None
        largest = max(self.items[at].tokens for at in staying)
        level = highest_that_fits(least, max(least, largest), fits)
        sizes = ((at, self.size_at(at, level, untouched)) for at in staying)
        return tuple(Clip(at, size) for at, size in sizes if size < self.items[at].tokens)

    def _reaching_back(self, plan: Compact, keeps_from: int) -> Compact:
        """Let more exchanges stay by showing their large messages short.

        A cut falls behind the exchange that no longer fits whole, often one large tool result, and
        all before it would leave with it. Words of users stay whole.
        """
        left = self.rooms["with_free_share"] - plan.at_most
        least = max(CLIP_TO, self.budget // SHORT)
        newest_first = sorted(set(plan.evicted) - self.exchanges.orphans, reverse=True)
        # A shorter summary than the one in force is only made if something leaves.
        needs_one = self.standing_summary > plan.summary_tokens
        earliest = max(keeps_from, self.first_leaving + needs_one)
        staying_more = 0
        taken = 0
        for count, at in enumerate(newest_first, 1):
            taken += self.size_at(at, least, self.clipped_last)
            if taken > left or at < earliest:
                break
            if self.exchanges.cuts[at]:
                staying_more = count
        if not staying_more:
            return plan
        brought_back = newest_first[:staying_more][::-1]
        clips = self._clips(brought_back, left, least, self.clipped_last)
        if clips is None:
            return plan
        leaving, staying = self.divide(brought_back[0])
        share = plan.summary_tokens if leaving else 0
        wider = self.plan_for(leaving, staying, (*plan.clips, *clips), share)
        frees_enough = wider.tokens - wider.at_most >= self.gain
        return replace(wider, room=plan.room) if frees_enough else plan

    # Plans

    def plan_for(
        self,
        leaving: Sequence[int],
        staying: Sequence[int],
        clips: tuple[Clip, ...],
        share: int,
    ) -> Compact:
        """Return the plan with these clips and a summary of `share` tokens; 0 keeps the old one."""
        freed = sum(self.items[clip.index].tokens - clip.limit for clip in clips)
        kept = self.base + sum(self.items[at].tokens for at in staying)
        after = kept - freed + (share or self.standing_summary)
        return Compact("", (*leaving,), clips, share, self.tokens, after, self.limit, self.cap)

    def smallest(self, *, clip: bool) -> Compact:
        """Return the plan by which all leaves that may, and all is clipped that may be.

        Of the user's newest message and of pinned ones an eighth of the budget is shown: a model
        that does not see what it is asked answers something else.
        """
        leaving, staying = self.divide(self.legal_cuts[-1])
        clips: list[Clip] = []
        for at in staying if clip else ():
            size = self.size_at(at, self._least_shown(at))
            if size < self.items[at].tokens:
                clips.append(Clip(at, size))
        needs_summary = bool(leaving) or self.standing_summary > self.least_summary
        share = self.least_summary if needs_summary else 0
        return self.plan_for(leaving, staying, tuple(clips), share)

    def _least_shown(self, at: int) -> int:
        """Return the size to which a message is clipped where nothing fits."""
        is_request = at in self.clipped_last and at in self.fixed
        return max(1, self.budget // LARGE) if is_request else 1
