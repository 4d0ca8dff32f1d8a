"""Measure distances in a history by who speaks, not by the messages between.

An agent often answers after several rounds of tool calls. Its answer follows the user's question,
however long it worked; each round follows the one before it, and a result follows its own call. In
a talk without tools a message follows the one before it; but a long message is stepped over, as the
talk continues after it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum

BEFORE, AFTER = 5, 2  # Steps before and after a message from which it borrows words
WORK = 2  # Most steps over which calls of tools and their results borrow words


class Act(IntEnum):
    """The act of a message."""

    SAYS = 0
    CALLS = 1  # It calls tools, and may say something too
    RESULT = 2  # Results of tools only


class Steps:
    """Which messages follow which, by the kinds of the messages in order.

    Messages after a `long` one also follow those that it follows.

    Example:
        >>> steps = Steps([Act.SAYS, Act.CALLS, Act.RESULT, Act.RESULT, Act.SAYS])
        >>> steps.follows(4)
        (0, 2, 3)
        >>> steps.followed(0)
        (1, 4)
        >>> steps.around(0)
        {0: 0, 1: 1, 4: 1, 2: 2, 3: 2}
    """

    def __init__(self, kinds: Sequence[Act], long: Collection[int] = frozenset()) -> None:
        # Flat columns, as a history of 100,000 messages would need as many tuples.
        self._earlier, self._ends = array("I"), array("I")
        for follows in _follows(kinds, long):
            self._earlier.extend(follows)
            self._ends.append(len(self._earlier))
        # Linked lists: for each place its first follower, and for each follower the next one.
        self._first = array("i", [-1]) * len(kinds)
        self._next = array("i", [-1]) * len(self._earlier)
        for edge in range(len(self._earlier) - 1, -1, -1):
            earlier = self._earlier[edge]
            self._next[edge] = self._first[earlier]
            self._first[earlier] = edge
        self._kinds = kinds
        self._around: dict[int, dict[int, int]] = {}

    def follows(self, place: int) -> tuple[int, ...]:
        """Return the places one step before a message."""
        return tuple(self._earlier[self._ends[place - 1] if place else 0 : self._ends[place]])

    def followed(self, place: int) -> tuple[int, ...]:
        """Return the places one step after a message."""
        found, edge = [], self._first[place]
        while edge >= 0:
            found.append(bisect_right(self._ends, edge))
            edge = self._next[edge]
        return tuple(found)

    def around(self, place: int) -> Mapping[int, int]:
        """Return the places that may borrow from a message, with their steps.

        The message itself is included; steps of later messages are positive.
        """
        if place not in self._around:
            kinds, found = self._kinds, {place: 0}
            for ways, most, sign in ((self.followed, BEFORE, 1), (self.follows, AFTER, -1)):
                edge = [place]
                for distance in range(1, most + 1):
                    far, reached = distance > WORK, []
                    for one in edge:
                        for other in ways(one):
                            if other not in found and not (far and kinds[other] != Act.SAYS):
                                found[other] = sign * distance
                                reached.append(other)
                    edge = reached
            self._around[place] = found
        return self._around[place]


def _follows(kinds: Sequence[Act], long: Collection[int]) -> Iterator[tuple[int, ...]]:
    said: tuple[int, ...] = ()
    call: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    calls, result = Act.CALLS, Act.RESULT
    for place, kind in enumerate(kinds):
        if kind is calls:
            # A round follows the results of the one before, and that as a whole; the first one
            # follows what was said.
            yield (*call, *results) or said
            call, results = (place,), ()
        elif kind is result and call:
            yield call
            results = (*results, place)
        else:  # a result without a call counts as speech
            yield (*said, *(results or call))
            said = (*said[:1], place) if place in long else (place,)
            call, results = (), ()
