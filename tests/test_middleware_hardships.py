"""What an agent's step meets in real life and must come through: many workers, damaged state,
summaries that cannot be taken over, failures that last, stores that come late."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import SummarizationMiddleware
from graph_support import agent, middleware, said, thread
from scripted_models import ScriptedChatModel

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


# Another library's summary that cannot be taken over


def talk(count: int, words: int = 20) -> list[AnyMessage]:
    kinds: list[Any] = [HumanMessage, AIMessage]
    text = "word " * words
    return [kinds[n % 2](f"say{n} {text}", id=f"m{n}") for n in range(count)]


# Failures that last


def refusing() -> ScriptedChatModel:
    return ScriptedChatModel(
        answers=lambda _: "I'm sorry, but I can't help with that.", cites=False
    )


def test_a_failure_with_room_to_spare_holds_nothing_back_once_there_is_none():
    own = SummarizationMiddleware(
        refusing(), trigger=("tokens", 1_000), keep=("messages", 2), window=3_700
    )
    messages = talk(14, words=150)
    state: dict[str, Any] = {"messages": messages}
    assert own.before_model(state, Runtime()) is None, "it failed, and there is room"
    state["messages"] = [*messages, AIMessage("ok"), HumanMessage("word " * 180)]
    assert own.before_model(state, Runtime()) is not None, "the embedded summariser has written"
