"""A history for the core: items without text; and the possible plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool", "other"]


@dataclass(frozen=True, slots=True)
class Item:
    """One message as the core sees it.

    Attributes:
        key: identity and version of the original; equal keys mean equal bytes.
        role: the speaker's role.
        tokens: its size in the request.
        floor: the fewest tokens it can be clipped to; equal to `tokens` when it cannot be.
        calls: ids of the tool calls that it makes.
        answers: ids of the tool calls that it answers.
        needs: ids of calls that must stand before it, although it does not answer them.
        joined: it goes on with the answer that the message before it began; a provider takes
            neither without the other.
        pinned: the user said that it stays.
        summary: it is a summary of earlier messages, ours or another library's.
        clipped: it stands for a longer original already.
        counted: its size as the caller counts, by which `keep` goes; -1 where that is `tokens`.
        marked: it bears the mark of a summary, so nobody has said it, also where it is treated as a
            message like others.
        brief: its tokens once its large arguments are shortened; -1 where none is.
        brief_counted: the same as the caller counts; -1 where that is `brief`.
        tools: names of the tools whose results it holds.
        expendable: a tool says of its result that it will not be needed.
    """

    key: str
    role: Role
    tokens: int
    floor: int = -1
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    joined: bool = False
    pinned: bool = False
    summary: bool = False
    clipped: bool = False
    counted: int = -1
    marked: bool = False
    brief: int = -1
    brief_counted: int = -1
    tools: tuple[str, ...] = ()
    expendable: bool = False

    @property
    def kept_as(self) -> int:
        """The tokens that it takes of `keep`."""
        return self.tokens if self.counted < 0 else self.counted

    def smallest(self) -> int:
        """Return the fewest tokens that it can take while it stays in view."""
        return self.tokens if self.floor < 0 else min(self.floor, self.tokens)


@dataclass(frozen=True, slots=True)
class Window:
    """The room for one request.

    Attributes:
        limit: input limit of the model that will answer, in tokens.
        reserved: tokens of it that messages cannot have: output, system prompt, tool schemas.
    """

    limit: int
    reserved: int = 0

    @property
    def budget(self) -> int:
        """Tokens left for messages."""
        return self.limit - self.reserved


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a history: tokens and messages."""

    tokens: int
    messages: int


@dataclass(frozen=True, slots=True)
class Span:
    """Items `start` up to, not including, `stop`."""

    start: int
    stop: int


def spans_of(indexes: Sequence[int]) -> tuple[Span, ...]:
    """Divide rising indexes into the fewest spans."""
    spans: list[Span] = []
    for index in indexes:
        if spans and spans[-1].stop == index:
            spans[-1] = Span(spans[-1].start, index + 1)
        else:
            spans.append(Span(index, index + 1))
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Clip:
    """An item shown in at most `limit` tokens, with a pointer to its original.

    Attributes:
        longest: characters above which an argument of its calls is shortened, and nothing else of
            it; 0 for the message as a whole.
        ending: text behind the rest of such an argument.
    """

    index: int
    limit: int
    longest: int = 0
    ending: str = ""


def highest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Find the highest level that fits, from one that does on.

    Args:
        low: a level that fits, and the least.
        high: the most.
        fits: whether a level does; every level below one that fits does, too.

    Example:
        >>> highest(1, 100, lambda level: 3 * level <= 50)
        16
    """
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """A trigger that lies below the reach of a compaction.

    Attributes:
        trigger: tokens that it waits for.
        least: tokens of the part that must stay and of the smallest summary, as the trigger counts.
        stay: messages that must stay.
    """

    trigger: int
    least: int
    stay: int

    def __str__(self) -> str:
        return (
            f"the trigger of {self.trigger:,} tokens lies below what a compaction can reach: the "
            f"{self.stay:,} messages that stay, what is sent beside them and the smallest summary "
            f"take {self.least:,}; raise trigger above that, or lower keep"
        )


@dataclass(frozen=True, slots=True)
class Keep:
    """A plan that leaves the history as it is.

    Attributes:
        reason: why, as one short sentence.
        tokens: its size.
        beyond: the trigger that asked for more than can be, if it did.
    """

    reason: str
    tokens: int
    beyond: OutOfReach | None = None


@dataclass(frozen=True, slots=True)
class Compact:
    """A plan that makes the history smaller.

    Attributes:
        cause: the trigger or other reason for it.
        evict: spans that leave the view once archived and read. Empty: clips alone are enough.
        clips: items that stay, shown shorter.
        summary_tokens: the most tokens that the new summary message is asked to take.
        tokens: size before.
        at_most: size after, if the summary takes all that it is asked to.
        budget: tokens that the result must fit in; None where no window is known.
        summary_cap: the most that the summary message may take because a caller has set it, in
            tokens; None where any length will do that fits and replaces more.
        beyond: the trigger that asked for more than can be, if it did.
    """

    cause: str
    evict: tuple[Span, ...]
    clips: tuple[Clip, ...]
    summary_tokens: int
    tokens: int
    at_most: int
    budget: int | None
    summary_cap: int | None = None
    beyond: OutOfReach | None = None

    @property
    def evicted(self) -> tuple[int, ...]:
        """Indexes of the items that leave."""
        return tuple(i for span in self.evict for i in range(span.start, span.stop))


@dataclass(frozen=True, slots=True)
class Stuck:
    """The end of all plans: nothing helps.

    Attributes:
        reason: the cause, with a remedy.
        tokens: size now.
        needed: the fewest tokens of the part that must stay.
        budget: the tokens that there are.
    """

    reason: str
    tokens: int
    needed: int
    budget: int


Plan = Keep | Compact | Stuck
