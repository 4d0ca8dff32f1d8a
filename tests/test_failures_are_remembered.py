"""A summariser that fails is not paid at each turn by each process, wherever the agent stands."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from background_support import talk_of
from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.core.items import Size
from conspectus.core.plan_types import Keep
from conspectus.engine.branches import load_view
from conspectus.engine.decision import plan_for
from conspectus.engine.history import CallerCounts, HistoryContext
from conspectus.engine.memory import FailedSummary
from conspectus.messages import read_messages
from graph_support import look_calls
from scripted_models import ScriptedChatModel

LONG = "word " * 60
TURNS = 12


class FailingModel:
    """A model that is out of order; `paid_calls` counts its calls, by all who use it."""

    def __init__(self) -> None:
        self.paid_calls = 0

    def __call__(self, messages: Any) -> str:
        self.paid_calls += 1
        raise PermissionError("Invalid API key")


def middleware(failing: Any, **changes: Any) -> Any:
    settings: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4)}
    return SummarizationMiddleware(
        FakeListChatModel(responses=["-"]),
        summarizer=failing,
        window=100_000,
        **{**settings, **changes},
    )


def new_agent(failing: Any, model: Any = None, **options: Any) -> Any:
    """An agent that is built anew, as in another process."""
    answering = model or FakeListChatModel(responses=["It is fine."])
    settings = {name: options.pop(name) for name in ("background", "keep") if name in options}
    tools = options.pop("tools", [])
    return create_agent(answering, tools, middleware=[middleware(failing, **settings)], **options)


def ask(turn: int) -> Any:
    return {"messages": [HumanMessage(f"Part {turn} {LONG}")]}


THREAD: Any = {"configurable": {"thread_id": "t"}}
PAID_IN_TWELVE_TURNS = 4
"""The more failures stand in a row, the further a history must grow before the next try."""


@pytest.mark.parametrize("kind_of_archive", ["sqlite", "store"])
def test_another_process_finds_a_failure_in_the_archive(kind_of_archive, tmp_path):
    failing = FailingModel()
    store = InMemoryStore()
    for turn in range(TURNS):
        archive = str(tmp_path / "a.db") if kind_of_archive == "sqlite" else Archive(store)
        settings: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4)}
        with Compactor(failing, window=100_000, archive=archive, **settings) as compactor:
            result = compactor.compact(talk_of(6 + turn), thread_id="t")
            assert result.outcome == "kept"
    assert failing.paid_calls == PAID_IN_TWELVE_TURNS


def test_failures_in_a_row_are_counted_from_process_to_process():
    failing = FailingModel()
    store = InMemoryStore()
    paid_turns = []
    for turn in range(40):
        settings: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4)}
        compactor = Compactor(failing, window=100_000, archive=Archive(store), **settings)
        paid_before = failing.paid_calls
        compactor.compact(talk_of(6 + turn), thread_id="t")
        paid_turns += [turn] if failing.paid_calls > paid_before else []
    gaps = [later - earlier for earlier, later in pairwise(paid_turns)]
    assert len(gaps) >= 2
    assert gaps == sorted(gaps)
    assert gaps[-1] > gaps[0]


def test_a_success_ends_the_failures_for_every_process():
    store = InMemoryStore()
    settings: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4)}
    Compactor(FailingModel(), archive=Archive(store), **settings).compact(talk_of(8), thread_id="t")
    later = Compactor(archive=Archive(store), **settings)
    assert later.compact(talk_of(8), thread_id="t").outcome == "kept"
    assert later.compact(talk_of(10), thread_id="t").outcome == "compacted"
    remarks = Archive(store).read_remarks(Scope("local", "t", "main"), "failed", ["summary"])
    assert remarks == {"summary": {}}


@pytest.mark.parametrize("archived", [False, True])
def test_an_agent_that_is_built_anew_each_turn_remembers(archived):
    failing = FailingModel()
    saver = InMemorySaver()
    store = InMemoryStore()
    for turn in range(TURNS):
        options: Any = {"store": store} if archived else {}
        new_agent(failing, checkpointer=saver, **options).invoke(ask(turn), THREAD)
    assert failing.paid_calls == PAID_IN_TWELVE_TURNS


def test_an_agent_inside_a_graph_that_is_compiled_anew_remembers():
    failing = FailingModel()
    saver = InMemorySaver()
    store = InMemoryStore()
    for turn in range(TURNS):
        outer = (
            StateGraph(MessagesState).add_node("agent", new_agent(failing)).add_edge(START, "agent")
        )
        outer.compile(checkpointer=saver, store=store).invoke(ask(turn), THREAD)
    assert failing.paid_calls == PAID_IN_TWELVE_TURNS


def test_an_agent_with_its_own_namespace_remembers_without_an_archive():
    failing = FailingModel()
    saver = InMemorySaver()
    for turn in range(TURNS):
        inner = new_agent(failing, checkpointer=True)
        outer = StateGraph(MessagesState).add_node("agent", inner).add_edge(START, "agent")
        outer.compile(checkpointer=saver).invoke(ask(turn), THREAD)
    assert failing.paid_calls == PAID_IN_TWELVE_TURNS


def test_an_agent_that_is_called_as_a_tool_remembers():
    failing = FailingModel()
    saver = InMemorySaver()
    store = InMemoryStore()
    for turn in range(TURNS):
        inner = new_agent(failing, checkpointer=True)

        @tool
        def look(name: str, inner: Any = inner, turn: int = turn) -> str:
            """Look at a module."""
            return str(inner.invoke(ask(turn))["messages"][-1].text)

        model = ScriptedChatModel(answers=[look_calls("m"), "Looked at."])
        outer = create_agent(model, [look], checkpointer=saver, store=store)
        outer.invoke(ask(turn), THREAD)
    assert failing.paid_calls == PAID_IN_TWELVE_TURNS


def test_preparing_that_failed_is_not_paid_by_each_process():
    failing = FailingModel()
    store = InMemoryStore()
    settings: dict[str, Any] = {"trigger": ("messages", 60), "keep": ("messages", 4)}
    for turn in range(8):
        compactor = Compactor(
            failing, window=100_000, archive=Archive(store), background=True, **settings
        )
        with compactor:
            assert compactor.compact(talk_of(22 + turn // 4), thread_id="t").outcome == "kept"
    assert failing.paid_calls == 1


def test_a_step_with_nothing_due_asks_and_writes_no_note(monkeypatch):
    touched: list[str] = []
    archive = Archive(InMemoryStore())
    for name in ("write_remarks", "read_remarks"):
        original = getattr(archive, name)

        def noting(
            scope: Any, kind: str, *arguments: Any, original: Any = original, **options: Any
        ) -> Any:
            touched.extend([kind] if kind == "failed" else [])
            return original(scope, kind, *arguments, **options)

        monkeypatch.setattr(archive, name, noting)
    compactor = Compactor(FailingModel(), trigger=("messages", 40), archive=archive)
    for turn in range(6):
        assert compactor.compact(talk_of(4 + turn), thread_id="t").outcome == "kept"
    assert touched == []


def test_the_wait_after_a_failure_counts_like_the_trigger():
    """The record in force says what the meter counts, which is many times as much here."""
    compactor = Compactor(
        "embedded", archive="memory:", trigger=("tokens", 1_000), keep=("messages", 4)
    )
    compactor.compact(talk_of(20), thread_id="t", force=True)
    history = HistoryContext(
        compactor._engine,
        Scope("local", "t", "main"),
        counts=CallerCounts(trigger_size=Size(2_000, 20), rearm_from=Size(20, 5)),
    )
    view = run(load_view(history, read_messages(talk_of(20))))
    assert view.head is not None
    history.memory.latest_failure = FailedSummary(
        view.head_id, Size(1_990, 20), view.size, over=False
    )
    large = replace(view.head, tokens_after=100_000)
    plan = plan_for(replace(view, chain=(large,)))
    assert isinstance(plan, Keep)
    assert plan.reason.startswith("the last compaction, at")
