"""Large arguments of old calls are shortened as Deep Agents shortens them, with a pointer."""

import asyncio
from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus.deep_agents import (
    create_deep_agent,
)
from conspectus.messages import read_messages, with_short_arguments
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
