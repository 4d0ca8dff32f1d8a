"""A compaction that is asked for: by the agent's tool, by a node, from outside; one for all."""

import asyncio
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from conspectus import SummarizationMiddleware, is_summary_message
from engine import Scripted, short
from recalling import RecallingAgent


def compact(**args: Any) -> dict[str, Any]:
    return {"name": "compact_conversation", "args": args}


def agent_with(scripted: Scripted, calls: list[list[dict[str, Any]]], **more: Any) -> Any:
    settings: dict[str, Any] = {
        "recall": "off",
        "compact_tool": True,
        "trigger": ("messages", 500),
        "summarizer": scripted,
        **more,
    }
    agent = RecallingAgent({"COMPACT": calls}, **settings)
    agent.fill(8)
    return agent


def test_the_agent_asks_and_the_next_step_has_the_summary_with_the_focus():
    for asynchronous in (False, True):
        scripted = Scripted(short)
        agent = agent_with(scripted, [[compact(focus="the ports")]])
        agent.say("COMPACT", asynchronous=asynchronous)
        assert [request.focus for request in scripted.requests] == ["the ports"]
        assert is_summary_message(agent.requests[-1][0])
        assert isinstance(agent.requests[-1][-1], ToolMessage)
        assert not agent.values["_conspectus_asked"]
        agent.say("And now?")
        assert len(scripted.requests) == 1


def test_a_node_of_ones_own_compacts_at_once_and_sync_and_async_are_the_same():
    said: list[BaseMessage] = [HumanMessage(f"Look at module {n}.", id=f"m{n}") for n in range(9)]

    def done(asynchronous: bool) -> list[str]:
        scripted = Scripted(short)
        middle = SummarizationMiddleware(None, keep=("messages", 2), summarizer=scripted)
        state = {"messages": list(said)}
        if asynchronous:
            update = asyncio.run(middle.acompact(state, Runtime(), focus="modules"))
        else:
            update = middle.compact(state, Runtime(), focus="modules")
        assert [request.focus for request in scripted.requests] == ["modules"]
        return [str(message.content) for message in update["messages"]]

    assert done(False) == done(True)
    assert len(done(False)) == 4
