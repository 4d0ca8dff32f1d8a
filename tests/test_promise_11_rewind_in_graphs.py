"""Promise 11 in real graphs: undo, edit, time travel, fork and copy leave the next step right.

What each summariser call read is taken from its prompt: modules are named `m0`, `m1` and so on, and
a fork goes on with other names.
"""

import re
from collections import Counter
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.messages import read_messages
from graph_support import (
    agent,
    check_nothing_lost,
    check_sent,
    middleware,
    said,
    steps,
    thread,
)
from scripted_models import ScriptedChatModel


def task() -> Any:
    """A new message each time: the same one again would take the place of the first."""
    return said("Look at all modules of the project.")


NEW = object()


class Bench:
    """An agent whose model goes on as it is told, and what its summariser has read."""

    def __init__(self, **more: Any) -> None:
        self.script: list[Any] = []
        self.model = ScriptedChatModel(answers=lambda _: self.script.pop(0))
        self.store, self.saver = InMemoryStore(), InMemorySaver()
        self.more = more
        self.own = middleware(**more)
        self.graph = self.built(self.own)

    def built(self, own: Any) -> Any:
        return agent(self.model, own, store=self.store, checkpointer=self.saver)[0]

    def restarted(self) -> None:
        """As a new process would find it: the same checkpoints and store, nothing remembered."""
        own = middleware(model=self.own.model, **self.more)
        self.graph, self.own = self.built(own), own

    def go(self, count: int, prefix: str, config: Any = None, given: Any = NEW) -> Any:
        self.script[:] = steps(count, prefix=prefix)
        return self.graph.invoke(task() if given is NEW else given, config or thread())

    @property
    def calls(self) -> int:
        return len(self.own.model.calls)

    def read(self, since: int = 0) -> Counter[str]:
        """Modules whose results summarisers were given to read, by the number of times."""
        found: Counter[str] = Counter()
        for call in self.own.model.calls[since:]:
            # What notes say stands before the messages, as context, or behind an arrow.
            material = call.text.rpartition("<messages>\n")[2]
            found.update(re.findall(r"(?<!→ )module ([a-z]+\d+): pass", material))
        return found

    def values(self, config: Any = None) -> Any:
        return self.graph.get_state(config or thread()).values

    def head(self, config: Any = None) -> str:
        return str((self.values(config).get("_conspectus") or {}).get("head"))

    def history(self, name: str = "t") -> list[Any]:
        return list(self.graph.get_state_history(thread(name)))

    def heads(self) -> list[str]:
        """Records that were in force, the latest first."""
        found = [(s.values.get("_conspectus") or {}).get("head") for s in self.history()]
        return list(dict.fromkeys(str(one) for one in found))

    def at_head(self, head: str) -> Any:
        """The newest checkpoint with this record in force, before the model is called."""
        return next(
            s
            for s in self.history()
            if str((s.values.get("_conspectus") or {}).get("head")) == head and s.next == ("model",)
        )

    def recalled(self, query: str, name: str = "t") -> str:
        compactor = Compactor(archive=self.store)
        return str(compactor.recall(query, thread_id=name, tokens=4000).text)

    def reachable(self, name: str = "t") -> str:
        return str(Archive(self.store).export(Scope("local", name)))


# Going back


def test_recall_never_reaches_what_was_abandoned_once_the_branch_goes_on():
    bench = Bench()
    bench.go(14, "m")
    assert "module m9" in bench.reachable()
    assert "m9" in bench.recalled("module m9")
    old = bench.at_head(bench.heads()[-2])  # the first compaction, of m0 and m1 or so
    assert "module m9" not in str(old.values["messages"])
    head = bench.head(old.config)
    bench.go(0, "f", old.config, None)  # a single step, no compaction
    assert bench.head() == head
    assert "module m0" in bench.reachable()
    assert "module m9" not in bench.reachable()
    assert "m9" not in bench.recalled("module m9")


def test_going_back_before_the_first_compaction_leaves_nothing_to_recall():
    bench = Bench()
    bench.go(14, "m")
    first = next(
        s for s in reversed(bench.history()) if s.next == ("model",) and len(s.values) == 1
    )
    bench.go(0, "f", first.config, None)
    assert bench.head() == "None"
    assert "module m" not in bench.reachable()
    bench.go(12, "g")
    assert "module g1" in bench.reachable()
    assert "module m" not in bench.reachable()
    check_sent(bench.model)
    assert check_nothing_lost(bench.graph, bench.store) > 0


# Changing the state


# Forks and copies


# Where the channel keeps every message


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
