"""Whatever fails in a compaction: its cost is in the result, and listeners hear how it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from background_support import LIMIT, talk_of
from compactor_support import SCOPE, Scripted, compacted, new_compactor, short_summary
from conspectus import Compactor, Summary, SummaryRequest
from conspectus.archive import Archive, StoredItem
from conspectus.archive.langgraph import LangGraphStore
from conspectus.bridge import run
from conspectus.core.items import Size
from conspectus.core.records import Cost
from conspectus.engine import background
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import CallerCounts, HistoryContext
from histories import talk

MESSAGES = talk(40)


@dataclass
class Paid(Scripted):
    """A summariser whose calls cost something."""

    def summarize(self, request: SummaryRequest) -> Summary:
        return replace(super().summarize(request), cost=Cost(1, 900, 60))


def test_a_call_is_in_the_cost_before_a_counter_fails():
    summarizer = Paid(short_summary)

    def wrong_after_the_call(messages: Any) -> int:
        if summarizer.requests:
            return -1
        return sum(len(str(message)) for message in messages) // 4

    compactor = new_compactor(
        summarizer, window=2_000, token_counter=wrong_after_the_call, on_failure="keep"
    )
    result = compacted(MESSAGES, compactor)
    assert result.failed == "summary"
    assert result.cost == Cost(1, 900, 60)


def test_a_counter_that_fails_after_the_commit_harms_nothing(caplog):
    compactor = new_compactor()

    def failing(view: Any) -> Size:
        raise ValueError("the counter is out of order")

    counts = CallerCounts(trigger_size=Size(5_000, 40), count_view=failing)
    history = HistoryContext(compactor._engine, SCOPE, counts=counts)
    result = run(compact_messages(history, MESSAGES, force=True))
    assert result.outcome == "compacted"
    assert "counter_failed" in [line.conspectus["event"] for line in caplog.records]


def test_each_start_is_followed_by_its_end_although_the_redactor_fails():
    def failing(text: str) -> str:
        raise ValueError("the redactor is out of order")

    events: list[str] = []
    compactor = new_compactor(redact=failing, on_event=lambda event, _: events.append(event))
    assert compacted(MESSAGES, compactor, force=True).failed == "redaction"
    assert events == ["start", "failed"]


def test_a_preview_that_fails_is_told_to_the_listener():
    def failing(request: Any) -> str:
        raise ZeroDivisionError("the preview is out of order")

    events: list[str] = []
    compactor = new_compactor(on_event=lambda event, _: events.append(event))
    history = HistoryContext(replace(compactor._engine, preview=failing), SCOPE)
    with pytest.raises(ZeroDivisionError):
        run(compact_messages(history, MESSAGES, force=True))
    assert events == ["start", "failed"]


def test_an_unforeseen_error_of_a_preparation_is_in_the_log(caplog, monkeypatch):
    def failing(view: Any) -> Any:
        raise ZeroDivisionError("divided by nothing")

    monkeypatch.setattr(background, "share_out_count", failing)
    compactor = Compactor(
        window=4_000, trigger=("tokens", 3_000), background=True, archive="memory:"
    )
    with compactor:
        preparation = compactor.prepare(talk_of(31), thread_id="t")
        assert preparation.wait(LIMIT)
    assert preparation.outcome == "failed"
    [line] = [r for r in caplog.records if r.conspectus["event"] == "preparation_failed"]
    assert "divided by nothing" in line.getMessage()


def test_a_write_without_a_head_returns_the_head_in_force():
    store = LangGraphStore(InMemoryStore(), None, None)
    store.write(SCOPE, {}, head_id="first")
    assert store.write(SCOPE, {"remarks": [StoredItem("a", b"1")]}) == "first"


def test_the_error_has_the_cost_of_its_compaction():
    compactor = Compactor(
        Paid(lambda request: ""), archive=Archive(InMemoryStore()), on_failure="raise"
    )
    with pytest.raises(Exception, match="empty") as raised:
        compacted(MESSAGES, compactor, force=True)
    assert raised.value.cost == Cost(1, 900, 60)
