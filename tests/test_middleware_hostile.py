"""Histories and summarisers that wish the middleware ill: a step ends, and loses nothing."""

import asyncio
import re
import threading
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus.errors import SummaryError
from conspectus.langchain import SummarizationMiddleware
from graph_support import (
    SUMMARY,
    agent,
    check_nothing_lost,
    check_sent,
    is_summary,
    middleware,
    said,
    steps,
    thread,
)
from scripted_models import ScriptedChatModel


def talk(turns: int, text: str = "a word about part") -> list[AnyMessage]:
    out: list[AnyMessage] = []
    for n in range(turns):
        out.append(HumanMessage(f"Question {n}: {text} {n}?", id=f"q{n}"))
        out.append(AIMessage(f"Answer {n}: {text} {n}.", id=f"a{n}"))
    return out


def step(own: SummarizationMiddleware, messages: Any, state: Any = None) -> list[AnyMessage] | None:
    """What a step by hand leaves of a history; None for nothing to do."""
    held = {} if state is None else state
    update = own.before_model({**held, "messages": messages}, Runtime())
    if update is None:
        return None
    assert isinstance(update["messages"][0], RemoveMessage)
    held.update({key: value for key, value in update.items() if key != "messages"})
    return list(update["messages"][1:])


# Histories


@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("trigger", [("messages", 1), ("tokens", 1)])
def test_an_empty_history_needs_nothing(history, trigger):
    own = middleware(history=history, trigger=trigger)
    assert own.before_model({"messages": []}, Runtime()) is None
    assert asyncio.run(own.abefore_model({"messages": []}, Runtime())) is None


@pytest.mark.parametrize("keep", [("messages", 1), ("tokens", 1)])
def test_one_message_is_never_taken_away(keep):
    own = middleware(trigger=[("messages", 1), ("tokens", 1)], keep=keep)
    for message in (HumanMessage("hi"), HumanMessage("long " * 5000), SystemMessage("be kind")):
        kept = step(own, [message])
        assert kept is None or message in kept
    assert own.model.calls == []


def test_one_giant_message_is_clipped_where_originals_are_safe_and_stuck_where_not(caplog):
    store = InMemoryStore()
    own = middleware(window=2000, trigger=("tokens", 1500))
    graph, model = agent(steps(1), own, store=store)
    giant = f"Look at m0. {'very long ' * 5000} The end of it."
    graph.invoke(said(giant), thread())
    assert all(len(call.text) < 20_000 for call in model.calls)
    assert "The end of it." in model.calls[0].text
    check_sent(model)

    bare = middleware(window=2000, trigger=("tokens", 1500))
    message = HumanMessage(giant)
    assert step(bare, [message]) is None
    assert "does not fit" in caplog.text


@pytest.mark.parametrize("at", [0, 3, 9])
def test_a_system_message_among_the_messages(at):
    messages = talk(8)
    rule = SystemMessage("Never touch module zulu99.", id="rule")
    messages.insert(at, rule)
    own = middleware()
    kept = step(own, messages)
    if at == 0:
        assert kept[0] is rule
        assert is_summary(kept[1])
    else:
        assert rule in kept or "zulu99" in own.model.calls[0].text
    assert "zulu99" in "".join(m.text for m in kept), "a standing rule was lost"


@pytest.mark.slow
def test_a_thread_of_twenty_thousand_messages():

    read = 0

    def count(messages: list[Any]) -> str:
        nonlocal read
        read += sum(m.text.startswith(("Question", "Answer")) for m in messages)
        return f"{SUMMARY}: all of it. " * 20

    own = middleware(summarizer=count, trigger=("messages", 15_000))
    messages = talk(10_000, "something short about module")
    state: dict[str, Any] = {}
    kept = step(own, messages, state)
    assert len(kept) <= 6
    assert is_summary(kept[0])
    assert kept[-1] is messages[-1]
    assert state["_conspectus"]
    covered = {key for record in state["_conspectus"]["head"] for key in record["covers"]}
    assert len(covered) == 20_000 - (len(kept) - 1) == read


@pytest.mark.parametrize(
    ("question", "answer", "rule"),
    [
        (
            "请看第{n}个模块，告诉我里面有什么。",
            "第{n}个模块里有登录页面的代码。",
            "请务必保留日志。",
        ),
        (
            "モジュール{n}を見て、内容を教えてください。",
            "モジュール{n}にはログイン画面のコードがあります。",
            "ログは必ず残してください。",
        ),
    ],
)
def test_chinese_and_japanese(question, answer, rule):
    messages: list[AnyMessage] = [HumanMessage(rule)]
    for n in range(12):
        messages.append(HumanMessage(question.format(n=n)))
        messages.append(AIMessage(answer.format(n=n)))
    own = SummarizationMiddleware(None, trigger=("messages", 10), keep=("messages", 4))
    kept = step(own, messages)
    assert rule.rstrip("。") in kept[0].text


def test_an_orphan_result_and_a_call_without_id():
    odd = AIMessage("odd", tool_calls=[{"name": "look", "args": {"name": "x"}, "id": None}])
    messages = [ToolMessage("nobody asked", tool_call_id="nobody"), *talk(6), odd, *talk(1)]
    kept = step(middleware(), messages)
    assert kept is not None
    assert not [m for m in kept if isinstance(m, ToolMessage)]


# Steps by hand


def to_read(own: SummarizationMiddleware, call: int) -> str:
    """The messages that a call of the model was to read; the notes before them are context."""
    text = own.model.calls[call].text
    [messages] = re.findall(r"^<messages>\n(.*?)\n</messages>$", text, re.DOTALL | re.MULTILINE)
    return str(messages)


def test_a_step_by_hand_takes_a_dict_and_a_bare_runtime():
    state: dict[str, Any] = {}
    own = middleware()
    messages = talk(8)
    read: list[str] = []
    for n in range(3):
        kept = step(own, messages, state)
        assert kept is not None
        assert sum(map(is_summary, kept)) == 1
        assert len(own.model.calls) == n + 1
        text = to_read(own, n)
        assert [words for words in read if words in text] == []
        left = [m.text for m in messages if m not in kept and not is_summary(m)]
        assert left
        assert [words for words in left if words not in text] == []
        read += left
        messages = [*kept, *talk(3, f"later {n}")]


def test_steps_by_hand_without_state_do_not_read_what_the_summary_covers():
    own = middleware(archive=InMemoryStore())
    kept = step(own, talk(8))
    assert kept is not None
    again = step(own, [*kept, *talk(4, "later")])
    assert again is not None
    assert sum(map(is_summary, again)) == 1
    text = to_read(own, 1)
    assert "Question 0: a word" not in text
    assert "Question 0: later" in text


def test_a_whole_history_with_its_summary_behind_it_is_folded():
    """As a parent graph sends it, whose channel of messages keeps what the agent has removed."""
    own = middleware(archive=InMemoryStore(), trigger=("messages", 10), keep=("messages", 8))
    messages = talk(6)
    kept = step(own, messages)
    again = step(own, [*messages, kept[0]])
    assert again is not None
    assert [m.id for m in again] == [m.id for m in kept]
    assert len(own.model.calls) == 1


def test_two_conversations_without_names_do_not_share_a_failure():
    broken = ScriptedChatModel(answers=lambda _: ValueError("down"))
    own = middleware(model=broken)
    first, second = talk(6), [m.model_copy(update={"id": None}) for m in talk(6)]
    assert step(own, first) is None
    assert step(own, second) is None
    assert len(broken.calls) == 2 * 3
    assert step(own, first) is None
    assert step(own, second) is None
    assert len(broken.calls) == 2 * 3, "tried again without growth"


# Summarisers


def failing(answer: Any, **more: Any) -> tuple[Any, Any, Any, list[str]]:
    events: list[str] = []
    own = middleware(
        model=ScriptedChatModel(answers=answer, cites=more.pop("cites", True)),
        on_event=lambda event, data: events.append(f"{event} {data.get('reason', '')}"),
        **more,
    )
    store = InMemoryStore()
    graph, model = agent(steps(8), own, store=store)
    out = graph.invoke(said("Look at all modules."), thread())
    assert out["messages"][-1].text == "All looked at."
    check_sent(model)
    check_nothing_lost(graph, store)
    return own, out, model, events


LIES = [
    "",
    "   \n ",
    "I'm sorry, but I can't help with that.",
    "Error: rate limit exceeded",
    "Sure! Here is the summary you asked for:",
    AIMessage("Cut off in the mid", response_metadata={"finish_reason": "length"}),
    AIMessage("No.", response_metadata={"finish_reason": "content_filter"}),
    AIMessage(
        "", tool_calls=[{"name": "look", "args": {"name": "x"}, "id": "1", "type": "tool_call"}]
    ),
    ValueError("no such model"),
    KeyError("choices"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lie", LIES, ids=range(len(LIES)))
def test_a_summariser_that_fails_changes_nothing_while_there_is_room(lie):
    _, out, model, events = failing(lambda _: lie, cites=False)
    assert len(out["messages"]) == 18
    assert not [m for call in model.calls for m in call.messages if is_summary(m)]
    assert events[-1].startswith("failed")


def test_a_summariser_that_talks_without_end_stays_in_its_limit():
    _, out, _, _ = failing(lambda _: f"{SUMMARY}: " + "on and on it goes " * 3000, window=700)
    assert all(len(m.text) < 3000 for m in out["messages"] if is_summary(m))


def test_a_summariser_that_hangs_is_left_alone():
    never = threading.Event()

    def hang(messages: list[Any]) -> str:
        never.wait(30)
        return "too late"

    own = middleware(summarizer=hang, summarizer_timeout=0.05, window=700)
    store = InMemoryStore()
    graph, model = agent(steps(7), own, store=store)
    out = graph.invoke(said("Look at all modules."), thread())
    never.set()
    assert out["messages"][-1].text == "All looked at."
    assert [m for m in out["messages"] if is_summary(m)]
    assert "too late" not in str(out)
    check_sent(model)
    assert check_nothing_lost(graph, store) > 0


def test_raise_raises_and_the_state_is_as_it_was():
    own = middleware(
        model=ScriptedChatModel(answers=lambda _: ValueError("down")), on_failure="raise"
    )
    graph, _ = agent(steps(8), own)
    with pytest.raises(SummaryError, match="down"):
        graph.invoke(said("Look at all modules."), thread())
    state = graph.get_state(thread())
    assert state.next == ("SummarizationMiddleware.before_model",)
    assert len(state.values["messages"]) == 11


def test_a_listener_that_raises_undoes_nothing():
    def listen(event: str, data: Any) -> None:
        raise RuntimeError(event)

    store = InMemoryStore()
    own = middleware(on_event=listen)
    graph, model = agent(steps(8), own, store=store)
    graph.invoke(said("Look at all modules."), thread())
    check_sent(model)
    assert check_nothing_lost(graph, store) > 0
