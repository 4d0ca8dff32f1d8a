"""What people pass by mistake, or in another library's form, is taken or named."""

import uuid
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from openai.types.chat import ChatCompletionMessage

from conspectus import Compactor, MessageError, SummarizationMiddleware
from conspectus.errors import InputError
from scripted_models import ScriptedChatModel

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"name": "a"}'},
}


def test_objects_of_openais_client_are_taken():
    answer = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": None, "tool_calls": [CALL]}
    )
    messages: list[Any] = [
        {"role": "user", "content": "Look at a."},
        answer,
        {"role": "tool", "tool_call_id": "c1", "content": "It is sound."},
    ]
    for n in range(8):
        messages.append({"role": "user", "content": f"And b{n}?"})
        messages.append(ChatCompletionMessage(role="assistant", content=f"b{n} is sound."))
    compactor = Compactor(archive="memory:", keep=("messages", 3))
    kept = compactor.compact(messages, thread_id="kept")
    assert [one["role"] for one in kept.messages] == [
        one["role"] if isinstance(one, dict) else one.role for one in messages
    ]
    assert kept.messages[1]["tool_calls"] == [CALL]
    result = compactor.compact(messages, thread_id="t", force=True)
    assert "look" in compactor.recall("look", thread_id="t").text
    again = compactor.compact([*messages, messages[-2]], thread_id="t")
    assert again.dropped == result.evicted


@pytest.mark.parametrize("messages", [[{"role": "user", "content": "hi"}], [HumanMessage("hi")]])
def test_a_body_or_a_state_is_its_messages(messages):
    compactor = Compactor()
    for given in (messages, {"messages": messages}, {"model": "m", "messages": messages}):
        result = compactor.compact(given, thread_id="t")  # type: ignore[arg-type]
        assert list(result.messages) == messages


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([{"role": "user"}], 'no "content"'),
        ([{"role": "system"}], 'no "content"'),
        ({"role": "user", "content": "hi"}, "wrap a single message in a list"),
        ("hi", "must be a list of messages"),
        ({"messages": "hi"}, "must be a list of messages"),
        ({"input": []}, "must be a list of messages"),
        ([["user", "hi"]], 'dicts such as {"role": "user"'),
        ([42], "message 0 is int"),
        ([{"content": "x"}], 'has no "role"'),
        ([{"role": "wizard", "content": ""}], "message 0 has the unknown role 'wizard'"),
        ([{"role": "user", "content": 5}], "content of message 0 is int"),
        ([RemoveMessage(id="x")], "RemoveMessage"),
    ],
)
def test_what_is_no_history_is_an_error_that_says_what_to_give(given, says):
    with pytest.raises(MessageError, match=says):
        Compactor().compact(given, thread_id="t")


@pytest.mark.parametrize("name", [7, uuid.UUID(int=5)])
def test_a_thread_may_be_a_number_or_a_uuid(name):
    store = InMemoryStore()
    messages = [HumanMessage(f"Look at module {n}.", id=f"m{n}") for n in range(9)]
    compactor = Compactor(archive=store, keep=("messages", 2))
    assert compactor.compact(messages, thread_id=name, force=True).record
    for one in (name, str(name)):
        assert compactor.recall("module 1", thread_id=one).text
    own = SummarizationMiddleware(None, trigger=("messages", 4), keep=("messages", 2))
    agent: Any = create_agent(
        ScriptedChatModel(answers=lambda _: AIMessage("Sound.")),
        middleware=[own],
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
    )
    config: Any = {"configurable": {"thread_id": name}}
    for n in range(4):
        state = agent.invoke({"messages": [HumanMessage(f"And {n}?")]}, config)
    assert len(state["messages"]) < 8
    held = agent.get_state(config).values["_conspectus"]
    assert held["thread"] == str(name)


@pytest.mark.parametrize("name", ["", None, True, 1.5, ("a",)])
def test_what_names_no_thread_is_an_error(name):
    with pytest.raises(InputError, match="must be a text that names it"):
        Compactor().compact([HumanMessage("hi")], thread_id=name)
