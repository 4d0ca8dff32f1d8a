"""The guard: what is really sent fits its window; what was refused is rescued, giants truncated."""

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
from conspectus.langchain import settings
from conspectus.langchain.overflow import TRIES
from graph_support import METER, Bench, check_sent, new_agent, scope_of, thread_config, user_input
from scripted_models import ScriptedChatModel

WINDOW = 3_000
PROMPT = "You are a careful coding agent. " * 20
LONG = "and then look at what it imports, and at what imports it. " * 6


@tool
def read(path: str) -> Any:
    """Read a file."""
    return GIANTS.get(path, f"{path}: " + "a line of code\n" * 40)


TOOLS = METER.tools([read])


def reading(*middleware: Any) -> Bench:
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


def summarization(**more: Any) -> SummarizationMiddleware:
    settings: dict[str, Any] = {"trigger": ("messages", 500), "keep": ("messages", 4), **more}
    return SummarizationMiddleware(None, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve", None])
def test_the_request_fits_its_window_with_prompt_and_tools(history):
    middle = [summarization(history=history)] if history else []
    own: Any = {} if middle else {"keep": ("messages", 4)}
    guard = ContextGuard(*middle, window=WINDOW, reserved_tokens=200, **own)
    bench = reading(*middle, guard)
    talk(bench, 25)
    sizes = [size + TOOLS for size in bench.request_tokens]
    assert len(sizes) == 50
    assert max(sizes) <= WINDOW - 200
    assert sum(sizes) / len(sizes) > WINDOW / 3  # it does not starve the agent either
    check_sent(bench.model)


def test_a_window_that_nobody_knows_is_said_once(caplog):
    for known in ({}, {"window": WINDOW}):
        talk(reading(ContextGuard(archive="memory:", **known)), 3)
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
        middle = summarization()
        stack = [middle, ContextGuard(middle, window=WINDOW)]
        talk(reading(*(stack[::-1] if first else stack)), 3)
        assert caplog.text.count("put it last") == first


@pytest.mark.parametrize("on_stuck", ["raise", "send"])
def test_what_cannot_fit_is_said_with_the_numbers(on_stuck):
    middle = summarization()
    bench = reading(middle, ContextGuard(middle, window=400, on_stuck=on_stuck))
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
    middle = summarization()
    graph, _ = new_agent(model, middle, ContextGuard(middle, window=WINDOW), tools=[])
    for turn in range(30):
        graph.invoke(user_input(f"Question {turn}: {LONG}"), thread_config())
    sizes = [METER.messages(list(call.messages)) for call in model.calls]
    assert WINDOW - 1_000 >= max(sizes) > WINDOW / 2


LIMIT = 2_500
ASKED = "What do the tables say?"
ROWS = "".join(f"{n}: one more row of a table that is far too long\n" for n in range(400))


@tool
def read_table(name: str) -> str:
    """Read a table."""
    return f"first row of {name}\n" + ROWS + f"last row of {name}\n"


def batch(count: int = 4) -> AIMessage:
    calls = [
        {"name": "read_table", "args": {"name": f"t{n}"}, "id": f"c{n}", "type": "tool_call"}
        for n in range(count)
    ]
    return AIMessage("", tool_calls=calls)


def refusing(*, history: Any = "replace", store: bool = False, **more: Any) -> Bench:
    """An agent that reads four tables at once, on a provider that never names its limit."""

    def answer(messages: list[BaseMessage]) -> Any:
        return batch() if messages[-1].text == ASKED else f"Fine, {len(messages)}."

    middle = [summarization(history=history, keep=("messages", 20))] if history else []
    kept = {} if store else {"store": None}
    guard = ContextGuard(*middle, **more)
    return Bench(answer, *middle, guard, limit=LIMIT, tools=[read_table], **kept)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize(
    ("history", "store"),
    [("replace", False), ("replace", True), ("preserve", False), ("preserve", True), (None, False)],
)
def test_a_batch_of_results_that_is_many_times_too_large_is_shown_short_until_it_is_taken(
    history, store, way
):
    bench = refusing(history=history, store=store)
    held = bench.say(ASKED, way)
    assert held[-1].text.startswith("Fine")
    sizes = bench.request_tokens
    refused = bench.refused
    assert 2 <= refused <= TRIES
    assert sizes[1:] == sorted(set(sizes[1:]), reverse=True)
    results = [message for message in bench.requests[-1] if isinstance(message, ToolMessage)]
    assert [message.tool_call_id for message in results] == ["c0", "c1", "c2", "c3"]
    for n, message in enumerate(results):
        assert f"first row of t{n}" in message.text
        assert f"last row of t{n}" in message.text
        assert ("archived as" in message.text) == store
    whole = [message for message in held if isinstance(message, ToolMessage)]
    if not (store and history == "replace"):  # there the archive has them
        assert all(len(message.text) > 15_000 for message in whole)
    # What was taken is remembered: nothing is refused again, whatever the agent goes on with.
    for turn in range(4):
        held = bench.say(f"And then, {turn}?", way)
    assert bench.refused == refused
    assert history == "replace" or len(held) == 15


@pytest.mark.sampled(1)
@pytest.mark.parametrize("on_stuck", ["raise", "send"])
@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
def test_a_provider_that_takes_nothing_is_asked_a_bounded_number_of_times(store, on_stuck):
    bench = refusing(store=store, on_stuck=on_stuck)
    bench.limit = 0
    tables = [read_table.invoke({"name": f"t{n}"}) for n in range(4)]
    results = [ToolMessage(text, tool_call_id=f"c{n}") for n, text in enumerate(tables)]
    with pytest.raises(ContextOverflowError) as caught:
        bench.graph.invoke(
            {"messages": [HumanMessage("And now?"), batch(), *results]}, thread_config()
        )
    sizes = bench.request_tokens
    assert 3 <= len(sizes) <= TRIES + 1
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] < sizes[0] / 20
    if on_stuck == "raise":
        assert isinstance(caught.value, StuckError)
        assert isinstance(caught.value.__cause__, ContextOverflowError)
    else:
        assert not isinstance(caught.value, StuckError)


def test_an_answer_that_is_empty_as_the_window_is_full_is_a_refusal():
    full = AIMessage("", response_metadata={"finish_reason": "model_context_window_exceeded"})
    middle = summarization()
    bench = Bench(lambda sent: full if len(sent) > 9 else "Fine.", middle, ContextGuard(middle))
    talk(bench, 12)
    assert all(message.text for message in bench.values["messages"])


def test_a_short_history_that_is_too_long_gets_a_summary_too():
    said = [HumanMessage(f"Look at module {n}, please, and say what it does.") for n in range(8)]
    middle = summarization(
        keep=("messages", 2),
        summarizer=lambda messages: "The user looked at modules.",
        notes=False,
        history="preserve",
    )
    most = METER.messages(said) - 1
    bench = Bench(lambda _: "Fine.", middle, ContextGuard(middle), limit=most, store=None)
    with contextlib.suppress(StuckError):
        bench.graph.invoke({"messages": said}, thread_config())
    assert len(bench.request_tokens) == 2
    assert bench.request_tokens[1] < bench.request_tokens[0]


def test_what_was_taken_is_remembered_and_is_no_wall():
    bench = refusing(history="preserve")
    bench.say(ASKED)
    request = bench.values["_conspectus_request"]
    assert len(request["learned"]) == 1
    [most] = request["learned"].values()
    overhead = request["overhead"]
    assert LIMIT / 4 < most - overhead < LIMIT
    said = (
        "Look at this: " + ROWS[: 100 * 48]
    )  # more than was taken, and less than would be refused
    assert most - overhead < METER.message(HumanMessage(said)) < LIMIT
    refused = bench.refused
    with contextlib.suppress(StuckError):
        bench.say(said)
    assert bench.values["messages"][-1].text.startswith("Fine")
    assert bench.refused == refused


def fails(messages: list[BaseMessage]) -> str:
    raise RuntimeError("down")


@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize(
    "more",
    [{"preview": lambda request: None}, {"summarizer": fails, "on_failure": "keep"}],
    ids=["a summary that a person refuses", "on_failure=keep"],
)
def test_no_request_is_made_to_fit_by_a_summary_that_is_not_to_be(more, history):
    middle = summarization(archive="memory:", history=history, **more)
    bench = Bench(lambda _: "Fine.", middle, ContextGuard(middle, window=WINDOW))
    said = [HumanMessage(f"Question {n}: {LONG}", id=f"q{n}") for n in range(40)]
    with pytest.raises(StuckError):
        bench.graph.invoke({"messages": said}, thread_config())
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


def told(history: Any) -> Bench:
    """An agent that reads what it is told to."""

    def answer(messages: list[BaseMessage]) -> Any:
        last = messages[-1]
        if isinstance(last, HumanMessage) and (found := re.search(r"read <(.+)>", str(last.text))):
            args = {"path": found.group(1)}
            return AIMessage("", tool_calls=[{"name": "read", "args": args, "id": "c1"}])
        return "Seen."

    middle = SummarizationMiddleware(
        None,
        trigger=("tokens", 100_000),
        keep=("messages", 4),
        history=history,
        alternate_roles="off",
    )
    return Bench(answer, middle, ContextGuard(middle, window=WINDOW), tools=[read])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("kind", ["images", "a document"])
def test_images_and_files_of_what_the_user_said_last_stay_or_the_answer_is_stuck(kind, history):
    bench = told(history)
    bench.say("Hello, I have something for you.")
    with pytest.raises(StuckError, match=r"at least [0-9,]+ tokens and there are"):
        bench.say(GIANTS[kind])
    bench.say("Then without it?")
    assert bench.request_tokens[-1] + TOOLS <= WINDOW
    assert bench.requests[-1][-1].content == "Then without it?"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("kind", ["a long text", "many small blocks", "a document as text"])
def test_a_giant_result_of_a_tool_keeps_its_call_and_its_original(kind, history):
    bench = told(history)
    bench.say(f"Please read <{kind}>")
    bench.say("And now?")
    assert max(bench.request_tokens) + TOOLS <= WINDOW
    shown = bench.requests[1]
    assert isinstance(shown[-1], ToolMessage)
    assert shown[-1].tool_call_id == "c1"
    assert [m for m in shown if "archived as " in str(m.content)] == [shown[-1]]
    archive = Archive(bench.store)
    scope = scope_of(bench.values, "t")
    records = archive.records(scope)
    keys = [key for one in records for key in (*one.covers, *(clip.key for clip in one.clips))]
    assert any(GIANTS[kind] == one.message.content for one in archive.get(scope, keys))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_switch_to_a_smaller_model_compacts_before_its_first_call(history):
    small, large = (
        ScriptedChatModel(
            answers=lambda _: "Seen. " * 60, profile={"max_input_tokens": window}, model_name=name
        )
        for name, window in (("small", 2_000), ("large", 60_000))
    )
    now = [large]

    class Switch(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(request.override(model=now[0]))

    settings: Any = {"trigger": ("fraction", 0.85), "keep": ("messages", 4), "history": history}
    middle = SummarizationMiddleware(large, summarizer="embedded", **settings)
    graph, _ = new_agent(large, middle, Switch(), ContextGuard(middle), tools=[read])

    def sizes(model: ScriptedChatModel, turns: range) -> list[int]:
        for turn in turns:
            graph.invoke(user_input(f"Question {turn}. " * 20), thread_config())
        return [METER.messages(list(call.messages)) + TOOLS for call in model.calls]

    assert sizes(large, range(20))[-1] > 2_000
    now[0] = small
    assert max(sizes(small, range(20, 26))) <= 2_000
    assert any("Question 20" in str(m.text) for m in small.calls[0].messages)
