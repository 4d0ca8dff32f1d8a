"""Prices: our dated list and LiteLLM's agree, names are found, and a bill is told from records."""

from dataclasses import astuple, fields
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conspectus import Cost, PolicyError, Summary, SummaryRequest
from conspectus._core.records import Record
from conspectus.archive import Archive, Scope
from conspectus.events import Event, SummarizerCall, hub
from conspectus.telemetry import (
    Compaction,
    Price,
    PriceList,
    known_prices,
    litellm_prices,
    price_of,
    set_prices,
)
from conspectus.telemetry import prices as price_lists
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from scripts import ran
from telemetry_support import compact
from test_telemetry_usage import OLD, reporting


@pytest.fixture(autouse=True)
def alone() -> Any:
    with hub.alone():
        yield


def numbers(price: Price | None) -> list[float]:
    """A price and its tier for long calls; what a list leaves out is what it stands for."""
    if price is None:
        return []
    sent, said, cached, written, hour, long_from, _ = astuple(price)
    written = sent if written is None else written
    hour = written if hour is None else hour
    return [sent, said, sent if cached is None else cached, written, hour, long_from]


def test_our_list_says_what_litellms_says():
    if find_spec("litellm") is None:
        pytest.skip("LiteLLM is not installed")
    ours, theirs = known_prices(), litellm_prices()
    for name, price in ours.items():
        assert numbers(price) == pytest.approx(numbers(theirs[name])), name
        longer, other = numbers(price.long)[:3], numbers(theirs[name].long)[:3]
        assert longer == pytest.approx(other), name


def test_litellm_is_read_as_a_file_and_never_imported():
    if find_spec("litellm") is None:
        pytest.skip("LiteLLM is not installed")
    code = (
        "import sys, socket\n"
        "socket.socket.connect = lambda *a: sys.exit('asked the network')\n"
        "from conspectus.telemetry import litellm_prices\n"
        "assert len(litellm_prices()) > 1_000\n"
        "print(any(name.split('.')[0] == 'litellm' for name in sys.modules))\n"
    )
    done = ran("-c", code, check=True)
    assert done.stdout.strip() == "False"


def test_without_litellm_or_with_a_broken_list_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(price_lists, "find_spec", lambda name: None)
    with pytest.raises(PolicyError, match="pip install"):
        litellm_prices()
    origin = str(tmp_path / "__init__.py")
    monkeypatch.setattr(price_lists, "find_spec", lambda name: SimpleNamespace(origin=origin))
    (tmp_path / price_lists.LITELLM).write_text("{", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"known_prices\(\)"):
        litellm_prices()


def test_of_anthropic_writes_cost_a_quarter_more_twice_for_an_hour_and_reads_a_tenth():
    """https://platform.claude.com/docs/en/about-claude/pricing, with the discounts since 5.1."""
    fewer = {"claude-fable-5-1": 0.025, "claude-opus-5-5": 0.05, "claude-sonnet-5-5": 0.05}
    for name, price in known_prices().items():
        if name.startswith("claude"):
            parts = (price.written, price.written_hour, price.cached)
            assert parts == pytest.approx(
                (price.input * 1.25, price.input * 2, price.input * fewer.get(name, 0.1))
            )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpt-5.4", True),
        ("openai:gpt-5.4", True),
        ("openai/gpt-5.4", True),
        ("gpt-5.4-2026-03-05", True),
        ("claude-sonnet-4-5-20250929", True),
        ("claude-sonnet-4-5@20250929", True),
        ("claude-sonnet-4-5-latest", True),
        ("gpt-5.4-unheard-of", False),
        ("claude-sonnet-9", False),
        ("", False),
    ],
)
def test_a_model_is_found_by_its_name_and_never_by_a_part_of_it(name, found):
    assert (name in known_prices()) is found


def test_a_name_of_bedrock_has_a_colon_of_its_own():
    prices = PriceList({"anthropic.claude-haiku-4-5-20251001-v1:0": Price(1.0, 5.0)}, "a page")
    assert "bedrock:anthropic.claude-haiku-4-5-20251001-v1:0" in prices
    assert "bedrock:anthropic.claude-haiku-4-5-20251001-v1:1" not in prices


def test_a_long_call_costs_more_from_a_number_of_tokens_on():
    price = known_prices()["gpt-5.4"]
    assert price.of(SummarizerCall(input_tokens=272_000)) == pytest.approx(0.68)
    assert price.of(SummarizerCall(input_tokens=272_001)) == pytest.approx(1.360005)


def test_what_is_read_and_written_in_a_cache_has_prices_of_its_own():
    price = Price(1.0, 10.0, cached=0.1, written=1.25, written_hour=2.0)
    call = SummarizerCall(
        input_tokens=1_000_000,
        cached_tokens=500_000,
        written_tokens=300_000,
        hour_tokens=100_000,
        output_tokens=100_000,
    )
    assert price.of(call) == pytest.approx(0.2 + 0.05 + 0.25 + 0.2 + 1.0)
    assert Price(1.0, 10.0).of(call) == pytest.approx(2.0)


def anthropic_answer() -> Any:
    """As `langchain-anthropic` reports writes: by their lifetimes, and 0 as a whole."""
    details = {
        "cache_read": 600,
        "cache_creation": 0,
        "ephemeral_5m_input_tokens": 200,
        "ephemeral_1h_input_tokens": 100,
    }
    return reporting(input_token_details=details)


def test_a_compaction_tells_tokens_by_model_seconds_and_money(tmp_path):
    set_prices(PriceList({"small": Price(1, 10, 0.1, 1.25, 2)}, "a page"))
    heard: list[Event] = []
    model = ScriptedChatModel(answers=[anthropic_answer()], model_name="small")
    with Archive.open(tmp_path / "a.db") as archive:
        result = compact(model, archive=archive, telemetry=heard.append)
        [record] = archive.chain(Scope("local", "t"))
    money = (100 * 1 + 600 * 0.1 + 200 * 1.25 + 100 * 2 + 50 * 10) / 1_000_000
    [done] = [one for one in heard if isinstance(one, Compaction)]
    assert (done.cached_tokens, done.written_tokens) == (600, 300)
    assert done.price == pytest.approx(money)
    [use] = done.models
    assert (use.model, use.calls, use.input_tokens, use.hour_tokens) == ("small", 1, 1_000, 100)
    assert use.price == pytest.approx(money)
    assert done.waited == done.seconds > 0
    assert "models" not in done.plain()
    cost = Cost(1, 1_000, 50, cached_tokens=600, written_tokens=300, hour_tokens=100)
    assert result.cost == record.cost == cost
    assert record.cost.models == {"small": cost}
    assert price_of(record.cost, {"small": Price(1, 10, 0.1, 1.25, 2)}) == pytest.approx(money)
    assert record.bill["money"] == pytest.approx(money)
    assert record.bill["currency"] == "USD"
    assert 0 < record.bill["waited"] == record.bill["seconds"] <= done.seconds + 0.001


def test_a_record_names_no_money_where_a_price_is_missing():
    set_prices({"large": Price(1.0, 1.0)})
    model = ScriptedChatModel(answers=[reporting()], model_name="small")
    record = compact(model, archive="memory:").record
    assert set(record.bill) == {"seconds", "waited"}


def test_the_record_holds_what_failed_tries_and_fallbacks_have_cost(tmp_path):
    prices = {"small": Price(1.0, 1.0), "large": Price(2.0, 2.0)}
    set_prices(prices)
    heard: list[Event] = []
    empty = reporting().model_copy(update={"content": ""})
    with Archive.open(tmp_path / "a.db") as archive:
        result = compact(
            ScriptedChatModel(answers=[empty] * 2, model_name="small"),
            fallbacks=[ScriptedChatModel(answers=[reporting()], model_name="large")],
            archive=archive,
            telemetry=heard.append,
        )
        [record] = archive.chain(Scope("local", "t"))
    [done] = [one for one in heard if isinstance(one, Compaction)]
    assert record.cost == result.cost == Cost(3, 3_000, 150)
    assert record.cost.models == result.cost.models
    assert record.bill["money"] == pytest.approx(done.price)
    assert price_of(record.cost, prices) == pytest.approx(done.price)


class Own:
    name, identity, form = "ours:own", "own", "findings"

    def summarize(self, request: SummaryRequest) -> Summary:
        keys = tuple(entry.key for entry in request.entries)
        return Summary("- all parts were looked at [d0]", keys, Cost(1, 1_000, 10))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return self.summarize(request)


@pytest.mark.parametrize("own", [False, True])
def test_a_record_knows_the_money_of_a_price_by_the_name_of_the_summariser(own):
    heard: list[Event] = []
    asked: Any = Own() if own else ScriptedChatModel(answers=[reporting()], model_name="small")
    name = Own.name if own else "ScriptedChatModel:small"
    set_prices({name: Price(1.0, 1.0)})
    record = compact(asked, archive="memory:", telemetry=heard.append).record
    [done] = [one for one in heard if isinstance(one, Compaction)]
    assert set(record.cost.models) == {done.models[0].model}
    assert done.price is not None
    assert done.price > 0
    assert record.bill["money"] == pytest.approx(done.price)


def test_a_part_of_the_money_does_not_pass_for_all_of_it():
    """A compaction of which one call has no price has none, as its record says."""
    set_prices({"large": Price(2.0, 20.0)})
    heard: list[Event] = []
    large = ScriptedChatModel(
        answers=["## Found and decided\n- ok"], model_name="large", usage=(900, 40)
    )
    empty = ScriptedChatModel(answers=lambda messages: "", model_name="small", usage=(1_000, 50))
    record = compact(empty, fallbacks=[large], archive="memory:", telemetry=heard.append).record
    [done] = [one for one in heard if isinstance(one, Compaction)]
    assert (done.price, done.currency) == (None, "")
    prices = {one.model: one.price for one in done.models}
    assert prices == {"small": None, "large": pytest.approx((900 * 2 + 40 * 20) / 1_000_000)}
    assert "money" not in record.bill


def test_a_list_holds_prices_alone():
    with pytest.raises(PolicyError, match="the price of 'm' must be a Price"):
        PriceList({"m": 3}, "a page")  # type: ignore[dict-item]


def test_a_record_without_calls_costs_no_money():
    """A bill without money is one of an unknown price."""
    set_prices({"small": Price(1.0, 10.0)})
    record = compact(archive="memory:").record
    assert (record.bill["money"], record.bill["currency"]) == (0.0, "USD")


def test_records_are_the_same_whatever_they_took():
    record = compact(archive="memory:").record
    data = record.to_json()
    slow = Record.from_json({**data, "bill": {"seconds": 9.0, "waited": 9.0}})
    assert slow == record
    parts = {k: v for k, v in vars_of(slow).items() if k != "id"}
    assert Record.make(**parts).id == record.id
    del data["bill"]
    assert Record.from_json(data).bill == {}  # as earlier versions wrote it
    with pytest.raises(TypeError):
        Record.from_json({**data, "bill": "9 seconds"})


def vars_of(record: Record) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def test_openai_tells_writes_as_a_whole():
    model = ScriptedChatModel(
        answers=[reporting(input_token_details={"cache_read": 0, "cache_creation": 900})]
    )
    cost = compact(model).cost
    assert (cost.written_tokens, cost.hour_tokens) == (900, 0)


def test_two_models_stand_apart_and_a_missing_price_leaves_the_bill_open():
    heard: list[Event] = []
    set_prices({"large": Price(1.0, 1.0)})
    cost = compact(
        ScriptedChatModel(answers=["", ""], model_name="small"),
        fallbacks=[ScriptedChatModel(answers=[reporting()], model_name="large")],
        telemetry=heard.append,
    ).cost
    assert set(cost.models) == {"small", "large"}
    assert cost.models["large"] == Cost(1, 1_000, 50)
    assert sum(one.calls for one in cost.models.values()) == cost.calls
    [done] = [one for one in heard if isinstance(one, Compaction)]
    assert {one.model: one.price is None for one in done.models} == {"small": True, "large": False}
    assert price_of(cost, {"large": Price(1.0, 1.0)}) is None


def test_a_record_without_models_has_no_price_unless_it_asked_none():
    assert price_of(Cost(), {}) == 0.0
    assert price_of(Cost(1, 80, 20), known_prices()) is None


def test_models_come_back_from_records_and_nonsense_is_no_record():
    cost = Cost(1, 80, 20, written_tokens=7).asked_of("small")
    parts: dict[str, Any] = {k: v for k, v in OLD.items() if k not in ("v", "id", "cost")}
    parts |= {"covers": ("k1",), "clips": ()}
    record = Record.make(**parts, cost=cost)
    assert Record.from_json(record.to_json()).cost.models == cost.models
    bare = Record.make(**parts, cost=Cost(1, 80, 20)).to_json()
    assert bare["cost"] == {"calls": 1, "input_tokens": 80, "output_tokens": 20}
    for wrong in (["small"], {"small": 3}, {"small": {"calls": "many"}}):
        with pytest.raises(TypeError):
            Record.from_json({**bare, "cost": {**bare["cost"], "models": wrong}})


def test_a_compaction_that_is_not_waited_for_can_say_so():
    heard: list[Event] = []
    hub.add(heard.append)
    with hub.observing(Compaction) as seen:
        seen.tell(waited=0.0)
    assert [one.waited for one in heard if isinstance(one, Compaction)] == [0.0]


def test_the_page_shows_the_table_as_it_is():
    page = (Path(__file__).resolve().parents[1] / "docs" / "bill.md").read_text(encoding="utf-8")

    def cell(value: float | None) -> str:
        return "" if value is None else f"{value:g}"

    for name, price in known_prices().items():
        parts = (price.input, price.cached, price.written, price.written_hour, price.output)
        assert f"| `{name}` | {' | '.join(map(cell, parts))} |" in page
    assert price_lists.READ_ON in page
    assert all(source in page for source in price_lists.ROWS)
