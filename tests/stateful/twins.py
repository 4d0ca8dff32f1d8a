"""Two compactors that live through the same: what one gives, the other gives too."""

import copy
from collections import Counter
from typing import Any

from stateful.compactor_world import CompactorWorld
from stateful.messages import words_in
from stateful.oracle import plain
from stateful.stores import TroubledStore
from stateful.summarizers import Moods


class TwinWorld(CompactorWorld):
    """Each look is also one of a second compactor, with a store and summarisers of its own.

    The second is asked first, so that whatever the first leaves behind cannot help it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.mine = (self.moods, self.store, self.events)
        self.other = (Moods(), TroubledStore(), list[Any]())
        self.heard_by_other: Any = None

    def builds(self) -> None:
        self.swap()
        super().builds()
        self.second = self.compactor
        self.swap()
        super().builds()

    def swap(self) -> None:
        now = (self.moods, self.store, self.events)
        self.moods, self.store, self.events = self.other if now[0] is self.mine[0] else self.mine

    def given_to_second(self, messages: list[Any]) -> list[Any]:
        """What the second compactor is sent."""
        return messages

    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        """Which driver the second compactor is given."""
        return on_a_loop

    def tried(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        first, second = self.mine, self.other
        if self.kind == "side by side":
            first[0].only_good()
        second[0].kinds[:] = first[0].kinds
        second[1].fails(first[1].fine, first[1].failing)
        marks = [len(world[2]) for world in (first, second)]
        self.swap()
        real, self.compactor = self.compactor, self.second
        two = super().tried(self.given_to_second(messages), force, self.second_on_a_loop(on_a_loop))
        self.compactor = real
        self.swap()
        one = super().tried(messages, force, on_a_loop)
        second[1].recovers()
        self.compare(one, two)
        assert first[2][marks[0] :] == second[2][marks[1] :], "other events"
        read = [Counter(world[0].readings) for world in (first, second)]
        assert read[0] == read[1], "something else was read"
        if self.kind != "side by side":  # which begin in any order
            assert first[0].readings == second[0].readings, "read in another order"
        for kind in ("records", "head", "drafts"):
            assert set(first[1].held(kind)) == set(second[1].held(kind)), f"other {kind}"
        return one

    def compare(self, one: Any, two: Any) -> None:
        stopped = [isinstance(answer, BaseException) for answer in (one, two)]
        assert stopped[0] == stopped[1], f"{one!r:.300} and {two!r:.300}"
        if stopped[0]:
            cancelled = [not isinstance(answer, Exception) for answer in (one, two)]
            assert cancelled[0] == cancelled[1]
            assert cancelled[0] or (type(one) is type(two) and str(one) == str(two))
            return
        assert [plain(m) for m in one.messages] == [plain(m) for m in two.messages]
        for name in one.__slots__:
            if name != "messages":
                assert getattr(one, name) == getattr(two, name), name


def fresh(messages: list[Any]) -> list[Any]:
    """Equal messages that are other objects."""
    return copy.deepcopy(messages)


__all__ = ["TwinWorld", "fresh", "words_in"]
