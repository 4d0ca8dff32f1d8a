"""LangMem's short-term memory in two graphs, each four turns long with a checkpointer.

    python examples/langgraph_short_term.py

The first graph has a node that summarises before the node that answers; the second calls the
function where it calls its model. Both know the user's name in the last turn, although the message
that said it has left the view by then. The models are scripts, so that it runs without a key; with
your own, only `model` and `summarizer` change.
"""

from __future__ import annotations

import re
from typing import Any, TypedDict

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from scripted_model import ScriptedModel

from conspectus import Archive, Compactor
from conspectus.short_term import (  # instead of langmem.short_term
    RunningSummary,
    SummarizationNode,
    summarize_messages,
)

TURNS = (
    "Hi, my name is Bob.",
    "Write a short poem about cats.",
    "Now do the same, but for dogs.",
    "What is my name?",
)
THREAD: Any = {"configurable": {"thread_id": "1"}}
LIMITS: dict[str, Any] = {"max_tokens": 256, "max_tokens_before_summary": 128}
SERIALIZER = JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary])
"""What a checkpointer writes with; naming the class keeps LangGraph from warning of it."""

POEM = "They walk along the garden wall, they hear the evening when it calls. " * 8


def answered(messages: list[BaseMessage]) -> str:
    """What a model would answer; this one follows a script."""
    known = re.search(r"[Nn]ame is (\w+)", " ".join(str(m.content) for m in messages))
    name = known[1] if known else "unknown to me"
    return f"Your name is {name}." if "?" in str(messages[-1].content) else POEM


def summary(messages: list[BaseMessage]) -> str:
    """What a model would write as a summary."""
    about = "; ".join(str(m.content)[:30] for m in messages if m.type == "human" and m.id)
    return f"The user's name is Bob. Asked so far: {about}"


class State(MessagesState):
    """What the first graph keeps."""

    context: dict[str, Any]


class Shown(TypedDict):
    """What its model sees."""

    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


class Talk(MessagesState):
    """What the second graph keeps."""

    summary: RunningSummary | None


def with_a_node(model: Any, summarizer: Any, archive: Archive) -> Any:
    """The first graph."""

    def call_model(state: Shown) -> dict[str, Any]:
        return {"messages": [model.invoke(state["summarized_messages"])]}

    builder = StateGraph(State)
    builder.add_node(
        "summarize",
        SummarizationNode(model=summarizer, max_summary_tokens=100, archive=archive, **LIMITS),
    )
    builder.add_node("call_model", call_model)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return builder.compile(checkpointer=InMemorySaver(serde=SERIALIZER))


def with_the_function(model: Any, summarizer: Any) -> Any:
    """The second graph."""

    def call_model(state: Talk) -> dict[str, Any]:
        done = summarize_messages(
            state["messages"],
            running_summary=state.get("summary"),
            model=summarizer.bind(max_tokens=100),
            max_summary_tokens=100,
            **LIMITS,
        )
        update: dict[str, Any] = {"messages": [model.invoke(done.messages)]}
        if done.running_summary:
            update["summary"] = done.running_summary
        return update

    builder = StateGraph(Talk)
    builder.add_node(call_model)
    builder.add_edge(START, "call_model")
    return builder.compile(checkpointer=InMemorySaver(serde=SERIALIZER))


def main() -> int:
    archive = Archive(InMemoryStore())
    told = []
    for name in ("a node", "the function"):
        model = ScriptedModel(answer=answered)
        summarizer = ScriptedModel(answer=summary)
        graph = (
            with_a_node(model, summarizer, archive)
            if name == "a node"
            else with_the_function(model, summarizer)
        )
        print(f"With {name}:")
        for text in TURNS:
            state = graph.invoke({"messages": [{"role": "user", "content": text}]}, THREAD)
            shown = len(model.requests[-1][0])
            print(f"  {text:32} {shown} of {len(state['messages']) - 1} messages shown")
        answer = str(state["messages"][-1].content)
        print(f"  {answer} ({len(summarizer.requests)} summaries)")
        gone = all("Bob." not in str(m.content) for m in model.requests[-1][0] if m.id)
        told.append(answer == "Your name is Bob." and gone)
    found = Compactor(archive=archive).recall("name", thread_id="1", tokens=100)
    print(f"Recalled, word for word: {'my name is Bob' in found.text}")
    return 0 if all(told) and "my name is Bob" in found.text else 1


if __name__ == "__main__":
    raise SystemExit(main())
