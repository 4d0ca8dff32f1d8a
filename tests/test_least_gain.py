"""Below the window what frees too little is not made; a trigger out of reach is told, once."""

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime

from conspectus import Compactor, PolicyError, SummarizationMiddleware
from conspectus.config import create_summarization_middleware, load_config
from conspectus.core.items import Compact, Item, Keep, Stuck, Window
from conspectus.core.plan import plan
from conspectus.core.policy import Policy
from conspectus_lab.commands.config_explain import replayed
from engine import Scripted, compacted, engine, short
from scripted_models import ScriptedChatModel

PRESET = Path(__file__).parents[1] / "examples" / "config" / "minimal.yaml"


def talk(turns: int) -> list[dict[str, Any]]:
    """A question and a long answer, again and again."""
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        points = " ".join(f"point {n}.{k}" for k in range(40))
        found = " ".join(f"finding {n}-{k} stands" for k in range(60))
        messages.append({"role": "user", "content": f"Go on with module {n}: {points}"})
        messages.append({"role": "assistant", "content": f"Module {n}: {found}"})
    return messages


def items(count: int, tokens: int) -> list[Item]:
    return [Item(f"k{n}", "user" if n % 2 == 0 else "assistant", tokens) for n in range(count)]


def test_the_minimal_preset_pays_for_no_summary_that_frees_next_to_nothing():
    [found] = replayed(load_config(PRESET), "talk", talk(18), None).runs
    assert found.compactions
    assert all(one.after < 0.95 * one.before for one in found.compactions)


def test_one_message_of_many_is_not_summarised_below_the_window():
    policy = Policy.build(trigger=("tokens", 4_000), keep=("messages", 20))
    found = plan(items(21, 300), policy)
    assert isinstance(found, Keep)
    assert "630 tokens that least_gain asks for" in found.reason
    roomy = plan(items(21, 300), policy, Window(15_000))
    assert isinstance(roomy, Keep)
    assert "630 tokens" in roomy.reason


def test_what_leaves_with_the_least_gain_is_summarised():
    policy = Policy.build(trigger=("tokens", 4_000), keep=("messages", 20))
    found = plan(items(24, 300), policy)
    assert isinstance(found, Compact)
    assert found.tokens - found.at_most >= 720
    assert found.summary_tokens >= 300


def test_over_the_window_and_by_force_any_gain_counts():
    policy = Policy.build(trigger=("tokens", 4_000), keep=("messages", 20))
    assert isinstance(plan(items(21, 300), policy, force=True), Compact)
    assert isinstance(plan(items(21, 300), policy, Window(9_000), force=True), Compact)
    tight = [Item("u", "user", 290), *items(20, 300)[1:], Item("p", "user", 300)]
    over = plan(tight, policy, Window(sum(item.tokens for item in tight) - 1))
    assert isinstance(over, Compact)


def test_a_trigger_of_messages_asks_for_fewer_messages():
    policy = Policy.build(trigger=("messages", 21), keep=("messages", 20))
    assert isinstance(plan(items(21, 300), policy), Keep)
    found = plan(items(24, 300), policy)
    assert isinstance(found, Compact)
    assert found.at_most < found.tokens


def test_a_tiny_history_is_compacted_as_asked():
    policy = Policy.build(trigger=("tokens", 40), keep=("messages", 1))
    assert isinstance(plan(items(5, 10), policy), Compact)


def test_nothing_is_asked_where_the_setting_is_nothing():
    policy = Policy.build(trigger=("tokens", 4_000), keep=("messages", 20), least_gain=0)
    assert isinstance(plan(items(21, 300), policy), Compact)


@pytest.mark.parametrize("wrong", [-0.1, 1, 10, True, "0.1", None])
def test_a_share_that_means_nothing_is_refused(wrong):
    for build in (Compactor, lambda **given: SummarizationMiddleware(None, **given)):
        with pytest.raises(PolicyError, match="least_gain"):
            build(least_gain=wrong)


def test_the_setting_is_there_on_every_way_in():
    said = [
        HumanMessage(m["content"]) if m["role"] == "user" else AIMessage(m["content"])
        for m in talk(11)
    ]
    model = ScriptedChatModel(answers=lambda messages: "## Goal\n- Modules.")
    for wanted, made in (
        (False, create_summarization_middleware(load_config(PRESET), model=model)),
        (True, SummarizationMiddleware(None, trigger=("tokens", 4_000), least_gain=0)),
        (False, SummarizationMiddleware(None, trigger=("tokens", 4_000))),
    ):
        update = made.before_model({"messages": said}, Runtime())
        assert bool(update and "messages" in update) == wanted
    for share, outcome in ((0, "compacted"), (0.1, "kept")):
        compactor = engine(
            window=90_000, trigger=("tokens", 4_000), keep=("messages", 20), least_gain=share
        )
        assert compacted(talk(11), compactor).outcome == outcome


def test_a_trigger_out_of_reach_is_told_once_with_the_numbers(caplog):
    scripted = Scripted(short)
    compactor = engine(
        scripted, window=90_000, trigger=("tokens", 1_500), keep=("messages", 20), clip_over=None
    )
    with caplog.at_level(logging.WARNING, "conspectus"):
        for turns in range(11, 19):
            compacted(talk(turns), compactor)
    told = [one.getMessage() for one in caplog.records if "lies below" in one.getMessage()]
    assert len(told) == 1
    assert "trigger of 1,500 tokens" in told[0]
    assert "20 messages that stay" in told[0]
    assert scripted.requests


def test_a_trigger_within_reach_is_not_complained_of(caplog):
    compactor = engine(window=90_000, trigger=("tokens", 6_000), keep=("messages", 4))
    with caplog.at_level(logging.WARNING, "conspectus"):
        for turns in range(4, 19):
            compacted(talk(turns), compactor)
    assert "lies below" not in caplog.text


def test_a_plan_that_is_stuck_complains_of_no_trigger():
    policy = Policy.build(trigger=("tokens", 40), keep=("messages", 1))
    assert isinstance(plan([Item("u", "user", 900)], policy, Window(100), clip=False), Stuck)
