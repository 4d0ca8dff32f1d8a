"""Money: by the caller's prices, else by genai-prices; what is not known has none, and is named."""

import logging
from dataclasses import fields
from typing import Any

import pytest

from conspectus import Archive, PolicyError, Record
from conspectus.archive import Scope
from conspectus.core.records import Cost
from conspectus.observe import Price, price_of, prices, set_prices
from observe_support import compact, heard
from scripted_models import ScriptedChatModel
from test_observe import reporting

CACHED = Cost(
    1, 1_000_000, 100_000, cached_tokens=500_000, written_tokens=300_000, hour_tokens=100_000
)


def model(name: str, **details: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=[reporting(**details)] * 9, model_name=name)


def test_what_is_read_and_written_in_a_cache_has_prices_of_its_own():
    price = Price(1.0, 10.0, cached=0.1, written=1.25, written_hour=2.0)
    assert price.of(CACHED) == pytest.approx(0.2 + 0.05 + 0.25 + 0.2 + 1.0)
    assert Price(1.0, 10.0).of(CACHED) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["", "llama3.1:8b", "gpt-unheard-of", "ollama:gpt-5-mini"])
def test_what_nobody_knows_has_no_price(name):
    assert price_of(CACHED.asked_of(name)) is None


def test_the_callers_own_price_goes_first_and_without_the_package_there_are_no_others(monkeypatch):
    cost = Cost(1, 1_000_000).asked_of("gpt-5-mini")
    assert price_of(cost, {"gpt-5-mini": Price(7.0, 7.0)}) == 7.0
    assert price_of(cost) == pytest.approx(0.25)
    monkeypatch.setattr(prices, "find_spec", lambda name: None)
    assert price_of(cost) is None


def test_an_unknown_price_is_said_once_and_leaves_all_of_the_bill_open(caplog):
    caplog.set_level(logging.INFO, "conspectus")
    prices._log_unknown.cache_clear()
    empty = ScriptedChatModel(answers=lambda messages: "", model_name="small", usage=(1_000, 50))
    with heard("compaction") as found:
        set_prices({"large": Price(2.0, 20.0)})
        record = compact(empty, fallbacks=[model("large")], archive="memory:").record
    assert set(record.cost.models) == {"small", "large"}
    assert (found[0].money, found[0].currency) == (None, "")
    assert set(record.bill) == {"seconds", "waited"}
    assert caplog.text.count("no price is known for small, so its calls name no money") == 1


def test_the_record_holds_what_failed_tries_and_fallbacks_have_cost(tmp_path):
    own = {"small": Price(1.0, 1.0), "large": Price(2.0, 2.0)}
    empty = reporting().model_copy(update={"content": ""})
    with heard("compaction") as found, Archive.open(tmp_path / "a.db") as archive:
        set_prices(own, currency="EUR")
        first = ScriptedChatModel(answers=[empty] * 2, model_name="small")
        result = compact(first, fallbacks=[model("large")], archive=archive)
        [record] = archive.chain(Scope("local", "t"))
    assert record.cost == result.cost == found[0].cost == Cost(3, 3_000, 150)
    money = (2_100 * 1.0 + 1_050 * 2.0) / 1_000_000
    assert record.bill["money"] == found[0].money == pytest.approx(money)
    assert record.bill["currency"] == found[0].currency == "EUR"
    assert price_of(record.cost, own) == pytest.approx(money)
    assert 0 < record.bill["waited"] == record.bill["seconds"] <= found[0].seconds + 0.001


def test_records_are_the_same_whatever_they_took():
    record = compact(archive="memory:").record
    data = record.to_json()
    slow = Record.from_json({**data, "bill": {"seconds": 9.0, "waited": 9.0}})
    assert slow == record
    parts = {one.name: getattr(record, one.name) for one in fields(Record) if one.name != "id"}
    assert Record.make(**{**parts, "bill": slow.bill}).id == record.id
    with pytest.raises(TypeError):
        Record.from_json({**data, "bill": "9 seconds"})


@pytest.mark.parametrize("parts", [(-1, 1), (1, None), (1, 1, "x"), (1, True), (float("nan"), 1)])
def test_a_price_is_a_number_of_at_least_0(parts):
    with pytest.raises(PolicyError, match="must be a number of at least 0, for a million tokens"):
        Price(*parts)
