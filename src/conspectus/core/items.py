"""What the core plans over: messages in view by sizes and calls, legal cuts; and possible plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Role = Literal["system", "user", "assistant", "tool", "other"]


@dataclass(slots=True)
class Item:
    """One message in view, as far as plans go by it; never changed, but slow to make if frozen."""

    key: str  # identity and version of the original; equal keys mean equal bytes
    role: Role
    tokens: int
    # calls, answers, needs: ids of calls that it makes, answers, or needs before it
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    # it continues the answer of the message before it; a provider takes both or none
    joined: bool = False
    pinned: bool = False  # the user said that it stays
    summary: bool = False  # it is a summary of earlier messages, ours or another library's
    clipped: bool = False  # it is a clip already
    counted: int = -1  # its size by the caller's count, for `keep`; -1 if that is `tokens`
    # it has the mark of a summary, so it is no user's, even if treated as a message
    marked: bool = False
    hosts: bool = False  # it stands in the user's role, and a host wrote it
    # a host's statement about what a newer one states anew, such as yesterday's date
    superseded: bool = False
    tools: tuple[str, ...] = ()  # names of the tools whose results it holds
    expendable: bool = False  # a tool marked its result as not needed again

    @property
    def least(self) -> int:
        """The fewest tokens that it can take in view: fewer where it may be clipped."""
        return self.tokens


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
    """An item shown in at most `limit` tokens, with a pointer to its original."""

    index: int
    limit: int


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
    due: bool = True  # the trigger or the window asks for a compaction
    preparing: bool = False  # its notes are being prepared in the background


@dataclass(frozen=True, slots=True)
class Compact:
    """A plan that makes the history smaller."""

    # why: "forced", "window", or "trigger" or "gathered" with a colon and the sizes
    cause: str
    # indexes of the items that leave the view once archived and read; none if clips are enough
    evicted: tuple[int, ...]
    clips: tuple[Clip, ...]  # items that stay, truncated further
    summary_tokens: int  # the most tokens asked of the new summary message
    tokens: int  # size before
    at_most: int  # size after, with the longest summary
    budget: int | None  # tokens that the result must fit in; None without a known window
    # the most tokens of the summary message that a caller set; None if any length will do that
    # fits and replaces more
    summary_cap: int | None = None
    stuck: Stuck | None = None  # why even this, the smallest view that is legal, does not fit
    # tokens within which the result was planned: two fifths of the window are free beside them,
    # or less where what must stay forbids that; None for no such size
    room: int | None = None
    # which setting leaves too little free, with its numbers; empty for none
    tight: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """The failure of all plans, with a remedy; `needed` tokens must stay at least."""

    reason: str
    tokens: int
    needed: int
    budget: int


Plan = Keep | Compact | Stuck


# Legal cuts: where a history may be divided without breaking it


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Tool calls with their results."""

    # for each index, whether the history may be cut before it: a result stays on the same side
    # as its call
    cuts: tuple[bool, ...]
    # for each item, the first one of the part between two such cuts that it is in; its own
    # index for an orphan and a late result
    group: tuple[int, ...]
    pending: frozenset[int]  # groups with an unanswered call
    # items that are shown whole or not at all: instructions, and the agent's newest answer if
    # it makes such a call, which may yet be carried out with all of its arguments
    whole: frozenset[int]
    orphans: frozenset[int]  # results without a call before them; a provider rejects them
    # second results of calls, once the agent has spoken again, with the place of the call
    late: dict[int, int]


def exchanges(items: Sequence[Item]) -> Exchanges:
    """Match results with calls.

    A result belongs to the nearest earlier message with a call of that id, as histories repeat ids
    in later turns. A call that its own message answers does not count. A result without an id
    belongs to the agent's newest message, as some providers give their calls none.
    """
    step = list(range(len(items)))  # where each part of an agent's answer begins; else its own
    caller: dict[str, int] = {}
    newest_call = -1
    waiting: dict[int, set[str]] = {}
    orphans: set[int] = set()
    late: dict[int, int] = {}
    first: list[int] = []  # for each item, the earliest one that it must not be parted from
    for i, item in enumerate(items):
        if item.joined and i and not items[i - 1].summary:
            step[i] = step[i - 1]
        near = [step[i]]
        if item.needs:
            near += [caller[call] for call in item.needs if call in caller]
        if item.answers:
            callers = {
                caller[call]
                for call in item.answers
                # A second answer to a call is late once the agent has spoken again.
                if call in caller and (call in waiting[caller[call]] or caller[call] == newest_call)
            }
            if "" in item.answers and newest_call >= 0:
                callers.add(newest_call)
            for j in callers & waiting.keys():
                waiting[j].difference_update(item.answers)
            if not callers and item.role == "tool":
                answered = [caller[call] for call in item.answers if call in caller]
                if answered:
                    late[i] = answered[-1]
                else:
                    orphans.add(i)
            near += callers
        first.append(min(near))
        if item.role == "assistant":
            newest_call = step[i]
        if open_now := [call for call in item.calls if call not in item.answers]:
            caller.update(dict.fromkeys(open_now, step[i]))
            waiting.setdefault(step[i], set()).update(open_now)
    # Between two cuts all is tied together.
    earliest = [*accumulate(reversed(first), min)][::-1]
    cuts = (*(i <= begin for i, begin in enumerate(earliest)), True)
    begins = accumulate((i if cuts[i] else 0 for i in range(len(items))), max)
    group = tuple(i if i in orphans or i in late else begin for i, begin in enumerate(begins))
    open_calls = {i for i, calls in waiting.items() if calls}
    under_way = (i for i, begin in enumerate(step) if begin == newest_call in open_calls)
    whole = frozenset((*under_way, *(i for i, item in enumerate(items) if item.role == "system")))
    pending = frozenset(group[i] for i in open_calls)
    return Exchanges(cuts, group, pending, whole, frozenset(orphans), late)


def newest_user(items: Sequence[Item]) -> int | None:
    """Return the place of the user's newest message.

    Where hosts wrote all that stands in the user's role, it is the newest of these; None without
    one.
    """
    of_host: int | None = None
    for i in range(len(items) - 1, -1, -1):
        item = items[i]
        if item.role != "user" or item.summary or item.marked:
            continue
        if not item.hosts:
            return i
        of_host = i if of_host is None else of_host
    return of_host


def leading(items: Sequence[Item]) -> int:
    """Return the number of leading system messages, which are instructions and no history."""
    return next((i for i, item in enumerate(items) if item.role != "system"), len(items))


def must_stay(items: Sequence[Item], ex: Exchanges, *, news: bool = True) -> frozenset[int]:
    """Return indexes that never leave the view, with the rest of their exchanges.

    Those are leading system messages, but for what a host wrote and states anew later; the user's
    newest message, as the agent works on it; pinned messages; calls without an answer, which may
    still get one or wait for approval; and with `news` those with a late second result that no
    model has read yet.
    """
    pinned = (i for i, item in enumerate(items) if item.pinned)
    instructions = (i for i in range(leading(items)) if not items[i].superseded)
    named = {*instructions, *pinned, *ex.pending}
    spoke = max((i for i, item in enumerate(items) if item.role == "assistant"), default=-1)
    named |= {late for late in ex.late if news and late > spoke}
    if (newest := newest_user(items)) is not None:
        named.add(newest)
    named |= {ex.late[late] for late in named & ex.late.keys()}
    groups = {ex.group[i] for i in named}
    return frozenset(i for i, group in enumerate(ex.group) if group in groups)
