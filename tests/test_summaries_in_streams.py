"""Nothing of a summariser, and no summary, stands in a graph's stream beside the answers."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus import Compactor, SummarizationMiddleware
from conspectus.short_term import SummarizationNode, summarize_messages
from graph_support import StreamingModel

SECRET = "SECRET words of the summariser stand here"
LIMITS: dict[str, Any] = {"max_tokens": 400, "max_summary_tokens": 100}
answering = StreamingModel(answers=lambda messages: "answer words now")
summariser = StreamingModel(answers=lambda messages: SECRET)


class State(MessagesState):
    context: dict[str, Any]
    summarized_messages: list[Any]


def answered(messages: list[Any]) -> dict[str, Any]:
    return {"messages": [answering.invoke(messages)]}


def by_function() -> Any:
    def call(state: State) -> dict[str, Any]:
        running = (state.get("context") or {}).get("running_summary")
        result = summarize_messages(
            state["messages"], running_summary=running, model=summariser, **LIMITS
        )
        return answered(result.messages) | {"context": {"running_summary": result.running_summary}}

    return StateGraph(State).add_node("call", call).add_edge(START, "call")


def by_node(**settings: Any) -> Any:
    key = settings.get("output_messages_key", "summarized_messages")
    node = SummarizationNode(model=summariser, **LIMITS, **settings)
    builder = StateGraph(State).add_node("summarize", node)
    builder.add_node("call", lambda state: answered(state[key]))
    return builder.add_edge(START, "summarize").add_edge("summarize", "call")


def by_compactor() -> Any:
    compactor = Compactor(summariser, window=1_000)

    def call(state: MessagesState) -> dict[str, Any]:
        result = compactor.compact(state["messages"], thread_id="x")
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *result.messages]}

    builder = StateGraph(MessagesState).add_node("compact", call)
    builder.add_node("call", lambda state: answered(state["messages"]))
    return builder.add_edge(START, "compact").add_edge("compact", "call")


def by_middleware() -> Any:
    middleware: Any = SummarizationMiddleware(
        summariser, trigger=("messages", 8), keep=("messages", 3)
    )
    return create_agent(answering, [], middleware=[middleware], checkpointer=InMemorySaver())


GRAPHS = {
    "the function": by_function,
    "the node": by_node,
    "the node, replacing": lambda: by_node(output_messages_key="messages"),
    "the compactor": by_compactor,
    "the middleware": by_middleware,
}


def graph_of(surface: str, *, nested: bool = False) -> Any:
    builder = GRAPHS[surface]()
    if surface == "the middleware":
        return builder
    if not nested:
        return builder.compile(checkpointer=InMemorySaver())
    outer = StateGraph(State).add_node("inner", builder.compile()).add_edge(START, "inner")
    return outer.compile(checkpointer=InMemorySaver())


TURNS = 10


def turns() -> Iterator[tuple[dict[str, Any], Any]]:
    for n in range(TURNS):
        yield (
            {"messages": [HumanMessage(f"question {n} " + "word " * 60)]},
            {"configurable": {"thread_id": "t"}},
        )


def is_ours(message: Any) -> bool:
    return SECRET.split()[0] in str(message.content) or isinstance(message, RemoveMessage)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("surface", GRAPHS)
def test_messages_show_the_answers_alone(surface, nested):
    graph = graph_of(surface, nested=nested)
    calls_before = len(summariser.calls)
    shown = 0
    for agent_input, config in turns():
        for _, (message, _) in graph.stream(
            agent_input, config, stream_mode="messages", subgraphs=True
        ):
            assert not is_ours(message), message
            shown += isinstance(message, AIMessage)
    assert shown
    assert len(summariser.calls) > calls_before


@pytest.mark.parametrize("surface", GRAPHS)
def test_events_show_the_answers_model_alone(surface):
    graph = graph_of(surface)
    calls_before = len(summariser.calls)

    async def models() -> list[Any]:
        model_events = []
        for agent_input, config in turns():
            async for event in graph.astream_events(agent_input, config, version="v2"):
                if event["event"].startswith("on_chat_model"):
                    model_events.append(event)
        return model_events

    events = asyncio.run(models())
    assert len(summariser.calls) > calls_before
    names = [event["event"] for event in events]
    assert names.count("on_chat_model_start") == names.count("on_chat_model_end") == TURNS
    assert "on_chat_model_stream" in names
    parts = [event["data"].get(part) for event in events for part in ("chunk", "output")]
    assert not [
        part_of_event
        for part_of_event in parts
        if part_of_event is not None and is_ours(part_of_event)
    ]
