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

from conspectus.langchain import SummarizationMiddleware
from graph_support import (
    agent,
    check_sent,
    is_summary,
    middleware,
    said,
    steps,
    thread,
)


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


def test_one_giant_message_is_clipped_where_originals_are_safe_and_stuck_where_not(caplog):
    store = InMemoryStore()
    own = middleware(window=2000, trigger=("tokens", 1500))
    graph, model = agent(steps(1), own, store=store)
    giant = f"Look at m0. {'very long ' * 5000} The end of it."
    graph.invoke(said(giant), thread())
    assert all(len(call.text) < 20_000 for call in model.calls)
    assert "The end of it." in model.calls[0].text
    check_sent(model)

    bare = middleware(window=2000, trigger=("tokens", 1500))
    message = HumanMessage(giant)
    assert step(bare, [message]) is None
    assert "does not fit" in caplog.text


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
