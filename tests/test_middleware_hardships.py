"""What an agent's step meets in real life and must come through: many workers, damaged state,
summaries that cannot be taken over, failures that last, stores that come late."""

import asyncio
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.engine import drafts
from conspectus.engine.memory import Memory, SessionMemory
from conspectus.errors import StuckError
from conspectus.notes.rendering import Notes
from graph_support import agent, is_summary, middleware, said, scope_of, summariser, thread
from scripted_models import ScriptedChatModel


class Crowded(OrderedDict[Scope, SessionMemory]):
    """Sessions of a memory that another worker would change while they are looked through."""

    memory: Memory

    def values(self) -> Any:
        def one_by_one() -> Iterator[SessionMemory]:
            for value in OrderedDict.values(self):
                if not self.memory._sessions._lock.locked():
                    self.memory.of(Scope("local", "another", "main"))
                yield value

        return one_by_one()


def test_asking_for_failures_is_safe_while_other_workers_begin_sessions():
    memory = Memory()
    for name in ("one", "two", "three"):
        memory.of(Scope("local", name, "main"))
    crowded = Crowded(memory._sessions._values)
    crowded.memory = memory
    memory._sessions._values = crowded
    assert not memory.any_failed


RECORD = {
    "v": 1,
    "id": "0123456789abcdef",
    "parent": None,
    "covers": ["k1"],
    "clips": [],
    "summary": "all is well",
    "segment": {},
    "cause": "forced",
    "tokens_before": 90,
    "tokens_after": 30,
    "messages_after": 2,
    "archived": True,
    "by": "model",
    "cost": {"calls": 1, "input_tokens": 80, "output_tokens": 20},
}

DAMAGED: list[dict[str, Any]] = [
    {"after": [5]},
    {"after": [float("inf"), 1]},
    {"after": [float("nan"), 1]},
    {"after": [-4, 1]},
    {"after": {"0": 1}},
    {"after": "xy"},
    {"head": ["x"]},
    {"head": [5]},
    {"head": [None]},
    {"head": [{"v": 1}], "pending": True},
    {"head": [{**RECORD, "summary": 7}]},
    {"head": [{**RECORD, "covers": [["k"]]}]},
    {"head": [{**RECORD, "covers": None}]},
    {"head": [{**RECORD, "clips": ["k"]}]},
    {"head": [{**RECORD, "clips": [{"key": 1, "shown": "", "limit": "x"}]}]},
    {"head": [{**RECORD, "segment": 5}]},
    {"head": [{**RECORD, "messages_after": "3"}]},
    {"head": [{**RECORD, "cost": None}]},
    {"head": ""},
    {"head": "no such record"},
    {"head": []},
    {"head": {"a": 1}},
    {"thread": 5},
    {"session": None},
    {"v": 2},
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("damage", DAMAGED, ids=repr)
@pytest.mark.parametrize("stored", [False, True])
def test_a_damaged_state_is_not_trusted_and_stops_no_step(damage, stored):
    store = InMemoryStore() if stored else None
    graph, model = agent(lambda _: "ok", middleware(), store=store)
    graph.invoke(said("hi"), thread())
    sound = {"v": 1, "thread": "t", "session": "main", "head": None, "after": None}
    graph.update_state(thread(), {"_conspectus": {**sound, "pending": False, **damage}})
    for n in range(6):
        graph.invoke(said(f"question {n}"), thread())
    assert len(model.calls[-1].messages) < 10, "it goes on and compacts"
    held = graph.get_state(thread()).values["_conspectus"]
    assert held["head"]
    assert held["after"]


@pytest.mark.parametrize("wrong", [True, "x", -1, None, 1.5])
def test_a_damaged_report_of_the_guard_is_not_trusted(wrong):
    graph, model = agent(lambda _: "ok", middleware())
    seen = {"v": 1, "overhead": wrong, "window": wrong, "learned": wrong}
    graph.invoke({**said("hi")}, thread())
    graph.update_state(thread(), {"_conspectus_request": seen})
    for n in range(3):
        graph.invoke(said(f"question {n}"), thread())
    assert len(model.calls[-1].messages) == 7, "no window has been made up"


# Another library's summary that cannot be taken over


def talk(count: int, words: int = 20) -> list[AnyMessage]:
    kinds: list[Any] = [HumanMessage, AIMessage]
    text = "word " * words
    return [kinds[n % 2](f"say{n} {text}", id=f"m{n}") for n in range(count)]


def pinning(looked: list[str]) -> Callable[[Any], bool]:
    """A pin on every message that notes which were looked at."""

    def pin(message: Any) -> bool:
        looked.append(message.id)
        return True

    return pin


def event(cutoff: int) -> dict[str, Any]:
    text = "Here is a summary of the conversation to date:\n\nold talk"
    return {"cutoff_index": cutoff, "summary_message": HumanMessage(text), "file_path": None}


def test_a_foreign_summary_that_stands_for_nothing_that_may_leave_stops_no_compaction():
    own = middleware(pin=lambda message: message.id == "m0")
    state = {"messages": [*talk(30), HumanMessage("go on")], "_summarization_event": event(1)}
    update = own.before_model(state, Runtime())
    assert len(update["messages"]) < 10


# What helps nothing is not gone into at every step


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, 4_000])
def test_a_long_history_that_nothing_makes_smaller_is_not_read_at_every_step(window):
    looked: list[str] = []
    own = middleware(window=window, pin=pinning(looked))
    messages = talk(1_024)
    reads = []
    for n in range(12):
        before = len(looked)
        assert own.before_model({"messages": messages}, Runtime()) is None
        reads.append(len(looked) > before)
        messages.append(AIMessage(f"more {n}"))
    assert reads == [n % 4 == 0 for n in range(12)]


def test_a_short_history_is_looked_at_again_at_the_next_step():
    pinned = {"all"}
    own = middleware(pin=lambda _: "all" in pinned)
    messages = talk(31)
    assert own.before_model({"messages": messages}, Runtime()) is None
    pinned.clear()
    messages.append(AIMessage("more"))
    assert own.before_model({"messages": messages}, Runtime()) is not None


# Failures that last


def crowded(count: int = 17) -> list[AnyMessage]:
    return talk(count, words=150)


def refusing() -> ScriptedChatModel:
    return ScriptedChatModel(
        answers=lambda _: "I'm sorry, but I can't help with that.", cites=False
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("refused", [False, True])
def test_over_the_window_too_nothing_is_tried_again_without_growth(guarded, refused):
    tries: list[int] = []

    def read(_: object) -> None:
        tries.append(1)

    writer = summariser() if refused else refusing()
    own = SummarizationMiddleware(
        writer,
        trigger=("tokens", 1_000),
        keep=("messages", 2),
        window=2_500,
        on_failure="keep",
        preview=read if refused else False,
    )
    guard = [ContextGuard(own, window=2_500, on_stuck="send")] if guarded else []
    graph, model = agent(lambda _: "ok", own, *guard)
    graph.invoke({"messages": crowded()}, thread())
    for n in range(4):
        graph.invoke(said(f"question {n}"), thread())
    assert len(model.calls) == 5, "each request went out all the same"
    once = 1 if refused else 2  # what is no summary is asked for once more
    assert len(tries if refused else writer.calls) == once
    graph.invoke(said("word " * 400), thread())
    assert len(tries if refused else writer.calls) == 2 * once, "it has grown by a tenth"


def test_a_guard_that_may_not_try_again_says_that_it_is_stuck():
    own = SummarizationMiddleware(
        refusing(), trigger=("tokens", 1_000), keep=("messages", 2), window=2_500, on_failure="keep"
    )
    graph, model = agent(lambda _: "ok", own, ContextGuard(own, window=2_500))
    with pytest.raises(StuckError, match="grown by a tenth"):
        graph.invoke({"messages": crowded()}, thread())
    assert model.calls == []


def test_a_failure_with_room_to_spare_holds_nothing_back_once_there_is_none():
    own = SummarizationMiddleware(
        refusing(), trigger=("tokens", 1_000), keep=("messages", 2), window=3_700
    )
    messages = talk(14, words=150)
    state: dict[str, Any] = {"messages": messages}
    assert own.before_model(state, Runtime()) is None, "it failed, and there is room"
    state["messages"] = [*messages, AIMessage("ok"), HumanMessage("word " * 180)]
    assert own.before_model(state, Runtime()) is not None, "the embedded summariser has written"


def test_what_is_asked_for_by_force_is_not_held_back():
    writer = refusing()
    own = Compactor(summarizer=writer, window=2_500, on_failure="keep")
    for _ in range(3):
        result = own.compact(crowded(), thread_id="t")
        assert result.outcome == "stuck"
    assert len(writer.calls) == 2
    own.compact(crowded(), thread_id="t", force=True)
    assert len(writer.calls) == 4


# A store that comes late


def within_reach(graph: Any, store: InMemoryStore) -> str:
    """The texts of all that is archived within reach of the state's own record."""
    values = graph.get_state(thread()).values
    scope, archive = scope_of(values, "t"), Archive(store)
    chain = run(archive.flow(archive.chain_at, scope, values["_conspectus"]["head"]))
    keys = [key for record in chain for key in record.covers]
    return "\n".join(str(one.message) for one in archive.get(scope, keys))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_what_leaves_after_a_store_was_added_stays_within_reach(history):
    saver, store = InMemorySaver(), InMemoryStore()
    rule = "Never deploy on Fridays."
    own = middleware(history=history)
    graph, _ = agent(lambda _: "ok fine", own, store=None, checkpointer=saver)
    graph.invoke(said(f"Question about mod100. {rule}"), thread())
    for n in range(101, 108):
        graph.invoke(said(f"question about mod{n}"), thread())
    before = graph.get_state(thread()).values
    assert isinstance(before["_conspectus"]["head"], list), "compacted without a store"
    here = [str(m.content) for m in before["messages"] if not is_summary(m)]
    graph, model = agent(
        lambda _: "ok fine", middleware(history=history), store=store, checkpointer=saver
    )
    for n in range(108, 130):
        graph.invoke(said(f"question about mod{n}"), thread())
    found = within_reach(graph, store)
    view = "\n".join(str(m.content) for m in model.calls[-1].messages)
    for text in [*here, *(f"question about mod{n}" for n in range(108, 130))]:
        assert text in found or text in view, f"out of reach: {text}"
    assert rule in view, "the notes of the time without a store are carried on"


# A loop that has others to serve


@pytest.mark.parametrize("count", [20, 400])
def test_reading_a_long_history_leaves_the_event_loop_to_others(count, monkeypatch):
    read_in: dict[str, set[int]] = {"messages": set(), "notes": set()}
    read, render = drafts.read_segment, Notes.render

    def noted(*given: Any, **more: Any) -> Any:
        read_in["messages"].add(threading.get_ident())
        return read(*given, **more)

    def written(self: Any, *given: Any, **more: Any) -> Any:
        read_in["notes"].add(threading.get_ident())
        return render(self, *given, **more)

    monkeypatch.setattr(drafts, "read_segment", noted)
    monkeypatch.setattr(Notes, "render", written)
    state = {"messages": [*talk(count, words=2), HumanMessage("go on")]}
    update = asyncio.run(middleware(summarizer="embedded").abefore_model(state, Runtime()))
    assert update is not None
    here = {threading.get_ident()}
    assert all(used and not used & here for used in read_in.values())
    assert middleware(summarizer="embedded").before_model(state, Runtime()) is not None
    assert all(here <= used for used in read_in.values()), "without a loop all is done here"


@pytest.mark.slow
def test_the_view_of_a_channel_that_keeps_everything_keeps_no_message_alive():
    own = middleware(history="preserve")
    state: dict[str, Any] = {"messages": [*talk(30), HumanMessage("go on")]}
    held = own.before_model(state, Runtime())
    assert held is not None
    state.update(held)
    assert own.before_model(state, Runtime()) is None, "the view is remembered"
    newest = ref(state["messages"][-1])
    state.clear()
    gc.collect()
    assert newest() is None
