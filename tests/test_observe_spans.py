"""Spans: what is in them, whose children they are, and that each one ends, whatever happens."""

import asyncio
import re
from contextlib import nullcontext
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from conspectus import Compactor, SummaryError, __version__
from conspectus.observe import OpenTelemetry
from graph_support import agent, middleware, on_a_loop, said, steps, thread
from observe_support import SECRET, alone, busy, compact, dicts, instrumented
from scripted_models import ScriptedChatModel

ONE_COMPACTION = [
    "user > conspectus.compaction > conspectus.archive.write",
    "user > conspectus.compaction > conspectus.archive.read_back",
    "user > conspectus.compaction > conspectus.archive.find_draft",
    "user > conspectus.compaction > conspectus.step.summarize > chat scripted",
    "user > conspectus.compaction > conspectus.step.summarize",
    "user > conspectus.compaction > conspectus.step.check",
    "user > conspectus.compaction > conspectus.archive.save_draft",
    "user > conspectus.compaction > conspectus.step.commit > conspectus.archive.commit",
    "user > conspectus.compaction > conspectus.step.commit",
    "user > conspectus.compaction",
]


def tree_of(found: Any) -> list[str]:
    """Paths within compactions, without what operations on the archive are made of."""
    inner = re.compile(r"conspectus\.archive\.\w+ > ")
    return [
        path for path in found.paths if "conspectus.compaction" in path and not inner.search(path)
    ]


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
        assert attributes["conspectus.messages"] > 0
        assert attributes["conspectus.calls"] == 1
        assert span.status.status_code is StatusCode.UNSET
        held = graph.get_state(thread()).values["_conspectus"]
        assert attributes["conspectus.record"] == held["head"]
        [call] = found.named("chat scripted")
        assert call.kind is trace.SpanKind.CLIENT
        assert call.attributes["gen_ai.operation.name"] == "chat"
        assert call.attributes["gen_ai.request.model"] == "scripted"
        assert call.attributes["gen_ai.usage.input_tokens"] > 0
        [scope] = {span.instrumentation_scope for span in found.spans if span.name != "user"}
        assert (scope.name, scope.version) == ("conspectus", __version__)


def test_each_failed_try_is_a_span_with_its_error():
    model = ScriptedChatModel(answers=busy(2, "## Done\n- Modules seen."))
    with instrumented() as found:
        assert compact(model).outcome == "compacted"
        states = [one.status.status_code for one in found.named("chat scripted")]
        assert states == [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]
        errors = [one.get("error.type") for one in found.told("chat scripted")]
        assert errors == ["ConnectionError", "ConnectionError", None]
        [whole] = found.told("conspectus.compaction")
        assert whole["conspectus.tries_failed"] == 2
        assert whole["conspectus.calls"] == 3


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("raises", [False, True])
def test_a_compaction_that_failed_says_so_and_what_was_said_only_if_asked(raises, shown):
    model = ScriptedChatModel(answers=lambda messages: ValueError(f"bad: {SECRET}"))
    error = pytest.raises(SummaryError) if raises else nullcontext()
    with instrumented(error_messages=shown) as found:
        with error:
            compact(model, on_failure="raise" if raises else "keep", archive="memory:")
        [whole] = found.named("conspectus.compaction")
        attributes = dict(whole.attributes or {})
        assert attributes["conspectus.outcome"] == "failed"
        assert attributes["conspectus.failure"] == "summary"
        assert attributes["error.type"] == "ValueError"
        assert whole.status.status_code is StatusCode.ERROR
        assert "conspectus.tokens_after" not in attributes
        assert (SECRET in found.everything) is shown


@on_a_loop
async def test_spans_of_a_cancelled_compaction_end_and_are_no_errors():
    asked = asyncio.Event()

    async def write(messages: list[Any]) -> str:
        asked.set()
        await asyncio.sleep(60)
        return ""

    with instrumented() as found:
        own = Compactor(write, keep=("messages", 2))
        task = asyncio.ensure_future(own.acompact(dicts(9), thread_id="t", force=True))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [whole] = found.told("conspectus.compaction")
        assert whole["conspectus.outcome"] == "cancelled"
        assert all(one.status.status_code is StatusCode.UNSET for one in found.spans)


def test_an_agent_that_stops_to_ask_a_person_is_no_error():
    graph, _ = agent(steps(5), middleware(preview=True))
    with instrumented() as found:
        graph.invoke(said("go"), thread())
        [asked] = found.told("conspectus.step.preview")
        assert asked["conspectus.outcome"] == "interrupted"
        assert all(one.status.status_code is StatusCode.UNSET for one in found.spans)
        assert found.total("conspectus.compaction.failures") == 0


@pytest.mark.parametrize(("naming", "shown"), [("plain", "ann"), ("off", None)])
def test_a_thread_is_named_as_it_was_chosen(naming, shown):
    with instrumented(thread=naming) as found:
        compact(name="ann")
        [whole] = found.told("conspectus.compaction")
        assert whole.get("conspectus.thread") == shown


def test_one_instance_can_be_watched_and_others_not():
    with instrumented() as whole, alone():
        own = OpenTelemetry(whole.tracers, whole.meters)
        history = [HumanMessage(f"Look at m{n}.", id=str(n)) for n in range(12)]
        compact()
        assert whole.spans == []
        assert middleware(telemetry=own).before_model({"messages": history}, Runtime()) is not None
        compact()
        assert len(whole.named("conspectus.compaction")) == 1
