"""Simulate the prefix cache of a provider.

Nothing here reads a clock: the caller gives the time of each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from conspectus.errors import PolicyError

MINUTES = 60.0
FIVE_MINUTES, HALF_HOUR, HOUR = 5 * MINUTES, 30 * MINUTES, 60 * MINUTES
"""Lifetimes in seconds that providers offer."""


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a request, in the order of a provider: tools, system, messages.

    Attributes:
        text: all that the provider compares.
        tokens: its size.
        lifetime: seconds of a breakpoint at its end (`cache_control`); None for no breakpoint.
        run: neighbours with the same name share one position of a look-back; empty for none.
    """

    text: str
    tokens: int
    lifetime: float | None = None
    run: str = ""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of one provider's cache.

    Attributes:
        least: tokens of the shortest prefix that is cached.
        step: tokens; reads come in multiples of this beyond `least`.
        breakpoints: maximum of one request; 0 for a cache that keeps every prefix by itself.
        moving: seconds of a breakpoint that the provider sets at the end of each request.
        lifetime: seconds of a prefix without a breakpoint; each read starts them anew.
        look_back: positions up to a breakpoint that are searched for an entry; None for all.
        source: the provider's page.
    """

    least: int
    step: int = 1
    breakpoints: int = 0
    moving: float | None = None
    lifetime: float = FIVE_MINUTES
    look_back: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Input tokens of one request; the four add up to all of them.

    Attributes:
        read: from the cache.
        written: for at most half an hour.
        written_hour: for an hour.
        plain: neither read nor written.
    """

    read: int = 0
    written: int = 0
    written_hour: int = 0
    plain: int = 0

    @property
    def input(self) -> int:
        """Return all tokens of the input."""
        return self.read + self.written + self.written_hour + self.plain


class PrefixCache:
    """The cache of one provider for one caller.

    Example:
        >>> cache = PrefixCache(CacheRules(least=1_024, step=128))
        >>> prompt = [Block("instructions", 2_006)]
        >>> cache.request(prompt, at=0.0)
        CacheUse(read=0, written=0, written_hour=0, plain=2006)
        >>> cache.request(prompt, at=60.0)
        CacheUse(read=1920, written=0, written_hour=0, plain=86)
    """

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._ends: dict[int, tuple[float, float]] = {}
        self._whole: list[tuple[Sequence[Block], float]] = []

    def request(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Send a request, and return its use of the cache.

        Args:
            blocks: of its input, in order.
            at: seconds since any moment; never less than at the request before.

        Raises:
            PolicyError: there are too many breakpoints, or one of a longer lifetime stands behind a
                shorter one.
        """
        if self._rules.breakpoints or self._rules.moving is not None:
            return self._marked(blocks, at)
        return self._automatic(blocks, at)

    def _automatic(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Keep every prefix, and read the longest known one."""
        rules = self._rules
        size = sum(block.tokens for block in blocks)
        self._whole = [(known, end) for known, end in self._whole if end >= at]
        same = [_in_common(known, blocks) for known, _ in self._whole]
        read = max((tokens for _, tokens in same), default=0)
        read = 0 if read < rules.least else read - (read - rules.least) % rules.step
        if size >= rules.least:
            pairs = zip(self._whole, same, strict=True)
            longer = [one for one, (count, _) in pairs if count < len(one[0])]
            self._whole = [*longer, (tuple(blocks), at + rules.lifetime)]
        return CacheUse(read=read, plain=size - read)

    def _marked(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Keep prefixes at breakpoints alone, and search backwards from there."""
        rules = self._rules
        if rules.moving is not None and blocks:
            blocks = [*blocks[:-1], replace(blocks[-1], lifetime=rules.moving)]
        marks = [place for place, block in enumerate(blocks) if block.lifetime is not None]
        self._check(blocks, marks)
        names, sizes = _prefixes(blocks)
        live = {name: end for name, end in self._ends.items() if end[0] >= at}
        places = (n for mark in reversed(marks) for n in _behind(blocks, mark, rules.look_back))
        hit = next((place for place in places if names[place] in live), None)
        read = 0 if hit is None else sizes[hit]
        kept = [mark for mark in marks if sizes[mark] >= rules.least]
        if hit is not None:
            for place in {hit, *(mark for mark in kept if mark <= hit)}:
                if names[place] in live:  # a read begins its lifetime anew
                    lasts = live[names[place]][1]
                    live[names[place]] = (at + lasts, lasts)
        new = [mark for mark in kept if names[mark] not in live]
        for mark in new:
            lasts = blocks[mark].lifetime or 0.0
            live[names[mark]] = (at + lasts, lasts)
        self._ends = live
        hour = max(read, *(sizes[m] for m in new if (blocks[m].lifetime or 0.0) >= HOUR), 0)
        last = max(hour, *(sizes[mark] for mark in new), 0)
        return CacheUse(read, last - hour, hour - read, sum(b.tokens for b in blocks) - last)

    def _check(self, blocks: Sequence[Block], marks: Sequence[int]) -> None:
        if len(marks) > self._rules.breakpoints:
            raise PolicyError(
                f"a request takes {self._rules.breakpoints} breakpoints at most, not "
                f"{len(marks)}; take cache_control from some blocks"
            )
        lifetimes = [blocks[mark].lifetime or 0.0 for mark in marks]
        if any(later > earlier for earlier, later in pairwise(lifetimes)):
            raise PolicyError(
                "a breakpoint of a longer lifetime stands behind one of a shorter; put those of an "
                "hour first"
            )


def _prefixes(blocks: Sequence[Block]) -> tuple[list[int], list[int]]:
    """Name each prefix, and count its tokens."""
    names = list(accumulate((b.text for b in blocks), lambda *pair: hash(pair), initial=0))
    return names[1:], list(accumulate(block.tokens for block in blocks))


def _behind(blocks: Sequence[Block], mark: int, look_back: int | None) -> Sequence[int]:
    """Return the places from a breakpoint backwards, as far as a provider searches."""
    if look_back is None:
        return range(mark, -1, -1)
    positions, place = 1, mark
    while place > 0:
        run = blocks[place].run
        positions += not (run and run == blocks[place - 1].run)
        if positions > look_back:
            break
        place -= 1
    return range(mark, place - 1, -1)


def _in_common(known: Sequence[Block], blocks: Sequence[Block]) -> tuple[int, int]:
    """Count the equal blocks, and equal tokens, at the start of two requests.

    The first unequal block counts by the equal start of its text.
    """
    tokens = count = 0
    for old, new in zip(known, blocks, strict=False):
        if old.text != new.text:
            shared = _alike(old.text, new.text)
            return count, tokens + int(new.tokens * shared / max(1, len(new.text)))
        count, tokens = count + 1, tokens + new.tokens
    return count, tokens


def _alike(one: str, other: str) -> int:
    """Return the length of the common start of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
