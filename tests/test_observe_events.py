"""Events: off they are not there, on they never get in the way; and the lines in the log."""

import asyncio
import contextlib
import logging
import re
import sys
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from conspectus import ChatModelSummarizer, Compactor, PolicyError, SummaryError
from conspectus.archive import Scope
from conspectus.core.records import Cost
from conspectus.observe import Event, OpenTelemetry, emit, events, listen, log, observing, unlisten
from graph_support import agent, middleware, said, steps, thread
from observe_support import SECRET, Own, alone, compact, dicts, heard
from scripted_models import ScriptedChatModel

SUMMARY = "## Done\n- Modules seen."


def by_model(usage: Any = (12_000, 400), name: str = "gpt-5-mini") -> ScriptedChatModel:
    return ScriptedChatModel(answers=[SUMMARY] * 9, model_name=name, usage=usage)


# Off and on


def test_without_the_extra_the_error_names_it(monkeypatch):
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install .*\[otel\]'"):
        OpenTelemetry()


def test_off_no_event_is_made_and_a_place_costs_next_to_nothing(monkeypatch):
    monkeypatch.setattr(logging.getLogger("conspectus"), "level", logging.CRITICAL)
    logging.getLogger("conspectus").manager._clear_cache()
    made: list[Any] = []
    monkeypatch.setattr(events, "Event", lambda **facts: made.append(facts))
    with alone():
        assert observing("compaction") is observing("archive")
        compact(archive="memory:")
        assert made == []
        start = time.process_time()
        for _ in range(10_000):
            with observing("archive", None, name="write"):
                pass
        assert time.process_time() - start < 0.1  # 10 microseconds each; it takes about half of one
    logging.getLogger("conspectus").manager._clear_cache()


def test_what_happens_inside_belongs_to_the_work_around_it_and_is_added_up():
    scope = Scope("local", "t")
    with heard() as found:
        with observing("compaction", scope):
            emit("model_call", name="a", cost=Cost(1, 5).asked_of("a"))
            with contextlib.suppress(ValueError), observing("model_call", name="b") as b:
                b.add(cost=Cost(1, 7).asked_of("b"), request="smallest")
                raise ValueError("broken\nagain")
        emit("model_call", name="c")
    inside, failed, whole, after = found
    assert (inside.scope, failed.scope, after.scope) == (scope, scope, None)
    assert (failed.outcome, failed.error) == ("error", "ValueError")
    assert failed.error_message == "broken again"
    assert failed.extra == {"request": "smallest"}
    assert (whole.cost.calls, whole.cost.input_tokens) == (2, 12)
    assert set(whole.cost.models) == {"a", "b"}
    assert whole.seconds > 0 == after.seconds


@pytest.mark.parametrize("wrong", [3, "otel", OpenTelemetry])
def test_what_is_no_listener_is_refused(wrong):
    with pytest.raises(PolicyError, match="a listener is a callable that takes an event"):
        listen(wrong)
    with pytest.raises(PolicyError, match="a listener is a callable"):
        Compactor(telemetry=wrong)


class Broken:
    """A listener that fails whatever it hears."""

    def begin(self, event: Event) -> Any:
        raise RuntimeError("cannot begin")

    def __call__(self, event: Event) -> None:
        raise ValueError("cannot hear")


def test_a_listener_that_fails_changes_nothing_and_is_said_once(caplog):
    with alone():
        expected = compact(archive="memory:")
    with heard("compaction") as found:
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


# Calls of models


def reporting(**details: Any) -> AIMessage:
    """An answer whose model reports what it took."""
    usage: Any = {"input_tokens": 1_000, "output_tokens": 50, "total_tokens": 1_050, **details}
    return AIMessage(f"{SUMMARY} [d0]", usage_metadata=usage)


def test_what_a_model_reports_is_taken_with_its_details_and_else_estimated():
    answer = reporting(
        input_token_details={"cache_read": 600}, output_token_details={"reasoning": 20}
    )
    with heard("model_call") as found:
        result = compact(ScriptedChatModel(answers=[answer, SUMMARY]))
        other = compact(ScriptedChatModel(answers=[SUMMARY]))
    first, second = (one.cost for one in found)
    assert first == result.cost == Cost(1, 1_000, 50, cached_tokens=600, reasoning_tokens=20)
    assert second == other.cost
    assert (second.estimated_calls, second.input_tokens > 100) == (1, True)


def test_what_is_late_or_cancelled_counts_as_it_is_charged_and_a_refusal_does_not():
    slow = ScriptedChatModel(answers=[SUMMARY] * 9, delay=5)
    broken = ScriptedChatModel(answers=lambda messages: PermissionError("bad key"))

    async def cancelled() -> None:
        made = Compactor(slow, keep=("messages", 2))
        asked = len(slow.calls)
        task = asyncio.ensure_future(made.acompact(dicts(9), thread_id="t", force=True))
        while len(slow.calls) == asked:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with heard("model_call") as found:
        compact(ChatModelSummarizer(slow, timeout=0.01), on_failure="keep")
        assert {one.outcome for one in found} == {"timeout"}
        assert all(one.cost.input_tokens > 100 for one in found)
        found.clear()
        compact(broken, on_failure="keep")
        assert [(one.outcome, one.cost) for one in found] == [("error", Cost(1))]
        found.clear()
        asyncio.run(cancelled())
        [call] = found
        assert (call.outcome, call.cost.input_tokens > 100) == ("cancelled", True)


# The log


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{one.levelname} {one.getMessage()}" for one in caplog.records]


def test_a_compaction_says_one_line_that_a_person_wants_to_read(caplog):
    caplog.set_level(logging.INFO, "conspectus")
    graph, _ = agent(steps(5), middleware(model=by_model(name="gpt-5-mini"), archive="memory:"))
    graph.invoke(said("go"), thread("7"))
    [line] = lines_of(caplog)
    assert re.fullmatch(
        r"INFO thread 7: compacted [\d,]+ → [\d,]+ tokens, \d+ messages archived, "
        r"by gpt-5-mini in \d+\.\d s, \$0\.0038",
        line,
    )
    [record] = caplog.records
    assert vars(record)["conspectus"] == {"event": "compacted"}


@pytest.mark.parametrize(
    ("summarizer", "remedy"),
    [
        (lambda messages: "", "it is empty; it begins with ''; use another model"),
        (Own(error=SummaryError("no key")), "no key; check the summariser's name, key and network"),
    ],
)
def test_a_failure_is_one_line_with_the_remedy(caplog, summarizer, remedy):
    caplog.set_level(logging.INFO, "conspectus")
    compact(summarizer, name="7", on_failure="keep", archive="memory:")
    [line] = [one for one in lines_of(caplog) if one.startswith("WARNING")]
    assert line.startswith("WARNING thread 7: compaction failed, nothing has changed: ")
    assert remedy in line


def test_where_another_summariser_had_to_write_the_line_is_a_warning_and_says_why(caplog):
    broken = ScriptedChatModel(answers=lambda _: ValueError("bad key"), model_name="first")
    compact(broken, fallbacks=[by_model(name="second")], archive="memory:")
    [line] = lines_of(caplog)
    assert re.search(
        r"^WARNING thread t: compacted .*, by second in .*, as .*first .*bad key", line
    )


def test_no_text_of_others_begins_a_line_of_the_log(caplog):
    def fail(messages: list[Any]) -> str:
        raise ValueError("no\nCRITICAL the disk is on fire\r\x1b[2J")

    evil = "x\nCRITICAL forged" * 40
    caplog.set_level(logging.DEBUG, "conspectus")
    caplog.handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    compact(fail, name=evil, on_failure="keep", archive="memory:")
    compact(name=evil)
    log("sentence", "%s and %r", evil, evil)
    try:
        raise RuntimeError("boom\nCRITICAL forged")
    except RuntimeError:
        logging.getLogger("conspectus").exception("on_event failed at %s", evil)
    assert "RuntimeError: boom" in caplog.text
    assert "\x1b" not in caplog.text
    assert not re.search(r"^(?!DEBUG|INFO|WARNING|ERROR|    )", caplog.text.rstrip("\n"), re.M)
    assert max(map(len, caplog.text.splitlines())) < 2_000


def test_no_text_of_a_conversation_is_in_events():
    with heard() as found:
        made = Compactor(
            ScriptedChatModel(answers=[f"{SUMMARY} {SECRET}"]),
            keep=("messages", 2),
            archive="memory:",
        )
        made.compact(dicts(9), thread_id="t", force=True, focus=SECRET)
        made.recall(SECRET, thread_id="t")
    assert len(found) > 10
    assert SECRET not in repr(found)
    assert all(one.scope and one.scope.thread == "t" for one in found)
