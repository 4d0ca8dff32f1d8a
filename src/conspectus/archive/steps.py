"""How far apart the messages of a history are: by who speaks, not by how many stand between.

An agent often answers after several rounds of tool calls. Its answer follows what the user asked,
however long it worked; each round follows the one before it, and a result follows its own call.
In a talk without tools a message follows the one before it, and nothing else; but a long message is
stepped over, as a talk goes on after it where it stood before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

BEFORE, AFTER = 5, 2
"""Steps before and after a message from which it borrows words."""

WORK = 2
"""Steps up to which calls of tools and their results borrow words of what came before them."""


class Kind(IntEnum):
    """What a message does."""

    SAYS = 0
    CALLS = 1
    """It calls tools, and may say something beside that."""
    RESULT = 2
    """Results of tools, and nothing that anybody says."""


class Steps:
    """Which messages follow which.

    Args:
        kinds: what the messages of a history do, in order.
        long: places of messages that say much: others that are said follow what these follow, too.

    Attributes:
        follows: for each place, those that it follows by one step.

    Example:
        >>> steps = Steps([Kind.SAYS, Kind.CALLS, Kind.RESULT, Kind.RESULT, Kind.SAYS])
        >>> steps.follows[4]
        (0, 2, 3)
        >>> steps.around(0)
        {0: 0, 1: 1, 4: 1, 2: 2, 3: 2}
    """

    def __init__(self, kinds: Sequence[Kind], long: frozenset[int] = frozenset()) -> None:
        self.follows: tuple[tuple[int, ...], ...] = tuple(_follows(kinds, long))
        self._followed: list[list[int]] = [[] for _ in kinds]
        for place, earlier in enumerate(self.follows):
            for one in earlier:
                self._followed[one].append(place)
        self._kinds = kinds
        self._around: dict[int, dict[int, int]] = {}

    def around(self, place: int) -> Mapping[int, int]:
        """Who may borrow from the message at a place, itself included: the steps to each, positive
        for those that come later."""
        if place not in self._around:
            kinds, found = self._kinds, {place: 0}
            for ways, most, sign in ((self._followed, BEFORE, 1), (self.follows, AFTER, -1)):
                edge = [place]
                for distance in range(1, most + 1):
                    far, reached = distance > WORK, []
                    for one in edge:
                        for other in ways[one]:
                            if other not in found and not (far and kinds[other] != Kind.SAYS):
                                found[other] = sign * distance
                                reached.append(other)
                    edge = reached
            self._around[place] = found
        return self._around[place]


def _follows(kinds: Sequence[Kind], long: frozenset[int]) -> Iterator[tuple[int, ...]]:
    said: tuple[int, ...] = ()
    call: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    calls, result = Kind.CALLS, Kind.RESULT
    for place, kind in enumerate(kinds):
        if kind is calls:
            # A round follows the results of the one before, and that as a whole; the first one
            # follows what was said.
            yield (*call, *results) or said
            call, results = (place,), ()
        elif kind is result and call:
            yield call
            results = (*results, place)
        else:  # a result that nobody called for stands as if it were said
            yield (*said, *(results or call))
            said = (*said[:1], place) if place in long else (place,)
            call, results = (), ()
