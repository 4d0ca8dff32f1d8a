"""Legal cuts: where a history may be divided without breaking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus.core.items import Item


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Tool calls with their results.

    Attributes:
        group: for each item, the index of the message whose calls it belongs to, or its own.
        last: for each group, the index of its last item.
        pending: groups with an unanswered call.
        under_way: the agent's newest answer, if it makes such a call, which may yet be carried out.
        orphans: results without a call before them; a provider rejects them.
        late: second results of calls, once the agent has spoken again, with the place of the call.
    """

    group: tuple[int, ...]
    last: dict[int, int]
    pending: frozenset[int]
    under_way: frozenset[int]
    orphans: frozenset[int]
    late: dict[int, int]


def exchanges(items: Sequence[Item]) -> Exchanges:
    """Match results with calls.

    A result belongs to the nearest earlier message with a call of that id, as histories repeat ids
    in later turns. A call that its own message answers does not count.
    """
    step = list(range(len(items)))  # where each part of an agent's answer begins; else its own
    for i, item in enumerate(items):
        if item.joined and i and not items[i - 1].summary:
            step[i] = step[i - 1]
    home = list(step)  # a union-find; a group is named after its first

    def group_of(i: int) -> int:
        while home[i] != i:
            home[i] = i = home[home[i]]
        return i

    def tie(i: int, j: int) -> None:
        first, other = sorted((group_of(i), group_of(j)))
        home[other] = first

    caller: dict[str, int] = {}
    newest_call = -1
    waiting: dict[int, set[str]] = {}
    orphans: set[int] = set()
    late: dict[int, int] = {}
    for i, item in enumerate(items):
        callers = {
            caller[call]
            for call in item.answers
            # A second answer to a call is late once the agent has spoken again.
            if call in caller and (call in waiting[caller[call]] or caller[call] == newest_call)
        }
        for j in callers:  # an answer to two messages at once ties them together
            waiting[j] -= set(item.answers)
            tie(i, j)
        if not callers and item.answers and item.role == "tool":
            answered = [caller[call] for call in item.answers if call in caller]
            if answered:
                late[i] = answered[-1]
            else:
                orphans.add(i)
        for call in item.needs:
            if call in caller:
                tie(i, caller[call])
        if item.role == "assistant":
            newest_call = step[i]
        open_now = [call for call in item.calls if call not in item.answers]
        for call in open_now:
            caller[call] = step[i]
        if open_now:
            waiting[step[i]] = waiting.get(step[i], set()) | set(open_now)
    group = [group_of(i) for i in range(len(items))]
    last = {first: i for i, first in enumerate(group)}
    open_calls = {i for i, calls in waiting.items() if calls}
    pending = frozenset(group[i] for i in open_calls)
    under_way = frozenset(
        i for i, first in enumerate(step) if first == newest_call and first in open_calls
    )
    return Exchanges(tuple(group), last, pending, under_way, frozenset(orphans), late)


def legal_cuts(items: Sequence[Item], ex: Exchanges) -> list[bool]:
    """Tell for every index whether the history may be cut before it.

    A tool result stays on the same side as its call.
    """
    depth = [0] * (len(items) + 2)
    for first, last in ex.last.items():
        depth[first + 1] += 1
        depth[last + 1] -= 1
    return [closed == 0 for closed in accumulate(depth[: len(items) + 1])]


def newest_user(items: Sequence[Item]) -> int | None:
    """Return the place of the user's newest message; None without one."""
    for i in range(len(items) - 1, -1, -1):
        if items[i].role == "user" and not (items[i].summary or items[i].marked):
            return i
    return None


def leading(items: Sequence[Item]) -> int:
    """Return the number of leading system messages, which are instructions and no history."""
    return next((i for i, item in enumerate(items) if item.role != "system"), len(items))


def never_clipped(items: Sequence[Item], ex: Exchanges) -> frozenset[int]:
    """Return items that are shown whole or not at all.

    Those are instructions, and calls that may yet be carried out, which must not lose half of their
    arguments.
    """
    return ex.under_way | {i for i, item in enumerate(items) if item.role == "system"}


def must_stay(items: Sequence[Item], ex: Exchanges) -> frozenset[int]:
    """Return indexes that never leave the view, with the rest of their exchanges.

    Those are leading system messages; the user's newest message, as the agent works on it; pinned
    messages; and calls without an answer, which may still get one or wait for approval.
    """
    pinned = (i for i, item in enumerate(items) if item.pinned)
    named = {*range(leading(items)), *pinned, *ex.pending}
    if (newest := newest_user(items)) is not None:
        named.add(newest)
    groups = {ex.group[i] for i in named}
    return frozenset(i for i, group in enumerate(ex.group) if group in groups)
