"""Exchanges of calls and results: where a history may be divided, and what never leaves it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus.core.items import Item


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Tool calls with their results."""

    # for each index, whether the history may be cut before it: a result stays on the same side
    # as its call
    cuts: tuple[bool, ...]
    # for each item, the first one of the part between two such cuts that it is in; its own
    # index for an orphan and a late result
    group: tuple[int, ...]
    pending: frozenset[int]  # groups with a call that has no result
    # items that are never clipped: instructions, and the agent's newest reply if it makes a call
    # without a result, which may yet be carried out with all of its arguments
    unclippable: frozenset[int]
    orphans: frozenset[int]  # results without a call before them; a provider rejects them
    # for the place of a second result that came after the agent had spoken again: the place of
    # its call
    late_results: dict[int, int]


def match_calls(items: Sequence[Item]) -> Exchanges:
    """Match results with calls.

    A result belongs to the nearest earlier message with a call of that id, as histories repeat ids
    in later turns. A call that its own message answers does not count. A result without an id
    belongs to the agent's newest message, as some providers give their calls none.
    """
    matching = _Matching()
    previous: Item | None = None
    for item in items:
        matching.add(item, previous)
        previous = item
    cuts = _cuts_between(matching.earliest_tied)
    parts = _begins_of_parts(cuts, matching.earliest_tied)
    alone = matching.orphans | matching.late_results.keys()
    group = tuple(at if at in alone else begin for at, begin in enumerate(parts))
    open_calls = matching.replies_with_open_calls()
    return Exchanges(
        cuts=cuts,
        group=group,
        pending=frozenset(group[at] for at in open_calls),
        unclippable=_unclippable_items(items, matching, open_calls),
        orphans=frozenset(matching.orphans),
        late_results=matching.late_results,
    )


class _Matching:
    """The calls and results of a history, matched message by message.

    A reply is what the agent says in one turn: one message, or several that continue each other.
    A call is known by the place where its reply begins.
    """

    def __init__(self) -> None:
        # for each message, where the reply begins that it is a part of
        self.reply_begins: list[int] = []
        # for each message, the earliest one from which it must not be parted
        self.earliest_tied: list[int] = []
        # where the reply begins that makes a call, by the call's id: the newest of several
        self.caller: dict[str, int] = {}
        # the ids of the calls that wait for a result, by where their reply begins
        self.waiting: dict[int, set[str]] = {}
        self.newest_reply = -1  # where the agent's newest reply begins
        self.orphans: set[int] = set()
        self.late_results: dict[int, int] = {}

    def add(self, item: Item, previous: Item | None) -> None:
        """Match one more message, that stands behind the `previous` one."""
        at = len(self.reply_begins)
        begin = self.reply_begins[-1] if _continues(item, previous) else at
        self.reply_begins.append(begin)
        tied = {begin, *self._needed(item)}
        if item.answers:
            tied |= self._callers_answered_by(at, item)
        self.earliest_tied.append(min(tied))
        if item.role == "assistant":
            self.newest_reply = begin
        self._wait_for_results(begin, item)

    def replies_with_open_calls(self) -> set[int]:
        """Return where the replies begin of which a call waits for a result."""
        return {begin for begin, calls in self.waiting.items() if calls}

    def _needed(self, item: Item) -> list[int]:
        """Return the places of the calls that must stand before a message."""
        return [self.caller[call] for call in item.needs if call in self.caller]

    def _callers_answered_by(self, at: int, item: Item) -> set[int]:
        """Match the results in a message; return the places of their calls."""
        callers = {self.caller[call] for call in item.answers if self._takes_result(call)}
        if "" in item.answers and self.newest_reply >= 0:
            callers.add(self.newest_reply)
        for caller in callers & self.waiting.keys():
            self._close_calls(caller, item.answers)
        if not callers and item.role == "tool":
            answered = [self.caller[call] for call in item.answers if call in self.caller]
            if answered:
                self.late_results[at] = answered[-1]
            else:
                self.orphans.add(at)
        return callers

    def _takes_result(self, call: str) -> bool:
        """Tell whether a result belongs to a call.

        A second result is late once the agent has spoken again.
        """
        caller = self.caller.get(call)
        if caller is None:
            return False
        return call in self.waiting[caller] or caller == self.newest_reply

    def _close_calls(self, caller: int, answers: Sequence[str]) -> None:
        """Close the calls that a message answers; a result without an id closes any one of them."""
        waiting = self.waiting[caller]
        closed = waiting.intersection(answers)
        waiting -= closed
        has_nameless = "" in answers and caller == self.newest_reply
        if waiting and has_nameless and "" not in closed:
            waiting.remove(min(waiting))

    def _wait_for_results(self, begin: int, item: Item) -> None:
        """Have the calls of a message wait for their results."""
        calls = _unanswered_calls(item)
        if calls:
            self.caller.update(dict.fromkeys(calls, begin))
            self.waiting.setdefault(begin, set()).update(calls)


def _continues(item: Item, previous: Item | None) -> bool:
    """Tell whether a message continues the reply before it."""
    return item.continues_reply and previous is not None and not previous.summary


def _unanswered_calls(item: Item) -> list[str]:
    """Return the calls of a message that it does not answer itself."""
    return [call for call in item.calls if call not in item.answers]


def _cuts_between(earliest_tied: Sequence[int]) -> tuple[bool, ...]:
    """Return for each place, and the end, whether all behind may be parted from all before it."""
    tied_from_here_on = [*accumulate(reversed(earliest_tied), min)][::-1]
    return (*(at <= tied for at, tied in enumerate(tied_from_here_on)), True)


def _begins_of_parts(cuts: Sequence[bool], earliest_tied: Sequence[int]) -> list[int]:
    """Return for each message where the part between two cuts begins that it is in."""
    begins = (at if cuts[at] else 0 for at in range(len(earliest_tied)))
    return [*accumulate(begins, max)]


def _unclippable_items(
    items: Sequence[Item], matching: _Matching, open_calls: Collection[int]
) -> frozenset[int]:
    """Return the places of instructions, and of a reply whose calls may yet be carried out."""
    instructions = {at for at, item in enumerate(items) if item.role == "system"}
    newest = matching.newest_reply
    if newest not in open_calls:
        return frozenset(instructions)
    under_way = {at for at, begin in enumerate(matching.reply_begins) if begin == newest}
    return frozenset(instructions | under_way)


def newest_user_item(items: Sequence[Item]) -> int | None:
    """Return the place of the user's newest message.

    Where hosts wrote all that stands in the user's role, it is the newest of these; None without
    one.
    """
    newest_of_host: int | None = None
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.role != "user" or item.summary or item.labelled:
            continue
        if not item.by_host:
            return at
        if newest_of_host is None:
            newest_of_host = at
    return newest_of_host


def leading_system_items(items: Sequence[Item]) -> int:
    """Return the number of leading system messages, which are instructions and no history."""
    return next((at for at, item in enumerate(items) if item.role != "system"), len(items))


def must_stay(
    items: Sequence[Item], exchanges: Exchanges, *, unread_stay: bool = True
) -> frozenset[int]:
    """Return indexes that never leave the view, with the rest of their exchanges.

    Those are leading system messages, but for what a host wrote and states anew later; the user's
    newest message, as the agent works on it; pinned messages; calls without a result, which may
    still get one or wait for approval; and with `unread_stay` those with a late second result
    that no model has read yet.
    """
    stays = {at for at in range(leading_system_items(items)) if not items[at].superseded}
    stays.update(at for at, item in enumerate(items) if item.pinned)
    stays |= exchanges.pending
    if unread_stay:
        spoken = (at for at, item in enumerate(items) if item.role == "assistant")
        last_spoken = max(spoken, default=-1)
        stays.update(at for at in exchanges.late_results if at > last_spoken)
    newest = newest_user_item(items)
    if newest is not None:
        stays.add(newest)
    stays |= {exchanges.late_results[at] for at in stays & exchanges.late_results.keys()}
    return _with_exchanges(stays, exchanges)


def _with_exchanges(places: Collection[int], exchanges: Exchanges) -> frozenset[int]:
    """Return places, and those of all other messages of their exchanges."""
    groups = {exchanges.group[at] for at in places}
    return frozenset(at for at, group in enumerate(exchanges.group) if group in groups)
