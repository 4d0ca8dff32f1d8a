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
        made_of_parts: the name of what a world makes of them.
    """

    parts: ClassVar[Sequence[str]]
    made_of_parts: ClassVar[str]
    kind: str

    def has_twin(self, *parts: Any) -> None:
        """Give the second its parts."""
        self.own_parts = tuple(getattr(self, name) for name in self.parts)
        self.others_parts = parts

    def swap(self) -> None:
        is_own = getattr(self, self.parts[0]) is self.own_parts[0]
        for name, part in zip(
            self.parts, self.others_parts if is_own else self.own_parts, strict=True
        ):
            setattr(self, name, part)

    def build(self) -> None:
        self.swap()
        super().build()  # type: ignore[misc]
        self.second = getattr(self, self.made_of_parts)
        self.swap()
        super().build()  # type: ignore[misc]

    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        """Which driver the second is given."""
        return on_a_loop

    def behave_alike(self) -> None:
        """The second's summarisers and store behave as those of the first do now."""
        if self.kind == "side by side":
            self.own_parts[0].only_good()
        self.others_parts[0].kinds[:] = self.own_parts[0].kinds
        self.others_parts[1].fail_after(
            self.own_parts[1].successes_left, self.own_parts[1].failures_left
        )

    def compare(self, first: Any, second: Any) -> None:
        # An error that is no `Exception` says that the call was cancelled.
        for error_class in (BaseException, Exception):
            both_or_none = isinstance(first, error_class) == isinstance(second, error_class)
            assert both_or_none, f"{first!r:.300} and {second!r:.300}"
        if isinstance(first, Exception):
            assert (type(first), str(first)) == (type(second), str(second))

    def judge(self, look: Look) -> None:
        """The twins have compared all there is."""


class TwinWorld(Twins, CompactorWorld):
    """Each look is also one of a second compactor.

    The second is asked first, so that whatever the first leaves behind cannot help it.
    """

    parts = ("moods", "store", "events")
    made_of_parts = "compactor"

    def __init__(self) -> None:
        super().__init__()
        self.has_twin(Moods(), TroubledStore(), list[Any]())

    def given_to_second(self, messages: list[Any]) -> list[Any]:
        """What the second compactor is sent."""
        return messages

    def try_ask(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        first = self.own_parts
        second = self.others_parts
        self.behave_alike()
        marks = [len(world[2]) for world in (first, second)]
        self.swap()
        real = self.compactor
        self.compactor = self.second
        result_of_second = super().try_ask(
            self.given_to_second(messages), force, self.second_on_a_loop(on_a_loop)
        )
        self.compactor = real
        self.swap()
        result = super().try_ask(messages, force, on_a_loop)
        second[1].recover()
        self.compare(result, result_of_second)
        assert first[2][marks[0] :] == second[2][marks[1] :], "other events"
        read = [Counter(world[0].readings) for world in (first, second)]
        assert read[0] == read[1], "something else was read"
        if self.kind != "side by side":  # which begin in any order
            assert first[0].readings == second[0].readings, "read in another order"
        for kind_of_values in ("records", "head", "drafts"):
            assert set(first[1].values_of(kind_of_values)) == set(
                second[1].values_of(kind_of_values)
            ), f"other {kind_of_values}"
        return result

    def compare(self, first: Any, second: Any) -> None:
        super().compare(first, second)
        if isinstance(first, BaseException):
            return
        assert [plain(m) for m in first.messages] == [plain(m) for m in second.messages]
        for name in first.__slots__:
            if name != "messages":
                assert getattr(first, name) == getattr(second, name), name


class TwinAgents(Twins, AgentWorld):
    """Each run is also one of a second agent."""

    parts = ("moods", "store", "saver")
    made_of_parts = "graph"

    def __init__(self) -> None:
        super().__init__()
        self.has_twin(Moods(), TroubledStore(), InMemorySaver())
        self.configs_of_second: dict[
            str, Any
        ] = {}  # checkpoints of the first, as the second knows them

    def config_of_second(self, config: Any) -> Any:
        """A place of the first agent's thread, in that of the second."""
        checkpoint_id = config["configurable"].get("checkpoint_id")
        return (
            config
            if checkpoint_id is None
            else {**self.configs_of_second[checkpoint_id], "recursion_limit": 60}
        )

    def changed(self, config: Any, messages: Sequence[Any], node: str) -> Any:
        copied = [message.model_copy() for message in messages]
        config_of_second = self.second.update_state(
            self.config_of_second(config), {"messages": copied}, as_node=node
        )
        own_config = super().changed(config, messages, node)
        self.configs_of_second[str(own_config["configurable"]["checkpoint_id"])] = config_of_second
        return own_config

    def run_graph(self, agent_input: Any, config: Any, on_a_loop: bool, options: Any) -> Any:
        script = list(self.script)
        whole = list(self.current.whole)
        planted = self.planted
        self.behave_alike()
        heads = self.own_parts[1].values_of("records"), self.others_parts[1].values_of("records")
        assert set(heads[0]) == set(heads[1])
        self.swap()
        first = self.graph
        self.graph = self.second
        second_on_loop = self.second_on_a_loop(on_a_loop)
        copied = agent_input and {"messages": [m.model_copy() for m in agent_input["messages"]]}
        result_of_second = super().run_graph(
            copied, self.config_of_second(config), second_on_loop, options
        )
        self.store.recover()
        second_state = self.graph.get_state(self.config)
        self.graph = first
        self.swap()
        sent = self.requests
        self.requests = []
        self.script = script
        self.current.whole = whole
        self.planted = planted
        result = super().run_graph(agent_input, config, on_a_loop, options)
        state = first.get_state(self.config)
        self.configs_of_second[str(state.config["configurable"].get("checkpoint_id"))] = (
            second_state.config
        )
        self.compare(result, result_of_second)
        requests = [[plain(m) for m in messages] for messages, _ in self.requests]
        assert requests == [[plain(m) for m in messages] for messages, _ in sent], "other requests"
        assert state.values.get("_conspectus") == second_state.values.get("_conspectus"), (
            "another head"
        )
        assert set(self.own_parts[1].values_of("records")) == set(
            self.others_parts[1].values_of("records")
        )
        return result

    def the_agent_recalls(self, by_id: bool, choice: int, on_a_loop: bool) -> None:
        """The tool's message gets its id by chance, so the twins do not recall by it."""
