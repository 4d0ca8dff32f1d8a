"""LangMem's order: once enough has gathered, the oldest part is summarised.

The cut is the first one at which enough has gathered and the rest fits beside a summary. It is
moved on to the next legal cut, and never past the last exchange. If no cut brings the history below
the limit, it is clipped, or else as much leaves as may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus.core.items import Clip, Compact, Item, Keep, Plan, Stuck, Window, spans_of
from conspectus.core.policy import Policy
from conspectus.core.room import GIANT, Room

WORTH = 10
"""A plan that stays above the limit must save at least one part in this many of the history."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The requested limits, in tokens.

    `most` is the size of the result, `reach` the size that must have gathered, `share` the room for
    the text of the summary, `frame` the size of an empty summary message, `floor` the least useful
    room of one, to which `share` gives way, and `slack` the excess of a whole message over its
    parts.
    """

    most: int
    reach: int
    share: int
    frame: int
    floor: int
    slack: int = 0


def oldest_first(items: Sequence[Item], limits: Limits, *, clip: bool) -> Plan:
    """Decide what to do with one history; deterministic.

    `items` are leading system messages, a standing summary if any, and the rest. Clips (`clip`)
    need an archive for their originals. `at_most` of a `Compact` is above its `budget` if even that
    is not enough.
    """
    return _Cutting(items, limits).plan(clip)


class _Cutting(Room):
    def __init__(self, items: Sequence[Item], limits: Limits) -> None:
        tokens = sum(item.tokens for item in items)
        super().__init__(items, Policy(), Window(limits.most), tokens=tokens, words=True)
        self.limits = limits
        self.legal = [cut for cut in range(1, len(items)) if self.cuts[cut]]
        self.kept = self.tokens - self.standing  # the size if nothing left
        first = items[0] if items else None
        self.system = first.tokens if first is not None and first.role == "system" else 0
        may_leave = [
            0 if item.summary or i in self.fixed else item.tokens for i, item in enumerate(items)
        ]
        self.gathered = list(accumulate(may_leave))

    def plan(self, clip: bool) -> Plan:
        limits = self.limits
        over = self.tokens > limits.most
        reached = self.kept - self.system >= limits.reach
        enough = next((i for i, n in enumerate(self.gathered) if n >= limits.reach), None)
        if enough is None and not (reached and over):
            return Keep("less has gathered than is asked for", self.tokens)
        at = self._enough_leaves(enough)
        if at is None and not over:
            return Keep("what would stay leaves no room for a summary", self.tokens)
        # Over the limit, as much leaves as may if the requested part is not enough.
        cuts = [cut for cut in self.legal if at is not None and cut > at] or self.legal[-1:]
        for share in self._shares():
            for cut in cuts:
                if self._left(cut - 1) + share > limits.most:
                    continue
                if found := self._at(cut, share):
                    return found
        if clip and (found := self._clipped(cuts)):
            return found
        return self._best(cuts[-1] if cuts else 0)

    def _enough_leaves(self, enough: int | None) -> int | None:
        """Find the first item with which enough leaves, and the rest fits."""
        room = self.limits.most - self.limits.share
        rest = () if enough is None else range(enough, len(self.items))
        return next((i for i in rest if self._left(i) <= room), None)

    def _left(self, last: int) -> int:
        """Return the tokens that stay if everything that may leaves up to item `last`."""
        return self.kept - self.gathered[last]

    def _shares(self) -> Iterator[int]:
        """Yield the room for the summary message: the one asked for, then less."""
        # Never 0: messages that leave without a summary would be lost.
        whole, floor = max(1, self.limits.share, self.limits.frame), max(1, self.limits.floor)
        yield from dict.fromkeys((whole, min(whole, max(floor, whole // 2)), min(whole, floor)))

    def _evict(self, cut: int) -> tuple[int, ...]:
        """Return the items that leave with this cut; none, orphans included, without one."""
        return self.divide(cut).evict if cut else ()

    def _at(self, cut: int, share: int, clips: tuple[Clip, ...] = ()) -> Compact | None:
        """Cut here; the summary may take more than its share if there is space."""
        evict = self._evict(cut)
        if not evict and not clips:
            return None
        limits = self.limits
        kept = self.kept - sum(self.items[i].tokens for i in evict)
        kept -= sum(self.items[clip.index].tokens - clip.limit for clip in clips)
        room = 0
        if evict:
            most = limits.share + limits.frame + limits.slack if share >= limits.share else share
            room = max(share, min(most, limits.most - kept))
        at_most = kept + (room if evict else self.standing)
        cause = f"{limits.reach:,} tokens have gathered"
        return Compact(cause, spans_of(evict), clips, room, self.tokens, at_most, limits.most)

    def _clipped(self, cuts: Sequence[int]) -> Compact | None:
        """Clip the rest: first without a summary, then as little as fits."""
        limits, quarter = self.limits, self.limits.most // GIANT
        if found := self._level(0, max(self.standing, limits.share), quarter):
            return found
        for level in (quarter, 1):
            for share in self._shares():
                for cut in dict.fromkeys((*cuts[:1], *cuts[-1:])):
                    if found := self._level(cut, share, level):
                        return found
        return None

    def _level(self, cut: int, share: int, least: int) -> Compact | None:
        """Clip the largest items to one level, as high as fits and at least `least`."""
        gone = set(self._evict(cut))
        stay = [i for i, m in enumerate(self.items) if i not in gone and not m.summary]
        clips = self.clips(stay, self.limits.most - share, least)
        return None if clips is None else self._at(cut, share, clips)

    def _best(self, cut: int) -> Plan:
        limits = self.limits
        found = self._at(cut, next(self._shares()))
        needed = found.at_most if found else self.tokens
        if found is not None and self.tokens - needed >= self.tokens // WORTH:
            return found
        if self.tokens <= limits.most:
            return Keep("a summary would not make it smaller", self.tokens)
        return Stuck(too_large(needed, limits.most), self.tokens, needed, limits.most)


def too_large(needed: int, most: int) -> str:
    """Say that a history does not fit, and what to do."""
    return (
        f"what must stay in view, with its summary, takes up to {needed:,} tokens and max_tokens "
        f"is {most:,}: raise max_tokens, shorten the system prompt or the newest message, or pass "
        "archive=, so that large messages can be clipped"
    )
