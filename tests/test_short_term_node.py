"""The node and the function in real graphs: states, keys, checkpoints, serializers, threads."""

import copy
import inspect
import pickle
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from short_term_support import LIMITS, PlainModel, ours, talk, theirs


class State(MessagesState):
    context: dict[str, Any]


class Seen(TypedDict):
    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


def numbered() -> PlainModel:
    number = iter(range(10_000))
    return PlainModel(lambda messages: f"Summary number {next(number)} of all that was said.")


def node_graph(
    saver: BaseCheckpointSaver[Any] | None, model: Any = None, **more: Any
) -> tuple[Any, list[list[Any]]]:
    """A node that summarises, then one that answers; and what that one was shown."""
    seen: list[list[Any]] = []

    def call_model(state: Seen) -> dict[str, Any]:
        seen.append(state["summarized_messages"])
        return {"messages": [AIMessage("so " * 20)]}

    node = ours.SummarizationNode(model=model or numbered(), **(LIMITS | more))
    builder = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_node("call_model", call_model)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return builder.compile(checkpointer=saver), seen


def config(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def said(n: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {n} " + "why " * 20)]}


def test_one_key_for_both_replaces_the_history():
    class Own(MessagesState):
        context: dict[str, Any]

    model = numbered()
    node = ours.SummarizationNode(model=model, output_messages_key="messages", **LIMITS)
    builder = StateGraph(Own)
    builder.add_node(node)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("so " * 20)]})
    builder.add_edge(START, "summarization")
    builder.add_edge("summarization", "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": [SystemMessage("Be brief.", id="s"), *said(0)["messages"]]}, config())
    names = set()
    for n in range(1, 24):
        graph.invoke(said(n), config())
        messages = graph.get_state(config()).values["messages"]
        summaries = [m for m in messages if "Summary number" in str(m.content)]
        assert len(summaries) == bool(model.calls)
        names |= {m.id for m in summaries}
        assert messages[0].id == "s"
        assert len(messages) < 12
    # A summary that stands has one id; a new one is another message.
    assert len(names) == len(model.calls) >= 3
    assert not any("Summary number" in str(m.content) for c in model.calls for m in c if m.id)


def test_a_node_has_langmems_attributes_and_follows_them():
    given: dict[str, Any] = {"model": PlainModel(), "name": "shorten", **LIMITS}
    node, theirs_node = ours.SummarizationNode(**given), theirs.SummarizationNode(**given)
    names = [n for n in inspect.signature(theirs.SummarizationNode).parameters if n != "self"]
    for name in names:
        if not name.endswith("_prompt"):
            assert getattr(node, name) == getattr(theirs_node, name), name
        assert hasattr(node, name)
    assert "context" in node.invoke({"messages": talk(8)})
    node.max_tokens = 5_000
    assert "context" not in node.invoke({"messages": talk(8)})
    node.max_summary_tokens = 5_000
    with pytest.raises(ValueError, match="must be less than"):
        node.invoke({"messages": talk(8)})
    with pytest.raises(AttributeError, match="did you mean 'max_tokens'"):
        node.max_token = 5_000


def test_a_node_can_be_copied_and_pickled_as_langmems_can():
    node = ours.SummarizationNode(model=PlainModel(), **LIMITS)
    expected = node.invoke({"messages": talk(8)})
    for again in (copy.copy(node), copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
        assert again.invoke({"messages": talk(8)}) == expected
