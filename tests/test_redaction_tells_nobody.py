"""No secret is told beside the archive: not to a log, a listener, an index or another file."""

import contextlib
import logging
import sqlite3
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from conspectus import Archive, ContextGuard, SummarizationMiddleware, SummaryError
from engine import Scripted, compacted, engine, short
from graph_support import agent, thread
from redaction_support import SECRETS, TOKEN, history, no_secret
from scripted_models import ScriptedChatModel
from stored_values import stored


def test_a_summariser_that_knows_more_and_an_error_that_quotes_do_not_tell():
    told: list[Any] = []
    wordy = engine(
        Scripted(lambda _: f"- the token is {TOKEN} [x]"),
        redact=True,
        on_event=lambda name, data: told.append(dict(data)),
    )
    result = compacted(history(), wordy, force=True)
    assert result.outcome == "compacted"
    no_secret(str(result.record.to_json()))

    def fail(_: Any) -> str:
        raise ValueError(f"bad key {TOKEN}")

    failing = engine(
        Scripted(fail), redact=True, on_event=lambda name, data: told.append(dict(data))
    )
    refused = compacted(history(), failing, force=True)
    assert refused.outcome == "kept"
    no_secret(refused.reason)
    no_secret(told)
    assert "[redacted: github-token]" in refused.reason


@pytest.mark.parametrize("on_failure", ["keep", "raise"])
def test_no_listener_is_told_of_a_secret_that_an_error_quotes(on_failure):
    told: list[Any] = []

    def fail(_: Any) -> str:
        raise ValueError(f"400: cannot read {TOKEN}")

    class Own(Scripted):
        def summarize(self, request: Any) -> Any:
            return fail(request)

    for summarizer in (fail, Own(short)):
        careful = engine(summarizer, redact=True, telemetry=told.append, on_failure=on_failure)
        with contextlib.suppress(SummaryError):
            compacted(history(), careful, force=True)
    assert {event.error for event in told} >= {"ValueError"}
    for event in told:
        no_secret(repr(event))
    assert any("[redacted: github-token]" in event.error_message for event in told)


def test_the_log_tells_no_secret(caplog):
    with caplog.at_level(logging.DEBUG):
        compacted(history(), engine(redact=True), force=True, focus=TOKEN)
    assert "end" in caplog.text
    no_secret(caplog.text)


def test_no_file_beside_an_archive_holds_a_secret(tmp_path):
    with Archive.open(tmp_path / "archive.db") as archive:
        compactor = engine(archive=archive, keep=("messages", 4), redact=True)
        compacted(history(), compactor, force=True)
        compactor.recall("password", thread_id="t")
        values = [one.text for one in stored(archive)]
    no_secret(values)
    assert any("[redacted: github-token]" in text for text in values)
    with contextlib.closing(sqlite3.connect(tmp_path / "archive.db")) as connection:
        assert connection.execute("select count(*) from body").fetchone()[0]
    for file in tmp_path.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            assert not any(secret.encode() in raw for secret in SECRETS), file


def test_the_log_tells_no_secret_that_a_models_provider_quotes(caplog):
    said = f"Error code: 400 - prompt is too long: 9000 tokens > 3000 maximum, near '{TOKEN}'"
    model = ScriptedChatModel(answers=["one", "two", ValueError(said), *["on"] * 9])
    own = SummarizationMiddleware(
        None, trigger=("messages", 50), keep=("messages", 2), archive="memory:", redact=True
    )
    graph, _ = agent(model, own, ContextGuard(own), tools=[], store=None)
    with caplog.at_level(logging.DEBUG, logger="conspectus"):
        for turn in range(3):
            graph.invoke({"messages": [HumanMessage(f"Look at m{turn}. " * 200)]}, thread())
    assert "the request was too long (Error code: 400" in caplog.text
    no_secret(caplog.text)
