"""Promise 7: what an agent recalls is of its own tenant, thread, session and branch alone."""

from typing import Any

from langchain_core.messages import HumanMessage

from recalling import RecallingAgent, recall

HERON = "The secret word of the heron branch is QUARTZ-7781."
ASK = "What is the secret word of the heron branch, LOOK"


def lookups(name: str) -> dict[str, list[list[dict[str, Any]]]]:
    """Every way to ask for one message."""
    ways = [recall(query="secret word heron QUARTZ-7781"), recall(id=name)]
    return {"LOOK": [[*ways, recall(id=name, until=name)]]}


def told(**more: Any) -> RecallingAgent:
    agent = RecallingAgent(lookups("heron-1"), **more)
    agent.graph.invoke({"messages": [HumanMessage(HERON, id="heron-1")]}, agent.config)
    agent.fill()
    return agent


def test_what_was_recalled_is_not_shown_once_its_original_was_edited_away():
    agent = told(history="preserve")
    agent.calls = {}
    stopped: Any = {"messages": [HumanMessage(ASK, id="ask")]}
    for _ in agent.graph.stream(stopped, agent.config, interrupt_before=["model"]):
        pass
    state = agent.graph.get_state(agent.config)
    assert "QUARTZ" in state.values["_conspectus_recalled"]["text"]
    edited = HumanMessage("There is no heron branch.", id="heron-1")
    agent.graph.update_state(agent.config, {"messages": [edited]})
    start = len(agent.requests)
    agent.graph.invoke(None, agent.config)
    assert agent.requests[start:]
    assert "QUARTZ" not in str(agent.requests[start:])
