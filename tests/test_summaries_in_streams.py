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


def by_node(**more: Any) -> Any:
    key = more.get("output_messages_key", "summarized_messages")
    node = SummarizationNode(model=summariser, **LIMITS, **more)
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


WAYS = {
    "the function": by_function,
    "the node": by_node,
    "the node, replacing": lambda: by_node(output_messages_key="messages"),
    "the compactor": by_compactor,
    "the middleware": by_middleware,
}


def graph_of(way: str, *, nested: bool = False) -> Any:
    made = WAYS[way]()
    if way == "the middleware":
        return made
    if not nested:
        return made.compile(checkpointer=InMemorySaver())
    outer = StateGraph(State).add_node("inner", made.compile()).add_edge(START, "inner")
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
@pytest.mark.parametrize("way", WAYS)
def test_messages_show_the_answers_alone(way, nested):
    graph = graph_of(way, nested=nested)
    before = len(summariser.calls)
    shown = 0
    for given, config in turns():
        for _, (message, _) in graph.stream(given, config, stream_mode="messages", subgraphs=True):
            assert not is_ours(message), message
            shown += isinstance(message, AIMessage)
    assert shown
    assert len(summariser.calls) > before


@pytest.mark.parametrize("way", WAYS)
def test_events_show_the_answers_model_alone(way):
    graph = graph_of(way)
    before = len(summariser.calls)

    async def models() -> list[Any]:
        found = []
        for given, config in turns():
            async for event in graph.astream_events(given, config, version="v2"):
                if event["event"].startswith("on_chat_model"):
                    found.append(event)
        return found

    events = asyncio.run(models())
    assert len(summariser.calls) > before
    names = [event["event"] for event in events]
    assert names.count("on_chat_model_start") == names.count("on_chat_model_end") == TURNS
    assert "on_chat_model_stream" in names
    written = [event["data"].get(part) for event in events for part in ("chunk", "output")]
    assert not [one for one in written if one is not None and is_ours(one)]
