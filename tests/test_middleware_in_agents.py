"""The middleware among others: approvals, interrupts, structured answers, threads, subagents."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    TodoListMiddleware,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel

from conspectus.archive import Archive, Scope
from conspectus.compactor.preview import MOST_ASKED
from conspectus.errors import SummaryError
from conspectus.messages import is_summary_message
from conspectus.middleware import SummarizationMiddleware
from conspectus_lab.testing.scripted_models import ScriptedChatModel

SUMMARY = "- the parts were looked at"


@tool
def look(part: int) -> str:
    """Look at a part."""
    return f"part {part} reads"


def writer(*answers: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=list(answers) or (lambda _: SUMMARY))


def made(model: Any = None, **settings: Any) -> SummarizationMiddleware:
    settings = {"trigger": ("messages", 6), "keep": ("messages", 3), **settings}
    return SummarizationMiddleware(writer() if model is None else model, **settings)


def talk(count: int) -> list[AnyMessage]:
    return [
        HumanMessage(f"What does part {n} do?", id=f"m{n}")
        if (count - n) % 2
        else AIMessage(f"Part {n} reads.", id=f"m{n}")
        for n in range(count)
    ]


def thread(name: str = "t") -> Any:
    return {"configurable": {"thread_id": name}}


def whole(messages: list[AnyMessage]) -> None:
    """Each result has its call before it, and each call but those of the last message a result."""
    called: set[str] = set()
    for message in messages:
        if isinstance(message, AIMessage):
            called |= {str(call["id"]) for call in message.tool_calls}
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in called
            called.discard(message.tool_call_id)
    last = messages[-1]
    assert called <= {c["id"] for c in getattr(last, "tool_calls", ())}


def worker(parts: int) -> Callable[[list[AnyMessage]], AIMessage]:
    """Looks at so many parts, one after the other; knows how far it is by its last result."""

    def answer(messages: list[AnyMessage]) -> AIMessage:
        whole(messages)
        results = [m for m in messages if isinstance(m, ToolMessage)]
        done = max((int(str(m.content).split()[1]) for m in results), default=-1)
        if done + 1 >= parts:
            return AIMessage("All parts read.")
        call = {"name": "look", "args": {"part": done + 1}, "id": f"c{done + 1}"}
        return AIMessage("", tool_calls=[call], id=f"a{done + 1}")

    return answer


# Preview


def previewed(model: Any, **more: Any) -> Any:
    return create_agent(
        ScriptedChatModel(answers=lambda _: "yes"),
        middleware=[made(model, preview=True, **more)],
        checkpointer=InMemorySaver(),
    )


@pytest.mark.parametrize(
    "answer", [{"type": "approve"}, True, {"decisions": [{"type": "approve"}]}]
)
def test_an_approved_summary_is_the_one_that_was_shown_and_is_written_once(answer: Any) -> None:
    model = writer("- first", "- second")
    agent = previewed(model)
    asked = agent.invoke({"messages": talk(7)}, thread())["__interrupt__"][0].value
    assert asked["type"] == "conspectus.preview"
    assert (asked["evict"], "- first" in asked["summary"]) == (4, True)
    messages = agent.invoke(Command(resume=answer), thread())["messages"]
    assert asked["summary"] in messages[0].content
    assert [m.id for m in messages[1:4]] == ["m4", "m5", "m6"]
    assert len(model.calls) == 1


def test_an_edited_summary_is_what_takes_effect() -> None:
    model = writer("- first", "- second")
    agent = previewed(model)
    agent.invoke({"messages": talk(7)}, thread())
    edited = {"type": "edit", "summary": "- part 3 matters most"}
    messages = agent.invoke(Command(resume=edited), thread())["messages"]
    assert "- part 3 matters most" in messages[0].content
    assert "- first" not in messages[0].content
    assert len(model.calls) == 1


def test_a_refused_summary_leaves_the_history_and_the_run_goes_on() -> None:
    model = writer("- first", "- second")
    agent = previewed(model)
    agent.invoke({"messages": talk(7)}, thread())
    messages = agent.invoke(Command(resume={"type": "reject"}), thread())["messages"]
    assert [m.id for m in messages[:7]] == [f"m{n}" for n in range(7)]
    assert messages[-1].text == "yes"
    assert len(model.calls) == 1


def test_an_answer_that_is_none_is_asked_again() -> None:
    agent = previewed(writer("- first", "- second"))
    agent.invoke({"messages": talk(7)}, thread())
    asked = agent.invoke(Command(resume="maybe"), thread())["__interrupt__"][0].value
    assert "is no answer" in asked["problem"]
    messages = agent.invoke(Command(resume={"type": "approve"}), thread())["messages"]
    assert is_summary_message(messages[0])


def test_a_callable_is_asked_instead_of_the_caller_of_the_graph() -> None:
    asked: list[Any] = []

    def ask(request: Any) -> str:
        asked.append(request)
        return "- as I would put it"

    agent = create_agent(ScriptedChatModel(answers=lambda _: "yes"), middleware=[made(preview=ask)])
    messages = agent.invoke({"messages": talk(7)})["messages"]
    assert "- as I would put it" in messages[0].content
    assert [request.evict for request in asked] == [4]


def test_a_callable_that_never_answers_with_a_text_that_fits_is_an_error() -> None:
    asked: list[Any] = []

    def ask(request: Any) -> str:
        asked.append(request)
        return "word " * 200_000

    own = made(preview=ask, window=20_000, on_failure="raise")
    agent = create_agent(ScriptedChatModel(answers=lambda _: "yes"), middleware=[own])
    with pytest.raises(SummaryError, match="shorten it"):
        agent.invoke({"messages": talk(7)})
    assert len(asked) == MOST_ASKED


# Other middleware


def test_a_pending_approval_is_never_summarised() -> None:
    agent = create_agent(
        ScriptedChatModel(answers=worker(6)),
        tools=[look],
        middleware=[made(), HumanInTheLoopMiddleware(interrupt_on={"look": True})],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke({"messages": talk(5)}, thread())
    rounds = 0
    while "__interrupt__" in state:
        rounds += 1
        last = agent.get_state(thread()).values["messages"][-1]
        assert last.tool_calls[0]["args"] == {"part": rounds - 1}
        state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread())
    assert rounds == 6
    assert state["messages"][-1].text == "All parts read."
    assert is_summary_message(state["messages"][0])
    whole(state["messages"])


def test_a_structured_answer_comes_after_a_summary() -> None:
    class Verdict(BaseModel):
        """What came of it."""

        good: bool

    def answer(messages: list[AnyMessage]) -> AIMessage:
        assert is_summary_message(messages[0])
        return AIMessage("", tool_calls=[{"name": "Verdict", "args": {"good": True}, "id": "v"}])

    agent = create_agent(
        ScriptedChatModel(answers=answer), middleware=[made()], response_format=Verdict
    )
    state = agent.invoke({"messages": talk(7)})
    assert state["structured_response"] == Verdict(good=True)


def test_a_fallback_model_sees_the_summary_too() -> None:
    seen: list[bool] = []

    def answer(messages: list[AnyMessage]) -> str:
        seen.append(is_summary_message(messages[0]))
        return "yes"

    first = ScriptedChatModel(answers=lambda _: ConnectionError("down"))
    second = ScriptedChatModel(answers=answer)
    for history in ("replace", "preserve"):
        agent = create_agent(
            first, middleware=[made(history=history), ModelFallbackMiddleware(second)]
        )
        assert agent.invoke({"messages": talk(7)})["messages"][-1].text == "yes"
    assert seen == [True, True]


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_edited_contexts_and_lists_of_tasks_go_with_it(history: Any) -> None:
    agent = create_agent(
        ScriptedChatModel(answers=worker(9)),
        tools=[look],
        middleware=[made(history=history), ContextEditingMiddleware(), TodoListMiddleware()],
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
    )
    state = agent.invoke({"messages": [HumanMessage("Look at all.", id="ask")]}, thread())
    assert state["messages"][-1].text == "All parts read."
    whole(state["messages"])
    assert any(map(is_summary_message, state["messages"])) is (history == "replace")


# Threads, subagents, event loops


@pytest.mark.slow
def test_one_instance_serves_many_threads_at_once() -> None:
    shared, store = made(archive=InMemoryStore()), InMemorySaver()
    agent = create_agent(
        ScriptedChatModel(answers=lambda messages: f"to {messages[-1].text}"),
        middleware=[shared],
        checkpointer=store,
    )
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for n in range(12):
                ask = HumanMessage(f"{name} asks {n}", id=f"{name}-{n}")
                messages = agent.invoke({"messages": [ask]}, thread(name))["messages"]
                others = [m for m in messages if " asks " in m.text and name not in m.text]
                assert others == []
                assert messages[-1].text == f"to {name} asks {n}"
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(f"thread-{n}",)) for n in range(8)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert failures == []


@pytest.mark.slow
def test_many_threads_share_one_event_loop() -> None:
    agent = create_agent(
        ScriptedChatModel(answers=lambda messages: f"to {messages[-1].text}"),
        middleware=[made(archive=InMemoryStore())],
        checkpointer=InMemorySaver(),
    )

    async def work(name: str) -> list[Any]:
        for n in range(8):
            ask = HumanMessage(f"{name} asks {n}", id=f"{name}-{n}")
            state = await agent.ainvoke({"messages": [ask]}, thread(name))
        return state["messages"]

    async def everybody() -> list[list[Any]]:
        return await asyncio.gather(*(work(f"thread-{n}") for n in range(8)))

    for n, messages in enumerate(asyncio.run(everybody())):
        assert is_summary_message(messages[0])
        assert all(f"thread-{n} " in m.text for m in messages[1:])


@pytest.mark.parametrize("own", [False, True], ids=["one instance", "an instance each"])
def test_a_subagent_that_shares_the_thread_has_a_history_of_its_own(own: bool) -> None:
    store, shared = InMemoryStore(), made()
    seen: list[str] = []

    def sub_answer(messages: list[AnyMessage]) -> AIMessage:
        seen.extend(m.text for m in messages)
        return worker(5)(messages)

    sub = create_agent(
        ScriptedChatModel(answers=sub_answer),
        tools=[look],
        middleware=[made() if own else shared],
        store=store,
    )

    @tool
    def delegate(task: str) -> str:
        """Have somebody else look."""
        state = sub.invoke({"messages": [HumanMessage(task)]})
        return str(state["messages"][-1].text)

    def main_answer(messages: list[AnyMessage]) -> AIMessage:
        whole(messages)
        if isinstance(messages[-1], HumanMessage):
            number = messages[-1].text.split()[-1]
            call = {"name": "delegate", "args": {"task": f"sub task {number}"}, "id": f"d{number}"}
            return AIMessage("", tool_calls=[call])
        return AIMessage("done")

    agent = create_agent(
        ScriptedChatModel(answers=main_answer),
        tools=[delegate],
        middleware=[shared],
        checkpointer=InMemorySaver(),
        store=store,
    )
    for n in range(4):
        ask = HumanMessage(f"secret of the main one {n}", id=f"ask{n}")
        messages = agent.invoke({"messages": [ask]}, thread())["messages"]
        whole(messages)
    assert is_summary_message(messages[0])
    assert not any("secret of the main one" in said for said in seen)
    archive = Archive(store)
    main = archive.chain(Scope("local", "t", "main"))
    keys = [key for record in main for key in record.covers]
    originals = archive.get(Scope("local", "t", "main"), keys)
    assert originals
    assert not any(
        isinstance(found.message, AIMessage)
        and any(call["name"] == "look" for call in found.message.tool_calls)
        for found in originals
    )


def test_sync_and_async_runs_end_in_the_same_state() -> None:
    def agent() -> Any:
        return create_agent(ScriptedChatModel(answers=worker(9)), tools=[look], middleware=[made()])

    ask = {"messages": [HumanMessage("Look at all.", id="ask")]}
    sync, on_loop = agent().invoke(ask), asyncio.run(agent().ainvoke(ask))

    def said(state: Any) -> list[tuple[str, str]]:
        # The mark of a record is made of ids, and those of tools' results are random.
        return [(m.type, re.sub(r"#\d{6}", "#", m.text)) for m in state["messages"]]

    assert said(sync) == said(on_loop)
    assert [is_summary_message(m) for m in sync["messages"][:2]] == [False, True]
