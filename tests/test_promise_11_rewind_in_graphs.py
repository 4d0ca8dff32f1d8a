"""Promise 11 in real graphs: undo, edit, time travel, fork and copy leave the next step right.

What each summariser call read is taken from its prompt: modules are named `m0`, `m1` and so on, and
a fork goes on with other names.
"""

import itertools
import re
from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.messages import read_messages
from graph_support import (
    agent,
    check_nothing_lost,
    check_sent,
    is_summary,
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


def sent_text(bench: Bench) -> str:
    return bench.model.calls[-1].text


# Going back


def test_time_travel_brings_back_the_head_of_that_time_and_its_summary():
    bench = Bench()
    bench.go(14, "m")
    heads = bench.heads()
    assert len(heads) > 3
    for head in heads[:-1]:
        shown = bench.at_head(head).values["messages"]
        assert [m.id for m in shown if is_summary(m)] == [f"summary-{head}"]


def test_a_run_from_an_older_checkpoint_reads_only_what_is_on_its_branch():
    bench = Bench()
    bench.go(14, "m")
    old = bench.at_head(bench.heads()[2])
    shown = {m.id for m in old.values["messages"]}
    assert shown
    known = bench.calls
    bench.go(8, "f", old.config, None)
    check_sent(bench.model)
    assert check_nothing_lost(bench.graph, bench.store) > 0
    again = bench.read(known)
    later = {f"m{n}" for n in range(14)} - set(re.findall(r"\bm\d+\b", str(old.values["messages"])))
    assert not set(again) & later, "read of an abandoned branch"
    assert max(again.values()) == 1, "read twice"
    assert not re.search(r"\bm1[0-3]\b", sent_text(bench))


def test_going_back_and_on_the_same_way_pays_for_nothing_twice():
    bench = Bench()
    bench.go(14, "m")
    known, heads = bench.calls, bench.heads()
    # From the very last checkpoint before each compaction: the model's answers are there already.
    turning = [
        s
        for s in bench.history()
        if s.next == ("SummarizationMiddleware.before_model",) and len(s.values["messages"]) >= 10
    ]
    assert len(turning) == known
    for snapshot in turning:
        bench.script[:] = ["Enough."]
        out = bench.graph.invoke(None, snapshot.config)
        assert out["messages"][-1].text == "Enough."
        assert bench.head() in heads
    assert bench.calls == known, "a summary was paid for again"


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


@pytest.mark.slow
def test_two_branches_that_go_on_in_turn_keep_what_is_their_own():
    bench = Bench()
    bench.go(8, "m")
    fork = bench.graph.get_state(thread()).config
    bench.go(6, "left")
    left = bench.graph.get_state(thread()).config
    for _ in range(2):
        bench.go(6, "right", fork)
        right = bench.graph.get_state(thread()).config
        assert "module right" in bench.reachable()
        assert "module left" not in bench.reachable()
        bench.go(6, "left", left)
        assert "module left" in bench.reachable()
        assert "module right" not in bench.reachable()
        check_nothing_lost(bench.graph, bench.store)
        left, fork = bench.graph.get_state(thread()).config, right
    check_sent(bench.model)


# Changing the state


def test_an_edit_of_a_kept_message_is_the_one_that_is_read_later():
    bench = Bench()
    bench.go(6, "m")
    kept = [m for m in bench.values()["messages"] if isinstance(m, ToolMessage)]
    edited = ToolMessage(
        "module edited7: pass  # nothing of m5 is left", tool_call_id=kept[-1].tool_call_id
    )
    edited.id = kept[-1].id
    name = re.findall(r"module (\w+):", kept[-1].text)[0]
    bench.graph.update_state(thread(), {"messages": [edited]})
    known = bench.calls
    bench.go(8, "n")
    read = bench.read(known)
    assert read["edited7"] == 1
    assert read[name] == 0, "a message that no longer exists was summarised"
    assert "edited7" in bench.reachable()
    check_sent(bench.model)


def test_a_removed_message_is_not_summarised_and_nothing_is_torn():
    bench = Bench()
    bench.go(6, "m")
    kept = [m for m in bench.values()["messages"] if not is_summary(m)]
    pair = next(
        (call, result)
        for call, result in itertools.pairwise(kept)
        if isinstance(call, AIMessage) and isinstance(result, ToolMessage)
    )
    name = re.findall(r"module (\w+):", pair[1].text)[0]
    bench.graph.update_state(thread(), {"messages": [RemoveMessage(id=str(m.id)) for m in pair]})
    known = bench.calls
    bench.go(8, "n")
    assert bench.read(known)[name] == 0
    check_sent(bench.model)


def test_without_its_summary_message_a_history_goes_on_from_what_is_left():
    bench = Bench()
    bench.go(6, "m")
    messages = bench.values()["messages"]
    (summary,) = [message for message in messages if is_summary(message)]
    bench.graph.update_state(thread(), {"messages": [RemoveMessage(id=summary.id)]})
    known = bench.calls
    bench.go(8, "n")
    left = set(re.findall(r"module (\w+):", str(messages[1:])))
    read = bench.read(known)
    assert set(read) <= left | {f"n{n}" for n in range(8)}
    assert max(read.values()) == 1
    assert "looked at" not in bench.own.model.calls[known].text, "a removed summary was built on"
    check_sent(bench.model)


def test_an_edited_summary_message_is_believed_and_handed_on():
    bench = Bench()
    bench.go(6, "m")
    summary = bench.values()["messages"][0]
    changed = summary.model_copy(
        update={"content": f"{summary.content}\nThe colour is teal42, says the editor."}
    )
    bench.graph.update_state(thread(), {"messages": [changed]})
    known = bench.calls
    bench.go(8, "n")
    assert "teal42" in bench.own.model.calls[known].text
    assert max(bench.read(known).values()) == 1
    assert not set(bench.read(known)) & {"m0", "m1"}
    check_sent(bench.model)


def test_a_thread_that_was_emptied_begins_anew():
    bench = Bench()
    bench.go(14, "m")
    bench.graph.update_state(thread(), {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
    known = bench.calls
    bench.go(12, "n", given=said("Begin anew with n."))
    check_sent(bench.model)
    assert bench.calls > known
    assert not [name for name in bench.read(known) if name.startswith("m")]
    assert "module m" not in bench.reachable()
    assert not [call for call in bench.model.calls[-12:] if "module m" in call.text]


def test_a_whole_history_that_is_put_back_is_not_summarised_again():
    bench = Bench()
    bench.go(7, "m")
    whole = {}
    for snapshot in reversed(bench.history()):
        for message in snapshot.values.get("messages", ()):
            if not is_summary(message):
                whole[message.id] = message
    known = bench.calls
    assert known > 0
    everything = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole.values()]
    bench.graph.update_state(thread(), {"messages": everything})
    bench.go(1, "n")
    check_sent(bench.model)
    read = bench.read(known)
    assert not read or max(read.values()) == 1
    assert not set(read) & {"m0", "m1"}, "read again although its summary is in force"
    assert check_nothing_lost(bench.graph, bench.store) > 0


# Forks and copies


@pytest.mark.sampled(1)
@pytest.mark.parametrize("private", [True, False])
def test_a_copy_to_another_thread_goes_on_and_the_first_does_not_see_it(private):
    bench = Bench()
    bench.go(10, "m")
    values = bench.values()
    given = values if private else {"messages": values["messages"]}
    bench.graph.update_state(thread("copy"), given, as_node="model")
    known, head = bench.calls, bench.head()
    bench.go(1, "b", thread("copy"))
    if private:
        assert bench.head(thread("copy")) == head or bench.calls > known
        assert "module m0" in bench.reachable("copy")
        assert "m0" in bench.recalled("module m0", "copy")
    bench.go(10, "c", thread("copy"))
    check_sent(bench.model)
    read = bench.read(known)
    assert not set(read) & {"m0", "m1"}
    assert max(read.values()) == 1
    assert "module c1" in bench.reachable("copy")
    assert "module c" not in bench.reachable("t")
    assert "module m0" in bench.reachable("t")
    bench.go(8, "o")
    assert "module o" not in bench.reachable("copy")
    assert "module c" not in bench.reachable("t")
    assert check_nothing_lost(bench.graph, bench.store) > 0


def test_a_copy_lives_on_when_the_first_thread_is_forgotten():
    bench = Bench()
    bench.go(10, "m")
    [first, *_] = Archive(bench.store).chain(Scope("local", "t"))
    bench.graph.update_state(thread("copy"), bench.values(), as_node="model")
    bench.go(0, "c", thread("copy"))
    Archive(bench.store).forget("local", "t")
    assert Archive(bench.store).chain(Scope("local", "copy"))[0] == first
    assert "m0" in bench.recalled("module m0", "copy")
    bench.go(8, "c", thread("copy"))
    assert "module m0" in bench.reachable("copy")
    assert "module c1" in bench.reachable("copy")


# Where the channel keeps every message


@pytest.mark.parametrize("restart", [False, True])
def test_an_edit_of_a_covered_message_counts_though_no_summary_is_made_after_it(restart):
    bench = Bench(history="preserve", on_failure="keep")
    bench.go(8, "m")
    covered = next(m for m in bench.values()["messages"] if isinstance(m, ToolMessage))
    assert "module m0:" in bench.recalled("module m0")
    edited = covered.model_copy(update={"content": "module edited7: pass the other way"})
    bench.graph.update_state(thread(), {"messages": [edited]})
    head = bench.head()
    if restart:
        bench.restarted()
    bench.own.model.answers = lambda _: ValueError("down")
    bench.go(1, "n")
    assert bench.head() != head, "the state goes on naming a record of what was edited"
    assert "module m0:" not in bench.reachable()
    assert "module m0:" not in bench.recalled("module m0")
    assert "edited7" in sent_text(bench)
    check_sent(bench.model)


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


def test_a_failure_on_an_abandoned_branch_does_not_hold_back_the_next():
    bench = Bench()
    works, down = bench.own.model.answers, ScriptedChatModel(answers=lambda _: ValueError("down"))
    bench.own.model.answers = down.answers
    bench.go(14, "m")
    assert bench.head() == "None"
    short = next(s for s in bench.history() if s.next and len(s.values["messages"]) == 11)
    bench.own.model.answers = works
    known = bench.calls
    bench.go(3, "f", short.config, None)
    assert bench.calls > known, "it waits for the growth of a history that is no more"
    check_sent(bench.model)
