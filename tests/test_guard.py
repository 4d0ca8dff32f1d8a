"""The guard: what is really sent fits its window; what was refused is rescued, giants clipped."""

import base64
import contextlib
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from conspectus import ContextGuard, StuckError, SummarizationMiddleware
from conspectus.archive import Archive
from conspectus.errors import PolicyError
from conspectus.langchain import settings
from conspectus.model.overflow import FURTHER_TRIES
from graph_support import METER, Bench, check_sent, new_agent, scope_of, thread_config, user_input
from scripted_models import ScriptedChatModel

WINDOW = 3_000
PROMPT = "You are a careful coding agent. " * 20
LONG = "and then look at what it imports, and at what imports it. " * 6


@tool
def read(path: str) -> Any:
    """Read a file."""
    return GIANTS.get(path, f"{path}: " + "a line of code\n" * 40)


TOOLS = METER.count_tools([read])


def reading_agent(*middleware: Any) -> Bench:
    """An agent that reads a file at each question."""

    def answer(messages: list[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("It says what it does.")
        call = {
            "name": "read",
            "args": {"path": "/src/m.py"},
            "id": f"c{len(bench.request_tokens)}",
        }
        return AIMessage("", tool_calls=[call])

    bench = Bench(answer, *middleware, tools=[read], system_prompt=PROMPT)
    return bench


def talk(bench: Any, turns: int) -> None:
    for turn in range(turns):
        bench.say(f"Question {turn}: look at m{turn}.py {LONG}")


def summarization(**changes: Any) -> SummarizationMiddleware:
    settings: dict[str, Any] = {"trigger": ("messages", 500), "keep": ("messages", 4), **changes}
    return SummarizationMiddleware(None, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve", None])
def test_the_request_fits_its_window_with_prompt_and_tools(history):
    summarizations = [summarization(history=history)] if history else []
    keep: Any = {} if summarizations else {"keep": ("messages", 4)}
    guard = ContextGuard(*summarizations, window=WINDOW, reserved_tokens=200, **keep)
    bench = reading_agent(*summarizations, guard)
    talk(bench, 25)
    sizes = [size + TOOLS for size in bench.request_tokens]
    assert len(sizes) == 50
    assert max(sizes) <= WINDOW - 200
    assert sum(sizes) / len(sizes) > WINDOW / 3  # it does not starve the agent either
    check_sent(bench.model)


def test_a_window_that_nobody_knows_is_said_once(caplog):
    for window_setting in ({}, {"window": WINDOW}):
        talk(reading_agent(ContextGuard(archive="memory:", **window_setting)), 3)
        assert caplog.text.count("window=") == 1


def test_the_memory_of_many_sessions_is_bounded(monkeypatch):
    monkeypatch.setattr(settings, "CHARACTERS", 50_000)
    guard = ContextGuard(window=400_000)
    graph, _ = new_agent(lambda _: "Yes.", guard, tools=[])
    for number in range(9):
        graph.invoke(user_input("word " * 4_000), thread_config(f"t{number}"))
    sessions = guard.summarization._setup.sessions.values()
    assert 0 < sum(session.characters for session in sessions) <= 50_000


def test_a_guard_that_does_not_stand_last_is_said_once(caplog):
    for first in (False, True):
        middleware = summarization()
        stack = [middleware, ContextGuard(middleware, window=WINDOW)]
        talk(reading_agent(*(stack[::-1] if first else stack)), 3)
        assert caplog.text.count("put it last") == first


@pytest.mark.parametrize("on_stuck", ["raise", "send"])
def test_what_cannot_fit_is_said_with_the_numbers(on_stuck):
    middleware = summarization()
    bench = reading_agent(middleware, ContextGuard(middleware, window=400, on_stuck=on_stuck))
    if on_stuck == "send":
        talk(bench, 1)
        assert bench.request_tokens
        return
    with pytest.raises(StuckError) as caught:
        talk(bench, 1)
    assert caught.value.needed > caught.value.budget > 0
    assert not bench.request_tokens


def test_output_is_reserved_from_the_models_own_setting():
    class Limited(ScriptedChatModel):
        max_tokens: int = 1_000

    model = Limited(answers=lambda messages: "fine")
    middleware = summarization()
    graph, _ = new_agent(model, middleware, ContextGuard(middleware, window=WINDOW), tools=[])
    for turn in range(30):
        graph.invoke(user_input(f"Question {turn}: {LONG}"), thread_config())
    sizes = [METER.count_messages(list(call.messages)) for call in model.calls]
    assert WINDOW - 1_000 >= max(sizes) > WINDOW / 2


LIMIT = 2_500
QUESTION = "What do the tables say?"
ROWS = "".join(f"{n}: one more row of a table that is far too long\n" for n in range(400))


@tool
def read_table(name: str) -> str:
    """Read a table."""
    return f"first row of {name}\n" + ROWS + f"last row of {name}\n"


def four_calls(count: int = 4) -> AIMessage:
    calls = [
        {"name": "read_table", "args": {"name": f"t{n}"}, "id": f"c{n}", "type": "tool_call"}
        for n in range(count)
    ]
    return AIMessage("", tool_calls=calls)


def agent_on_refusing_provider(
    *, history: Any = "replace", store: bool = False, **guard_settings: Any
) -> Bench:
    """An agent that reads four tables at once, on a provider that never names its limit."""

    def answer(messages: list[BaseMessage]) -> Any:
        return four_calls() if messages[-1].text == QUESTION else f"Fine, {len(messages)}."

    summarizations = [summarization(history=history, keep=("messages", 20))] if history else []
    store_argument = {} if store else {"store": None}
    guard = ContextGuard(*summarizations, **guard_settings)
    return Bench(answer, *summarizations, guard, limit=LIMIT, tools=[read_table], **store_argument)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
@pytest.mark.parametrize(
    ("history", "store"),
    [("replace", False), ("replace", True), ("preserve", False), ("preserve", True), (None, False)],
)
def test_a_huge_batch_of_results_is_clipped_until_it_fits(history, store, mode):
    bench = agent_on_refusing_provider(history=history, store=store)
    messages = bench.say(QUESTION, mode)
    assert messages[-1].text.startswith("Fine")
    sizes = bench.request_tokens
    refused = bench.refused
    assert 2 <= refused <= FURTHER_TRIES  # one step smaller is not enough, and the steps are few
    assert sizes[1:] == sorted(set(sizes[1:]), reverse=True)
    results = [message for message in bench.requests[-1] if isinstance(message, ToolMessage)]
    assert [message.tool_call_id for message in results] == ["c0", "c1", "c2", "c3"]
    for n, message in enumerate(results):
        assert f"first row of t{n}" in message.text
        assert f"last row of t{n}" in message.text
        assert ("archived as" in message.text) == store
    whole = [message for message in messages if isinstance(message, ToolMessage)]
    if not (store and history == "replace"):  # there the archive has them
        assert all(len(message.text) > 15_000 for message in whole)
    # What was taken is remembered: nothing is refused again, whatever the agent goes on with.
    for turn in range(4):
        messages = bench.say(f"And then, {turn}?", mode)
    assert bench.refused == refused
    assert history == "replace" or len(messages) == 15


@pytest.mark.sampled(1)
@pytest.mark.parametrize("on_stuck", ["raise", "send"])
@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
def test_a_provider_that_refuses_all_is_asked_few_times(store, on_stuck):
    bench = agent_on_refusing_provider(store=store, on_stuck=on_stuck)
    bench.limit = 0
    tables = [read_table.invoke({"name": f"t{n}"}) for n in range(4)]
    results = [ToolMessage(text, tool_call_id=f"c{n}") for n, text in enumerate(tables)]
    with pytest.raises(ContextOverflowError) as caught:
        bench.graph.invoke(
            {"messages": [HumanMessage("And now?"), four_calls(), *results]}, thread_config()
        )
    sizes = bench.request_tokens
    assert 3 <= len(sizes) <= FURTHER_TRIES + 1  # as it came, then smaller by several steps
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] < sizes[0] / 20
    if on_stuck == "raise":
        assert isinstance(caught.value, StuckError)
        assert isinstance(caught.value.__cause__, ContextOverflowError)
    else:
        assert not isinstance(caught.value, StuckError)


def test_an_empty_answer_in_a_full_window_is_a_refusal():
    full = AIMessage("", response_metadata={"finish_reason": "model_context_window_exceeded"})
    middleware = summarization()
    bench = Bench(
        lambda sent: full if len(sent) > 9 else "Fine.", middleware, ContextGuard(middleware)
    )
    talk(bench, 12)
    assert all(message.text for message in bench.values["messages"])


def test_settings_of_a_guard_alone_are_refused_unless_they_change_nothing():
    middleware = summarization()
    assert ContextGuard(middleware, recall_tokens=512, keep=("messages", 20), trigger=None)
    with pytest.raises(PolicyError, match="recall_tokens is for a guard that stands alone"):
        ContextGuard(middleware, recall_tokens=513)


def test_a_short_history_that_is_too_long_gets_a_summary_too():
    messages = [HumanMessage(f"Look at module {n}. " + "word " * 40) for n in range(3)]
    middleware = summarization(
        keep=("messages", 1),
        summarizer=lambda messages: "The user looked at modules.",
        notes=False,
        history="preserve",
    )
    limit = METER.count_messages(messages) - 1
    bench = Bench(lambda _: "Fine.", middleware, ContextGuard(middleware), limit=limit, store=None)
    with contextlib.suppress(StuckError):
        bench.graph.invoke({"messages": messages}, thread_config())
    assert len(bench.request_tokens) == 2
    assert bench.request_tokens[1] < bench.request_tokens[0]


def test_what_was_taken_is_remembered_and_is_no_wall():
    bench = agent_on_refusing_provider(history="preserve")
    bench.say(QUESTION)
    request = bench.values["_conspectus_request"]
    assert len(request["learned"]) == 1
    [learned_limit] = request["learned"].values()
    overhead = request["overhead"]
    assert LIMIT / 4 < learned_limit - overhead < LIMIT
    question = (
        "Look at this: " + ROWS[: 100 * 48]
    )  # more than was taken, and less than would be refused
    assert learned_limit - overhead < METER.count_message(HumanMessage(question)) < LIMIT
    refused = bench.refused
    with contextlib.suppress(StuckError):
        bench.say(question)
    assert bench.values["messages"][-1].text.startswith("Fine")
    assert bench.refused == refused


def fails(messages: list[BaseMessage]) -> str:
    raise RuntimeError("down")


@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize(
    "settings",
    [{"preview": lambda request: None}, {"summarizer": fails, "on_failure": "keep"}],
    ids=["a summary that a person declines", "on_failure=keep"],
)
def test_a_declined_summary_fits_no_request(settings, history):
    middleware = summarization(archive="memory:", history=history, **settings)
    bench = Bench(lambda _: "Fine.", middleware, ContextGuard(middleware, window=WINDOW))
    messages = [HumanMessage(f"Question {n}: {LONG}", id=f"q{n}") for n in range(40)]
    with pytest.raises(StuckError):
        bench.graph.invoke({"messages": messages}, thread_config())
    assert not bench.requests


PICTURE = base64.b64encode(random.Random(3).randbytes(60_000)).decode()
PAGES = base64.b64encode(b"%PDF-1.7 " + random.Random(4).randbytes(400_000)).decode()
TEXT = " ".join(f"word-{n}" for n in range(6_000))

IMAGES: list[Any] = [
    {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "high"},
    }
    for _ in range(8)
]
PDF: Any = {"type": "file", "mime_type": "application/pdf", "base64": PAGES, "filename": "a.pdf"}
GIANTS: dict[str, Any] = {
    "a long text": TEXT,
    "images": [{"type": "text", "text": "Look at these."}, *IMAGES],
    "a document": [{"type": "text", "text": "Read this."}, PDF],
    "a document as text": [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}}
    ],
    "many small blocks": [{"type": "text", "text": f"part {n}: {TEXT[:40]}"} for n in range(900)],
}


def reader_of_named_files(history: Any) -> Bench:
    """An agent that reads what it is told to."""

    def answer(messages: list[BaseMessage]) -> Any:
        last = messages[-1]
        if isinstance(last, HumanMessage) and (match := re.search(r"read <(.+)>", str(last.text))):
            args = {"path": match.group(1)}
            return AIMessage("", tool_calls=[{"name": "read", "args": args, "id": "c1"}])
        return "Seen."

    middleware = SummarizationMiddleware(
        None,
        trigger=("tokens", 100_000),
        keep=("messages", 4),
        history=history,
        alternate_roles="off",
    )
    return Bench(answer, middleware, ContextGuard(middleware, window=WINDOW), tools=[read])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("name", ["images", "a document"])
def test_images_of_the_users_last_message_stay_or_it_is_stuck(name, history):
    bench = reader_of_named_files(history)
    bench.say("Hello, I have something for you.")
    with pytest.raises(StuckError, match=r"at least [0-9,]+ tokens and there are"):
        bench.say(GIANTS[name])
    bench.say("Then without it?")
    assert bench.request_tokens[-1] + TOOLS <= WINDOW
    assert bench.requests[-1][-1].content == "Then without it?"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("name", ["a long text", "many small blocks", "a document as text"])
def test_a_giant_result_keeps_its_call_and_original(name, history):
    bench = reader_of_named_files(history)
    bench.say(f"Please read <{name}>")
    bench.say("And now?")
    assert max(bench.request_tokens) + TOOLS <= WINDOW
    shown = bench.requests[1]
    assert isinstance(shown[-1], ToolMessage)
    assert shown[-1].tool_call_id == "c1"
    assert [m for m in shown if "archived as " in str(m.content)] == [shown[-1]]
    archive = Archive(bench.store)
    scope = scope_of(bench.values, "t")
    records = archive.records(scope)
    keys = [
        key for record in records for key in (*record.covers, *(clip.key for clip in record.clips))
    ]
    assert any(GIANTS[name] == original.message.content for original in archive.get(scope, keys))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_switch_to_a_smaller_model_compacts_before_its_first_call(history):
    small, large = (
        ScriptedChatModel(
            answers=lambda _: "Seen. " * 60, profile={"max_input_tokens": window}, model_name=name
        )
        for name, window in (("small", 2_000), ("large", 60_000))
    )
    current = [large]

    class Switch(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(request.override(model=current[0]))

    settings: Any = {"trigger": ("fraction", 0.85), "keep": ("messages", 4), "history": history}
    middleware = SummarizationMiddleware(large, summarizer="embedded", **settings)
    graph, _ = new_agent(large, middleware, Switch(), ContextGuard(middleware), tools=[read])

    def sizes(model: ScriptedChatModel, turns: range) -> list[int]:
        for turn in turns:
            graph.invoke(user_input(f"Question {turn}. " * 20), thread_config())
        return [METER.count_messages(list(call.messages)) + TOOLS for call in model.calls]

    assert sizes(large, range(20))[-1] > 2_000
    current[0] = small
    assert max(sizes(small, range(20, 26))) <= 2_000
    assert any("Question 20" in str(m.text) for m in small.calls[0].messages)
