"""Agents that are nodes of another graph: their state ends with a run, their records do not."""

from collections import Counter
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.messages import is_summary_message
from graph_support import agent, check_nothing_lost, check_sent, middleware, said, steps, thread
from scripted_models import ScriptedChatModel

TURNS = 24


class Member:
    """One agent of a team; what its summariser has read, and the names of its sessions."""

    def __init__(self, name: str, history: str = "preserve", trigger: int = 10, **more: Any):
        self.read: Counter[str] = Counter()
        self.sessions: set[str] = set()
        self.model = ScriptedChatModel(answers=lambda messages: f"{name} answers.")
        own = SummarizationMiddleware(
            None,
            summarizer=self._summarise,
            trigger=("messages", trigger),
            keep=("messages", 4),
            history=history,  # type: ignore[arg-type]
            on_event=lambda _, data: self.sessions.add(data["session"]),
        )
        stack = [own, ContextGuard(own, window=30_000)]
        self.agent: Any = create_agent(self.model, middleware=stack, name=name, **more)

    def _summarise(self, messages: list[Any]) -> str:
        self.read.update(str(one.text) for one in messages if not is_summary_message(one))
        return "- What was asked was done.\n" * 3

    @property
    def sent(self) -> list[BaseMessage]:
        return list(self.model.calls[-1].messages)


class Team(MessagesState):
    active: str


def team(*members: Member, saver: bool = True, store: Any = None) -> Any:
    builder = StateGraph(Team)
    for member in members:
        builder.add_node(member.agent.name, member.agent)
    names = [member.agent.name for member in members]
    builder.add_conditional_edges(START, lambda state: state["active"], names)
    return builder.compile(checkpointer=InMemorySaver() if saver else None, store=store)


def ask(graph: Any, n: int, active: str, *before: BaseMessage) -> dict[str, Any]:
    said = HumanMessage(f"Question {n}: secret-{n}", id=f"u{n}")
    done: dict[str, Any] = graph.invoke({"messages": [*before, said], "active": active}, thread())
    return done


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_each_message_is_read_once(history, stored):
    alice = Member("alice", history)
    graph = team(alice, store=InMemoryStore() if stored else None)
    for n in range(TURNS):
        ask(graph, n, "alice")
        assert len(alice.sent) <= 11
    assert {count for text, count in alice.read.items() if text.startswith("Question")} == {1}
    assert sum(text.startswith("Question") for text in alice.read) >= TURNS - 6
    assert len(alice.sessions) == 1


def test_two_agents_have_records_of_their_own():
    alice, bob = Member("alice"), Member("bob", trigger=1_000)
    store = InMemoryStore()
    graph = team(alice, bob, store=store)
    for n in range(9):
        ask(graph, n, "alice")
    ask(graph, 9, "bob")
    assert len(bob.sent) > 12, "what one has summarised, the other one still sees"
    [session] = alice.sessions
    found = Compactor(archive=store).recall("secret-1", thread_id="t", session=session)
    assert "secret-1" in found.text
    before = sum(alice.read.values())
    ask(graph, 10, "alice")
    assert sum(alice.read.values()) - before < 8
    assert not any(one.text[-8:] == "secret-1" for one in alice.sent if not is_summary_message(one))


# The middleware over real checkpointers and stores, with and without an event loop


@pytest.mark.parametrize("tenants", [("ann", "bob")])
def test_tenants_with_one_name_for_a_thread_see_nothing_of_each_other(tenants):
    store = InMemoryStore()
    for tenant in tenants:
        own = middleware(tenant=lambda runtime, name=tenant: name)
        graph, model = agent(steps(12, prefix=tenant), own, store=store)
        graph.invoke(said("Look at all modules."), thread())
        assert check_nothing_lost(graph, store, tenant=tenant) > 10
        check_sent(model)
    for tenant, other in (tenants, tenants[::-1]):
        rows = str(Archive(store).export(Scope(tenant, "t")))
        assert f"module {tenant}1:" in rows
        assert f"module {other}" not in rows


def test_a_step_in_another_archive_does_not_touch_this_one():
    """A state whose record is elsewhere says nothing of what is in force here."""
    archives, saver = [InMemoryStore(), InMemoryStore()], InMemorySaver()
    scope = Scope("local", "t")
    for store, count in zip([*archives, archives[0]], [8, 8, 0], strict=True):
        own = middleware(archive=store, trigger=("messages", 10 if count else 1000))
        graph, _ = agent(steps(count), own, checkpointer=saver, store=None)
        graph.invoke(said("Look at all modules."), thread())
        assert Archive(store).chain(scope)
