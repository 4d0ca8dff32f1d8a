"""The middleware inside real agents: streams, interrupts, approvals, beside other middleware."""

import asyncio
import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from conspectus import ContextGuard
from conspectus.archive import Archive
from graph_support import (
    SUMMARY,
    agent,
    calls,
    check_nothing_lost,
    check_sent,
    is_summary,
    look,
    middleware,
    said,
    steps,
    thread,
)
from scripted_models import ScriptedChatModel
from stored_values import stored


def task() -> Any:
    """A new message each time: the same one again would take the place of the first."""
    return said("Look at all modules of the project.")


# Sync, async, streams


both = pytest.mark.parametrize("loop", [False, True], ids=["sync", "async"])


# Interrupts and approvals


def approvals() -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware(interrupt_on={"delete": True})


@tool
def delete(name: str) -> str:
    """Delete a module."""
    return f"{name} is deleted"


def deletions(*names: str) -> AIMessage:
    asked = [{"name": "delete", "args": {"name": n}, "id": f"call_{n}"} for n in names]
    return AIMessage("I want to delete.", tool_calls=asked)


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_parallel_calls_one_approved_and_one_rejected_stay_whole(history):
    store, own = InMemoryStore(), middleware(history=history)
    script = [*steps(4)[:-1], deletions("old", "new"), *steps(8, prefix="n")]
    graph, model = agent(script, own, approvals(), store=store, tools=[look, delete])
    graph.invoke(task(), thread())
    decisions = [{"type": "approve"}, {"type": "reject", "message": "keep the new one"}]
    graph.invoke(Command(resume={"decisions": decisions}), thread())
    check_sent(model)
    answers = [m for m in model.calls[5].messages if isinstance(m, ToolMessage)]
    texts = {m.tool_call_id: m.text for m in answers}
    assert texts["call_old"] == "old is deleted"
    assert "keep the new one" in texts["call_new"]
    assert own.model.calls
    if history == "replace":
        assert check_nothing_lost(graph, store) > 0


# One instance, many threads


def per_thread(messages: list[Any]) -> Any:
    """Looks as often as asked; what comes next is told by the prompt, so threads can share it."""
    asked = next(m for m in reversed(messages) if isinstance(m, HumanMessage) and not is_summary(m))
    name, count = asked.text.split()[-2:]
    done = next((m.text for m in reversed(messages) if isinstance(m, ToolMessage)), None)
    number = 0 if done is None else int(done.split(":")[0].rsplit("x", 1)[1]) + 1
    return calls(f"{name}x{number}") if number < int(count) else "All looked at."


# Subagents that share the thread


def subagents(own: Any, theirs: Any) -> tuple[Any, Any, ScriptedChatModel]:
    """A graph with two subagents as tools; all three share the store and the thread."""
    models = {}

    def sub(name: str) -> Any:
        models[name] = ScriptedChatModel(answers=lambda messages: per_thread(messages))
        return create_agent(models[name], tools=[look], middleware=[theirs])

    alpha, beta = sub("alpha"), sub("beta")

    @tool
    def ask_alpha(count: int) -> str:
        """Have alpha look."""
        return str(alpha.invoke(said(f"Look at tha {count}"))["messages"][-1].text)

    @tool
    def ask_beta(count: int) -> str:
        """Have beta look."""
        return str(beta.invoke(said(f"Look at thb {count}"))["messages"][-1].text)

    def both(number: int) -> AIMessage:
        asked = [
            {"name": "ask_alpha", "args": {"count": 9}, "id": f"call_a{number}"},
            {"name": "ask_beta", "args": {"count": 9}, "id": f"call_b{number}"},
        ]
        return AIMessage("Have both look.", tool_calls=asked)

    script = [*steps(8)[:-1], both(1), *steps(8, prefix="n")[:-1], both(2), "All looked at."]
    store = InMemoryStore()
    graph, model = agent(script, own, store=store, tools=[look, ask_alpha, ask_beta])
    return graph, store, model


def subagent_summary(messages: list[Any]) -> str:
    found = re.findall(r"\bth[ab]x\d+|\b[mn]\d\b", str(messages[-1].content))
    return f"{SUMMARY}: {' '.join(dict.fromkeys(found))[:150]} are looked at."


@pytest.mark.slow
@pytest.mark.parametrize("each", [False, True], ids=["one instance", "an instance each"])
@both
def test_subagents_of_one_thread_have_a_session_each_and_see_no_others_originals(loop, each):
    own, other = (middleware(model=ScriptedChatModel(answers=subagent_summary)) for _ in range(2))
    graph, store, model = subagents(own, other if each else own)
    if loop:
        asyncio.run(graph.ainvoke(task(), thread()))
    else:
        graph.invoke(task(), thread())
    check_sent(model)
    check_nothing_lost(graph, store)
    by_session: dict[tuple[str, ...], str] = {}
    for one in stored(store, "conspectus"):
        *session, kind = one.namespace
        if kind in ("messages", "texts"):
            by_session[tuple(session)] = by_session.get(tuple(session), "") + one.text
    kinds = sorted(
        tuple(kind for kind in ("thax", "thbx", "module m") if kind in text)
        for text in by_session.values()
    )
    assert kinds == [("module m",), ("thax",), ("thax",), ("thbx",), ("thbx",)]
    assert Archive(store).threads("local") == ("t",)


# Where the summary stands in a request, beside other middleware's additions


class SystemFirst(AgentMiddleware[Any, Any, Any]):
    """Puts a system message before the messages, as outer middleware does."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        rules = [SystemMessage("Be careful."), SystemMessage("Be brief.")]
        return handler(request.override(messages=[*rules, *request.messages]))


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_the_newest_human_message_is_the_request_in_a_long_turn(history):
    asked: list[str] = []

    class Selector(ScriptedChatModel):
        def with_structured_output(self, schema: Any, **more: Any) -> Any:
            def chosen(messages: Any) -> Any:
                asked.append(messages[-1].content)
                return {"tools": ["look"]}

            return RunnableLambda(chosen)

    own = middleware(history=history)
    select = LLMToolSelectorMiddleware(model=Selector(answers=[]))
    graph, model = agent(steps(30), own, select, ContextGuard(own, window=20_000), tools=[look])
    graph.invoke(said("Please look at all modules."), thread())
    assert any(map(is_summary, model.calls[-1].messages))
    assert set(asked) == {"Please look at all modules."}


@pytest.mark.parametrize("own_rule", [False, True])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_the_summary_stands_behind_all_leading_system_messages(history, own_rule):
    own = middleware(history=history)
    graph, model = agent(steps(30), SystemFirst(), own, ContextGuard(own, window=20_000))
    first = [SystemMessage("Yours.", id="own")] if own_rule else []
    graph.invoke({"messages": [*first, HumanMessage("Look at all.")]}, thread())
    request = model.calls[-1].messages
    kinds = ["summary" if is_summary(one) else one.type for one in request]
    system = 2 + own_rule
    assert kinds[: system + 2] == ["system"] * system + ["summary", "human"]
    assert "system" not in kinds[system:]
