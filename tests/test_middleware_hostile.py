"""Histories and summarisers that wish the middleware ill: a step ends, and loses nothing."""

from typing import Any

import pytest
from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import SummarizationMiddleware
from graph_support import agent, middleware, said, thread


def step(own: SummarizationMiddleware, messages: Any, state: Any = None) -> list[AnyMessage] | None:
    """What a step by hand leaves of a history; None for nothing to do."""
    held = {} if state is None else state
    update = own.before_model({**held, "messages": messages}, Runtime())
    if update is None:
        return None
    assert isinstance(update["messages"][0], RemoveMessage)
    held.update({key: value for key, value in update.items() if key != "messages"})
    return list(update["messages"][1:])


# Histories


# Steps by hand


# What an agent's step meets in real life and must come through


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


# Failures that last
