"""Legal cuts: where a history may be divided without breaking it.

Each rule looks at one thing. A cut rule names stretches that no cut may enter; a stay rule names
items that never leave the view, wherever the cut falls. Legality is the intersection of them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus._core.items import Item


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Tool calls with their results.

    Attributes:
        group: for each item, the index of the message whose calls it belongs to, or its own.
        last: for each group, the index of its last item.
        pending: groups with a call that nothing answers.
        under_way: the newest message of the agent, if it makes such a call: it may yet be carried
            out. Once the agent has spoken again, no call of before is.
        orphans: results whose call is nowhere before them; a provider rejects them.
    """

    group: tuple[int, ...]
    last: dict[int, int]
    pending: frozenset[int]
    under_way: frozenset[int]
    orphans: frozenset[int]

    def members(self, group: int) -> range:
        """Where the members of a group lie; others may stand between them."""
        return range(group, self.last[group] + 1)


def exchanges(items: Sequence[Item]) -> Exchanges:
    """Match results with calls.

    A result belongs to the nearest earlier message that makes a call of that id: real histories
    use the same id again in a later turn.
    """
    caller: dict[str, int] = {}
    newest_call = -1
    group = list(range(len(items)))
    last: dict[int, int] = {}
    waiting: dict[int, set[str]] = {}
    orphans: set[int] = set()
    for i, item in enumerate(items):
        found = {
            caller[call]
            for call in item.answers
            # A second answer to a call is late, and an orphan, once the agent has spoken again.
            if call in caller and (call in waiting[caller[call]] or caller[call] == newest_call)
        }
        if found:
            # An answer to two messages at once ties them to the earlier one.
            home = min(group[j] for j in found)
            for j in found:
                waiting[j] -= set(item.answers)
            group[i] = home
            for j in sorted(found - {home}):
                group[j] = home
            last[home] = i
        elif item.answers and item.role == "tool":
            orphans.add(i)
        if item.role == "assistant":
            newest_call = i
        if item.calls:
            for call in item.calls:
                caller[call] = i
            waiting[i] = set(item.calls)
            last.setdefault(group[i], i)
            last[group[i]] = max(last[group[i]], i)
    group = [group[home] for home in group]  # an exchange that joined another brings its results
    open_calls = [i for i, calls in waiting.items() if calls]
    pending = frozenset(group[i] for i in open_calls)
    under_way = frozenset(i for i in open_calls if i == newest_call)
    return Exchanges(tuple(group), last, pending, under_way, frozenset(orphans))


CutRule = Callable[[Sequence[Item], Exchanges], Iterable[tuple[int, int]]]
"""Names stretches `(first, last)`: no cut may fall after `first` and up to `last`."""

StayRule = Callable[[Sequence[Item], Exchanges], Iterable[int]]
"""Names items that stay in view."""


def calls_and_results_together(items: Sequence[Item], ex: Exchanges) -> Iterable[tuple[int, int]]:
    """A tool result is on the same side as its call."""
    return ex.last.items()


def leading_system(items: Sequence[Item], ex: Exchanges) -> Iterable[int]:
    """System messages at the start are instructions, not history."""
    for i, item in enumerate(items):
        if item.role != "system":
            return
        yield i


def newest_user_message(items: Sequence[Item], ex: Exchanges) -> Iterable[int]:
    """What the user asked last is what the agent is doing."""
    for i in range(len(items) - 1, -1, -1):
        if items[i].role == "user" and not (items[i].summary or items[i].marked):
            yield i
            return


def pinned(items: Sequence[Item], ex: Exchanges) -> Iterable[int]:
    """What the user pinned, with the calls and results that it cannot stand without."""
    return (i for i, item in enumerate(items) if item.pinned)


def pending_calls(items: Sequence[Item], ex: Exchanges) -> Iterable[int]:
    """A call without an answer may still get one, or waits for somebody's approval."""
    return ex.pending


CUT_RULES: tuple[CutRule, ...] = (calls_and_results_together,)
STAY_RULES: tuple[StayRule, ...] = (leading_system, newest_user_message, pinned, pending_calls)


def legal_cuts(
    items: Sequence[Item], ex: Exchanges, rules: Sequence[CutRule] = CUT_RULES
) -> list[bool]:
    """For every index from 0 to the length, whether the history may be cut before it."""
    depth = [0] * (len(items) + 2)
    for rule in rules:
        for first, last in rule(items, ex):
            depth[first + 1] += 1
            depth[last + 1] -= 1
    return [closed == 0 for closed in accumulate(depth[: len(items) + 1])]


def never_clipped(items: Sequence[Item], ex: Exchanges) -> frozenset[int]:
    """Indexes of what is shown whole or not at all: instructions, and calls that may yet be carried
    out, which with half of their arguments would do something else."""
    return ex.under_way | {i for i, item in enumerate(items) if item.role == "system"}


def must_stay(
    items: Sequence[Item], ex: Exchanges, rules: Sequence[StayRule] = STAY_RULES
) -> frozenset[int]:
    """Indexes that never leave the view; a whole exchange where one part of it stays."""
    named = {i for rule in rules for i in rule(items, ex)}
    groups = {ex.group[i] for i in named}
    return frozenset(
        i for g in groups for i in (ex.members(g) if g in ex.last else (g,)) if ex.group[i] == g
    )
