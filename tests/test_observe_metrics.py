"""Metrics: what is counted and measured, and that threads make no new series."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from conspectus import ChatModelSummarizer, Compactor
from conspectus.observe import Price, set_prices
from observe_support import SECRET, Own, busy, compact, dicts, instrumented
from scripted_models import ScriptedChatModel

ALERTED = ("stuck", "compaction.failures", "archive.failures", "guard.fits")


def test_what_compactions_did_is_counted_by_cause_and_outcome():
    compactor = Compactor(window=2_000, keep=("messages", 4), archive="memory:")
    with instrumented() as found:
        first = compactor.compact(dicts(40), thread_id="a")
        forced = compactor.compact(dicts(12), thread_id="b", force=True)
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
        for operation in ("write", "read_back", "commit"):
            assert found.total("conspectus.archive.duration", operation=operation) == 2


class Full(InMemoryStore):
    """A store whose disk is full."""

    def batch(self, ops: Any) -> Any:
        ops = list(ops)
        if any(type(one).__name__ == "PutOp" for one in ops):
            raise OSError(28, "no space left on device")
        return super().batch(ops)


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
        assert compact(name="f", archive=Full()).failed == "archive"
        failures = found.points("conspectus.compaction.failures")
        kinds = {dict(labels)["failure"]: v for labels, v in failures.items() if v}
        assert kinds == {"summary": 1, "rejected": 1, "timeout": 1, "archive": 1}
        assert found.total("conspectus.archive.duration", outcome="error") > 0
        assert found.total("conspectus.tokens.freed") == 0
        assert Compactor(window=60).compact(dicts(40), thread_id="s").outcome == "stuck"
        assert found.total("conspectus.stuck") == 1
        for name in ALERTED:
            assert found.points(f"conspectus.{name}").keys() == before[name].keys()
        assert SECRET not in found.everything


def test_each_call_of_a_summariser_is_counted_with_its_tokens_and_price():
    model = ScriptedChatModel(answers=busy(1, "## Done\n- Modules seen."), model_name="small")
    with instrumented() as found:
        set_prices({"small": Price(input=2.0, output=8.0)}, currency="EUR")
        cost = compact(model).cost
        who = "ScriptedChatModel:small"
        assert found.total("conspectus.summarizer.calls", summarizer=who, outcome="ok") == 1
        assert found.total("conspectus.summarizer.calls", summarizer=who, outcome="error") == 1
        assert found.total("conspectus.summarizer.duration") == 2
        assert found.total("conspectus.summarizer.tokens", type="input") == cost.input_tokens
        assert found.total("conspectus.summarizer.tokens", type="output") == cost.output_tokens
        expected = (cost.input_tokens * 2.0 + cost.output_tokens * 8.0) / 1_000_000
        assert found.total("conspectus.summarizer.cost", currency="EUR") == pytest.approx(expected)
        [whole] = found.told("conspectus.compaction")
        assert whole["conspectus.money"] == pytest.approx(expected)


def test_many_threads_make_no_more_series_than_one():
    compactor = Compactor(Own(), keep=("messages", 2), archive="memory:")

    def series(found: Any) -> int:
        return sum(len(found.points(name)) for name in found.metrics)

    with instrumented() as found:
        compactor.compact(dicts(9), thread_id="one", force=True)
        compactor.recall("module 3", thread_id="one")
        before = series(found)
        for number in range(5):
            compactor.compact(dicts(9), thread_id=f"t{number}", tenant=f"u{number}", force=True)
            compactor.recall("module 3", thread_id=f"t{number}", tenant=f"u{number}")
        assert series(found) == before
