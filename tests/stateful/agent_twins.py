"""Two agents that live through the same: what one's model is sent, the other's is sent too."""

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from stateful.agent_world import AgentWorld
from stateful.oracle import plain
from stateful.stores import TroubledStore
from stateful.summarizers import Moods


class TwinAgents(AgentWorld):
    """Each run is also one of a second agent, on a store and checkpoints of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.mine = (self.moods, self.store, self.saver)
        self.other = (Moods(), TroubledStore(), InMemorySaver())
        self.places: dict[str, Any] = {}  # checkpoints of the first, as the second knows them

    def swap(self) -> None:
        mine = self.moods is self.mine[0]
        self.moods, self.store, self.saver = self.other if mine else self.mine

    def builds(self) -> None:
        self.swap()
        super().builds()
        self.second = self.graph
        self.swap()
        super().builds()

    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        """Which driver the second agent is given."""
        return on_a_loop

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
        script, whole, planted = list(self.script), list(self.at.whole), self.planted
        if self.kind == "side by side":
            self.moods.only_good()
        self.other[0].kinds[:] = self.mine[0].kinds
        self.other[1].fails(self.store.fine, self.store.failing)
        heads = self.mine[1].held("records"), self.other[1].held("records")
        assert set(heads[0]) == set(heads[1])
        self.swap()
        first, self.graph = self.graph, self.second
        loop = self.second_on_a_loop(on_a_loop)
        copied = given and {"messages": [m.model_copy() for m in given["messages"]]}
        two = super().run_graph(copied, self.placed(config), loop, how)
        self.store.recovers()
        after = self.graph.get_state(self.config)
        self.graph = first
        self.swap()
        sent, self.asked = self.asked, []
        self.script, self.at.whole, self.planted = script, whole, planted
        one = super().run_graph(given, config, on_a_loop, how)
        now = first.get_state(self.config)
        self.places[str(now.config["configurable"].get("checkpoint_id"))] = after.config
        self.compare(one, two)
        requests = [[plain(m) for m in messages] for messages, _ in self.asked]
        assert requests == [[plain(m) for m in messages] for messages, _ in sent], "other requests"
        assert now.values.get("_conspectus") == after.values.get("_conspectus"), "another head"
        assert set(self.mine[1].held("records")) == set(self.other[1].held("records"))
        return one

    def compare(self, one: Any, two: Any) -> None:
        stopped = [isinstance(answer, BaseException) for answer in (one, two)]
        assert stopped[0] == stopped[1], f"{one!r:.300} and {two!r:.300}"
        if stopped[0] and isinstance(one, Exception):
            assert (type(one), str(one)) == (type(two), str(two))

    def the_agent_recalls(self, by_id: bool, which: int, on_a_loop: bool) -> None:
        """The tool's message gets its id by chance, so the twins do not recall by it."""
