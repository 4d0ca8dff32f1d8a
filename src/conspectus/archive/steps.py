"""How far apart the messages of a history are: by who speaks, not by how many stand between.

An agent often answers after several rounds of tool calls. Its answer follows what the user asked,
however long it worked; each round follows the one before it, and a result follows its own call.
In a talk without tools a message follows the one before it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

BEFORE, AFTER = 5, 2
"""Steps before and after a message from which it borrows words."""

WORK = 2
"""Steps up to which calls of tools and their results borrow words of what came before them."""

AHEAD = 2
"""Messages or rounds behind one that are looked for if they do not stand near."""

FARTHEST = 96
"""Messages between two of which one follows the other, at most: some thirty rounds."""


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
        kinds: what the messages at some places do. Places that are not there are not looked beyond.

    Attributes:
        follows: for each place, those that it follows by one step.

    Example:
        >>> does = [Kind.SAYS, Kind.CALLS, Kind.RESULT, Kind.RESULT, Kind.SAYS]
        >>> steps = Steps(dict(enumerate(does)))
        >>> steps.follows[4]
        (0, 2, 3)
        >>> steps.around(0)
        {0: 0, 1: 1, 4: 1, 2: 2, 3: 2}
    """

    def __init__(self, kinds: Mapping[int, Kind]) -> None:
        self.follows: dict[int, tuple[int, ...]] = dict(_follows(kinds))
        self._followed: dict[int, list[int]] = {place: [] for place in kinds}
        for place, earlier in self.follows.items():
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
                        for other in ways.get(one, ()):
                            if other not in found and not (far and kinds[other] != Kind.SAYS):
                                found[other] = sign * distance
                                reached.append(other)
                    edge = reached
            self._around[place] = found
        return self._around[place]


def far_enough(kinds: Mapping[int, Kind], place: int, reach: int, end: int) -> bool:
    """Whether the next that follow a message, and what it follows, stand within so many places.

    Args:
        kinds: what the messages at these places do.
        place: the message.
        reach: places on each side.
        end: the history's length.
    """

    def crossed(places: range) -> int:
        # An answer follows what was said; a result its call, and the next round the one before.
        least = Kind.SAYS if kinds.get(place) == Kind.SAYS else Kind.CALLS
        return sum(kinds.get(one, Kind.RESULT) <= least for one in places)

    ahead = place + reach >= end - 1 or crossed(range(place + 1, place + reach + 1)) >= AHEAD
    behind = place - reach <= 0 or crossed(range(place - reach, place)) >= 1
    return ahead and behind


def _follows(kinds: Mapping[int, Kind]) -> Iterator[tuple[int, tuple[int, ...]]]:
    said: tuple[int, ...] = ()
    call: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    last, known = None, False
    for place in sorted(kinds):
        if last is None or place != last + 1:
            said = call = results = ()
            known = place == 0
        kind = kinds[place]
        known = known or kind != Kind.RESULT
        if kind == Kind.CALLS:
            # A round follows the results of the one before, and that as a whole; the first one
            # follows what was said.
            yield place, (*call, *results) or said
            call, results = (place,), ()
        elif kind == Kind.RESULT and call:
            yield place, call
            results = (*results, place)
        elif not known:  # its call stands before what was looked at
            yield place, ()
        else:  # a result that nobody called for stands as if it were said
            yield place, (*said, *(results or call))
            said, call, results = (place,), (), ()
        last = place
