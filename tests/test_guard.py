"""The guard: what is really sent fits its window, and a call that overflowed is rescued once."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, StuckError, SummarizationMiddleware
from conspectus.langchain.overflow import TRIES
from conspectus.tokens import TokenMeter
from graph_support import agent
from scripted_models import ScriptedChatModel

WINDOW = 3_000
METER = TokenMeter()
CONFIG: Any = {"configurable": {"thread_id": "t"}}
PROMPT = "You are a careful coding agent. " * 20
LONG = "and then look at what it imports, and at what imports it. " * 6


@tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return f"{path}: " + "a line of code\n" * 40


class Agent:
    """An agent on a scripted model that refuses requests of more than `limit` real tokens."""

    def __init__(
        self,
        *middleware: AgentMiddleware[Any, Any, Any],
        limit: int = 10**9,
        error: Callable[[int, int], Exception] | None = None,
        factor: float = 1.0,
        **more: Any,
    ) -> None:
        self.sent: list[int] = []
        self.refused = 0
        self.requests: list[list[BaseMessage]] = []
        self.limit, self.factor = limit, factor
        self._error = error or (lambda limit, sent: ContextOverflowError("too long"))
        self.model = ScriptedChatModel(answers=self._answer)
        self.store = InMemoryStore()
        more.setdefault("store", self.store)
        self.graph = create_agent(
            self.model,
            [read_file],
            system_prompt=PROMPT,
            middleware=middleware,
            checkpointer=InMemorySaver(),
            **more,
        )

    def _answer(self, messages: list[BaseMessage]) -> Any:
        size = int((METER.messages(messages) + METER.tools([read_file])) * self.factor)
        if size > self.limit:
            self.refused += 1
            return self._error(self.limit, size)
        self.sent.append(size)
        self.requests.append(messages)
        number = len(self.sent)
        own = [message for message in messages if "Remember" not in str(message.content)]
        if isinstance(own[-1], ToolMessage):
            return AIMessage(f"The answer is {number}.", id=f"a{number}")
        call = {"name": "read_file", "args": {"path": f"/src/m{number}.py"}, "id": f"c{number}"}
        return AIMessage("", tool_calls=[call], id=f"a{number}")

    def talk(self, turns: int, first: int = 0) -> None:
        for turn in range(first, first + turns):
            said = HumanMessage(f"Question {turn}: look at m{turn}.py {LONG}")
            self.graph.invoke({"messages": [said]}, CONFIG)

    @property
    def values(self) -> dict[str, Any]:
        return self.graph.get_state(CONFIG).values


def summarization(**more: Any) -> SummarizationMiddleware:
    settings: dict[str, Any] = {"trigger": ("messages", 500), "keep": ("messages", 4), **more}
    return SummarizationMiddleware(None, **settings)


def ask(graph: Any, turns: int) -> None:
    for turn in range(turns):
        graph.invoke({"messages": [HumanMessage(f"Question {turn}: {LONG}")]}, CONFIG)


def broken(messages: list[BaseMessage]) -> bool:
    calls = {c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls}
    results = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    return calls != results


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve", None])
def test_the_request_fits_its_window_with_prompt_and_tools(history):
    middle = [summarization(history=history)] if history else []
    own: Any = {} if middle else {"keep": ("messages", 4)}
    guard = ContextGuard(*middle, window=WINDOW, reserved_tokens=200, **own)
    agent = Agent(*middle, guard)
    agent.talk(25)
    assert len(agent.sent) == 50
    assert max(agent.sent) <= WINDOW - 200
    assert sum(agent.sent) / len(agent.sent) > WINDOW / 3  # it does not starve the agent either
    assert not any(broken(request) for request in agent.requests)


def test_a_window_that_nobody_knows_is_said_once(caplog):
    Agent(ContextGuard(archive="memory:")).talk(3)
    assert caplog.text.count("window=") == 1
    Agent(ContextGuard(window=WINDOW, archive="memory:")).talk(3)
    assert caplog.text.count("window=") == 1


@pytest.mark.parametrize("on_stuck", ["raise", "send"])
def test_what_cannot_fit_is_said_with_the_numbers(on_stuck):
    middle = summarization()
    guard = ContextGuard(middle, window=400, on_stuck=on_stuck)
    agent = Agent(middle, guard)
    if on_stuck == "send":
        agent.talk(1)
        assert agent.sent
        return
    with pytest.raises(StuckError) as caught:
        agent.talk(1)
    assert caught.value.needed > caught.value.budget > 0
    assert not agent.sent


def test_output_is_reserved_from_the_models_own_setting():
    class Limited(ScriptedChatModel):
        max_tokens: int = 1_000

    model = Limited(answers=lambda messages: "fine")
    middle = summarization()
    graph, _ = agent(model, middle, ContextGuard(middle, window=WINDOW), tools=[])
    ask(graph, 30)
    sizes = [METER.messages(call.messages) for call in model.calls]
    assert WINDOW - 1_000 >= max(sizes) > WINDOW / 2


# A provider that says no more than "too long"


LIMIT = 2_000
ASKED = "What do the tables say?"
ROWS = "".join(f"{n}: one more row of a table that is far too long\n" for n in range(400))


@tool
def read_table(name: str) -> str:
    """Read a table."""
    return f"first row of {name}\n" + ROWS + f"last row of {name}\n"


def sizes_of(model: ScriptedChatModel) -> list[int]:
    return [METER.messages(list(call.messages)) for call in model.calls]


def batch(count: int = 4) -> AIMessage:
    calls = [
        {"name": "read_table", "args": {"name": f"t{n}"}, "id": f"c{n}", "type": "tool_call"}
        for n in range(count)
    ]
    return AIMessage("", tool_calls=calls)


def refusing_agent(
    limit: int = LIMIT, *, history: Any = "replace", store: bool, **more: Any
) -> Any:
    """An agent that reads four tables at once, on a provider that never names its limit."""

    def answer(messages: list[BaseMessage]) -> Any:
        if METER.messages(messages) > limit:
            return ContextOverflowError("too long")
        return batch() if messages[-1].text == ASKED else f"Fine, {len(messages)}."

    model = ScriptedChatModel(answers=answer)
    middle = [
        SummarizationMiddleware(None, trigger=("messages", 500), history=history)
        for _ in range(history is not None)
    ]
    guard = ContextGuard(*middle, **more)
    graph = create_agent(
        model,
        [read_table],
        middleware=[*middle, guard],
        checkpointer=InMemorySaver(),
        store=InMemoryStore() if store else None,
    )
    return model, graph


def run(graph: Any, said: str, way: str) -> dict[str, Any]:
    asked = {"messages": [HumanMessage(said)]}
    if way == "async":
        asyncio.run(graph.ainvoke(asked, CONFIG))
    elif way == "stream":
        list(graph.stream(asked, CONFIG, stream_mode="messages"))
    else:
        graph.invoke(asked, CONFIG)
    return graph.get_state(CONFIG).values


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize(
    ("history", "store"),
    [("replace", False), ("replace", True), ("preserve", False), ("preserve", True), (None, False)],
)
def test_a_batch_of_results_that_is_many_times_too_large_is_shown_short_until_it_is_taken(
    history, store, way
):
    model, graph = refusing_agent(history=history, store=store)
    values = run(graph, ASKED, way)
    assert values["messages"][-1].text.startswith("Fine")
    sizes = sizes_of(model)
    refused = [size for size in sizes if size > LIMIT]
    assert 2 <= len(refused) <= TRIES
    assert sizes[1:] == sorted(set(sizes[1:]), reverse=True)
    taken = model.calls[-1].messages
    results = [message for message in taken if isinstance(message, ToolMessage)]
    assert [message.tool_call_id for message in results] == ["c0", "c1", "c2", "c3"]
    for n, message in enumerate(results):
        assert f"first row of t{n}" in message.text
        assert f"last row of t{n}" in message.text
        assert ("archived as" in message.text) == store
    whole = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    if not (store and history == "replace"):  # there the archive has them
        assert all(len(message.text) > 15_000 for message in whole)
    # What was taken is remembered: nothing is refused again, whatever the agent goes on with.
    for turn in range(4):
        values = run(graph, f"And then, {turn}?", way)
    assert len([size for size in sizes_of(model) if size > LIMIT]) == len(refused)
    assert history == "replace" or len(values["messages"]) == 15


@pytest.mark.sampled(1)
@pytest.mark.parametrize("on_stuck", ["raise", "send"])
@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
def test_a_provider_that_takes_nothing_is_asked_a_bounded_number_of_times(store, on_stuck):
    model, graph = refusing_agent(store=store, on_stuck=on_stuck)
    model.answers = lambda messages: ContextOverflowError("too long")
    said = {"messages": [HumanMessage("And now?"), batch(), *read(4)]}
    with pytest.raises(ContextOverflowError) as caught:
        graph.invoke(said, CONFIG)
    sizes = sizes_of(model)
    assert 3 <= len(sizes) <= TRIES + 1
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] < sizes[0] / 20
    if on_stuck == "raise":
        assert isinstance(caught.value, StuckError)
        assert isinstance(caught.value.__cause__, ContextOverflowError)
    else:
        assert not isinstance(caught.value, StuckError)


def test_a_short_history_that_is_too_long_gets_a_summary_too():
    refused: list[int] = []

    def answer(messages: list[BaseMessage]) -> Any:
        refused.append(METER.messages(messages))
        return "Fine." if len(refused) > 1 else ContextOverflowError("too long")

    middle = SummarizationMiddleware(
        None,
        trigger=("messages", 500),
        keep=("messages", 2),
        summarizer=lambda messages: "The user looked at modules.",
        notes=False,
        history="preserve",
    )
    graph = create_agent(
        ScriptedChatModel(answers=answer), middleware=[middle, ContextGuard(middle)]
    )
    said = [HumanMessage(f"Look at module {n}, please, and say what it does.") for n in range(8)]
    with contextlib.suppress(StuckError):
        graph.invoke({"messages": said})
    assert len(refused) == 2
    assert refused[1] < refused[0]


def test_what_was_taken_is_remembered_and_is_no_wall():
    model, graph = refusing_agent(history="preserve", store=False)
    run(graph, ASKED, "sync")
    learned = graph.get_state(CONFIG).values["_conspectus_request"]["learned"]
    overhead = graph.get_state(CONFIG).values["_conspectus_request"]["overhead"]
    assert len(learned) == 1
    most = next(iter(learned.values()))
    assert LIMIT / 4 < most - overhead < LIMIT
    said = "Look at this: " + ROWS[: 85 * 48]  # more than was taken, and less than would be refused
    assert most - overhead < METER.message(HumanMessage(said)) < LIMIT
    refused = len([size for size in sizes_of(model) if size > LIMIT])
    with contextlib.suppress(StuckError):
        run(graph, said, "sync")
    values = graph.get_state(CONFIG).values
    assert values["messages"][-1].text.startswith("Fine")
    assert len([size for size in sizes_of(model) if size > LIMIT]) == refused


def read(count: int) -> list[BaseMessage]:
    return [
        ToolMessage(read_table.invoke({"name": f"t{n}"}), tool_call_id=f"c{n}")
        for n in range(count)
    ]


@pytest.mark.parametrize("stack", ["last", "first", "another's", "alone", "one of two"])
def test_a_guard_in_the_wrong_place_or_of_another_middleware_is_said_once(stack, caplog):
    mine, other = summarization(), summarization(name="other")
    built: dict[str, tuple[list[Any], bool]] = {
        "last": ([mine, ContextGuard(mine, window=WINDOW)], False),
        "first": ([ContextGuard(mine, window=WINDOW), mine], True),
        "another's": ([mine, ContextGuard(other, window=WINDOW)], True),
        "alone": ([ContextGuard(window=WINDOW, archive="memory:")], False),
        "one of two": ([mine, other, ContextGuard(mine, window=WINDOW)], False),
    }
    middleware, wrong = built[stack]
    Agent(*middleware).talk(3)
    assert caplog.text.count("put the guard last") == wrong
