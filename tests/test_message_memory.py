"""What was read of a message is remembered with it, until the message changes or is gone."""

import gc
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus import Compactor
from conspectus.messages import memory, read_messages
from conspectus.tokens import TokenMeter
from histories import assistant, tool, user


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the messages that were read, not remembered."""
    places: list[int] = []
    read = memory.read

    def counted(message: Any, place: int) -> Any:
        places.append(place)
        return read(message, place)

    monkeypatch.setattr(memory, "read", counted)
    return places


def talk() -> list[Any]:
    return [user("Fix it."), assistant("", ("c1", "ls")), tool("c1", "a.py"), assistant("Done.")]


def test_a_thread_that_grows_is_read_from_its_first_new_dict_on(reads):
    messages = talk()
    first = read_messages(messages, thread="growing")
    again = read_messages([*messages, user("More.")], thread="growing")
    assert reads == [0, 1, 2, 3, 4]
    assert [entry.key for entry in again[:4]] == [entry.key for entry in first]
    assert [entry.source for entry in again[:4]] == messages


def test_a_loop_around_the_compactor_reads_new_dicts_only(reads):
    compactor, messages = Compactor(window=100_000), talk()
    reads.clear()
    for turn in range(5):
        messages += [user(f"Turn {turn}."), assistant(f"Done {turn}.")]
        messages = list(compactor.compact(messages, thread_id="loop").messages)
    assert len(reads) == len(messages)


def test_a_history_that_is_sent_anew_is_not_read_anew(reads):
    first = read_messages(talk(), thread="sent anew")
    messages = [*talk(), user("More.")]
    again = read_messages(messages, thread="sent anew")
    assert reads == [0, 1, 2, 3, 4]
    assert [entry.key for entry in again[:4]] == [entry.key for entry in first]
    assert all(entry.source is message for entry, message in zip(again, messages, strict=True))


CHANGES: list[Any] = [
    lambda message: message.update(content="other"),
    lambda message: message["content"].append({"type": "text", "text": "more"}),
    lambda message: message["content"][0].update(text="other"),
    lambda message: message["content"][0].update(deep={"list": [1, {"a": object()}]}),
    lambda message: message.update(id="7"),
    lambda message: message.update(name="ann"),
    lambda message: message.pop("extra"),
    lambda message: message["extra"]["list"].append(3),
    lambda message: message["extra"].update(list=[1, 2.5]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_dict_that_was_changed_in_place_is_read_anew(change):
    message: Any = user("x", extra={"list": [1, 2]})
    message["content"] = [{"type": "text", "text": "hello"}]
    messages = [user("first"), message, assistant("ok")]
    [_, before, _] = read_messages(messages, thread="changed")
    size = TokenMeter().entry(before)
    change(message)
    [_, now, _] = read_messages(messages, thread="changed")
    [anew] = read_messages([dict(message)])
    assert now.key != before.key
    assert (now.key, now.text, now.encoded) == (anew.key, anew.text, anew.encoded)
    assert TokenMeter().entry(now) == TokenMeter().entry(anew) >= size or now.text != before.text


def langchain() -> list[BaseMessage]:
    call = {"name": "ls", "args": {"path": "."}, "id": "c1", "type": "tool_call"}
    return [
        HumanMessage("Fix it.", id="u"),
        AIMessage("", tool_calls=[call], id="a"),
        ToolMessage("a.py", tool_call_id="c1", id="t", artifact=object()),
    ]


def test_a_langchain_message_is_read_once_while_it_lives(reads):
    messages = langchain()
    first = read_messages(messages)
    again = read_messages([*messages, AIMessage("Done.", id="d")])
    assert reads == [0, 1, 2, 3]
    assert first == again[:3]
    assert [entry.source for entry in again[:3]] == messages


@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message, "content", "other"),
        lambda message: setattr(message, "id", "other"),
        lambda message: message.tool_calls[0]["args"].update(path="/"),
        lambda message: message.response_metadata.update(date="2026"),
        lambda message: message.additional_kwargs.update(deep=[[object()]]),
    ],
)
def test_a_langchain_message_that_was_changed_in_place_is_read_anew(change):
    messages = langchain()
    before = read_messages(messages)[1]
    change(messages[1])
    now, anew = read_messages(messages)[1], read_messages([messages[1].model_copy(deep=True)])[0]
    assert now.key != before.key
    assert now.key == anew.key


def test_another_artifact_is_noticed():
    messages = langchain()
    read_messages(messages)
    assert isinstance(messages[2], ToolMessage)
    messages[2].artifact = {"rows": 3}
    assert '"rows":3' in read_messages(messages)[2].encoded.text


def test_nothing_is_kept_of_messages_that_are_gone(monkeypatch):
    gc.collect()
    before = len(memory._of_objects)
    messages = langchain()
    read_messages(messages)
    assert len(memory._of_objects) == before + 3
    del messages
    gc.collect()
    assert len(memory._of_objects) == before


def test_only_the_newest_history_of_a_thread_is_kept_and_of_few_threads():
    for turn in range(20):
        read_messages([user(f"{turn} {n}") for n in range(10)], thread="rewritten")
    assert len(memory._of_dicts.get("rewritten") or ()) == 10
    for number in range(2 * memory.THREADS):
        read_messages(talk(), thread=number)
    assert memory._of_dicts.get("rewritten") is None
    assert len(memory._of_dicts) <= memory.THREADS


def test_histories_that_share_messages_do_not_share_their_numbers():
    said = user("again")
    [first] = read_messages([said], thread="one")
    [_, second] = read_messages([user("again"), said], thread="one")
    assert (first.key[-2:], second.key[-2:]) == ("-0", "-1")
    assert read_messages([said], thread="one")[0].key == first.key
    assert first.key.endswith("-0")


def test_an_answer_in_two_items_is_joined_only_behind_its_beginning():
    item: Any = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    thought: Any = {"type": "reasoning", "id": "r", "summary": []}
    for history, joined in (([thought, item], True), ([item], False), ([thought, item], True)):
        assert read_messages(history, thread="items")[-1].joined is joined
