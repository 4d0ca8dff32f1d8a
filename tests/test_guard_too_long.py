"""A provider that says no more than "too long": smaller and smaller requests, and an end to it."""

import asyncio
import contextlib
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, StuckError, SummarizationMiddleware
from conspectus.langchain.overflow import TRIES
from conspectus.tokens import TokenMeter
from scripted_models import ScriptedChatModel

METER = TokenMeter()
CONFIG: Any = {"configurable": {"thread_id": "t"}}
LIMIT = 2_000
ASKED = "What do the tables say?"
ROWS = "".join(f"{n}: one more row of a table that is far too long\n" for n in range(400))


@tool
def read_table(name: str) -> str:
    """Read a table."""
    return f"first row of {name}\n" + ROWS + f"last row of {name}\n"


def sizes_of(model: ScriptedChatModel) -> list[int]:
    return [METER.messages(list(call.messages)) for call in model.calls]


def batch(count: int = 4) -> AIMessage:
    calls = [
        {"name": "read_table", "args": {"name": f"t{n}"}, "id": f"c{n}", "type": "tool_call"}
        for n in range(count)
    ]
    return AIMessage("", tool_calls=calls)


def agent(limit: int = LIMIT, *, history: Any = "replace", store: bool, **more: Any) -> Any:
    """An agent that reads four tables at once, on a provider that never names its limit."""

    def answer(messages: list[BaseMessage]) -> Any:
        if METER.messages(messages) > limit:
            return ContextOverflowError("too long")
        return batch() if messages[-1].text == ASKED else f"Fine, {len(messages)}."

    model = ScriptedChatModel(answers=answer)
    middle = [
        SummarizationMiddleware(None, trigger=("messages", 500), history=history)
        for _ in range(history is not None)
    ]
    guard = ContextGuard(*middle, **more)
    graph = create_agent(
        model,
        [read_table],
        middleware=[*middle, guard],
        checkpointer=InMemorySaver(),
        store=InMemoryStore() if store else None,
    )
    return model, graph


def run(graph: Any, said: str, way: str) -> dict[str, Any]:
    asked = {"messages": [HumanMessage(said)]}
    if way == "async":
        asyncio.run(graph.ainvoke(asked, CONFIG))
    elif way == "stream":
        list(graph.stream(asked, CONFIG, stream_mode="messages"))
    else:
        graph.invoke(asked, CONFIG)
    return graph.get_state(CONFIG).values


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize(
    ("history", "store"),
    [("replace", False), ("replace", True), ("preserve", False), ("preserve", True), (None, False)],
)
def test_a_batch_of_results_that_is_many_times_too_large_is_shown_short_until_it_is_taken(
    history, store, way
):
    model, graph = agent(history=history, store=store)
    values = run(graph, ASKED, way)
    assert values["messages"][-1].text.startswith("Fine")
    sizes = sizes_of(model)
    refused = [size for size in sizes if size > LIMIT]
    assert 2 <= len(refused) <= TRIES
    assert sizes[1:] == sorted(set(sizes[1:]), reverse=True)
    taken = model.calls[-1].messages
    results = [message for message in taken if isinstance(message, ToolMessage)]
    assert [message.tool_call_id for message in results] == ["c0", "c1", "c2", "c3"]
    for n, message in enumerate(results):
        assert f"first row of t{n}" in message.text
        assert f"last row of t{n}" in message.text
        assert ("archived as" in message.text) == store
    whole = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    if not (store and history == "replace"):  # there the archive has them
        assert all(len(message.text) > 15_000 for message in whole)
    # What was taken is remembered: nothing is refused again, whatever the agent goes on with.
    for turn in range(4):
        values = run(graph, f"And then, {turn}?", way)
    assert len([size for size in sizes_of(model) if size > LIMIT]) == len(refused)
    assert history == "replace" or len(values["messages"]) == 15


@pytest.mark.sampled(1)
@pytest.mark.parametrize("on_stuck", ["raise", "send"])
@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
def test_a_provider_that_takes_nothing_is_asked_a_bounded_number_of_times(store, on_stuck):
    model, graph = agent(store=store, on_stuck=on_stuck)
    model.answers = lambda messages: ContextOverflowError("too long")
    said = {"messages": [HumanMessage("And now?"), batch(), *read(4)]}
    with pytest.raises(ContextOverflowError) as caught:
        graph.invoke(said, CONFIG)
    sizes = sizes_of(model)
    assert 3 <= len(sizes) <= TRIES + 1
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] < sizes[0] / 20
    if on_stuck == "raise":
        assert isinstance(caught.value, StuckError)
        assert isinstance(caught.value.__cause__, ContextOverflowError)
    else:
        assert not isinstance(caught.value, StuckError)


def test_a_short_history_that_is_too_long_gets_a_summary_too():
    refused: list[int] = []

    def answer(messages: list[BaseMessage]) -> Any:
        refused.append(METER.messages(messages))
        return "Fine." if len(refused) > 1 else ContextOverflowError("too long")

    middle = SummarizationMiddleware(
        None,
        trigger=("messages", 500),
        keep=("messages", 2),
        summarizer=lambda messages: "The user looked at modules.",
        notes=False,
        history="preserve",
    )
    graph = create_agent(
        ScriptedChatModel(answers=answer), middleware=[middle, ContextGuard(middle)]
    )
    said = [HumanMessage(f"Look at module {n}, please, and say what it does.") for n in range(8)]
    with contextlib.suppress(StuckError):
        graph.invoke({"messages": said})
    assert len(refused) == 2
    assert refused[1] < refused[0]


def test_what_was_taken_is_remembered_and_is_no_wall():
    model, graph = agent(history="preserve", store=False)
    run(graph, ASKED, "sync")
    learned = graph.get_state(CONFIG).values["_conspectus_request"]["learned"]
    overhead = graph.get_state(CONFIG).values["_conspectus_request"]["overhead"]
    assert len(learned) == 1
    most = next(iter(learned.values()))
    assert LIMIT / 4 < most - overhead < LIMIT
    said = "Look at this: " + ROWS[: 85 * 48]  # more than was taken, and less than would be refused
    assert most - overhead < METER.message(HumanMessage(said)) < LIMIT
    refused = len([size for size in sizes_of(model) if size > LIMIT])
    with contextlib.suppress(StuckError):
        run(graph, said, "sync")
    values = graph.get_state(CONFIG).values
    assert values["messages"][-1].text.startswith("Fine")
    assert len([size for size in sizes_of(model) if size > LIMIT]) == refused


def read(count: int) -> list[BaseMessage]:
    return [
        ToolMessage(read_table.invoke({"name": f"t{n}"}), tool_call_id=f"c{n}")
        for n in range(count)
    ]
