"""Exchanges of calls and results: where a history may be divided, and what never leaves it.

A *part* is one exchange with all that is tied to it: what stands between two legal cuts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus.core.items import Item


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Tool calls with their results."""

    may_cut_before: tuple[bool, ...]
    """For each place, and the end, whether the history may be cut before it: a result stays on the
    same side as its call."""

    part_of: tuple[int, ...]
    """For each item, the place where its part begins. An orphan and a late result are parts of
    their own."""

    pending: frozenset[int]
    """Where parts begin that have a call without a result."""

    unclippable: frozenset[int]
    """Items that are never clipped: instructions, and the agent's newest reply if a call in it has
    no result. Such a call may still be carried out, with all of its arguments."""

    orphans: frozenset[int]
    """Results without a call before them; a provider rejects them."""

    late_results: dict[int, int]
    """Places of late results, each with the place of its call: second results that came after the
    agent had spoken again."""


def match_calls(items: Sequence[Item]) -> Exchanges:
    """Match results with calls.

    A result belongs to the nearest earlier message with a call of that id, because histories repeat
    ids in later turns. A call that its own message answers does not count. A result without an id
    belongs to the agent's newest message, because some providers give their calls none.
    """
    matching = _Matching()
    previous: Item | None = None
    for item in items:
        matching.add(item, previous)
        previous = item
    cuts = _cuts_between(matching.earliest_tied)
    parts = _begins_of_parts(cuts, matching.earliest_tied)
    alone = matching.orphans | matching.late_results.keys()
    part_of = tuple(place if place in alone else begin for place, begin in enumerate(parts))
    open_calls = matching.replies_with_open_calls()
    return Exchanges(
        may_cut_before=cuts,
        part_of=part_of,
        pending=frozenset(part_of[place] for place in open_calls),
        unclippable=_unclippable_items(items, matching, open_calls),
        orphans=frozenset(matching.orphans),
        late_results=matching.late_results,
    )


class _Matching:
    """The calls and results of a history, matched message by message.

    A reply is what the agent says in one turn: one message, or several that continue each other.
    The place where a reply begins is the place of all its calls.
    """

    def __init__(self) -> None:
        # for each message, where its reply begins
        self.reply_begins: list[int] = []
        # for each message, the earliest message that must stay with it
        self.earliest_tied: list[int] = []
        # by the id of a call, where its reply begins; of several replies the newest
        self.call_place: dict[str, int] = {}
        # by the place where a reply begins, the ids of its calls that have no result
        self.waiting: dict[int, set[str]] = {}
        self.newest_reply = -1  # where the agent's newest reply begins
        self.orphans: set[int] = set()
        self.late_results: dict[int, int] = {}

    def add(self, item: Item, previous: Item | None) -> None:
        """Match the message that comes after the `previous` one."""
        place = len(self.reply_begins)
        begin = self.reply_begins[-1] if _continues(item, previous) else place
        self.reply_begins.append(begin)
        tied = {begin, *self._needed(item)}
        if item.answers:
            tied |= self._match_results(place, item)
        self.earliest_tied.append(min(tied))
        if item.role == "assistant":
            self.newest_reply = begin
        self._wait_for_results(begin, item)

    def replies_with_open_calls(self) -> set[int]:
        """Return where replies begin that have a call without a result."""
        return {begin for begin, calls in self.waiting.items() if calls}

    def _needed(self, item: Item) -> list[int]:
        """Return the places of the calls that must come before a message."""
        return [self.call_place[call] for call in item.needs if call in self.call_place]

    def _match_results(self, place: int, item: Item) -> set[int]:
        """Match the results in a message; return the places of their calls."""
        places = {self.call_place[call] for call in item.answers if self._takes_result(call)}
        if "" in item.answers and self.newest_reply >= 0:
            places.add(self.newest_reply)
        for call_place in places & self.waiting.keys():
            self._close_calls(call_place, item.answers)
        if not places and item.role == "tool":
            answered = [self.call_place[call] for call in item.answers if call in self.call_place]
            if answered:
                self.late_results[place] = answered[-1]
            else:
                self.orphans.add(place)
        return places

    def _takes_result(self, call: str) -> bool:
        """Tell whether a result belongs to a call.

        A second result is late if the agent has spoken again before it.
        """
        call_place = self.call_place.get(call)
        if call_place is None:
            return False
        return call in self.waiting[call_place] or call_place == self.newest_reply

    def _close_calls(self, call_place: int, answers: Sequence[str]) -> None:
        """Close the calls that a message answers; a result without an id closes any one of them."""
        waiting = self.waiting[call_place]
        closed = waiting.intersection(answers)
        waiting -= closed
        has_nameless = "" in answers and call_place == self.newest_reply
        if waiting and has_nameless and "" not in closed:
            waiting.remove(min(waiting))

    def _wait_for_results(self, begin: int, item: Item) -> None:
        """Have the calls of a message wait for their results."""
        calls = _unanswered_calls(item)
        if calls:
            self.call_place.update(dict.fromkeys(calls, begin))
            self.waiting.setdefault(begin, set()).update(calls)


def _continues(item: Item, previous: Item | None) -> bool:
    """Tell whether a message continues the reply before it."""
    return item.continues_reply and previous is not None and not previous.is_summary


def _unanswered_calls(item: Item) -> list[str]:
    """Return the calls of a message that it does not answer itself."""
    return [call for call in item.calls if call not in item.answers]


def _cuts_between(earliest_tied: Sequence[int]) -> tuple[bool, ...]:
    """For each place, and the end, tell whether the history may be cut before it."""
    tied_from_here_on = [*accumulate(reversed(earliest_tied), min)][::-1]
    return (*(place <= tied for place, tied in enumerate(tied_from_here_on)), True)


def _begins_of_parts(cuts: Sequence[bool], earliest_tied: Sequence[int]) -> list[int]:
    """For each message, return where its part begins. A part is what is between two cuts."""
    begins = (place if cuts[place] else 0 for place in range(len(earliest_tied)))
    return [*accumulate(begins, max)]


def _unclippable_items(
    items: Sequence[Item], matching: _Matching, open_calls: Collection[int]
) -> frozenset[int]:
    """Return the places of instructions, and of a reply whose calls may still be carried out."""
    instructions = {place for place, item in enumerate(items) if item.role == "system"}
    newest = matching.newest_reply
    if newest not in open_calls:
        return frozenset(instructions)
    under_way = {place for place, begin in enumerate(matching.reply_begins) if begin == newest}
    return frozenset(instructions | under_way)


def newest_user_item(items: Sequence[Item]) -> int | None:
    """Return the place of the user's newest message.

    If hosts wrote all messages in the user's role, it is the newest of these. None if there is
    none.
    """
    newest_of_host: int | None = None
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        if item.role != "user" or item.is_summary or item.is_marked_summary:
            continue
        if not item.by_host:
            return place
        if newest_of_host is None:
            newest_of_host = place
    return newest_of_host


def leading_system_items(items: Sequence[Item]) -> int:
    """Return the number of leading system messages, which are instructions and no history."""
    return next((place for place, item in enumerate(items) if item.role != "system"), len(items))


def must_stay(
    items: Sequence[Item], exchanges: Exchanges, *, unread_stay: bool = True
) -> frozenset[int]:
    """Return the places of items that never leave the view, with the rest of their exchanges.

    They are: leading system messages, except what a host has stated again later; the user's newest
    message, because the agent is working on it; pinned messages; calls without a result, which may
    still get one, or wait for an approval. With `unread_stay` they are also late results that no
    model has read yet, with their calls.
    """
    stays = {place for place in range(leading_system_items(items)) if not items[place].superseded}
    stays.update(place for place, item in enumerate(items) if item.pinned)
    stays |= exchanges.pending
    if unread_stay:
        spoken = (place for place, item in enumerate(items) if item.role == "assistant")
        last_spoken = max(spoken, default=-1)
        stays.update(place for place in exchanges.late_results if place > last_spoken)
    newest = newest_user_item(items)
    if newest is not None:
        stays.add(newest)
    stays |= {exchanges.late_results[place] for place in stays & exchanges.late_results.keys()}
    return _with_exchanges(stays, exchanges)


def _with_exchanges(places: Collection[int], exchanges: Exchanges) -> frozenset[int]:
    """Return places, and those of all other messages of their parts."""
    begins = {exchanges.part_of[place] for place in places}
    return frozenset(place for place, begin in enumerate(exchanges.part_of) if begin in begins)
