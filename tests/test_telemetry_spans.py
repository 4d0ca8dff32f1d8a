"""Spans: what is in them, whose children they are, and that each one ends, whatever happens."""

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from conspectus import ChatModelSummarizer, Compactor, ContextGuard, SummaryError
from conspectus.archive import Archive
from conspectus.archive.scope import label_hash
from conspectus.errors import NotFoundError, PolicyError
from conspectus.events import hub
from conspectus.telemetry import OpenTelemetry
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from graph_support import agent, middleware, on_a_loop, said, steps, summariser, thread
from telemetry_support import SECRET, Own, busy, compact, dicts, instrumented

ONE_COMPACTION = [
    "user > conspectus.compaction > conspectus.archive.write",
    "user > conspectus.compaction > conspectus.archive.read_back",
    "user > conspectus.compaction > conspectus.archive.find_draft",
    "user > conspectus.compaction > conspectus.compaction.summarize > chat scripted",
    "user > conspectus.compaction > conspectus.compaction.summarize",
    "user > conspectus.compaction > conspectus.compaction.check",
    "user > conspectus.compaction > conspectus.archive.save_draft",
    "user > conspectus.compaction > conspectus.compaction.commit > conspectus.archive.commit",
    "user > conspectus.compaction > conspectus.compaction.commit",
    "user > conspectus.compaction",
]


def tree_of(found: Any) -> list[str]:
    """Paths within compactions, without what operations on the archive are made of."""
    inner = re.compile(r"conspectus\.archive\.\w+ > ")
    return [
        path for path in found.paths if "conspectus.compaction" in path and not inner.search(path)
    ]


# Inside real agents


def test_an_agents_compaction_is_one_tree_inside_the_users_own_span():
    graph, _ = agent(steps(5), middleware())
    with instrumented() as found:
        with found.user.start_as_current_span("user"):
            graph.invoke(said("go"), thread())
        assert tree_of(found) == ONE_COMPACTION
        assert len({one.context.trace_id for one in found.spans}) == 1
        [span] = found.named("conspectus.compaction")
        attributes = dict(span.attributes or {})
        assert attributes["conspectus.outcome"] == "compacted"
        assert attributes["conspectus.cause"] == "trigger"
        assert attributes["conspectus.tokens_before"] > attributes["conspectus.tokens_after"] > 0
        assert attributes["conspectus.evicted"] > 0
        assert attributes["conspectus.calls"] == 1
        assert span.status.status_code is StatusCode.UNSET
        held = graph.get_state(thread()).values["_conspectus"]
        assert attributes["conspectus.record"] == held["head"]
        [call] = found.named("chat scripted")
        assert call.kind is trace.SpanKind.CLIENT
        assert call.attributes["gen_ai.operation.name"] == "chat"
        assert call.attributes["gen_ai.usage.input_tokens"] > 0


@on_a_loop
async def test_the_tree_is_the_same_on_an_event_loop():
    graph, _ = agent(steps(5), middleware())
    with instrumented() as found:
        with found.user.start_as_current_span("user"):
            await graph.ainvoke(said("go"), thread())
        assert tree_of(found) == ONE_COMPACTION


def check_own_trees(found: Any, traces: list[int]) -> None:
    """Each of six users has the tree of one compaction, of its own thread."""
    assert sorted(tree_of(found)) == sorted(ONE_COMPACTION * 6)
    for number, own in enumerate(traces):
        mine = [s for s in found.spans if s.context.trace_id == own]
        names = {(s.attributes or {}).get("conspectus.thread") for s in mine} - {None}
        assert names == {label_hash(f"t{number}")[:16]}


def test_many_threads_at_once_each_have_their_own_tree():
    together = threading.Barrier(6)
    with instrumented() as found:

        def work(number: int) -> int:
            graph, _ = agent(steps(5), middleware())
            together.wait(30)
            with found.user.start_as_current_span("user") as own:
                graph.invoke(said("go"), thread(f"t{number}"))
                assert trace.get_current_span() is own
            return int(own.get_span_context().trace_id)

        with ThreadPoolExecutor(6) as pool:
            traces = list(pool.map(work, range(6)))
        check_own_trees(found, traces)


@on_a_loop
async def test_many_tasks_at_once_each_have_their_own_tree():
    with instrumented() as found:

        async def work(number: int) -> int:
            graph, _ = agent(steps(5), middleware(model=summariser(delay=0.01)))
            with found.user.start_as_current_span("user") as own:
                await graph.ainvoke(said("go"), thread(f"t{number}"))
                assert trace.get_current_span() is own
            return own.get_span_context().trace_id

        traces = await asyncio.gather(*(work(number) for number in range(6)))
        check_own_trees(found, traces)


# Calls side by side


def reader() -> ChatModelSummarizer:
    """Reads in pieces, side by side."""
    model = ScriptedChatModel(answers=lambda messages: "## Done\n- Modules seen.", delay=0.01)
    return ChatModelSummarizer(model, trim_tokens_to_summarize=600, max_concurrency=4)


@pytest.mark.parametrize("loop", [False, True])
def test_readings_side_by_side_are_children_of_their_try(loop):
    with instrumented() as found:
        compact(reader(), count=20, loop=loop)
        calls = found.named("chat scripted")
        assert len(calls) > 4
        parents = {found.path(one) for one in calls}
        assert parents == {
            "conspectus.compaction > conspectus.compaction.summarize > chat scripted"
        }
        [whole] = found.told("conspectus.compaction")
        assert whole["conspectus.calls"] == len(calls)


@pytest.mark.parametrize("loop", [False, True])
def test_what_a_users_function_traces_lies_in_its_call(loop):
    with instrumented() as found:

        def write(messages: list[Any]) -> str:
            with found.user.start_as_current_span("http"):
                return "Modules seen. " * 20

        compact(write, loop=loop)
        [path] = [one for one in found.paths if one.endswith("http")]
        assert path.endswith("conspectus.compaction.summarize > chat write > http")


# What goes wrong


def test_each_failed_try_is_a_span_with_its_error():
    model = ScriptedChatModel(answers=busy(2, "## Done\n- Modules seen."))
    with instrumented() as found:
        result = compact(model)
        assert result.outcome == "compacted"
        calls = found.named("chat scripted")
        states = [one.status.status_code for one in calls]
        assert states == [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]
        errors = [one.get("error.type") for one in found.told("chat scripted")]
        assert errors == ["ConnectionError", "ConnectionError", None]
        [whole] = found.told("conspectus.compaction")
        assert whole["conspectus.tries_failed"] == 2
        assert whole["conspectus.calls"] == 3


def test_tries_are_counted_also_where_all_of_them_failed():
    model = ScriptedChatModel(answers=busy(9, "never"))
    with instrumented() as found:
        result = compact(model)
        assert result.failed
        [whole] = found.told("conspectus.compaction")
        assert whole["conspectus.tries_failed"] == 3


@pytest.mark.parametrize("raises", [False, True])
def test_a_compaction_that_failed_says_so_and_not_what_was_said(raises):
    model = ScriptedChatModel(answers=lambda messages: ValueError(f"bad: {SECRET}"))
    error = pytest.raises(SummaryError) if raises else nullcontext()
    with instrumented() as found:
        with error:
            compact(model, on_failure="raise" if raises else "keep", archive="memory:")
        [whole] = found.named("conspectus.compaction")
        attributes = dict(whole.attributes or {})
        assert attributes["conspectus.outcome"] == "failed"
        assert attributes["conspectus.failure"] == "summary"
        assert attributes["error.type"] == "ValueError"
        assert whole.status.status_code is StatusCode.ERROR
        assert "conspectus.tokens_after" not in attributes
        assert SECRET not in found.everything


def test_what_errors_say_is_shown_only_to_those_who_ask_for_it():
    model = ScriptedChatModel(answers=lambda messages: ValueError(f"bad: {SECRET}"))
    with instrumented(error_messages=True) as found:
        compact(model, on_failure="keep")
        [call, *_] = found.named("chat scripted")
        assert SECRET in str(call.status.description)


def test_a_call_that_takes_too_long_ends_its_span():
    model = ScriptedChatModel(answers=lambda messages: "late", delay=5)
    slow = ChatModelSummarizer(model, timeout=0.01)
    with instrumented() as found:
        compact(slow, on_failure="keep")
        outcomes = {one["conspectus.outcome"] for one in found.told("chat scripted")}
        assert outcomes == {"timeout"}


@on_a_loop
async def test_a_compaction_that_is_cancelled_ends_every_span():
    asked = asyncio.Event()

    async def hang(messages: list[Any]) -> str:
        asked.set()
        await asyncio.sleep(3600)
        return ""

    compactor = Compactor(hang, keep=("messages", 2))
    with instrumented() as found:
        with found.user.start_as_current_span("user") as own:
            task = asyncio.ensure_future(compactor.acompact(dicts(9), thread_id="t", force=True))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert trace.get_current_span() is own
        [whole] = found.named("conspectus.compaction")
        assert (whole.attributes or {})["conspectus.outcome"] == "cancelled"
        assert whole.status.status_code is StatusCode.UNSET
        [call] = found.named("chat hang")
        assert (call.attributes or {})["conspectus.outcome"] == "cancelled"


@on_a_loop
async def test_a_reading_that_fails_ends_the_spans_of_those_beside_it():
    answers = iter(["one", ValueError("broken")])
    model = ScriptedChatModel(answers=lambda messages: next(answers, "three"), delay=0.01)
    several = ChatModelSummarizer(model, trim_tokens_to_summarize=600, max_concurrency=3)
    with instrumented() as found:
        await Compactor(several, keep=("messages", 2), on_failure="keep").acompact(
            dicts(20), thread_id="t", force=True
        )
        assert "error" in [one["conspectus.outcome"] for one in found.told("chat scripted")]


def test_asking_a_person_is_an_interruption_and_no_error():
    graph, _ = agent(steps(5), middleware(preview=True))
    with instrumented() as found:
        graph.invoke(said("go"), thread())
        [whole] = found.named("conspectus.compaction")
        [asked] = found.named("conspectus.compaction.preview")
        for span in (whole, asked):
            assert (span.attributes or {})["conspectus.outcome"] == "interrupted"
            assert span.status.status_code is StatusCode.UNSET


def test_being_overtaken_by_another_worker_is_no_error():
    archive = Archive.open("memory:")
    other = Compactor(keep=("messages", 2), archive=archive)
    begun: list[str] = []

    def first(event: str, data: Any) -> None:
        begun.append(event)
        if begun == ["start"]:
            other.compact(dicts(9), thread_id="t", force=True, focus="another")

    compactor = Compactor(Own(), keep=("messages", 2), archive=archive, on_event=first)
    with instrumented() as found:
        compactor.compact(dicts(9), thread_id="t", force=True)
        told = found.told("conspectus.compaction")
        assert "overtaken" in [one["conspectus.outcome"] for one in told]
        assert all(one.status.status_code is StatusCode.UNSET for one in found.spans)
        assert found.total("conspectus.compaction.failures") == 0


# Recall and guard


def test_recalls_are_spans_with_the_reads_inside():
    compactor = Compactor(keep=("messages", 2), archive="memory:")
    compactor.compact(dicts(9), thread_id="t", force=True)
    with instrumented() as found:
        assert compactor.recall("module 3", thread_id="t", tokens=300).hits
        with pytest.raises(NotFoundError):
            compactor.recall(id="nobody", thread_id="t")
        good, missed = found.named("conspectus.recall")
        attributes = dict(good.attributes or {})
        assert attributes["conspectus.kind"] == "query"
        assert attributes["conspectus.results"] > 0
        assert (missed.attributes or {})["conspectus.outcome"] == "not_found"
        assert missed.status.status_code is StatusCode.UNSET
        assert "conspectus.recall > conspectus.archive.read" in found.paths
        assert SECRET not in found.everything


class TooLong(Exception):
    """What a provider answers to a request that is too long."""


def test_a_rescue_holds_the_compaction_that_it_took():
    refused = TooLong(f"prompt is too long: 9000 tokens > 3000 maximum ({SECRET})")
    model = ScriptedChatModel(answers=["one", "two", refused, "three"])
    graph, _ = agent(model, ContextGuard(archive=InMemoryStore(), keep=("messages", 2)), tools=[])
    with instrumented() as found:
        for turn in range(3):
            graph.invoke(said(f"Look at m{turn}. " * 200), thread())
        [rescue] = found.named("conspectus.guard.rescue")
        attributes = dict(rescue.attributes or {})
        assert attributes["conspectus.tokens_after"] < attributes["conspectus.tokens_before"]
        assert attributes["conspectus.outcome"] == "ok"
        assert "conspectus.guard.rescue > conspectus.compaction" in found.paths
        assert SECRET not in found.everything


# Who hears, and what of


def test_a_history_that_is_stuck_is_told_in_the_span_around_it():
    with instrumented() as found:
        with found.user.start_as_current_span("user"):
            result = Compactor(window=200).compact(dicts(1, words=400), thread_id="t")
        assert result.outcome == "stuck"
        [own] = found.named("user")
        [event] = own.events
        assert event.name == "conspectus.stuck"
        assert (event.attributes or {})["conspectus.budget"] == 200


@pytest.mark.parametrize(("naming", "shown"), [("plain", "ann"), ("off", None)])
def test_a_thread_is_named_as_it_was_chosen(naming, shown):
    with instrumented(thread=naming) as found:
        compact(name="ann")
        [whole] = found.told("conspectus.compaction")
        assert whole.get("conspectus.thread") == shown


def test_no_other_way_of_naming_is_taken():
    with pytest.raises(PolicyError, match="hashed"):
        OpenTelemetry(thread="clear")  # type: ignore[arg-type]


def test_one_instance_can_be_watched_and_others_not():
    with instrumented() as whole, hub.alone():
        own = OpenTelemetry(whole.tracers, whole.meters)
        watched = middleware(telemetry=own)
        step = watched.before_model
        history = [HumanMessage(f"Look at m{n}.", id=str(n)) for n in range(12)]
        other = Compactor(keep=("messages", 2))
        other.compact(dicts(9), thread_id="t", force=True)
        assert whole.spans == []
        assert step({"messages": history}, Runtime()) is not None
        assert len(whole.named("conspectus.compaction")) == 1
        other.compact(dicts(9), thread_id="t2", force=True)
        assert len(whole.named("conspectus.compaction")) == 1


def test_a_summariser_of_ones_own_is_a_call_too_and_one_around_ours_is_not():
    with instrumented() as found:
        compact(Own())
        model = ScriptedChatModel(answers=["## Done\n- Modules seen."])
        around = Own(ChatModelSummarizer(model))
        compact(around, "u")
        calls = [one for one in found.paths if "chat" in one]
        inside = "conspectus.compaction > conspectus.compaction.summarize > chat "
        assert calls == [f"{inside}own", f"{inside}scripted"]
