"""What agents of Deep Agents send: large arguments shortened, refused batches rescued."""

import asyncio
import contextlib
import re
from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import StuckError
from conspectus.deep_agents import create_deep_agent
from conspectus.langchain.overflow import TRIES
from conspectus.messages import read_messages, with_short_arguments
from conspectus.tokens import TokenMeter
from scripted_models import ScriptedChatModel

THREAD: Any = {"configurable": {"thread_id": "t"}}
LONG = "a line of a module\n" * 150


def writer(window: int | None = None) -> ScriptedChatModel:
    """A model that writes a file in each turn."""

    def answer(messages: list[BaseMessage]) -> Any:
        if isinstance(messages[-1], ToolMessage):
            return "Written."
        turn = messages[-1].text.split()[1]
        args = {"file_path": f"/m{turn}.py", "content": f"module {turn}\n{LONG}"}
        call = {"name": "write_file", "args": args, "id": f"w{turn}", "type": "tool_call"}
        return AIMessage("", tool_calls=[call])

    profile: Any = {"max_input_tokens": window} if window else None
    return ScriptedChatModel(answers=answer, profile=profile)


def contents(messages: Any) -> list[str]:
    found = [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    return [call["args"]["content"] for call in found if call["name"] == "write_file"]


def talk(graph: Any, turns: int, first: int = 0, way: str = "sync") -> dict[str, Any]:
    for turn in range(first, first + turns):
        said = {"messages": [HumanMessage(f"Module {turn} please.")]}
        if way == "sync":
            graph.invoke(said, THREAD)
        else:
            asyncio.run(graph.ainvoke(said, THREAD))
    return graph.get_state(THREAD).values


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("store", "way"), [(False, "sync"), (False, "async"), (True, "sync")])
def test_old_arguments_are_shortened_after_the_import_swap_alone(store, way, tmp_path):
    chat = writer()
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    graph = create_deep_agent(
        chat,
        backend=backend,
        checkpointer=InMemorySaver(),
        store=InMemoryStore() if store else None,
    )
    values = talk(graph, 7, way=way)
    seen = contents(chat.calls[-1].messages)
    assert len(seen) == 7
    short = [text for text in seen if len(text) < 200]
    # As theirs: 27 messages, and the newest 20 are left alone.
    assert len(short) == 2
    for text in short:
        assert text.startswith((LONG and f"module {short.index(text)}\na line of a m")[:20])
        assert "...(argument truncated)" in text
        assert ("archived as" in text) == store
        assert ("kept in files under" in text) != store
    assert all(LONG in text for text in contents(values["messages"]))  # the state has them whole
    if not store:
        path, cite = short[0].partition("kept in files under ")[2].rstrip("]").split(", as ")
        found = backend.grep(cite, path=path).matches or []
        assert len(found) == 1
        file = tmp_path / found[0]["path"].lstrip("/")
        assert "module 0" in file.read_text()
    assert len(chat.calls[-1].messages) == 28  # nothing was summarised, and the prompt


def test_every_form_of_a_call_is_shortened_and_nothing_else():
    args = {"file_path": "/a.py", "content": "x" * 50, "count": 3}
    other = {"name": "execute", "args": {"command": "y" * 50}, "id": "e", "type": "tool_call"}
    raw = {
        "id": "w",
        "type": "function",
        "function": {
            "name": "write_file",
            "arguments": ('{"file_path": "/a.py", "content": "' + "x" * 50 + '", "count": 3}'),
        },
    }
    message = AIMessage(
        [
            {"type": "text", "text": "z" * 50},
            {"type": "tool_use", "id": "w", "name": "write_file", "input": args},
        ],
        tool_calls=[{"name": "write_file", "args": args, "id": "w", "type": "tool_call"}, other],
        additional_kwargs={"tool_calls": [raw]},
        id="m",
    )
    [entry] = read_messages([message])
    short: Any = with_short_arguments(entry, 40, "...")
    cut = "x" * 20 + f"... [original archived as {entry.cite}]"
    assert short.tool_calls[0]["args"] == {"file_path": "/a.py", "content": cut, "count": 3}
    assert short.tool_calls[1] == other
    assert short.content[0] == message.content[0]
    assert short.content[1]["input"]["content"] == cut
    assert cut in short.additional_kwargs["tool_calls"][0]["function"]["arguments"]
    assert short.id == "m"
    assert message.tool_calls[0]["args"] == args


# Deep Agents on providers that say no more than "too long", after the import swap alone


METER = TokenMeter()
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


def say(graph: Any, said: str, way: str = "sync") -> dict[str, Any]:
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
    values = say(graph, ASKED, way)
    assert values["messages"][-1].text == "Done."
    assert 1 <= provider.refused <= TRIES
    if not store:  # what was truncated is in a file before the agent can ask for it
        assert "needle of t7" in provider.found
    results = [message for message in values["messages"] if message.type == "tool"][:8]
    assert [message.tool_call_id for message in results] == [f"read_table{n}" for n in range(8)]
    # What was accepted may have been just below a limit that nobody has named: the next turn may
    # find it from above once more, and no later one.
    say(graph, "And then?", way)
    assert (refused := provider.refused) <= TRIES
    for turn in range(3):
        say(graph, f"And then, {turn}?", way)
    assert provider.refused == refused
