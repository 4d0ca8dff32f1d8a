"""Off, telemetry is not there; on, it never gets in the way, and its lines can be read."""

import json
import logging
import sys
from typing import Any

import pytest

from conspectus import Compactor, PolicyError
from conspectus.events import Compaction, Event, Whose, hub, listening, observing, tell
from conspectus.telemetry import (
    JsonFormatter,
    LogLines,
    Price,
    SummarizerCall,
    UsageTally,
    instrument,
    listen,
    unlisten,
)
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from scripts import ran
from telemetry_support import SECRET, compact, dicts, instrumented


@pytest.fixture(autouse=True)
def alone() -> Any:
    with hub.alone():
        yield


def python(source: str) -> str:
    """What a new process prints."""
    done = ran("-c", source, encoding="utf-8", check=True)
    return done.stdout.strip()


WATCHED = """
import builtins, sys
plain, found = builtins.__import__, set()
def watched(name, globals=None, *more, **named):
    importer = str((globals or {}).get("__name__"))
    if name.startswith("opentelemetry") and importer.startswith("conspectus"):
        found.add(importer)
    return plain(name, globals, *more, **named)
builtins.__import__ = watched
import conspectus
print(sorted(found), "conspectus.telemetry" in sys.modules)
from conspectus.telemetry import UsageTally, instrument, listen
from conspectus import Compactor, ContextGuard, SummarizationMiddleware
listen(UsageTally())
said = [{"role": "user", "content": f"Look at module {n}. " * 20} for n in range(9)]
Compactor(keep=("messages", 2), archive="memory:").compact(said, thread_id="t", force=True)
print(sorted(found))
instrument()
print(sorted(found))
"""
"""LangChain's own packages import OpenTelemetry where it is installed, so importers are watched."""


@pytest.mark.slow
def test_nothing_of_ours_imports_opentelemetry_before_it_is_asked_for():
    off, listening_only, instrumented = python(WATCHED).splitlines()
    assert off == "[] False"
    assert listening_only == "[]"
    assert instrumented == "['conspectus.telemetry.metrics', 'conspectus.telemetry.spans']"


def test_without_the_extra_the_error_names_it(monkeypatch):
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("conspectus.telemetry.spans", "conspectus.telemetry.metrics"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r"pip install 'conspectus\[otel\]'"):
        instrument()
    assert not listening()


def test_off_no_event_is_made(monkeypatch):
    def never(*args: Any, **more: Any) -> Any:
        raise AssertionError("an event was made though nobody listens")

    monkeypatch.setattr(hub, "_Operation", never)
    monkeypatch.setattr(hub, "_made", never)
    assert not listening()
    assert observing(Compaction) is observing(SummarizerCall)
    compactor = Compactor(keep=("messages", 2), archive="memory:")
    assert compactor.compact(dicts(9), thread_id="t", force=True).outcome == "compacted"
    assert compactor.recall("module 3", thread_id="t").hits
    listen(print)
    with pytest.raises(AssertionError, match="nobody listens"):
        compactor.compact(dicts(9), thread_id="u", force=True)


def test_one_instance_that_is_watched_makes_no_events_of_others():
    heard: list[Event] = []
    watched = Compactor(keep=("messages", 2), telemetry=heard.append)
    compact()
    assert heard == []
    watched.compact(dicts(9), thread_id="t", force=True)
    assert [one.outcome for one in heard if isinstance(one, Compaction)] == ["compacted"]


def test_what_happens_after_an_operation_belongs_to_it_no_more():
    heard: list[Event] = []
    listen(heard.append)
    whose = Whose("local", "t", "main")
    with observing(Compaction, whose):
        tell(SummarizerCall, input_tokens=5)
        with pytest.raises(ValueError, match="broken"), observing(SummarizerCall, input_tokens=7):
            raise ValueError("broken")
    tell(SummarizerCall, input_tokens=11)
    inside, failed, whole, after = heard
    assert (inside.whose, failed.whose, after.whose) == (whose, whose, None)
    assert (failed.outcome, failed.error_type) == ("error", "ValueError")
    assert isinstance(whole, Compaction)
    assert (whole.calls, whole.input_tokens) == (2, 12)


def test_what_is_no_listener_is_refused():
    with pytest.raises(PolicyError, match="telemetry must be a listener"):
        Compactor(telemetry="otel")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a callable that gets an event"):
        listen(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a callable that gets an event"):
        listen(UsageTally)  # type: ignore[arg-type]  # the class, and not one of it


def test_settings_of_instrument_that_mean_nothing_switch_nothing_on():
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    with pytest.raises(PolicyError, match="tracer_provider is a MeterProvider"):
        instrument(MeterProvider(), TracerProvider())  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="meter_provider is a TracerProvider"):
        instrument(None, TracerProvider())  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="error_messages is True or False"):
        instrument(error_messages="yes")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="prices stand by model"):
        instrument(prices=[Price(1, 1)])  # type: ignore[arg-type]
    assert not listening()


class Broken:
    """A listener that fails whatever it is told."""

    def begin(self, kind: type[Event], whose: Whose | None, facts: Any) -> object:
        raise RuntimeError("cannot begin")

    def end(self, event: Event, state: object) -> None:
        raise ValueError("cannot end")

    def __call__(self, event: Event) -> None:
        raise ValueError("cannot hear")


def test_a_listener_that_fails_changes_nothing_and_is_said_once(caplog):
    expected = compact(archive="memory:")
    broken, heard = Broken(), list[Event]()
    listen(broken)
    listen(heard.append)
    result = compact(archive="memory:")
    assert result.record == expected.record
    assert any(isinstance(one, Compaction) for one in heard)
    said = [one for one in caplog.records if "this is said once" in one.getMessage()]
    assert [str(one.exc_info[1]) for one in said if one.exc_info] == ["cannot begin", "cannot end"]
    unlisten(broken)


# Lines in the log


def lines_of(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.name == "conspectus.events"]


def test_each_event_is_one_line_that_can_be_read_and_taken_apart(caplog):
    caplog.set_level("DEBUG")
    listen(LogLines())
    model = ScriptedChatModel(answers=[f"## Done\n- {SECRET} seen."])
    compact(model, "ann's", archive="memory:")
    records = lines_of(caplog)
    names = [one.getMessage().split(" ", 1)[0] for one in records]
    assert names.count("compaction") == names.count("summarizer_call") == 1
    assert {"archive_operation", "compaction_step"} < set(names)
    [line] = [one for one in records if one.getMessage().startswith("compaction ")]
    data: dict[str, Any] = vars(line)["conspectus"]
    assert data["event"] == "compaction"
    assert data["outcome"] == "compacted"
    assert f"tokens_before={data['tokens_before']}" in line.getMessage()
    assert (line.levelname, line.name) == ("INFO", "conspectus.events")
    shown = "".join(JsonFormatter().format(one) for one in records)
    assert SECRET not in shown
    assert "ann" not in shown
    assert {one.levelname for one in records} == {"INFO", "DEBUG"}


@pytest.mark.slow
def test_what_somebody_should_look_at_is_a_warning(caplog):
    caplog.set_level("DEBUG")
    listen(LogLines("plain"))
    model = ScriptedChatModel(answers=lambda messages: ValueError(SECRET))
    Compactor(model, keep=("messages", 2), on_failure="keep").compact(
        dicts(9), thread_id="ann", force=True
    )
    [line] = [one for one in lines_of(caplog) if one.getMessage().startswith("compaction ")]
    assert line.levelname == "WARNING"
    assert "failure=summary error_type=ValueError" not in line.getMessage()
    assert "error_type=ValueError" in line.getMessage()
    assert "thread=ann" in line.getMessage()
    assert SECRET not in "".join(one.getMessage() for one in lines_of(caplog))


def test_a_json_line_holds_what_the_line_says_and_other_loggers_fit_in():
    event = SummarizerCall(outcome="timeout", summarizer="a b", seconds=1.5)
    record = logging.LogRecord("conspectus.events", 30, "", 0, "x", (), None)
    record.conspectus = LogLines().data(event)
    data = json.loads(JsonFormatter().format(record))
    assert data["event"] == "summarizer_call"
    assert (data["seconds"], data["summarizer"], data["level"]) == (1.5, "a b", "WARNING")
    assert 'summarizer="a b"' in LogLines().line(event)
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        other = logging.LogRecord("app", 40, "", 0, "it %s", ("broke",), sys.exc_info())
    data = json.loads(JsonFormatter().format(other))
    assert (data["message"], data["logger"]) == ("it broke", "app")
    assert "boom" in data["exception"]


def test_a_line_cannot_be_forged_by_a_name():
    event = SummarizerCall(summarizer="x\nconspectus: all is well outcome=ok")
    assert "\n" not in LogLines().line(event)


def test_no_text_of_a_conversation_is_in_what_is_exported():
    model = ScriptedChatModel(answers=[f"## Done\n- {SECRET} seen."])
    compactor = Compactor(model, keep=("messages", 2), archive="memory:")
    with instrumented() as found:
        compactor.compact(dicts(9), thread_id="ann's", force=True, focus=SECRET)
        compactor.recall(SECRET, thread_id="ann's")
        assert len(found.spans) > 5
        assert SECRET not in found.everything
        assert "ann's" not in found.everything
