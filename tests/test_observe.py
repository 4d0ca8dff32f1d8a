"""Telemetry: events and the lines in the log; metrics; spans, and whose children they are."""

import logging
import re
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from compactor_support import FaultyStore, Scripted
from conspectus import ChatModelSummarizer, Compactor, SummaryError, __version__
from conspectus.observe import Event, listen, unlisten
from conspectus.observe.logs import _money
from graph_support import new_agent, new_middleware, thread_config, tool_steps, user_input
from observe_support import (
    SECRET,
    compact,
    events_heard,
    instrumented,
    openai_talk,
    without_other_listeners,
)
from scripted_models import ScriptedChatModel

SUMMARY = "## Done\n- Modules seen."


def no_key(request: Any) -> str:
    raise SummaryError("no key")


class FailingListener:
    """A listener that fails whatever it hears."""

    def begin(self, event: Event) -> Any:
        raise RuntimeError("cannot begin")

    def __call__(self, event: Event) -> None:
        raise ValueError("cannot hear")


def test_a_listener_that_fails_changes_nothing_and_is_said_once(caplog):
    with without_other_listeners():
        expected = compact(archive="memory:")
    with events_heard("compaction") as events:
        broken = FailingListener()
        listen(broken)
        result = compact(archive="memory:")
        unlisten(broken)
    assert result.record == expected.record
    assert len(events) == 1
    lines = [record for record in caplog.records if "this is said once" in record.getMessage()]
    assert [str(record.exc_info[1]) for record in lines if record.exc_info] == [
        "cannot begin",
        "cannot hear",
    ]


@dataclass
class Recorder:
    """A listener that cannot be hashed, as it is compared by what it holds."""

    kinds: list[str] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.kinds.append(event.kind)


def test_a_listener_need_not_be_hashable():
    recorder = Recorder()
    global_recorder = Recorder(["everywhere"])
    listen(global_recorder)
    compact(archive="memory:", telemetry=recorder)
    unlisten(global_recorder)
    assert "compaction" in recorder.kinds
    assert "compaction" in global_recorder.kinds


def reporting(**details: Any) -> AIMessage:
    """An answer whose model reports what it took."""
    usage: Any = {"input_tokens": 1_000, "output_tokens": 50, "total_tokens": 1_050, **details}
    return AIMessage(f"{SUMMARY} [d0]", usage_metadata=usage)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def test_a_compaction_says_one_line_that_a_person_wants_to_read(caplog):
    caplog.set_level(logging.INFO, "conspectus")
    options = {"model_name": "gpt-5-mini", "usage": (12_000, 400)}
    model = ScriptedChatModel(answers=[SUMMARY] * 9, **options)
    graph, _ = new_agent(tool_steps(5), new_middleware(model=model, archive="memory:"))
    graph.invoke(user_input("go"), thread_config("7"))
    [line] = lines_of(caplog)
    assert re.fullmatch(
        r"INFO thread 7: compacted [\d,]+ → [\d,]+ tokens \(trigger\), \d+ messages archived, "
        r"by gpt-5-mini in \d+\.\d s, \$0\.0038",
        line,
    )
    [record] = caplog.records
    assert vars(record)["conspectus"] == {"event": "compacted"}


@pytest.mark.parametrize(
    ("money", "shown"),
    [(5e-05, "$0.00005"), (0.0038, "$0.0038"), (1e-9, "$0.000001"), (2.5, "$2.50")],
)
def test_small_amounts_of_money_are_written_as_decimals(money, shown):
    assert _money(Event(kind="compaction", money=money)) == shown


@pytest.mark.parametrize(
    ("summarizer", "remedy"),
    [
        (lambda messages: "", "it is empty; it begins with ''; take another"),
        (Scripted(no_key), "no key; check the summariser's name, key and network"),
    ],
)
def test_a_failure_is_one_line_with_the_remedy(caplog, summarizer, remedy):
    caplog.set_level(logging.INFO, "conspectus")
    compact(summarizer, name="7", on_failure="keep", archive="memory:")
    [line] = [any_line for any_line in lines_of(caplog) if any_line.startswith("WARNING")]
    assert line.startswith("WARNING thread 7: compaction failed, nothing has changed: ")
    assert remedy in line


def test_no_text_of_a_conversation_is_in_events():
    with events_heard() as events:
        compactor = Compactor(
            ScriptedChatModel(answers=[f"{SUMMARY} {SECRET}"]),
            keep=("messages", 2),
            archive="memory:",
        )
        compactor.compact(openai_talk(9), thread_id="t", force=True, focus=SECRET)
        compactor.recall(SECRET, thread_id="t")
    assert len(events) > 10
    assert SECRET not in repr(events)
    assert all(event.scope and event.scope.thread == "t" for event in events)


ALERTED = ("stuck", "compaction.failures", "archive.failures", "guard.fits")


def test_what_compactions_did_is_counted_by_cause_and_outcome():
    compactor = Compactor(window=2_000, keep=("messages", 4), archive="memory:")
    with instrumented() as telemetry:
        triggered = compactor.compact(openai_talk(40), thread_id="a")
        forced = compactor.compact(openai_talk(12), thread_id="b", force=True)
        assert telemetry.points("conspectus.compactions") == {
            (("cause", "trigger"), ("outcome", "compacted")): 1,
            (("cause", "forced"), ("outcome", "compacted")): 1,
        }
        results = (triggered, forced)
        freed = sum(result.tokens_before - result.tokens_after for result in results)
        assert telemetry.total("conspectus.tokens.freed") == freed
        assert telemetry.total("conspectus.messages.evicted") == sum(
            result.evicted for result in results
        )
        assert telemetry.total("conspectus.messages.clipped") == sum(
            result.clipped for result in results
        )
        assert telemetry.total("conspectus.compaction.duration", outcome="compacted") == 2
        assert telemetry.total("conspectus.compaction.failures") == 0
        for operation in ("read", "write"):
            assert telemetry.total("conspectus.archive.duration", operation=operation) > 2


def test_a_compactors_own_listener_hears_of_an_unreadable_archive():
    events: list[Event] = []
    store = Mock(spec=InMemoryStore, batch=Mock(side_effect=OSError(28, "No space left")))
    with without_other_listeners():
        result = compact(archive=store, window=60, telemetry=events.append)
    assert (result.outcome, result.failed) == ("stuck", "archive")
    heard_kinds = [(event.kind, event.outcome) for event in events]
    assert heard_kinds == [("archive", "error"), ("stuck", "ok")]


def test_failures_are_counted_in_series_that_begin_at_0():
    """A series that begins with 1 has not grown: `increase(...) > 0` would miss the first."""
    broken = ScriptedChatModel(answers=lambda messages: ValueError(SECRET))
    empty = ScriptedChatModel(answers=lambda messages: "")
    slow = ChatModelSummarizer(ScriptedChatModel(answers=["x"] * 9, delay=5), timeout=0.01)
    with instrumented() as telemetry:
        points_before = {name: telemetry.points(f"conspectus.{name}") for name in ALERTED}
        assert all(set(points.values()) == {0} for points in points_before.values())
        for number, summarizer in enumerate((broken, empty, slow)):
            assert compact(summarizer, str(number), on_failure="keep").failed == "summary"
        assert compact(name="f", archive=FaultyStore(fail=["messages"])).failed == "archive"
        failures = telemetry.points("conspectus.compaction.failures")
        counts_by_failure = {dict(labels)["failure"]: v for labels, v in failures.items() if v}
        assert counts_by_failure == {"summary": 1, "rejected": 1, "timeout": 1, "archive": 1}
        assert telemetry.total("conspectus.archive.duration", outcome="error") > 0
        assert telemetry.total("conspectus.tokens.freed") == 0
        assert Compactor(window=60).compact(openai_talk(40), thread_id="s").outcome == "stuck"
        assert telemetry.total("conspectus.stuck") == 1
        for name in ALERTED:
            assert telemetry.points(f"conspectus.{name}").keys() == points_before[name].keys()
        assert SECRET not in telemetry.everything


def test_an_agents_compaction_is_one_tree_inside_the_users_own_span():
    graph, _ = new_agent(tool_steps(5), new_middleware())
    with instrumented() as telemetry:
        with telemetry.user.start_as_current_span("user"):
            graph.invoke(user_input("go"), thread_config())
        compaction_paths = [path for path in telemetry.paths if "conspectus.compaction" in path]
        assert all(path.startswith("user > conspectus.compaction") for path in compaction_paths)
        step = "user > conspectus.compaction > conspectus.step"
        assert f"{step}.summarize > chat scripted" in compaction_paths
        assert f"{step}.commit > conspectus.archive.write" in compaction_paths
        assert len({any_span.context.trace_id for any_span in telemetry.spans}) == 1
        [span] = telemetry.spans_named("conspectus.compaction")
        attributes = dict(span.attributes or {})
        assert attributes["conspectus.outcome"] == "compacted"
        assert attributes["conspectus.cause"] == "trigger"
        assert attributes["conspectus.tokens_before"] > attributes["conspectus.tokens_after"] > 0
        assert attributes["conspectus.messages"] > 0
        assert attributes["conspectus.calls"] == 1
        assert span.status.status_code is StatusCode.UNSET
        channel = graph.get_state(thread_config()).values["_conspectus"]
        assert attributes["conspectus.record"] == channel["head_id"]
        [call] = telemetry.spans_named("chat scripted")
        assert call.kind is trace.SpanKind.CLIENT
        assert call.attributes["gen_ai.operation.name"] == "chat"
        assert call.attributes["gen_ai.request.model"] == "scripted"
        assert call.attributes["gen_ai.usage.input_tokens"] > 0
        [scope] = {span.instrumentation_scope for span in telemetry.spans if span.name != "user"}
        assert (scope.name, scope.version) == ("conspectus", __version__)


@pytest.mark.parametrize("error_messages", [False, True])
@pytest.mark.parametrize("raises", [False, True])
def test_a_failed_compaction_tells_content_only_if_asked(raises, error_messages):
    model = ScriptedChatModel(answers=lambda messages: ValueError(f"bad: {SECRET}"))
    expectation = pytest.raises(SummaryError) if raises else nullcontext()
    with instrumented(error_messages=error_messages) as telemetry:
        with expectation:
            compact(model, on_failure="raise" if raises else "keep", archive="memory:")
        [span] = telemetry.spans_named("conspectus.compaction")
        attributes = dict(span.attributes or {})
        assert attributes["conspectus.outcome"] == "failed"
        assert attributes["conspectus.failure"] == "summary"
        assert attributes["error.type"] == "ValueError"
        assert span.status.status_code is StatusCode.ERROR
        assert "conspectus.tokens_after" not in attributes
        assert (SECRET in telemetry.everything) is error_messages


def test_a_thread_is_named_in_plain_only_if_asked():
    for naming in ("plain", "hashed"):
        with instrumented(thread=naming) as telemetry:
            compact(name="ann")
            [span] = telemetry.spans_named("conspectus.compaction")
            thread_name = (span.attributes or {})["conspectus.thread"]
            assert (thread_name == "ann") == (naming == "plain")
