"""Money: by the caller's prices, else by genai-prices; what is not known has none, and is named."""

import logging
import sys
from dataclasses import fields
from typing import Any

import pytest

from conspectus import Archive, PolicyError, Record
from conspectus.archive import Scope
from conspectus.core.records import Cost
from conspectus.observe import Price, price_of, prices, set_prices
from conspectus_lab.billing import (
    FIVE_MINUTES,
    Bill,
    BillBuilder,
    Block,
    CacheUse,
    PrefixCache,
    rules_for,
    summed,
)
from conspectus_lab.replay import replay
from histories import talk
from observe_support import compact, events_heard
from scripted_models import ScriptedChatModel
from test_observe import reporting

CACHED = Cost(
    1, 1_000_000, 100_000, cached_tokens=500_000, written_tokens=300_000, hour_tokens=100_000
)


def model(name: str, **details: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=[reporting(**details)] * 9, model_name=name)


def test_cache_reads_and_writes_have_own_prices():
    price = Price(1.0, 10.0, cached=0.1, written=1.25, written_hour=2.0)
    assert price.of(CACHED) == pytest.approx(0.2 + 0.05 + 0.25 + 0.2 + 1.0)
    assert Price(1.0, 10.0).of(CACHED) == pytest.approx(2.0)


def test_a_callers_price_comes_first(monkeypatch):
    cost = Cost(1, 1_000_000).asked_of("gpt-5-mini")
    assert price_of(cost, {"gpt-5-mini": Price(7.0, 7.0)}) == 7.0
    assert price_of(cost) == pytest.approx(0.25)
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price_of(cost + cost) is None
    with pytest.raises(PolicyError, match="prices are given by model"):
        set_prices([])  # type: ignore[arg-type]


def test_an_unknown_price_leaves_the_bill_open(caplog):
    caplog.set_level(logging.INFO, "conspectus")
    prices._log_unknown.cache_clear()
    empty = ScriptedChatModel(answers=lambda messages: "", model_name="small", usage=(1_000, 50))
    with events_heard("compaction") as events:
        set_prices({"large": Price(2.0, 20.0)})
        record = compact(empty, fallbacks=[model("large")], archive="memory:").record
    assert set(record.cost.models) == {"small", "large"}
    assert events[0].money is None
    assert set(record.bill) == {"seconds", "waited"}
    assert caplog.text.count("no price is known for small, so its calls name no money") == 1


def test_the_record_holds_what_failed_tries_and_fallbacks_have_cost(tmp_path):
    prices_by_model = {"small": Price(1.0, 1.0), "large": Price(2.0, 2.0)}
    empty = reporting().model_copy(update={"content": ""})
    with events_heard("compaction") as events, Archive.open(tmp_path / "a.db") as archive:
        set_prices(prices_by_model)
        first = ScriptedChatModel(answers=[empty] * 2, model_name="small")
        result = compact(first, fallbacks=[model("large")], archive=archive)
        [record] = archive.chain(Scope("local", "t"))
    assert record.cost == result.cost == events[0].cost == Cost(3, 3_000, 150)
    money = (2_100 * 1.0 + 1_050 * 2.0) / 1_000_000
    assert record.bill["money"] == events[0].money == pytest.approx(money)
    assert price_of(record.cost, prices_by_model) == pytest.approx(money)
    assert 0 < record.bill["waited"] == record.bill["seconds"] <= events[0].seconds + 0.001


def test_records_are_the_same_whatever_they_took():
    record = compact(archive="memory:").record
    data = record.to_json()
    slow = Record.from_json({**data, "bill": {"seconds": 9.0, "waited": 9.0}})
    assert slow == record
    values = {
        field.name: getattr(record, field.name) for field in fields(Record) if field.name != "id"
    }
    assert Record.make(**{**values, "bill": slow.bill}).id == record.id
    with pytest.raises(TypeError):
        Record.from_json({**data, "bill": "9 seconds"})


@pytest.mark.parametrize("parts", [(-1, 1), (1, None), (1, 1, "x"), (1, True), (float("nan"), 1)])
def test_a_price_is_a_number_of_at_least_0(parts):
    with pytest.raises(PolicyError, match="must be a number of at least 0, for a million tokens"):
        Price(*parts)


SONNET, GPT, GPT_6 = map(rules_for, ("claude-sonnet-4-5", "gpt-5.4", "gpt-6.1-sol"))
MODELS = ("claude-sonnet-5-5", "gpt-5.4", "gpt-6.1-sol", "gemini-3.1-pro-preview")


def book_request() -> list[Block]:
    """Anthropic's first example: a whole book behind a breakpoint, and a question of 21 tokens."""
    return [
        Block("You are an assistant that analyses books.", 86),
        Block("Pride and Prejudice", 188_000, mark=True),
        Block("Analyse the major themes.", 21),
    ]


def conversation_blocks(count: int) -> list[Block]:
    """A conversation with a breakpoint on its last block."""
    return [Block(f"block {n}", 1_000, n == count - 1) for n in range(count)]


REQUEST = [Block("system", 2_000), Block("question", 100)]
LONGER = [*REQUEST, Block("answer", 50), Block("next", 50)]


@pytest.mark.parametrize(
    ("rules", "requests"),
    [
        # Written once and then read; a hit begins the lifetime anew.
        (
            SONNET,
            [
                (book_request(), 0, CacheUse(0, 188_086, 21)),
                (book_request(), FIVE_MINUTES, CacheUse(188_086, 0, 21)),
                (book_request(), 2 * FIVE_MINUTES, CacheUse(188_086, 0, 21)),
                (book_request(), 3 * FIVE_MINUTES + 1, CacheUse(0, 188_086, 21)),
            ],
        ),
        (
            SONNET,
            [
                (conversation_blocks(15), 0, None),
                (conversation_blocks(35), 1, CacheUse(15_000, 20_000, 0)),
            ],
        ),
        # OpenAI keeps every prefix, in steps of 128.
        (
            GPT,
            [
                ([Block("head", 1_025), Block("tail", 3_000)], 0, CacheUse(0, 0, 4_025)),
                ([Block("head", 1_025), Block("other", 3_000)], 1, CacheUse(1_024, 0, 3_001)),
                ([Block("head", 1_025), Block("other", 3_000)], 301, CacheUse(3_968, 0, 57)),
                ([Block("head", 1_025), Block("tail", 3_000)], 602, CacheUse(0, 0, 4_025)),
            ],
        ),
        # From GPT-5.6 on: one implicit breakpoint at the end, half an hour, and writes.
        (
            GPT_6,
            [
                (REQUEST, 0, CacheUse(written=2_100)),
                (LONGER, 1_800, CacheUse(read=2_100, written=100)),
                ([REQUEST[0], Block("other", 100)], 1_801, CacheUse(written=2_100)),
                (LONGER, 3_601, CacheUse(written=2_200)),
            ],
        ),
    ],
)
def test_a_cache_reads_and_writes_as_its_provider_says(rules, requests):
    cache = PrefixCache(rules)
    for blocks, at, use in requests:
        assert cache.request(blocks, at) == use or use is None


@pytest.mark.parametrize(
    ("agent", "has_prices", "cost", "money"),
    [
        ("large", True, Cost(1, 1_000_000, 100_000).asked_of("small"), 1.2),
        ("large", True, Cost(1, 1_000_000, 100_000).asked_of("unheard-of"), 11.0),
        ("claude-sonnet-5-5", False, Cost(1, 1_000_000, 100_000).asked_of("gpt-5-mini"), 0.45),
        # Written to its cache, as its provider does.
        ("claude-sonnet-5-5", False, Cost(1, 100_000).asked_of("gpt-6.1-sol"), 0.25),
    ],
)
def test_the_summariser_is_paid_at_its_own_price_or_the_agents(agent, has_prices, cost, money):
    builder = BillBuilder(
        agent, {"large": Price(10.0, 10.0), "small": Price(1.0, 2.0)} if has_prices else None
    )
    builder.summarizer(cost)
    assert builder.bill().summarizer_money == builder.bill().money == pytest.approx(money)
    assert builder.bill().summarizer.calls == 1


@pytest.mark.parametrize("model", MODELS)
def test_without_compaction_costs_what_the_policy_without_compaction_costs(model):
    replayed = replay(talk(12, 160), window=2_500, policies=["none"], priced_as=model)
    [run] = replayed.runs
    assert run.bill == replayed.without
    assert run.bill.model == model
    assert run.bill.requests == len(run.steps) == 12
    assert run.bill.input_tokens == run.totals["sent_tokens"]
    assert 0 < run.totals["waited_seconds"] == pytest.approx(run.bill.waited)
    sum_of_two = summed([run.bill, None, replayed.without])
    assert sum_of_two.money == pytest.approx(2 * run.bill.money)
    assert (summed([None]), Bill("m").cached_share) == (None, None)
