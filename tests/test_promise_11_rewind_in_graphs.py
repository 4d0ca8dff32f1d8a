"""Promise 11 in real graphs: undo, edit, time travel, fork and copy leave the next step right."""

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.messages import read_messages
from graph_support import agent, check_nothing_lost, check_sent, middleware, said, steps, thread
from scripted_models import ScriptedChatModel


class Bench:
    """An agent whose model goes on as it is told; modules are named `m0`, `m1` and so on."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        self.model = ScriptedChatModel(answers=lambda _: self.script.pop(0))
        self.store = InMemoryStore()
        self.graph, _ = agent(self.model, middleware(), store=self.store)

    def go(self, count: int, prefix: str, config: Any = None) -> None:
        """Take a new task, or go on from a checkpoint."""
        self.script[:] = steps(count, prefix=prefix)
        task = said("Look at all modules of the project.") if config is None else None
        self.graph.invoke(task, config or thread())

    def head(self, config: Any = None) -> str:
        values = self.graph.get_state(config or thread()).values
        return str((values.get("_conspectus") or {}).get("head"))

    def history(self) -> list[Any]:
        """The checkpoints before a call of the model, the latest first."""
        return [s for s in self.graph.get_state_history(thread()) if s.next == ("model",)]

    def recalled(self, query: str) -> str:
        compactor = Compactor(archive=self.store)
        return str(compactor.recall(query, thread_id="t", tokens=4000).text)

    def reachable(self) -> str:
        return str(Archive(self.store).export(Scope("local", "t")))


def test_recall_never_reaches_what_was_abandoned_once_the_branch_goes_on():
    bench = Bench()
    bench.go(14, "m")
    assert "module m9" in bench.reachable()
    assert "m9" in bench.recalled("module m9")
    # After the first compaction, of m0 and m1 or so.
    first = [s for s in bench.history() if bench.head(s.config) != "None"][-1]
    old = next(s for s in bench.history() if bench.head(s.config) == bench.head(first.config))
    assert "module m9" not in str(old.values["messages"])
    head = bench.head(old.config)
    bench.go(0, "f", old.config)  # a single step, no compaction
    assert bench.head() == head
    assert "module m0" in bench.reachable()
    assert "module m9" not in bench.reachable()
    assert "m9" not in bench.recalled("module m9")


def test_going_back_before_the_first_compaction_leaves_nothing_to_recall():
    bench = Bench()
    bench.go(14, "m")
    first = next(s for s in reversed(bench.history()) if len(s.values) == 1)
    bench.go(0, "f", first.config)
    assert bench.head() == "None"
    assert "module m" not in bench.reachable()
    bench.go(12, "g")
    assert "module g1" in bench.reachable()
    assert "module m" not in bench.reachable()
    check_sent(bench.model)
    assert check_nothing_lost(bench.graph, bench.store) > 0


def test_without_an_archive_a_preserved_channel_keeps_what_every_record_covers():
    state: dict[str, Any] = {"messages": []}
    for n in range(24):
        state["messages"].append(HumanMessage(f"part {n}", id=f"m{n}"))
        # A new one each time, as in a process of its own: what is in force stands in the state.
        own = SummarizationMiddleware(
            None, trigger=("messages", 8), keep=("messages", 3), history="preserve"
        )
        state |= own.before_model(state, Runtime()) or {}
    records = state["_conspectus"]["head"]
    assert len(records) > 2
    covered = [key for one in records for key in one["covers"]]
    keys = [entry.key for entry in read_messages(state["messages"])]
    assert len(covered) > 12
    assert covered == keys[: len(covered)]
