"""The middleware inside real agents: approvals, other middleware, subagents, other graphs."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, wrap_model_call
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langchain_openai.chat_models.base import _get_last_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.messages import is_summary_message
from graph_support import (
    check_nothing_lost,
    check_sent,
    is_summary,
    look,
    new_agent,
    new_middleware,
    thread_config,
    tool_steps,
    user_input,
)
from redaction_support import stored_values
from scripted_models import ScriptedChatModel


def task() -> Any:
    """A new message each time: the same one again would take the place of the first."""
    return user_input("Look at all modules of the project.")


@tool
def delete(name: str) -> str:
    """Delete a module."""
    return f"{name} is deleted"


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_parallel_calls_one_approved_and_one_rejected_stay_whole(history):
    store = InMemoryStore()
    middleware = new_middleware(history=history)
    calls = [{"name": "delete", "args": {"name": n}, "id": f"call_{n}"} for n in ("old", "new")]
    asks = AIMessage("I want to delete.", tool_calls=calls)
    script = [*tool_steps(4)[:-1], asks, *tool_steps(8, prefix="n")]
    approvals = HumanInTheLoopMiddleware(interrupt_on={"delete": True})
    graph, model = new_agent(script, middleware, approvals, store=store, tools=[look, delete])
    graph.invoke(task(), thread_config())
    decisions = [{"type": "approve"}, {"type": "reject", "message": "keep the new one"}]
    graph.invoke(Command(resume={"decisions": decisions}), thread_config())
    check_sent(model)
    answers = [m for m in model.calls[5].messages if isinstance(m, ToolMessage)]
    texts = {m.tool_call_id: m.text for m in answers}
    assert texts["call_old"] == "old is deleted"
    assert "keep the new one" in texts["call_new"]
    assert middleware.model.calls
    if history == "replace":
        assert check_nothing_lost(graph, store) > 0


@pytest.mark.parametrize("loop", [False, True], ids=["sync", "async"])
def test_subagents_see_only_their_own_sessions(loop):
    middleware = new_middleware()
    store = InMemoryStore()
    reader_model = ScriptedChatModel(answers=tool_steps(9, prefix="th"))
    reader = create_agent(reader_model, tools=[look], middleware=[middleware])

    @tool
    def delegate() -> str:
        """Have another agent look."""
        return str(reader.invoke(user_input("Look at all of th."))["messages"][-1].text)

    asks = AIMessage("", tool_calls=[{"name": "delegate", "args": {}, "id": "call_d"}])
    script = [*tool_steps(8)[:-1], asks, *tool_steps(8, prefix="n")]
    graph, model = new_agent(script, middleware, store=store, tools=[look, delegate])
    if loop:
        asyncio.run(graph.ainvoke(task(), thread_config()))
    else:
        graph.invoke(task(), thread_config())
    check_sent(model, reader_model)
    check_nothing_lost(graph, store)
    by_session: dict[tuple[str, ...], str] = {}
    for item in stored_values(store, "conspectus"):
        *session, part = item.namespace
        if part in ("messages", "texts"):
            by_session[tuple(session)] = by_session.get(tuple(session), "") + item.text
    mentions = [("module m" in text, "module th" in text) for text in by_session.values()]
    assert sorted(mentions) == [(False, True), (True, False)]
    assert Archive(store).threads("local") == ("t",)


class SystemFirst(AgentMiddleware[Any, Any, Any]):
    """Puts system messages before the others, as outer middleware does; one is a dict."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        rules = [SystemMessage("Be careful."), {"role": "system", "content": "Be brief."}]
        return handler(request.override(messages=[*rules, *request.messages]))


@pytest.mark.parametrize("own_rule", [False, True])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_the_summary_stands_behind_all_leading_system_messages(history, own_rule):
    middleware = new_middleware(history=history, alternate_roles="off")
    graph, model = new_agent(
        tool_steps(30), SystemFirst(), middleware, ContextGuard(middleware, window=20_000)
    )
    users_rule = [SystemMessage("Yours.", id="own")] if own_rule else []
    graph.invoke({"messages": [*users_rule, HumanMessage("Look at all.")]}, thread_config())
    request = model.calls[-1].messages
    types = ["summary" if is_summary(message) else message.type for message in request]
    system = 2 + own_rule
    assert types[: system + 2] == ["system"] * system + ["summary", "human"]
    assert "system" not in types[system:]


def test_a_model_may_be_asked_twice_at_once():
    @wrap_model_call
    async def hedged(request: Any, handler: Any) -> Any:
        return (await asyncio.gather(handler(request), handler(request)))[0]

    middleware = new_middleware()
    model = ScriptedChatModel(answers=lambda _: "ok")
    graph, _ = new_agent(model, hedged, middleware, ContextGuard(middleware, window=20_000))
    for n in range(9):
        asyncio.run(graph.ainvoke(user_input(f"question {n}"), thread_config()))
    assert len(model.calls) == 18


class Linked(ScriptedChatModel):
    """ChatOpenAI whose server holds what was sent up to each response."""

    use_previous_response_id: bool = True


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_server_side_history_is_cut_to_the_view(history):
    model = Linked(answers=lambda _: AIMessage("ok", response_metadata={"id": f"resp_{len(sent)}"}))
    graph = new_agent(model, new_middleware(history=history))[0]
    held_messages = {None: 0}
    sent = model.calls
    for n in range(30):
        graph.invoke(user_input(f"question {n}"), thread_config())
        new_messages, previous_response = _get_last_messages(sent[-1].messages)
        held_messages[f"resp_{len(sent)}"] = (
            held_messages[previous_response] + len(new_messages) + 1
        )
    assert max(held_messages.values()) <= 12


TURNS = 24


class Member:
    """One agent of a team; what its summariser has read, and the names of its sessions."""

    def __init__(self, name: str, history: str = "preserve", trigger: int = 10, **options: Any):
        self.read: Counter[str] = Counter()
        self.sessions: set[str] = set()
        self.model = ScriptedChatModel(answers=lambda messages: f"{name} answers.")
        middleware = SummarizationMiddleware(
            None,
            summarizer=self._summarise,
            trigger=("messages", trigger),
            keep=("messages", 4),
            history=history,  # type: ignore[arg-type]
            on_event=lambda _, data: self.sessions.add(data["session"]),
        )
        middlewares = [middleware, ContextGuard(middleware, window=30_000)]
        self.agent: Any = create_agent(self.model, middleware=middlewares, name=name, **options)

    def _summarise(self, messages: list[Any]) -> str:
        self.read.update(
            str(message.text) for message in messages if not is_summary_message(message)
        )
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


def ask(graph: Any, n: int, active: str, *earlier: BaseMessage) -> dict[str, Any]:
    question = HumanMessage(f"Question {n}: secret-{n}", id=f"u{n}")
    state: dict[str, Any] = graph.invoke(
        {"messages": [*earlier, question], "active": active}, thread_config()
    )
    return state


@pytest.mark.parametrize("saved", [None, True])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_each_message_is_read_once(history, stored, saved):
    """`saved` agents keep their own state from turn to turn; the parent sends it all again."""
    alice = Member("alice", history, checkpointer=saved)
    graph = team(alice, store=InMemoryStore() if stored else None)
    for n in range(TURNS):
        state = ask(graph, n, "alice")
        assert len(alice.sent) <= 11
    assert not any(map(is_summary_message, state["messages"])), "the parent has the originals"
    assert {count for text, count in alice.read.items() if text.startswith("Question")} == {1}
    assert sum(text.startswith("Question") for text in alice.read) >= TURNS - 6
    assert len(alice.sessions) == 1


def test_two_agents_have_records_of_their_own():
    alice = Member("alice")
    bob = Member("bob", trigger=1_000)
    store = InMemoryStore()
    graph = team(alice, bob, store=store)
    for n in range(9):
        ask(graph, n, "alice")
    ask(graph, 9, "bob")
    assert len(bob.sent) > 12, "what one has summarised, the other one still sees"
    [session] = alice.sessions
    recalled = Compactor(archive=store).recall("secret-1", thread_id="t", session=session)
    assert "secret-1" in recalled.text
    read_before = sum(alice.read.values())
    ask(graph, 10, "alice")
    assert sum(alice.read.values()) - read_before < 8
    assert not any(
        message.text[-8:] == "secret-1" for message in alice.sent if not is_summary_message(message)
    )


@pytest.mark.parametrize("tenants", [("ann", "bob")])
def test_tenants_with_equal_thread_names_are_apart(tenants):
    store = InMemoryStore()
    for tenant in tenants:
        middleware = new_middleware(tenant=lambda runtime, name=tenant: name)
        graph, model = new_agent(tool_steps(12, prefix=tenant), middleware, store=store)
        graph.invoke(user_input("Look at all modules."), thread_config())
        assert check_nothing_lost(graph, store, tenant=tenant) > 10
        check_sent(model)
    for tenant, other_tenant in (tenants, tenants[::-1]):
        rows = str(Archive(store).export(Scope(tenant, "t")))
        assert f"module {tenant}1:" in rows
        assert f"module {other_tenant}" not in rows


def test_a_step_in_another_archive_does_not_touch_this_one():
    """A state whose record is elsewhere says nothing of what is in force here."""
    archives = [InMemoryStore(), InMemoryStore()]
    saver = InMemorySaver()
    scope = Scope("local", "t")
    for store, count in zip([*archives, archives[0]], [8, 8, 0], strict=True):
        middleware = new_middleware(archive=store, trigger=("messages", 10 if count else 1000))
        graph, _ = new_agent(tool_steps(count), middleware, checkpointer=saver, store=None)
        graph.invoke(user_input("Look at all modules."), thread_config())
        assert Archive(store).chain(scope)


TALK = [{"role": "user", "content": f"question {n} " + "word " * 40} for n in range(9)]
RECORD = Compactor(keep=("messages", 2)).compact(TALK, thread_id="t", force=True).record.to_json()  # type: ignore[union-attr]
del RECORD["bill"]  # its seconds are in no test's name

DAMAGED: list[dict[str, Any]] = [
    {"size_after": [5]},
    {"size_after": [float("inf"), 1]},
    {"size_after": [float("nan"), 1]},
    {"size_after": [-4, 1]},
    {"size_after": {"0": 1}},
    {"size_after": "xy"},
    {"records": ["x"]},
    {"records": [5]},
    {"records": [None]},
    {"records": [{"v": 1}], "pending": True},
    {"head_id": RECORD["id"], "records": [{**RECORD, "summary": 7}]},
    {"head_id": RECORD["id"], "records": [{**RECORD, "covers": [["k"]]}]},
    {"head_id": RECORD["id"], "records": [{**RECORD, "covers": None}]},
    {"head_id": RECORD["id"], "records": [{**RECORD, "clips": ["k"]}]},
    {
        "head_id": RECORD["id"],
        "records": [{**RECORD, "clips": [{"key": 1, "shown": "", "limit": "x"}]}],
    },
    {"head_id": RECORD["id"], "records": [{**RECORD, "notes": 5}]},
    {"head_id": RECORD["id"], "records": [{**RECORD, "messages_after": "3"}]},
    {"head_id": RECORD["id"], "records": [{**RECORD, "cost": None}]},
    {"head_id": 5},
    {"head_id": "no such record"},
    {"records": []},
    {"records": {"a": 1}},
    {"thread": 5},
    {"session": None},
    {"v": 2},
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("damage", DAMAGED, ids=repr)
@pytest.mark.parametrize("stored", [False, True])
def test_a_damaged_state_is_not_trusted_and_stops_no_step(damage, stored):
    store = InMemoryStore() if stored else None
    graph, model = new_agent(lambda _: "ok", new_middleware(), store=store)
    graph.invoke(user_input("hi"), thread_config())
    sound = {"v": 1, "thread": "t", "session": "main", "head_id": "", "size_after": None}
    graph.update_state(thread_config(), {"_conspectus": {**sound, "pending": False, **damage}})
    for n in range(6):
        graph.invoke(user_input(f"question {n}"), thread_config())
    assert len(model.calls[-1].messages) < 10, "it goes on and compacts"
    channel = graph.get_state(thread_config()).values["_conspectus"]
    assert channel["head_id"]
    assert channel["size_after"]


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize(
    ("config", "saver"),
    [(thread_config(), None), ({}, None), (thread_config(), InMemorySaver)],
    ids=["a thread", "none", "a checkpointer"],
)
def test_a_whole_history_sent_each_time_is_summarised_once(history, config, saver):
    """A server builds the agent anew for each request, which brings all that was said."""
    store = InMemoryStore()
    read = Counter[str]()
    checkpointer = saver and saver()
    whole: list[Any] = []

    def summarise(messages: list[Any]) -> str:
        read.update(str(message.text) for message in messages if not is_summary_message(message))
        return "## Done\n" + "- What was asked was done.\n" * 12

    def ask(text: str) -> list[Any]:
        """Ask, and return what the model was sent."""
        whole.append(HumanMessage(text, id=f"u{len(whole)}"))
        middleware = new_middleware(
            summarizer=summarise, archive=Archive(store), history=history, check_summaries=False
        )
        options: Any = {"checkpointer": checkpointer, "store": None, "tools": []}
        graph, model = new_agent(
            lambda _: f"Answer {len(whole)} to what was asked.", middleware, **options
        )
        out = graph.invoke({"messages": [message.model_copy() for message in whole]}, config)
        whole.append(out["messages"][-1])
        return list(model.calls[-1].messages)

    sent = [ask(f"Request {n}: look at module {n}, please.") for n in range(40)]
    assert max(map(len, sent)) <= 10
    assert set(read.values()) == {1}
    assert len(read) >= len(whole) - 10
    # What a client has edited is read as it is now.
    whole[2] = HumanMessage("Request 1: leave module 1 alone.", id="u2")
    read_before = Counter(read)
    sent_texts = {message.text for message in ask("And now?")}
    assert "Request 1: leave module 1 alone." in {*(read - read_before)} | sent_texts


def test_what_is_put_in_place_of_a_summary_is_read_again():
    """A client, or a hook, that sets the state to its own list has taken the summary out."""
    graph, model = new_agent(lambda _: "Done.", new_middleware(), tools=[])
    for n in range(14):
        graph.invoke({"messages": [HumanMessage(f"Look at part{n}.", id=f"u{n}")]}, thread_config())
    clear = RemoveMessage(id=REMOVE_ALL_MESSAGES)
    first = HumanMessage("Look at part0.", id="u0")
    whole = [clear, *(HumanMessage(f"Look at part{n}.", id=f"u{n}") for n in range(14))]
    graph.invoke({"messages": [*whole, HumanMessage("And now?")]}, thread_config())
    sent = " ".join(str(message.text) for message in model.calls[-1].messages)
    assert {0, 13} <= {n for n in range(14) if f"part{n}." in sent}
    graph.invoke({"messages": [first]}, thread_config())  # the same once more, id and all
    assert model.calls[-1].messages[-1].text == first.text
    graph.invoke(
        {"messages": [clear]} | SummarizationMiddleware.request_compaction(), thread_config()
    )
    assert graph.get_state(thread_config()).values["messages"]
