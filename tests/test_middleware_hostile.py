"""Damaged states, and graphs without a checkpointer: a step ends, and loses nothing."""

from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, Compactor
from conspectus.messages import is_summary_message
from graph_support import agent, middleware, said, thread

# What an agent's step meets in real life and must come through


TALK = [{"role": "user", "content": f"question {n}"} for n in range(9)]
RECORD = Compactor(keep=("messages", 2)).compact(TALK, thread_id="t", force=True).record.to_json()  # type: ignore[union-attr]
del RECORD["bill"]  # its seconds are in no test's name

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


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("config", [thread(), {}], ids=["a thread", "none"])
def test_a_whole_history_sent_each_time_is_summarised_once(history, config):
    """A stateless server builds the agent anew for each request, which brings all that was said."""
    store, read = InMemoryStore(), Counter[str]()
    whole: list[Any] = []

    def summarise(messages: list[Any]) -> str:
        read.update(str(one.text) for one in messages if not is_summary_message(one))
        return "## Done\n" + "- What was asked was done.\n" * 12

    def asked(text: str) -> list[Any]:
        """Ask, and return what the model was sent."""
        whole.append(HumanMessage(text, id=f"u{len(whole)}"))
        own = middleware(summarizer=summarise, archive=Archive(store), history=history)
        more: Any = {"checkpointer": None, "store": None, "tools": []}
        graph, model = agent(lambda _: f"Answer {len(whole)} to what was asked.", own, **more)
        out = graph.invoke({"messages": [one.model_copy() for one in whole]}, config)
        whole.append(out["messages"][-1])
        return list(model.calls[-1].messages)

    sent = [asked(f"Request {n}: look at module {n}, please.") for n in range(40)]
    assert max(map(len, sent)) <= 10
    assert set(read.values()) == {1}
    assert len(read) >= len(whole) - 10
    # What a client has edited is read as it is now.
    whole[2] = HumanMessage("Request 1: leave module 1 alone.", id="u2")
    before = Counter(read)
    seen = {one.text for one in asked("And now?")}
    assert "Request 1: leave module 1 alone." in {*(read - before)} | seen
