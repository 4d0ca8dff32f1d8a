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


class Broken:
    """A listener that fails whatever it hears."""

    def begin(self, event: Event) -> Any:
        raise RuntimeError("cannot begin")

    def __call__(self, event: Event) -> None:
        raise ValueError("cannot hear")


def test_a_listener_that_fails_changes_nothing_and_is_said_once(caplog):
    with without_other_listeners():
        expected = compact(archive="memory:")
    with events_heard("compaction") as found:
        broken = Broken()
        listen(broken)
        result = compact(archive="memory:")
        unlisten(broken)
    assert result.record == expected.record
    assert len(found) == 1
    lines = [one for one in caplog.records if "this is said once" in one.getMessage()]
    assert [str(one.exc_info[1]) for one in lines if one.exc_info] == [
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
    own = Recorder()
    everywhere = Recorder(["everywhere"])
    listen(everywhere)
    compact(archive="memory:", telemetry=own)
    unlisten(everywhere)
    assert "compaction" in own.kinds
    assert "compaction" in everywhere.kinds


def reporting(**details: Any) -> AIMessage:
    """An answer whose model reports what it took."""
    usage: Any = {"input_tokens": 1_000, "output_tokens": 50, "total_tokens": 1_050, **details}
    return AIMessage(f"{SUMMARY} [d0]", usage_metadata=usage)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{one.levelname} {one.getMessage()}" for one in caplog.records]


def test_a_compaction_says_one_line_that_a_person_wants_to_read(caplog):
    caplog.set_level(logging.INFO, "conspectus")
    told = {"model_name": "gpt-5-mini", "usage": (12_000, 400)}
    model = ScriptedChatModel(answers=[SUMMARY] * 9, **told)
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
    ("summarizer", "remedy"),
    [
        (lambda messages: "", "it is empty; it begins with ''; take another"),
        (Scripted(no_key), "no key; check the summariser's name, key and network"),
    ],
)
def test_a_failure_is_one_line_with_the_remedy(caplog, summarizer, remedy):
    caplog.set_level(logging.INFO, "conspectus")
    compact(summarizer, name="7", on_failure="keep", archive="memory:")
    [line] = [one for one in lines_of(caplog) if one.startswith("WARNING")]
    assert line.startswith("WARNING thread 7: compaction failed, nothing has changed: ")
    assert remedy in line


def test_no_text_of_a_conversation_is_in_events():
    with events_heard() as found:
        made = Compactor(
            ScriptedChatModel(answers=[f"{SUMMARY} {SECRET}"]),
            keep=("messages", 2),
            archive="memory:",
        )
        made.compact(openai_talk(9), thread_id="t", force=True, focus=SECRET)
        made.recall(SECRET, thread_id="t")
    assert len(found) > 10
    assert SECRET not in repr(found)
    assert all(one.scope and one.scope.thread == "t" for one in found)


ALERTED = ("stuck", "compaction.failures", "archive.failures", "guard.fits")


def test_what_compactions_did_is_counted_by_cause_and_outcome():
    compactor = Compactor(window=2_000, keep=("messages", 4), archive="memory:")
    with instrumented() as found:
        first = compactor.compact(openai_talk(40), thread_id="a")
        forced = compactor.compact(openai_talk(12), thread_id="b", force=True)
        assert found.points("conspectus.compactions") == {
            (("cause", "trigger"), ("outcome", "compacted")): 1,
            (("cause", "forced"), ("outcome", "compacted")): 1,
        }
        both = (first, forced)
        freed = sum(one.tokens_before - one.tokens_after for one in both)
        assert found.total("conspectus.tokens.freed") == freed
        assert found.total("conspectus.messages.evicted") == sum(one.evicted for one in both)
        assert found.total("conspectus.messages.clipped") == sum(one.clipped for one in both)
        assert found.total("conspectus.compaction.duration", outcome="compacted") == 2
        assert found.total("conspectus.compaction.failures") == 0
        for operation in ("read", "write"):
            assert found.total("conspectus.archive.duration", operation=operation) > 2


def test_a_compactors_own_listener_hears_of_an_unreadable_archive():
    events: list[Event] = []
    store = Mock(spec=InMemoryStore, batch=Mock(side_effect=OSError(28, "No space left")))
    with without_other_listeners():
        result = compact(archive=store, window=60, telemetry=events.append)
    assert (result.outcome, result.failed) == ("stuck", "archive")
    heard_kinds = [(event.kind, event.outcome) for event in events]
    assert heard_kinds == [("archive", "error"), ("stuck", "ok")]


def test_failures_are_counted_by_what_failed_in_series_that_stood_at_0():
    """A series that begins with 1 has not grown: `increase(...) > 0` would miss the first."""
    broken = ScriptedChatModel(answers=lambda messages: ValueError(SECRET))
    empty = ScriptedChatModel(answers=lambda messages: "")
    slow = ChatModelSummarizer(ScriptedChatModel(answers=["x"] * 9, delay=5), timeout=0.01)
    with instrumented() as found:
        before = {name: found.points(f"conspectus.{name}") for name in ALERTED}
        assert all(set(points.values()) == {0} for points in before.values())
        for number, one in enumerate((broken, empty, slow)):
            assert compact(one, str(number), on_failure="keep").failed == "summary"
        assert compact(name="f", archive=FaultyStore(fail=["messages"])).failed == "archive"
        failures = found.points("conspectus.compaction.failures")
        kinds = {dict(labels)["failure"]: v for labels, v in failures.items() if v}
        assert kinds == {"summary": 1, "rejected": 1, "timeout": 1, "archive": 1}
        assert found.total("conspectus.archive.duration", outcome="error") > 0
        assert found.total("conspectus.tokens.freed") == 0
        assert Compactor(window=60).compact(openai_talk(40), thread_id="s").outcome == "stuck"
        assert found.total("conspectus.stuck") == 1
        for name in ALERTED:
            assert found.points(f"conspectus.{name}").keys() == before[name].keys()
        assert SECRET not in found.everything


def test_an_agents_compaction_is_one_tree_inside_the_users_own_span():
    graph, _ = new_agent(tool_steps(5), new_middleware())
    with instrumented() as found:
        with found.user.start_as_current_span("user"):
            graph.invoke(user_input("go"), thread_config())
        inside = [path for path in found.paths if "conspectus.compaction" in path]
        assert all(path.startswith("user > conspectus.compaction") for path in inside)
        step = "user > conspectus.compaction > conspectus.step"
        assert f"{step}.summarize > chat scripted" in inside
        assert f"{step}.commit > conspectus.archive.write" in inside
        assert len({one.context.trace_id for one in found.spans}) == 1
        [span] = found.spans_named("conspectus.compaction")
        attributes = dict(span.attributes or {})
        assert attributes["conspectus.outcome"] == "compacted"
        assert attributes["conspectus.cause"] == "trigger"
        assert attributes["conspectus.tokens_before"] > attributes["conspectus.tokens_after"] > 0
        assert attributes["conspectus.messages"] > 0
        assert attributes["conspectus.calls"] == 1
        assert span.status.status_code is StatusCode.UNSET
        held = graph.get_state(thread_config()).values["_conspectus"]
        assert attributes["conspectus.record"] == held["head"]
        [call] = found.spans_named("chat scripted")
        assert call.kind is trace.SpanKind.CLIENT
        assert call.attributes["gen_ai.operation.name"] == "chat"
        assert call.attributes["gen_ai.request.model"] == "scripted"
        assert call.attributes["gen_ai.usage.input_tokens"] > 0
        [scope] = {span.instrumentation_scope for span in found.spans if span.name != "user"}
        assert (scope.name, scope.version) == ("conspectus", __version__)


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("raises", [False, True])
def test_a_compaction_that_failed_says_so_and_what_was_said_only_if_asked(raises, shown):
    model = ScriptedChatModel(answers=lambda messages: ValueError(f"bad: {SECRET}"))
    error = pytest.raises(SummaryError) if raises else nullcontext()
    with instrumented(error_messages=shown) as found:
        with error:
            compact(model, on_failure="raise" if raises else "keep", archive="memory:")
        [whole] = found.spans_named("conspectus.compaction")
        attributes = dict(whole.attributes or {})
        assert attributes["conspectus.outcome"] == "failed"
        assert attributes["conspectus.failure"] == "summary"
        assert attributes["error.type"] == "ValueError"
        assert whole.status.status_code is StatusCode.ERROR
        assert "conspectus.tokens_after" not in attributes
        assert (SECRET in found.everything) is shown


def test_a_thread_is_named_in_plain_only_if_asked():
    for naming in ("plain", "hashed"):
        with instrumented(thread=naming) as found:
            compact(name="ann")
            [whole] = found.spans_named("conspectus.compaction")
            shown = (whole.attributes or {})["conspectus.thread"]
            assert (shown == "ann") == (naming == "plain")
