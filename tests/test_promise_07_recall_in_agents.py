"""Promise 7: what an agent recalls is of its own tenant, thread, session and branch alone."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import SummarizationMiddleware
from recalling import FILLER, RecallingAgent, recall, results
from scripted_models import ScriptedChatModel

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


def test_a_subagent_recalls_its_own_session_and_its_caller_not_the_subagents():
    store = InMemoryStore()
    inner_seen: list[list[BaseMessage]] = []

    def inner_answer(messages: list[BaseMessage]) -> Any:
        inner_seen.append(messages)
        if isinstance(messages[-1], ToolMessage):
            return "Nothing."
        if "LOOK" in str(messages[-1].content):
            return AIMessage("", tool_calls=[{**recall(query="QUARTZ-7781 heron"), "id": "i"}])
        return "Fine."

    def middle() -> SummarizationMiddleware:
        return SummarizationMiddleware(
            None, trigger=("messages", 20), keep=("messages", 6), recall="auto"
        )

    inner = create_agent(ScriptedChatModel(answers=inner_answer), [], middleware=[middle()])

    @tool
    def task(description: str) -> str:
        """Hand work to another agent."""
        talk: list[BaseMessage] = [HumanMessage(f"{n}: {FILLER}") for n in range(24)]
        said = [HumanMessage("The wren code is BASALT-3342."), *talk, HumanMessage(description)]
        return str(inner.invoke({"messages": said})["messages"][-1].content)

    outer = RecallingAgent(store=store)
    tools: list[BaseTool] = [task]
    model = ScriptedChatModel(answers=outer._answer)
    graph = create_agent(
        model, tools, middleware=[middle()], checkpointer=InMemorySaver(), store=store
    )
    outer.graph, outer.model = graph, model
    outer.say(HERON)
    outer.fill()
    outer.calls = {
        "DELEGATE": [[{"name": "task", "args": {"description": "LOOK for the heron"}}]],
        "LOOK": [[recall(query="BASALT-3342 wren"), recall(query="QUARTZ-7781 heron")]],
    }
    outer.say("DELEGATE")
    assert results(inner_seen[-1])
    assert "QUARTZ" not in str([m.content for request in inner_seen for m in request])
    outer.say("LOOK: what is the wren code?")
    by_wren, by_heron = [str(m.content) for m in results(outer.requests[-1])]
    assert "QUARTZ-7781" in by_heron
    assert "BASALT-3342" not in by_wren
