"""Histories and summarisers that wish the middleware ill: a step ends, and loses nothing."""

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import SummarizationMiddleware
from graph_support import (
    agent,
    is_summary,
    middleware,
    said,
    thread,
)
from scripted_models import ScriptedChatModel


def talk(turns: int, text: str = "a word about part") -> list[AnyMessage]:
    out: list[AnyMessage] = []
    for n in range(turns):
        out.append(HumanMessage(f"Question {n}: {text} {n}?", id=f"q{n}"))
        out.append(AIMessage(f"Answer {n}: {text} {n}.", id=f"a{n}"))
    return out


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


@pytest.mark.parametrize("at", [0, 3, 9])
def test_a_system_message_among_the_messages(at):
    messages = talk(8)
    rule = SystemMessage("Never touch module zulu99.", id="rule")
    messages.insert(at, rule)
    own = middleware()
    kept = step(own, messages)
    if at == 0:
        assert kept[0] is rule
        assert is_summary(kept[1])
    else:
        assert rule in kept or "zulu99" in own.model.calls[0].text
    assert "zulu99" in "".join(m.text for m in kept), "a standing rule was lost"


# Steps by hand


def test_a_whole_history_with_its_summary_behind_it_is_folded():
    """As a parent graph sends it, whose channel of messages keeps what the agent has removed."""
    own = middleware(archive=InMemoryStore(), trigger=("messages", 10), keep=("messages", 8))
    messages = talk(6)
    kept = step(own, messages)
    again = step(own, [*messages, kept[0]])
    assert again is not None
    assert [m.id for m in again] == [m.id for m in kept]
    assert len(own.model.calls) == 1


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


def long_talk(count: int, words: int = 20) -> list[AnyMessage]:
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
    messages = long_talk(14, words=150)
    state: dict[str, Any] = {"messages": messages}
    assert own.before_model(state, Runtime()) is None, "it failed, and there is room"
    state["messages"] = [*messages, AIMessage("ok"), HumanMessage("word " * 180)]
    assert own.before_model(state, Runtime()) is not None, "the embedded summariser has written"
