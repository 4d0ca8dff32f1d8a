"""Deep Agents on providers that say no more than "too long", after the import swap alone."""

import asyncio
import contextlib
import re
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import StuckError
from conspectus.deep_agents import create_deep_agent
from conspectus.langchain.overflow import TRIES
from conspectus.tokens import TokenMeter
from scripted_models import ScriptedChatModel

METER = TokenMeter()
THREAD: Any = {"configurable": {"thread_id": "t"}}
LIMIT = 9_000
ASKED = "What do the tables say?"
LINE = "one more row of a table that is far too long\n"


@tool
def read_table(name: str) -> str:
    """Read a table."""
    return f"first row of {name}\n" + LINE * 600 + f"needle of {name}\n" + LINE * 100


def call(name: str, number: int, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"{name}{number}", "type": "tool_call"}


class Provider:
    """A model that refuses requests of more than `limit` tokens without saying why they are."""

    def __init__(self, window: int | None = None) -> None:
        self.limit, self.sizes, self.found = LIMIT, list[int](), ""
        self.model = ScriptedChatModel(
            answers=self._answer, profile={"max_input_tokens": window} if window else None
        )

    def _answer(self, messages: list[BaseMessage]) -> Any:
        newest, size = messages[-1], METER.messages(messages)
        summarising = newest.text.startswith("<")
        self.sizes += [] if summarising else [size]
        if size > self.limit:
            return ContextOverflowError("too long")
        if summarising:
            return "The agent has read eight tables."
        if newest.text == "Delegate.":
            job = {"description": ASKED, "subagent_type": "general-purpose"}
            return AIMessage("", tool_calls=[call("task", n, **job) for n in range(2)])
        if newest.text == ASKED:
            return AIMessage("", tool_calls=[call("read_table", n, name=f"t{n}") for n in range(8)])
        kept = re.search(r"kept in files under (\S+), as (\w+)", newest.text)
        if isinstance(newest, ToolMessage) and newest.name == "read_table" and kept:
            args = {"pattern": "needle of", "path": kept[1], "output_mode": "content"}
            return AIMessage("", tool_calls=[call("grep", 0, **args)])
        if isinstance(newest, ToolMessage) and newest.name == "grep":
            self.found = newest.text
        return "Done."

    @property
    def refused(self) -> int:
        return sum(size > self.limit for size in self.sizes)


def talk(graph: Any, said: str, way: str = "sync") -> dict[str, Any]:
    asked = {"messages": [HumanMessage(said)]}
    if way == "async":
        asyncio.run(graph.ainvoke(asked, THREAD))
    elif way == "stream":
        list(graph.stream(asked, THREAD, stream_mode="updates", subgraphs=True))
    else:
        with contextlib.suppress(StuckError):
            graph.invoke(asked, THREAD)
    return graph.get_state(THREAD).values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "way"), [(False, "sync"), (False, "stream"), (False, "async"), (True, "sync")]
)
def test_a_batch_that_is_too_large_is_rescued_after_the_import_swap_alone(store, way):
    provider = Provider()
    graph = create_deep_agent(
        provider.model,
        [read_table],
        checkpointer=InMemorySaver(),
        store=InMemoryStore() if store else None,
    )
    values = talk(graph, ASKED, way)
    assert values["messages"][-1].text == "Done."
    assert 1 <= provider.refused <= TRIES
    if not store:  # what was truncated is in a file before the agent can ask for it
        assert "needle of t7" in provider.found
    results = [message for message in values["messages"] if message.type == "tool"][:8]
    assert [message.tool_call_id for message in results] == [f"read_table{n}" for n in range(8)]
    # What was accepted may have been just below a limit that nobody has named: the next turn may
    # find it from above once more, and no later one.
    talk(graph, "And then?", way)
    assert (refused := provider.refused) <= TRIES
    for turn in range(3):
        talk(graph, f"And then, {turn}?", way)
    assert provider.refused == refused
