"""The ladder: what leaves, what is clipped, and the order in which things give way to fit."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import KW_ONLY, dataclass, replace
from itertools import accumulate
from typing import Literal

from conspectus.core.items import Clip, Compact, Item, Keep, exchanges, highest, must_stay
from conspectus.core.policy import LARGEST_SUMMARY, REARM

BOUNDLESS = 2**62  # Tokens of an unknown window

# A compaction leaves this share of the budget free, or of the size at which the trigger fires, so
# that the next one is far away.
FREE = 0.4
# Where what must stay takes more than a fifth of it, this share of the rest may be taken: notes on
# histories with long instructions are worth more than a later compaction.
BESIDE = 0.5
CLIP_TO = 200  # Tokens of a stale result that is clipped
# A message of more than one part in four of the budget is a giant, of more than one part in eight a
# large one. One part in sixteen is the least that is shown of a message so that more may stay in
# view.
GIANT, LARGE, SHORT = 4, 8, 16


@dataclass(frozen=True, slots=True)
class Step:
    """One way to fit."""

    # the room: the aim, the budget with room to grow, or all of it
    within: Literal["aim", "roomy", "budget"]
    # the part of its largest size that the summary gets at least; at 0 its least size
    summary: float
    # where `keep` asks, at the first later cut that fits, or at the last
    cut: Literal["keep", "later", "last"]
    clips: Literal["none", "giants", "large", "all"] = "giants"  # what may be clipped
    whole: bool = False  # messages of the user that no cut can remove stay whole


LADDER = (
    Step("aim", 1, "later", whole=True),  # less is kept
    Step("aim", 1, "later", "large", whole=True),  # large results are shown short
    Step("aim", 0.5, "later", whole=True),  # the summary gets half of its room, or more
    Step("aim", 0, "later", "large", whole=True),  # the summary gets the least
    Step("roomy", 0.5, "last", whole=True),  # less is free than a compaction aims at
    Step("aim", 0.5, "later"),  # the user's newest message and pinned ones are clipped
    Step("roomy", 0, "last"),
    Step("budget", 0, "later"),  # no room is left to grow
    Step("budget", 0, "last", "all"),  # all that may be clipped is
)
"""The order in which things give way: the first step that fits is the plan."""

# The same where the size of `keep` is a caller's own choice: it gives way for what is to be free
# after a compaction, and not where even that is of no avail.
LADDER_BY_KEEP = (Step("aim", 0.5, "keep"), *LADDER[:4], Step("roomy", 0, "keep"), *LADDER[4:])


# LangMem's order: the oldest part leaves, and nothing is clipped as long as that is enough.
OLDEST_FIRST = (
    Step("budget", 1, "later", "none"),
    Step("budget", 0.5, "later", "none"),
    Step("budget", 0, "later", "none"),
    Step("budget", 0, "last", "all"),
)


@dataclass
class Ladder:
    """The arithmetic of one history, and the steps that make it fit."""

    items: Sequence[Item]  # the history, a standing summary included
    limit: int | None  # tokens for all messages; None for no limit
    _: KW_ONLY
    longest: int = 0  # the most tokens of the summary message
    floor: int = 1  # the fewest useful ones
    asked: int = 0  # tokens of it of which a step asks a part; 0 for `longest`
    cap: int | None = None  # the most tokens that a caller has set for it
    gain: int = 0  # tokens that a plan must free
    free: int = LARGEST_SUMMARY  # tokens that the summary may take of more than half of what leaves
    clip_users: bool = True  # messages of the user may be clipped
    base: int = 0  # tokens that any list of messages takes beside them
    fires_at: int | None = None  # tokens at which the trigger fires; None if it counts none
    expected: int = 0  # tokens that will come until the plan takes effect
    # the most of the room beside what stays that the summary takes
    notes_share: float = 1
    never_larger: bool = False  # the summary must be smaller than what it replaces, in any case
    least_frame: int = 0  # tokens of a summary message below which it says nothing

    def __post_init__(self) -> None:
        items, budget = self.items, BOUNDLESS if self.limit is None else self.limit
        self.budget, self.floor = budget, max(1, min(self.floor, self.longest))
        self.ex = exchanges(items)
        self.cuts = self.ex.cuts  # whether it may be cut before each item
        self.legal = [cut for cut in range(len(items)) if self.cuts[cut]] or [0]
        self.fixed = must_stay(items, self.ex)  # what never leaves
        if sum(items[i].tokens for i in self.fixed) > budget // 2:
            self.fixed = must_stay(items, self.ex, news=False)
        in_users_role = frozenset(i for i, item in enumerate(items) if item.role == "user")
        self.whole = self.ex.whole | (frozenset() if self.clip_users else in_users_role)
        # what is clipped after all else
        users = frozenset(i for i in in_users_role if not items[i].hosts)
        self.theirs = users | {i for i, item in enumerate(items) if item.pinned}
        self.tokens = self.base + sum(item.tokens for item in items)
        # tokens of summaries, which the next one replaces
        self.standing = sum(item.tokens for item in items if item.summary)
        free = (i for i, m in enumerate(items) if not m.summary and i not in self.fixed)
        self.first = next(free, len(items))  # that may leave
        self.first_cut = 0 if self.ex.orphans else self.first + 1  # at which something leaves
        self.kept = self.sizes()
        self.basis = min(budget, self.fires_at or budget)
        aim = int(self.basis * (1 - FREE)) - self.expected
        must_stay_tokens = self.base + sum(items[i].tokens for i in self.fixed)
        if must_stay_tokens < self.basis:
            beside = int((self.basis - must_stay_tokens) * BESIDE)
            aim = max(aim, must_stay_tokens + beside - self.expected)
        self.rooms = {"aim": min(budget, aim), "roomy": int(budget / REARM), "budget": budget}

    def divide(self, cut: int) -> tuple[list[int], list[int]]:
        """Return the items that leave at a cut, and those that stay.

        A summary is replaced, an orphan leaves anyway, and a late second result that was read stays
        as long as its call does.
        """
        leave, stay = list[int](), list[int]()
        for i, item in enumerate(self.items):
            if not item.summary:
                before = min(i, self.ex.late.get(i, i)) < cut or i in self.ex.orphans
                (leave if before and i not in self.fixed else stay).append(i)
        return leave, stay

    def sizes(self, level: int = BOUNDLESS, spared: Set[int] = frozenset()) -> list[int]:
        """Return, for every cut, the tokens that stay, clipped to `level` where that is allowed."""
        always, movable = self.base, [0] * len(self.items)
        for i, item in enumerate(self.items):
            if item.summary:
                continue
            if i in self.fixed:
                always += self.size(i, level, spared)
            elif i not in self.ex.orphans:
                movable[self.ex.late.get(i, i)] += self.size(i, level, spared)
        return [always + rest for rest in accumulate(reversed(movable), initial=0)][::-1]

    def size(self, i: int, level: int, spared: Set[int] = frozenset()) -> int:
        """Return the size of item `i` if all that may be are clipped to `level`."""
        tokens = self.items[i].tokens
        if tokens <= level or i in spared or i in self.whole:
            return tokens
        return max(self.items[i].least, level)

    def clips(
        self, stay: Sequence[int], room: int, least: int, spared: Set[int] = frozenset()
    ) -> tuple[Clip, ...] | None:
        """Clip the largest items to one level, as high as fits and at least `least`.

        Those of the user and pinned ones are clipped only if the others are not enough, and
        `spared` ones never. None if that is not enough.
        """
        sizes = [self.items[i].tokens for i in stay]
        if sum(sizes) <= room:
            return ()
        for never in (self.theirs | spared, spared):

            def fits(level: int, never: Set[int] = never) -> bool:
                return sum(self.size(i, level, never) for i in stay) <= room

            if fits(least):
                level = highest(least, max([least, *sizes]), fits)
                short = ((i, self.size(i, level, never)) for i in stay)
                return tuple(Clip(i, size) for i, size in short if size < self.items[i].tokens)
        return None

    def climb(self, steps: Sequence[Step], wanted: int, *, clip: bool) -> Compact | Keep | None:
        """Return the plan of the first step that fits; a `Keep` if it would free too little."""
        later = [cut for cut in self.legal if cut >= wanted] or self.legal[-1:]
        keep = [wanted] if wanted >= self.first_cut else []
        cuts = {"keep": keep, "later": later, "last": later[-1:]}
        giant = self.budget // GIANT if clip else BOUNDLESS
        large = self.budget // LARGE if clip else BOUNDLESS
        lasting, levels = (
            self.theirs & self.fixed,
            {"none": BOUNDLESS, "giants": giant, "large": large, "all": 1},
        )
        for step in steps:
            if step.clips == "all" and not clip:
                break
            level = levels[step.clips]
            spared = lasting if step.whole else frozenset[int]()
            room, sizes = self.rooms[step.within], self.sizes(level, spared)
            for cut in cuts[step.cut]:
                share = self._share(cut, sizes[cut], room, step.summary)
                if share is None:
                    continue
                plan = self.fit(self.divide(cut), share, room, level, spared)
                if isinstance(plan, Compact) and room < BOUNDLESS // 2:
                    plan = replace(plan, room=room)
                if isinstance(plan, Compact) and clip and step.within == "aim":
                    return self._reaching_back(plan, wanted)
                if plan is not None:
                    return plan
        return None

    def _share(self, cut: int, staying: int, room: int, part: float) -> int | None:
        """Return the tokens of the summary at a cut; 0 for a standing one; None for too few.

        `staying` are the tokens of what stays, clipped as it may be.
        """
        left = room - staying
        if cut >= self.first_cut:
            replaced = self.tokens - self.kept[cut]
            if self.gain:  # half of what leaves stays free until the next compaction, if it is much
                replaced = max(replaced // 2, min(self.free, replaced - self.gain))
            most = min(self.longest, replaced if self.never_larger else max(self.floor, replaced))
            if staying < self.basis < BOUNDLESS:
                beside = int((self.basis - staying) * self.notes_share)
                most = min(most, max(self.floor, beside))
        elif self.standing <= left:
            return 0
        elif self.tokens <= self.budget:
            return None  # notes are not made shorter where nothing comes to them
        else:
            most = self.longest
        share = min(most, left)
        if self.never_larger and share < self.least_frame:
            return None
        least = max(self.floor, int((self.asked or self.longest) * part))
        return share if share >= min(most, least) else None

    def fit(
        self,
        divided: tuple[Sequence[int], Sequence[int]],
        share: int,
        room: int,
        level: int,
        spared: Set[int] = frozenset(),
    ) -> Compact | Keep | None:
        """Return the plan for what leaves and stays, with a summary of `share` tokens, or None.

        Nothing is clipped below `level`. Where too little would be freed, the summary gets less.
        """
        leave, stay = divided
        clips = self.clips(stay, room - self.base - (share or self.standing), level, spared)
        if clips is None or not (leave or clips or share):
            return None
        plan = self.plan_for(leave, stay, clips, share)
        lacking = self.gain - (plan.tokens - plan.at_most)
        if not self.gain or lacking <= 0:
            return plan
        if share - lacking < self.floor:
            return Keep("a compaction would free too little", self.tokens)
        return replace(plan, summary_tokens=share - lacking, at_most=plan.at_most - lacking)

    def plan_for(
        self, leave: Sequence[int], stay: Sequence[int], clips: tuple[Clip, ...], share: int
    ) -> Compact:
        """Return the plan with these clips and a summary of `share` tokens."""
        freed = sum(self.items[clip.index].tokens - clip.limit for clip in clips)
        kept = self.base + sum(self.items[i].tokens for i in stay)
        after = kept - freed + (share or self.standing)
        return Compact("", (*leave,), clips, share, self.tokens, after, self.limit, self.cap)

    def smallest(self, *, clip: bool) -> Compact:
        """Return the plan by which all leaves that may, and all is clipped that may be.

        Of the user's newest message and of pinned ones an eighth of the budget is shown: a model
        that does not see what it is asked answers something else.
        """
        leave, stay = self.divide(self.legal[-1])
        lasting = self.theirs & self.fixed
        clips = list[Clip]()
        for i in stay if clip else ():
            size = self.size(i, max(1, self.budget // LARGE) if i in lasting else 1)
            if size < self.items[i].tokens:
                clips.append(Clip(i, size))
        share = self.floor if leave or self.standing > self.floor else 0
        return self.plan_for(leave, stay, tuple(clips), share)

    def _reaching_back(self, plan: Compact, wanted: int) -> Compact:
        """Let more exchanges stay by showing their large messages short.

        A cut falls behind the exchange that no longer fits whole, often one large tool result, and
        all before it would leave with it. Words of users stay whole.
        """
        left, least = self.rooms["aim"] - plan.at_most, max(CLIP_TO, self.budget // SHORT)
        leaving = sorted(set(plan.evicted) - self.ex.orphans, reverse=True)
        shrinks = self.standing > plan.summary_tokens  # a summary does so only if something leaves
        taken, more = 0, 0
        for count, i in enumerate(leaving, 1):
            taken += self.size(i, least, self.theirs)
            if taken > left or i < max(wanted, self.first + shrinks):
                break
            more = count if self.cuts[i] else more
        clips = self.clips(leaving[:more][::-1], left, least, self.theirs)
        if not more or clips is None:
            return plan
        leave, stay = self.divide(leaving[more - 1])
        share = plan.summary_tokens if leave else 0
        wider = replace(self.plan_for(leave, stay, (*plan.clips, *clips), share), room=plan.room)
        return wider if wider.tokens - wider.at_most >= self.gain else plan
