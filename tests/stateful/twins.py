"""Two compactors, or two agents, that live through the same: what one gives, the other gives."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from langgraph.checkpoint.memory import InMemorySaver

from stateful.agent_world import AgentWorld
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.oracle import plain
from stateful.stores import TroubledStore
from stateful.summarizers import Moods


class Twins:
    """A second one beside that of a world, with parts of its own.

    Attributes:
        parts: names of what each of the two has for itself.
        whole: the name of what a world makes of them.
    """

    parts: ClassVar[Sequence[str]]
    whole: ClassVar[str]
    kind: str

    def has_twin(self, *other: Any) -> None:
        """Give the second its parts."""
        self.mine = tuple(getattr(self, name) for name in self.parts)
        self.other = other

    def swap(self) -> None:
        mine = getattr(self, self.parts[0]) is self.mine[0]
        for name, part in zip(self.parts, self.other if mine else self.mine, strict=True):
            setattr(self, name, part)

    def builds(self) -> None:
        self.swap()
        super().builds()  # type: ignore[misc]
        self.second = getattr(self, self.whole)
        self.swap()
        super().builds()  # type: ignore[misc]

    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        """Which driver the second is given."""
        return on_a_loop

    def alike(self) -> None:
        """The second's summarisers and store behave as those of the first do now."""
        if self.kind == "side by side":
            self.mine[0].only_good()
        self.other[0].kinds[:] = self.mine[0].kinds
        self.other[1].fails(self.mine[1].fine, self.mine[1].failing)

    def compare(self, one: Any, two: Any) -> None:
        for kind in (BaseException, Exception):  # those that are no `Exception` were cancelled
            same = isinstance(one, kind) == isinstance(two, kind)
            assert same, f"{one!r:.300} and {two!r:.300}"
        if isinstance(one, Exception):
            assert (type(one), str(one)) == (type(two), str(two))

    def judge(self, look: Look) -> None:
        """The twins have compared all there is."""


class TwinWorld(Twins, CompactorWorld):
    """Each look is also one of a second compactor.

    The second is asked first, so that whatever the first leaves behind cannot help it.
    """

    parts = ("moods", "store", "events")
    whole = "compactor"

    def __init__(self) -> None:
        super().__init__()
        self.has_twin(Moods(), TroubledStore(), list[Any]())

    def given_to_second(self, messages: list[Any]) -> list[Any]:
        """What the second compactor is sent."""
        return messages

    def tried(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        first = self.mine
        second = self.other
        self.alike()
        marks = [len(world[2]) for world in (first, second)]
        self.swap()
        real = self.compactor
        self.compactor = self.second
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
        super().compare(one, two)
        if isinstance(one, BaseException):
            return
        assert [plain(m) for m in one.messages] == [plain(m) for m in two.messages]
        for name in one.__slots__:
            if name != "messages":
                assert getattr(one, name) == getattr(two, name), name


class TwinAgents(Twins, AgentWorld):
    """Each run is also one of a second agent."""

    parts = ("moods", "store", "saver")
    whole = "graph"

    def __init__(self) -> None:
        super().__init__()
        self.has_twin(Moods(), TroubledStore(), InMemorySaver())
        self.places: dict[str, Any] = {}  # checkpoints of the first, as the second knows them

    def placed(self, config: Any) -> Any:
        """A place of the first agent's thread, in that of the second."""
        here = config["configurable"].get("checkpoint_id")
        return config if here is None else {**self.places[here], "recursion_limit": 60}

    def changed(self, config: Any, messages: Sequence[Any], node: str) -> Any:
        copied = [message.model_copy() for message in messages]
        after = self.second.update_state(self.placed(config), {"messages": copied}, as_node=node)
        now = super().changed(config, messages, node)
        self.places[str(now["configurable"]["checkpoint_id"])] = after
        return now

    def run_graph(self, given: Any, config: Any, on_a_loop: bool, how: Any) -> Any:
        script = list(self.script)
        whole = list(self.at.whole)
        planted = self.planted
        self.alike()
        heads = self.mine[1].held("records"), self.other[1].held("records")
        assert set(heads[0]) == set(heads[1])
        self.swap()
        first = self.graph
        self.graph = self.second
        loop = self.second_on_a_loop(on_a_loop)
        copied = given and {"messages": [m.model_copy() for m in given["messages"]]}
        two = super().run_graph(copied, self.placed(config), loop, how)
        self.store.recovers()
        after = self.graph.get_state(self.config)
        self.graph = first
        self.swap()
        sent = self.asked
        self.asked = []
        self.script = script
        self.at.whole = whole
        self.planted = planted
        one = super().run_graph(given, config, on_a_loop, how)
        now = first.get_state(self.config)
        self.places[str(now.config["configurable"].get("checkpoint_id"))] = after.config
        self.compare(one, two)
        requests = [[plain(m) for m in messages] for messages, _ in self.asked]
        assert requests == [[plain(m) for m in messages] for messages, _ in sent], "other requests"
        assert now.values.get("_conspectus") == after.values.get("_conspectus"), "another head"
        assert set(self.mine[1].held("records")) == set(self.other[1].held("records"))
        return one

    def the_agent_recalls(self, by_id: bool, which: int, on_a_loop: bool) -> None:
        """The tool's message gets its id by chance, so the twins do not recall by it."""
