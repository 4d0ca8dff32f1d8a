"""Simulate the prefix cache of a provider, by the rules of its pages as read on 2026-11-23.

Nothing here reads a clock: the caller gives the time of each request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

FIVE_MINUTES, HALF_HOUR = 300.0, 1_800.0
"""Lifetimes of entries, in seconds."""


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a request, in the order of a provider: tools, system, messages.

    Attributes:
        text: all that the provider compares.
        tokens: its size.
        mark: whether a breakpoint (`cache_control`) is at its end.
        run: its kind, such as `tools`, `system` or `results`; neighbouring results share one
            position of a look-back.
    """

    text: str
    tokens: int
    mark: bool = False
    run: str = ""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of one provider's cache.

    Attributes:
        least: tokens of the shortest prefix that is cached.
        step: tokens; reads come in multiples of this beyond `least`.
        marked: only prefixes that end at a breakpoint are kept, and writing them has a price;
            otherwise every prefix is kept.
        moving: the provider sets a breakpoint at the end of each request by itself.
        lifetime: seconds of an entry; each read starts them anew.
        look_back: positions up to a breakpoint that are searched for an entry.
    """

    least: int
    step: int = 1
    marked: bool = False
    moving: bool = False
    lifetime: float = FIVE_MINUTES
    look_back: int = 20


RULES: dict[str, CacheRules] = {
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    r"claude-(fable|mythos)|claude-(opus|sonnet|haiku)-5-5|claude-opus-5": CacheRules(
        512, marked=True
    ),
    r"claude-opus-4-7|claude-(3-5-haiku|haiku-3)|claude-3-haiku": CacheRules(2_048, marked=True),
    r"claude-opus-4-[56]|claude-haiku-4-5": CacheRules(4_096, marked=True),
    r"claude": CacheRules(1_024, marked=True),
    # https://ai.google.dev/gemini-api/docs/caching: no lifetime is named; five minutes are assumed.
    r"gemini-2\.5": CacheRules(2_048),
    r"gemini": CacheRules(4_096),
    # https://developers.openai.com/api/docs/guides/prompt-caching: from GPT-5.6 on at breakpoints.
    r"gpt-(5\.([6-9]|\d\d)|[6-9]|1\d)": CacheRules(
        1_024, marked=True, moving=True, lifetime=HALF_HOUR, look_back=80
    ),
    r"": CacheRules(1_024, step=128),
}
"""Rules by the beginning of a model's name; the first that matches holds."""


def rules_for(model: str) -> CacheRules:
    """Return the rules of the cache of a model's provider.

    Args:
        model: its name, with or without a provider before it (`anthropic:claude-sonnet-5-5`), or as
            Bedrock names it. Any unknown name has the rules of OpenAI before GPT-5.6.

    Example:
        >>> rules_for("claude-haiku-4-5-20251001").least, rules_for("gpt-5.4").step
        (4096, 128)
    """
    # Bedrock writes `us.anthropic.claude-haiku-4-5-20251001-v1:0`.
    name = (re.findall(r"(?:claude|gemini|gpt)[^/]*", model.lower()) or [""])[-1]
    return next(rules for pattern, rules in RULES.items() if re.match(pattern, name))


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Input tokens of one request: read from the cache, written to it, or neither."""

    read: int = 0
    written: int = 0
    plain: int = 0

    @property
    def input(self) -> int:
        """Return all tokens of the input."""
        return self.read + self.written + self.plain


class PrefixCache:
    """The cache of one provider for one caller.

    Example:
        >>> cache = PrefixCache(CacheRules(least=1_024, step=128))
        >>> prompt = [Block("instructions", 2_006)]
        >>> cache.request(prompt, at=0.0)
        CacheUse(read=0, written=0, plain=2006)
        >>> cache.request(prompt, at=60.0)
        CacheUse(read=1920, written=0, plain=86)
    """

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._ends: dict[int, float] = {}
        self._whole: list[tuple[Sequence[Block], float]] = []

    def request(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Send a request, and return its use of the cache.

        Args:
            blocks: of its input, in order.
            at: seconds since any moment; never less than at the request before.
        """
        return self._marked(blocks, at) if self._rules.marked else self._automatic(blocks, at)

    def _automatic(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Keep every prefix, and read the longest known one."""
        rules = self._rules
        size = sum(block.tokens for block in blocks)
        self._whole = [(known, end) for known, end in self._whole if end >= at]
        shared = [_in_common(known, blocks) for known, _ in self._whole]
        read = max((tokens for _, tokens in shared), default=0)
        read = 0 if read < rules.least else read - (read - rules.least) % rules.step
        if size >= rules.least:
            pairs = zip(self._whole, shared, strict=True)
            longer = [entry for entry, (count, _) in pairs if count < len(entry[0])]
            self._whole = [*longer, (tuple(blocks), at + rules.lifetime)]
        return CacheUse(read=read, plain=size - read)

    def _marked(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Keep prefixes at breakpoints alone, and search backwards from there."""
        rules = self._rules
        marks = [place for place, block in enumerate(blocks) if block.mark]
        if rules.moving and blocks:
            marks = [*marks, len(blocks) - 1]
        names = list(accumulate((b.text for b in blocks), lambda *pair: hash(pair), initial=0))[1:]
        sizes = list(accumulate(block.tokens for block in blocks))
        live = {name: end for name, end in self._ends.items() if end >= at}
        places = (n for mark in reversed(marks) for n in _behind(blocks, mark, rules.look_back))
        hit = next((place for place in places if names[place] in live), None)
        kept = [mark for mark in marks if sizes[mark] >= rules.least]
        new = [mark for mark in kept if names[mark] not in live]
        # What is written begins its lifetime, and what is read begins it anew.
        read_again = [] if hit is None else [hit, *takewhile(lambda mark: mark <= hit, kept)]
        live |= {names[mark]: at + rules.lifetime for mark in (*new, *read_again)}
        self._ends = live
        read = 0 if hit is None else sizes[hit]
        last = max([read, *(sizes[mark] for mark in new)])
        return CacheUse(read, last - read, sum(block.tokens for block in blocks) - last)


def _behind(blocks: Sequence[Block], mark: int, look_back: int) -> Sequence[int]:
    """Return the places from a breakpoint backwards, as far as a provider searches."""
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


def _alike(first: str, second: str) -> int:
    """Return the length of the common start of two texts."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low
