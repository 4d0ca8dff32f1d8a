"""Damaged states, and graphs without a checkpointer: a step ends, and loses nothing."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, Compactor, SummarizationMiddleware
from conspectus.messages import is_summary_message
from graph_support import agent, middleware, said, thread
from scripted_models import ScriptedChatModel

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


# Failures that last


TRIGGER, KEEP = 10, 4


class Server:
    """A stateless server: each request builds the agent anew and brings its own messages.

    Attributes:
        read: how often each text was read by the summariser.
        requests: what the model was sent.
    """

    def __init__(self, history: str, mode: str = "sync", thread: str | None = "t") -> None:
        self.store = InMemoryStore()
        self.read: Counter[str] = Counter()
        self.requests: list[list[BaseMessage]] = []
        self._history, self._mode, self._thread = history, mode, thread

    def _summarise(self, messages: list[Any]) -> str:
        self.read.update(str(one.text) for one in messages if not is_summary_message(one))
        return "## Done\n" + "- What was asked was done.\n" * 12

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        self.requests.append(messages)
        return AIMessage(f"Answer {len(self.requests)} to what was asked last.")

    def request(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        own = SummarizationMiddleware(
            None,
            trigger=("messages", TRIGGER),
            keep=("messages", KEEP),
            summarizer=self._summarise,
            archive=Archive(self.store),
            history=self._history,  # type: ignore[arg-type]
        )
        graph: Any = create_agent(ScriptedChatModel(answers=self._answer), [], middleware=[own])
        given = {"messages": [one.model_copy() for one in messages]}
        config = {"configurable": {"thread_id": self._thread}} if self._thread else {}
        if self._mode == "sync":
            found = graph.invoke(given, config)
        else:
            found = asyncio.run(graph.ainvoke(given, config))
        return list(found["messages"])


def asked(n: int, text: str = "") -> HumanMessage:
    return HumanMessage(text or f"Request {n}: look at module {n}, please.", id=f"u{n}")


def talk(server: Server, turns: int) -> list[BaseMessage]:
    """A client that keeps all that was said, and sends all of it each time."""
    history: list[BaseMessage] = []
    for n in range(turns):
        history.append(asked(n))
        history.append(server.request(history)[-1])
    return history


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("thread", ["t", None])
def test_a_whole_history_sent_each_time_is_summarised_once(history, mode, thread):
    server = Server(history, mode, thread)
    whole = talk(server, 40)
    assert len(whole) == 80
    assert max(map(len, server.requests)) <= TRIGGER
    assert set(server.read.values()) == {1}
    assert len(server.read) >= len(whole) - TRIGGER


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_what_a_client_has_edited_is_read_as_it_is_now(history):
    server = Server(history)
    whole = talk(server, 20)
    whole[2] = asked(1, "Request 1: leave module 1 alone.")
    before = Counter(server.read)
    server.request([*whole, asked(20)])
    seen = {one.text for one in server.requests[-1]}
    assert "Request 1: leave module 1 alone." in {*(server.read - before)} | seen
