"""Usage and cost: every call of a summariser is counted once, with what it took, in one place."""

import asyncio
import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conspectus import ChatModelSummarizer, Compactor, Cost, PolicyError, Record
from conspectus._core.records import Draft
from conspectus.events import Event, SummarizerCall, Whose, hub
from conspectus.short_term import summarize_messages
from conspectus.telemetry import Price, Usage, UsageTally, listen, set_prices
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from telemetry_support import Own, busy, compact, dicts

SUMMARY = "## Done\n- Modules seen."


@pytest.fixture(autouse=True)
def alone() -> Any:
    with hub.alone():
        yield


def reporting(**details: Any) -> AIMessage:
    """An answer whose model reports what it took."""
    usage: Any = {"input_tokens": 1_000, "output_tokens": 50, "total_tokens": 1_050, **details}
    return AIMessage(f"{SUMMARY} [d0]", usage_metadata=usage)


def test_what_a_model_reports_is_taken_with_its_details():
    answer = reporting(
        input_token_details={"cache_read": 600}, output_token_details={"reasoning": 20}
    )
    tally = UsageTally()
    result = compact(ScriptedChatModel(answers=[answer]), telemetry=tally)
    assert result.cost == Cost(1, 1_000, 50, cached_tokens=600, reasoning_tokens=20)
    total = tally.total
    assert (total.input_tokens, total.cached_tokens, total.reasoning_tokens) == (1_000, 600, 20)
    assert total.estimated_calls == 0


def test_what_it_does_not_report_is_estimated_and_said_to_be():
    tally = UsageTally()
    result = compact(ScriptedChatModel(answers=[SUMMARY]), telemetry=tally)
    assert result.cost.estimated_calls == tally.total.estimated_calls == 1
    assert tally.total.input_tokens == result.cost.input_tokens > 100


def test_retries_readings_and_merges_are_counted_as_the_model_was_asked():
    busy_twice = busy(2, SUMMARY)

    def answer(messages: list[Any]) -> Any:
        said, [*_, source] = busy_twice(messages), re.findall(r"\bd\d\b", messages[-1].text)
        return f"{said} [{source}]" if said == SUMMARY else said

    model = ScriptedChatModel(answers=answer)
    tally, heard = UsageTally(), list[Event]()
    several = ChatModelSummarizer(model, trim_tokens_to_summarize=600)
    result = compact(several, telemetry=[tally, heard.append])
    assert len(model.calls) > 5
    assert tally.total.calls == result.cost.calls == len(model.calls)
    assert tally.total.failed == 2
    assert tally.total.input_tokens == result.cost.input_tokens
    calls = [one for one in heard if isinstance(one, SummarizerCall)]
    assert len(calls) == len(model.calls)
    assert {one.whose.thread for one in calls if one.whose} == {"t"}


def test_what_is_read_late_or_cancelled_counts_as_it_is_charged_and_a_refusal_does_not():
    slow = ScriptedChatModel(answers=[SUMMARY] * 9, delay=5)
    late, refused, gone = UsageTally(), UsageTally(), UsageTally()
    once = ChatModelSummarizer(slow, timeout=0.01)
    result = compact(once, on_failure="keep", telemetry=late)
    assert late.total.input_tokens == result.cost.input_tokens > 100
    assert late.total.failed == late.total.calls == result.cost.calls
    broken = ScriptedChatModel(answers=lambda messages: PermissionError("bad key"))
    compact(broken, on_failure="keep", telemetry=refused)
    assert (refused.total.calls, refused.total.failed, refused.total.input_tokens) == (1, 1, 0)

    async def cancelled() -> None:
        made = Compactor(slow, keep=("messages", 2), telemetry=gone)
        asked = len(slow.calls)
        task = asyncio.ensure_future(made.acompact(dicts(9), thread_id="t", force=True))
        while len(slow.calls) == asked:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert (gone.total.calls, gone.total.failed) == (1, 1)
    assert gone.total.input_tokens > 100


@pytest.mark.parametrize("loop", [False, True])
def test_totals_stand_by_model_and_by_thread(loop):
    tally = UsageTally()
    listen(tally)
    small = ScriptedChatModel(answers=[reporting()] * 2, model_name="small")
    large = ScriptedChatModel(answers=[reporting()], model_name="large")
    for model, name in ((small, "a"), (small, "b"), (large, "a")):
        made = Compactor(model, keep=("messages", 2))
        if loop:
            asyncio.run(made.acompact(dicts(9), thread_id=name, tenant="ann", force=True))
        else:
            made.compact(dicts(9), thread_id=name, tenant="ann", force=True)
    assert {name: one.calls for name, one in tally.by_model.items()} == {"small": 2, "large": 1}
    assert tally.of_thread("a", "ann").input_tokens == 2_000
    assert tally.of_thread("b", "ann").calls == 1
    assert tally.of_thread("a").calls == 0
    assert set(tally.by_thread) == {("ann", "a"), ("ann", "b")}
    assert tally.total.unpriced_calls == 3


def test_threads_that_are_remembered_are_bounded_and_sums_are_not():
    tally = UsageTally(most_threads=3)
    for number in range(10):
        tally(SummarizerCall(model="m", whose=Whose("local", f"t{number}", "main")))
    assert list(tally.by_thread) == [("local", f"t{number}") for number in (7, 8, 9)]
    assert tally.total.calls == 10


def test_prices_count_cached_tokens_for_less():
    set_prices({"scripted": Price(input=2.0, output=10.0, cached=0.5)}, currency="EUR")
    answer = reporting(input_token_details={"cache_read": 600})
    tally, heard = UsageTally(), list[Event]()
    compact(ScriptedChatModel(answers=[answer]), telemetry=[tally, heard.append])
    expected = (400 * 2.0 + 600 * 0.5 + 50 * 10.0) / 1_000_000
    assert tally.total.price == pytest.approx(expected)
    assert tally.total.unpriced_calls == 0
    [call] = [one for one in heard if isinstance(one, SummarizerCall)]
    assert (call.price, call.currency) == (pytest.approx(expected), "EUR")


def test_a_model_without_a_price_is_said_once(caplog):
    caplog.set_level("INFO", "conspectus")
    set_prices({"another": Price(1, 1)})
    tally = UsageTally()
    for name in "ab":
        compact(ScriptedChatModel(answers=[SUMMARY]), name, telemetry=tally)
    assert tally.total.unpriced_calls == 2
    assert caplog.text.count("no price is set for scripted") == 1


@pytest.mark.parametrize("wrong", [{"input": -1, "output": 1}, {"input": "1", "output": 1}])
def test_a_price_that_means_nothing_is_refused(wrong):
    with pytest.raises(PolicyError, match="price of input"):
        Price(**wrong)
    with pytest.raises(PolicyError, match="must be a Price"):
        set_prices({"m": 3.0})  # type: ignore[dict-item]


# Summarisers of the user's own


def test_a_function_counts_as_far_as_known():
    tally = UsageTally()
    result = compact(lambda messages: "All is well so far. " * 20, telemetry=tally)
    assert tally.total == Usage(
        calls=1,
        input_tokens=result.cost.input_tokens,
        output_tokens=result.cost.output_tokens,
        estimated_calls=1,
        seconds=tally.total.seconds,
        unpriced_calls=1,
    )
    assert tally.total.input_tokens > 100


def test_an_object_counts_by_what_it_reports_else_by_an_estimate():
    told, untold = UsageTally(), UsageTally()
    compact(Own(cost=Cost(3, 900, 90)), telemetry=told)
    compact(Own(), telemetry=untold)
    assert (told.total.calls, told.total.input_tokens) == (3, 900)
    assert told.total.estimated_calls == 0
    assert (untold.total.calls, untold.total.estimated_calls) == (1, 1)
    assert untold.total.input_tokens > 100


def test_an_object_that_fails_counts_too():
    tally = UsageTally()
    compact(Own(error=RuntimeError("broken")), on_failure="keep", telemetry=tally)
    assert (tally.total.calls, tally.total.failed) == (1, 1)


def test_an_object_around_ours_is_not_counted_twice():
    model, tally = ScriptedChatModel(answers=[reporting()]), UsageTally()
    compact(Own(ChatModelSummarizer(model)), telemetry=tally)
    assert tally.total.calls == len(model.calls) == 1
    assert tally.total.input_tokens == 1_000


def test_the_embedded_summariser_makes_no_call():
    tally = UsageTally()
    assert compact(None, telemetry=tally).outcome == "compacted"
    assert tally.total == Usage()


def test_calls_of_the_short_term_memory_count():
    tally = UsageTally()
    listen(tally)
    model = ScriptedChatModel(answers=lambda messages: reporting())
    said = [HumanMessage(f"Look at module {n}. " * 20, id=str(n)) for n in range(12)]
    result = summarize_messages(
        said, running_summary=None, model=model, max_tokens=500, max_summary_tokens=100
    )
    assert result.running_summary is not None
    assert tally.total.calls == len(model.calls) > 0
    assert tally.total.input_tokens == 1_000 * len(model.calls)


# Records


OLD = {
    "v": 1,
    "id": "0123456789abcdef",
    "parent": None,
    "covers": ["k1"],
    "clips": [],
    "summary": "all is well",
    "segment": {},
    "cause": "forced",
    "tokens_before": 90,
    "tokens_after": 30,
    "messages_after": 2,
    "archived": True,
    "by": "model",
    "cost": {"calls": 1, "input_tokens": 80, "output_tokens": 20},
}


def test_records_of_before_are_read_and_written_as_they_were():
    record = Record.from_json(OLD)
    assert record.cost == Cost(1, 80, 20)
    assert record.to_json() == {**OLD, "covers": ("k1",), "clips": ()}


def test_details_of_cost_come_back_from_records_and_drafts():
    cost = Cost(2, 80, 20, cached_tokens=40, reasoning_tokens=5, estimated_calls=1)
    parts = {k: v for k, v in OLD.items() if k not in ("v", "id", "cost")}
    record = Record.make(**{**parts, "covers": ("k1",), "clips": ()}, cost=cost)
    assert Record.from_json(record.to_json()).cost == cost
    draft = Draft("text", "model", ("k1",), cost)
    assert Draft.from_json(draft.to_json()) == draft


def test_a_cost_with_parts_of_a_newer_version_is_read():
    newer = {**OLD, "cost": {**OLD["cost"], "carbon": 3}}  # type: ignore[dict-item]
    assert Record.from_json(newer).cost == Cost(1, 80, 20)
    with pytest.raises(TypeError):
        Record.from_json({**OLD, "cost": [1, 80, 20]})


def test_costs_add_up_in_every_part():
    one = Cost(1, 2, 3, 4, 5, 6)
    assert one + one == Cost(2, 4, 6, 8, 10, 12)
