"""What the core plans over, a message in view by its sizes and calls; and the possible plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool", "other"]


@dataclass(frozen=True, slots=True)
class Item:
    """One message in view, as far as plans go by it; the engine adds the message itself.

    Attributes:
        key: identity and version of the original; equal keys mean equal bytes.
        floor: the fewest tokens it can be clipped to; -1 if it cannot be.
        calls, answers, needs: ids of calls that it makes, answers, or needs before it.
        joined: it continues the answer of the message before it; a provider takes both or none.
        pinned: the user said that it stays.
        summary: it is a summary of earlier messages, ours or another library's.
        clipped: it is a clip already.
        counted: its size by the caller's count, for `keep`; -1 if that is `tokens`.
        marked: it has the mark of a summary, so it is no user's, even if treated as a message.
        brief: its tokens with its large arguments shortened; -1 without any.
        tools: names of the tools whose results it holds.
        expendable: a tool marked its result as not needed again.
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
    tools: tuple[str, ...] = ()
    expendable: bool = False

    @property
    def kept_as(self) -> int:
        """Its tokens by the count of `keep`."""
        return self.tokens if self.counted < 0 else self.counted

    def smallest(self) -> int:
        """Return the fewest tokens that it can take while it stays in view."""
        return self.tokens if self.floor < 0 else min(self.floor, self.tokens)

    def shortened(self, longest: int, ending: str) -> int:
        """Return its tokens with arguments above `longest` characters cut to end in `ending`."""
        return self.tokens if self.brief < 0 else self.brief


@dataclass(frozen=True, slots=True)
class Window:
    """The room for one request: the input limit of the model that answers, and reserved tokens."""

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
class Clip:
    """An item shown in at most `limit` tokens, with a pointer to its original.

    With `longest`, only arguments of its calls above that many characters are shortened, and end in
    `ending`.
    """

    index: int
    limit: int
    longest: int = 0
    ending: str = ""


def highest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Find the highest level that fits, from `low`, which does; fitting is monotone.

    Example:
        >>> highest(1, 100, lambda level: 3 * level <= 50)
        16
    """
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


@dataclass(frozen=True, slots=True)
class Keep:
    """A plan that leaves the history as it is, and why."""

    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Compact:
    """A plan that makes the history smaller.

    Attributes:
        cause: the trigger or other reason for it.
        evicted: indexes of the items that leave the view once archived and read; none if clips are
            enough.
        clips: items that stay, truncated further.
        summary_tokens: the most tokens asked of the new summary message.
        tokens: size before.
        at_most: size after, with the longest summary.
        budget: tokens that the result must fit in; None without a known window.
        summary_cap: the most tokens of the summary message that a caller set; None if any length
            will do that fits and replaces more.
    """

    cause: str
    evicted: tuple[int, ...]
    clips: tuple[Clip, ...]
    summary_tokens: int
    tokens: int
    at_most: int
    budget: int | None
    summary_cap: int | None = None


@dataclass(frozen=True, slots=True)
class Stuck:
    """The failure of all plans, with a remedy; `needed` tokens must stay at least."""

    reason: str
    tokens: int
    needed: int
    budget: int


Plan = Keep | Compact | Stuck
