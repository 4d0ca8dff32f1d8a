"""The bill of a replayed session: told from its requests, the same for all policies."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from conspectus import PolicyError
from conspectus.core.records import Cost
from conspectus.observe import Price, prices
from conspectus_lab.billing import Bill, Block, Till, block_of, summed
from conspectus_lab.replay import replay
from scripted_models import ScriptedChatModel

MODELS = ("claude-sonnet-5-5", "gpt-5.4", "gpt-6.1-sol", "gemini-3.1-pro-preview")


def talk(turns: int = 30, words: int = 120) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "system", "content": "You look at modules. " * 100}]
    for n in range(turns):
        said.append({"role": "user", "content": f"Look at module_{n}.py. " + "Look well. " * words})
        said.append({"role": "assistant", "content": f"module_{n}.py is fine. " * 8})
    return said


def test_a_session_is_the_sum_of_its_requests_by_hand():
    """Two requests at Anthropic: written once, then read, and only what is new is written."""
    till = Till("claude-sonnet-4-5")
    first = [Block("tools", 1_000, run="tools"), Block("system", 500, run="system")]
    till.request([*first, Block("hello", 100)], output=50, at=0.0, waited=0.5)
    till.request(
        [*first, Block("hello", 100), Block("hi", 50), Block("go on", 10)],
        output=20,
        at=100.0,
        waited=0.25,
    )
    bill = till.bill()
    money = 3.75 * 1_600 + 15 * 50 + 0.3 * 1_600 + 3.75 * 60 + 15 * 20
    assert bill.money == pytest.approx(money / 1_000_000)
    assert (bill.requests, bill.input_tokens, bill.cached_tokens) == (2, 3_260, 1_600)
    assert (bill.written_tokens, bill.output_tokens, bill.waited) == (1_660, 70, 0.75)
    assert bill.cached_share == pytest.approx(1_600 / 3_260)


def test_the_summariser_is_paid_at_its_own_price_or_the_agents():
    prices = {"large": Price(10.0, 10.0), "small": Price(1.0, 2.0)}
    till = Till("large", prices)
    till.summarizer(Cost(1, 1_000_000, 100_000).asked_of("small"))
    assert till.bill().summarizer_money == till.bill().money == pytest.approx(1.2)
    till.summarizer(Cost(1, 1_000_000, 100_000).asked_of("unheard-of"))
    assert till.bill().summarizer_money == pytest.approx(1.2 + 11.0)
    assert till.bill().summarizer.calls == 2


def test_the_summariser_is_paid_at_its_known_price_where_nobody_gives_prices():
    till = Till("claude-sonnet-5-5")
    till.summarizer(Cost(1, 1_000_000, 100_000).asked_of("gpt-5-mini"))
    assert till.bill().money == pytest.approx(0.25 + 0.2)
    till.summarizer(Cost(1, 100_000).asked_of("gpt-6.1-sol"))  # written, as its provider does
    assert till.bill().money == pytest.approx(0.25 + 0.2 + 0.25)
    assert till.bill().summarizer.written_tokens == 100_000


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"prices": {"m": 3}, "priced_as": "m"}, r"the price of 'm' must be a Price\(input"),
        ({"prices": "cheap", "priced_as": "m"}, "prices stand by model"),
        ({"priced_as": ["unheard-of"]}, "no price is known for 'unheard-of'"),
    ],
)
def test_what_is_no_price_is_refused_before_anything_runs(settings, told):
    with pytest.raises(PolicyError, match=told):
        replay(talk(2), **settings)


def test_an_unknown_model_is_named_those_of_nearly_its_name():
    with pytest.raises(PolicyError, match="such as large, or give prices of your own"):
        Till("larg", {"large": Price(1.0, 1.0)})


def test_without_known_prices_a_replay_has_no_bill(monkeypatch):
    monkeypatch.setattr(prices, "_listed", lambda: None)
    assert replay(talk(2), policies="none").runs[0].bills == ()


def test_messages_are_compared_by_all_but_their_ids():
    call = {"name": "look", "args": {"at": "a.py"}, "id": "c1", "type": "tool_call"}
    asked = AIMessage("", tool_calls=[call], id="m1")
    assert block_of(asked, 5) == block_of(asked.model_copy(update={"id": "m9"}), 5)
    other = AIMessage("", tool_calls=[{**call, "args": {"at": "b.py"}}])  # type: ignore[list-item]
    assert block_of(asked, 5) != block_of(other, 5)
    assert block_of(HumanMessage("x"), 5) != block_of(ToolMessage("x", tool_call_id="c1"), 5)


def test_without_compaction_costs_what_the_policy_without_compaction_costs():
    found = replay(talk(12), window=2_500, policies=["none"], priced_as=MODELS)
    [run] = found.runs
    assert run.bills == found.without
    assert [bill.model for bill in found.without] == list(MODELS)
    assert run.bills[0].requests == len(run.steps) == 12
    assert run.bills[0].input_tokens == run.totals["sent_tokens"]
    assert 0 < run.totals["waited_seconds"] == pytest.approx(run.bills[0].waited)


@pytest.mark.slow
def test_the_summarisers_calls_are_on_the_bill_of_each_policy():
    usage = (5_000, 100)
    models = [
        ScriptedChatModel(answers=lambda messages: "Modules seen. " * 8, usage=usage) for _ in "ab"
    ]
    prices = {"m": Price(1.0, 10.0)}
    for policy, model in zip(("langchain", "conspectus"), models, strict=True):
        found = replay(
            talk(16),
            window=3_500,
            summarizer=model,
            policies=[policy],
            priced_as=["m"],
            prices=prices,
        )
        [run] = found.runs
        [bill] = run.bills
        assert bill.summarizer.calls == len(model.calls) > 0
        each = (5_000 * 1.0 + 100 * 10.0) / 1_000_000
        assert bill.summarizer_money == pytest.approx(each * len(model.calls))
        agent = bill.money - bill.summarizer_money
        assert agent == pytest.approx((bill.input_tokens + bill.output_tokens * 10) / 1_000_000)


def test_bills_are_plain_data_and_add_up():
    found = replay(talk(6), policies=["none"], priced_as=MODELS[:2])
    data = json.loads(json.dumps(found.to_json()))
    [bill, other] = data["runs"][0]["bills"]
    assert (bill["model"], bill["currency"]) == (MODELS[0], "USD")
    assert bill["cached_share"] == pytest.approx(found.runs[0].bills[0].cached_share)
    assert data["without"][1]["money"] == other["money"]
    both = summed([found.without, found.without])
    assert [one.money for one in both] == [pytest.approx(2 * one.money) for one in found.without]
    assert summed([(), ()]) == []
    assert Bill("m").cached_share is None
