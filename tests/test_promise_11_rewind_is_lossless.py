"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from compactor_support import Scripted, compacted, new_compactor, short_summary
from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.errors import ArchiveError
from conspectus.messages import read_messages
from graph_support import (
    Bench,
    check_nothing_lost,
    check_sent,
    new_middleware,
    thread_config,
    tool_steps,
    user_input,
)
from histories import assistant, talk, tool_result, user
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.messages import speaking, words_in
from stateful.oracle import plain

TURNS = talk(80)
SCOPE = Scope("local", "t")


def test_going_back_needs_no_archive_that_can_be_written(monkeypatch, caplog):
    def refusing(*_: object) -> None:
        raise ArchiveError("the disk is full")

    compactor = new_compactor(keep=("messages", 10))
    sent = talk(60)
    assert compacted(sent, compactor, force=True).outcome == "compacted"
    monkeypatch.setattr(Archive, "set_head", refusing)
    assert compacted(sent[:4], compactor).messages == sent[:4]
    assert "the disk is full" in caplog.text
    assert "is another conversation" in caplog.text


def test_the_head_moves_to_where_a_history_went_back():
    compactor = new_compactor(keep=("messages", 10))
    sent = talk(60)
    head = compacted(sent, compactor, force=True).record_id
    assert compactor.archive.head_id(SCOPE) == head
    assert compacted(sent[:4], compactor).messages == sent[:4]
    assert compactor.archive.head_id(SCOPE) == ""


def test_a_branch_that_could_not_be_noted_is_noted_later(monkeypatch):
    compactor = new_compactor(keep=("messages", 10))
    events: list[str] = []
    listening = new_compactor(
        keep=("messages", 10),
        archive=compactor.archive,
        on_event=lambda name, data: events.append(name),
    )
    sent = talk(60)
    assert compacted(sent, compactor, force=True).outcome == "compacted"
    set_head = Archive.set_head
    refusals = [ArchiveError("the disk is full")] * 2

    def failing_twice(*arguments: Any) -> None:
        if refusals:
            raise refusals.pop()
        set_head(*arguments)

    monkeypatch.setattr(Archive, "set_head", failing_twice)
    other = [*sent[:4], *talk(40, 5)]
    assert compacted(other[:4], listening).head_id  # still that of the branch that was left
    assert compacted(other, listening, force=True).outcome == "compacted"
    assert events == ["start", "end"], "no other worker was there"


@pytest.mark.parametrize("settings", [{}, {"archive": None}], ids=["archived", "in memory"])
def test_the_head_of_a_result_is_the_record_in_force_now(settings):
    compactor = new_compactor(keep=("messages", 10), **settings)
    result = compacted(TURNS[:60], compactor, force=True)
    assert result.head_id == result.record_id
    assert compacted(result.messages, compactor).head_id == result.record_id


def test_without_an_archive_a_branch_that_was_left_is_found_again():
    compactor = new_compactor(archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    left_branch = compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    other_branch = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert left_branch.summary != other_branch.summary
    returned = compacted([*left_branch.messages, *talk(8, 3)], compactor, force=True)
    assert returned.record.parent == left_branch.record_id


def test_going_back_to_an_older_summary_keeps_what_still_fits():
    compactor = new_compactor(keep=("messages", 2))
    view = list[Any]()
    first = list[Any]()
    for n in range(0, 60, 20):
        view = compacted([*view, *TURNS[n : n + 20]], compactor, force=True).messages
        first = first or view
    returned = compacted([*first, *TURNS[20:38], *talk(4, 5)], compactor)
    assert returned.archived
    assert TURNS[0]["content"] in compactor.recall(TURNS[0]["content"], thread_id="t").text


@pytest.mark.parametrize("settings", [{}, {"archive": None}], ids=["archived", "in memory"])
def test_a_once_shorter_history_continues_its_later_records(settings):
    summarizer = Scripted(short_summary)
    compactor = new_compactor(summarizer, trigger=("messages", 8), keep=("messages", 2), **settings)
    sent = talk(30)
    views = [compacted(sent[:n], compactor).messages for n in (20, 40, 60)]
    other_branch = compacted([*sent[:40], *talk(8, 5)], compactor)
    calls_before = len(summarizer.requests)
    for _ in range(3):
        assert compacted(sent[:20], compactor).messages == views[0]
        assert compacted([*sent[:40], *talk(8, 5)], compactor).messages == other_branch.messages
        assert compacted(sent, compactor).messages == views[2]
    assert len(summarizer.requests) == calls_before


@pytest.mark.parametrize("shorter", [24, 25, 40, 60])
def test_a_history_that_comes_back_needs_no_restart(shorter):
    """Below the trigger the short path is taken, which reads new messages alone."""
    compactor = new_compactor(trigger=("messages", 1_000), keep=("messages", 4))
    sent = talk(40)
    view = compacted(sent, compactor, force=True).messages
    assert len(compacted(sent[:shorter], compactor).messages) == shorter
    assert compacted(sent, compactor).messages == view


def test_a_clipping_record_keeps_the_notes_before_it():
    compactor = new_compactor(keep=("messages", 6), window=20_000, stale_results={"over": 400})
    compacted(talk(8), compactor, force=True)
    looked = talk(8)
    for n in range(8):
        looked += [user("Look."), assistant("", (f"c{n}", "a table"))]
        looked += [tool_result(f"c{n}", f"row {n} of it\n" * 350), assistant("I see.")]
    clipping = compacted(looked, compactor)
    assert clipping.clipped
    assert not clipping.record.covers
    compacted([*looked, *talk(8, 5)], compactor, force=True)
    returned = compacted([*looked, *talk(4, 9)], compactor, force=True)
    assert returned.record.parent == clipping.record_id
    assert "question 4 about part_4" in returned.summary


def turns(first: int, last: int, form: str) -> list[Any]:
    return [
        speaking(form, role, f"{words} {n} {'because ' * 60}", name=f"{role}{n}")
        for n in range(first, last)
        for role, words in (("user", "question"), ("assistant", "answer"))
    ]


def repeated_message(form: str) -> Any:
    return speaking(form, "user", "go on", name="same")


def eager_compactor(summarizer: Scripted, **settings: Any) -> Compactor:
    return new_compactor(summarizer, trigger=("messages", 8), keep=("messages", 2), **settings)


@pytest.mark.parametrize("form", ["openai", "langchain"])
@pytest.mark.parametrize("settings", [{}, {"archive": None}], ids=["archived", "in memory"])
def test_a_message_sent_twice_is_paid_for_once(form, settings):
    summarizer = Scripted(short_summary)
    compactor = eager_compactor(summarizer, **settings)
    first = [repeated_message(form), *turns(0, 6, form)]
    later = [repeated_message(form), *turns(6, 12, form)]
    view = compactor.compact(first, thread_id="t").messages
    result = compactor.compact([*view, *later], thread_id="t")
    calls_before = len(summarizer.requests)
    assert calls_before == 2
    whole_result = compactor.compact([*first, *later], thread_id="t")
    assert len(summarizer.requests) == calls_before
    assert whole_result.messages == result.messages


class RewindIsLossless:
    """The head answers for this branch alone, and a return shows what was shown then."""

    def judge(self, look: Look) -> None:
        if look.reach is None or look.error is not None:
            return
        reach = counted(look.reach)
        whole = counted(look.whole)
        assert not reach - whole, "the head answers for what was not said on this branch"
        assert not counted(look.not_shown) - reach, "lost on the way"
        if look.returned_to is not None and look.unchanged is not None and not look.committed:
            then, view = look.returned_to
            assert reach == then, "another head than that of this moment"
            assert [plain(m) for m in look.shown][: len(view)] == view


class RewindIsLosslessCompactor(RewindIsLossless, CompactorWorld):
    archives = False


TestRewindIsLosslessThroughCompactor = budgeted(RewindIsLosslessCompactor, short=7, long=600)


class RewindIsLosslessAgent(AgentWorld):
    """Nothing of another branch is shown, read or found, and nothing of this one is lost."""

    def judge(self, look: Look) -> None:
        words = words_in("\n".join(map(plain, self.current.whole)))
        assert words_in("\n".join(look.sent_texts)) <= words, "shown from another branch"
        assert words_in("\n".join(look.prompts)) <= words, "read from another branch"

    def judge_end(self, channel: list[Any], reach: list[Any]) -> None:
        counted_said = counted(self.current.whole)
        counted_reach = counted(reach)
        assert not counted_reach - counted_said, (
            "the head answers for what was not said on this branch"
        )
        assert not counted_said - counted(channel) - counted_reach, "lost on the way"
        if self.error is None and not self.archive_failed and self.head(self.config):
            tenant = self.current.name[0]
            thread = "/".join(self.current.name)
            query = "look at the next module, please; a line of it"
            compactor = Compactor(archive=self.store)
            recalled = compactor.recall(query, tenant=tenant, thread_id=thread, tokens=3_000)
            words = words_in("\n".join(map(plain, self.current.whole)))
            assert words_in(recalled.text) <= words, "the archive still points to another branch"


TestRewindIsLosslessThroughAgents = budgeted(RewindIsLosslessAgent, short=2, long=100)


class Rewinding(Bench):
    """An agent whose model goes on as it is told; modules are named `m0`, `m1` and so on."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        super().__init__(lambda _: self.script.pop(0), new_middleware())

    def go(self, count: int, prefix: str, config: Any = None) -> None:
        """Take a new task, or go on from a checkpoint."""
        self.script[:] = tool_steps(count, prefix=prefix)
        task = user_input("Look at all modules of the project.") if config is None else None
        self.graph.invoke(task, config or thread_config())

    def head(self, config: Any = None) -> str:
        values = self.graph.get_state(config or thread_config()).values
        return str((values.get("_conspectus") or {}).get("head_id", ""))

    def history(self) -> list[Any]:
        """The checkpoints before a call of the model, the latest first."""
        return [s for s in self.graph.get_state_history(thread_config()) if s.next == ("model",)]

    def recalled(self, query: str) -> str:
        compactor = Compactor(archive=self.store)
        return str(compactor.recall(query, thread_id="t", tokens=4000).text)

    def reachable(self) -> str:
        return str(Archive(self.store).export(Scope("local", "t")))


def test_recall_never_reaches_what_was_abandoned_once_the_branch_goes_on():
    bench = Rewinding()
    bench.go(14, "m")
    assert "module m9" in bench.reachable()
    assert "m9" in bench.recalled("module m9")
    # After the first compaction, of m0 and m1 or so.
    first = [s for s in bench.history() if bench.head(s.config)][-1]
    old = next(s for s in bench.history() if bench.head(s.config) == bench.head(first.config))
    assert "module m9" not in str(old.values["messages"])
    head = bench.head(old.config)
    bench.go(0, "f", old.config)  # a single step, no compaction
    assert bench.head() == head
    assert "module m0" in bench.reachable()
    assert "module m9" not in bench.reachable()
    assert "m9" not in bench.recalled("module m9")


def test_going_back_before_the_first_compaction_leaves_nothing_to_recall():
    bench = Rewinding()
    bench.go(14, "m")
    first = next(s for s in reversed(bench.history()) if len(s.values) == 1)
    bench.go(0, "f", first.config)
    assert bench.head() == ""
    assert "module m" not in bench.reachable()
    bench.go(12, "g")
    assert "module g1" in bench.reachable()
    assert "module m" not in bench.reachable()
    check_sent(bench.model)
    assert check_nothing_lost(bench.graph, bench.store) > 0


def test_without_an_archive_a_preserved_channel_keeps_what_every_record_covers():
    state: dict[str, Any] = {"messages": []}
    for n in range(24):
        state["messages"].append(HumanMessage(f"part {n} " + "is sound " * 40, id=f"m{n}"))
        # A new one each time, as in a process of its own: what is in force stands in the state.
        middleware = SummarizationMiddleware(
            None, trigger=("messages", 8), keep=("messages", 3), history="preserve"
        )
        state |= middleware.before_model(state, Runtime()) or {}
    records = state["_conspectus"]["records"]
    assert len(records) > 2
    covered = [key for record in records for key in record["covers"]]
    keys = [entry.key for entry in read_messages(state["messages"])]
    assert len(covered) > 12
    assert covered == keys[: len(covered)]


@pytest.mark.parametrize("settings", [{}, {"archive": None}], ids=["archived", "in memory"])
@pytest.mark.parametrize("clears", [True, False])
def test_a_node_that_keeps_its_messages_is_warned_about_once(clears, settings, caplog):
    compactor = eager_compactor(Scripted(short_summary), **settings)

    def shorten(state: MessagesState) -> dict[str, Any]:
        view = compactor.compact(state["messages"], thread_id="t").messages
        first = [RemoveMessage(id=REMOVE_ALL_MESSAGES)] if clears else []
        return {"messages": [*first, *view]}

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("because " * 60)]}

    builder = StateGraph(MessagesState)
    builder.add_sequence([shorten, answer])
    builder.add_edge(START, "shorten")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    for n in range(16):
        graph.invoke({"messages": [HumanMessage(f"question {n} {'why ' * 60}")]}, config)
    for checkpoint in list(graph.get_state_history(config))[::5]:  # time travel
        graph.invoke(None, checkpoint.config)
    lines = [r for r in caplog.records if "RemoveMessage(id=REMOVE_ALL_MESSAGES)" in r.message]
    assert [r.levelname for r in lines] == ["WARNING"] * (not clears)
