"""Promise 4: after a compaction the messages fit, or the answer is stuck with the numbers."""

import json
import random
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages.utils import count_tokens_approximately

from conspectus import Compactor, StuckError, SummaryError
from conspectus.engine import material
from conspectus.tokens import TokenMeter
from engine import Scripted, compacted, engine, short
from histories import agent, histories, talk, tool, user
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.oracle import calls_of, plain, text_of


@given(
    histories(broken=True),
    st.integers(1, 3_000),
    st.sampled_from([None, count_tokens_approximately]),
    st.booleans(),
    st.booleans(),
)
def test_the_result_fits_or_says_with_numbers_why_not(messages, window, counter, archived, force):
    more = {} if archived else {"archive": None}
    compactor = engine(window=window, token_counter=counter, **more)
    result = compacted(messages, compactor, force=force)
    measured = TokenMeter(counter).messages(result.messages)
    assert measured == result.tokens_after
    if result.outcome == "stuck":
        assert result.tokens_after > window
        assert f"{window:,}" in result.reason
    else:
        assert measured <= window


@pytest.mark.sampled(1)
@pytest.mark.parametrize("window", [700, 1_500, 6_000])
def test_one_giant_message_is_clipped_with_a_pointer(window):
    for messages in (
        [user("x " * 50_000)],
        [*agent(2), user("y " * 50_000)],
        [*agent(3)[:-1], tool("c2", "z " * 50_000)],
    ):
        compactor = engine(window=window)
        result = compacted(messages, compactor)
        assert result.outcome == "compacted"
        assert result.tokens_after <= window
        assert "original archived as" in str(result.messages)


def test_a_clip_that_comes_out_larger_than_planned_does_not_take_effect(monkeypatch):
    monkeypatch.setattr(material, "clipped", lambda item, *_: item)
    messages = [user("x " * 50_000)]
    result = compacted(messages, engine(window=700))
    assert (result.outcome, result.failed, result.messages) == ("stuck", "summary", messages)
    assert "with messages truncated" in result.reason


def test_without_an_archive_a_giant_is_stuck_and_the_way_out_is_named():
    result = compacted([user("x " * 50_000)], engine(window=1_000, archive=None))
    assert result.outcome == "stuck"
    assert "with an archive" in result.reason


def test_a_system_message_larger_than_the_window_is_stuck():
    messages = [{"role": "system", "content": "rule " * 5_000}, *talk(3)]
    result = compacted(messages, engine(window=2_000))
    assert result.outcome == "stuck"
    assert result.messages == messages


def test_reserved_tokens_are_not_given_to_messages():
    result = compacted(talk(60), engine(window=4_000, reserved_tokens=1_500))
    assert result.budget == 2_500
    assert result.tokens_after <= 2_500


def test_a_keep_above_its_trigger_is_warned_about_and_does_not_loop():
    scripted = Scripted(short)
    with pytest.warns(UserWarning, match="Lower keep or raise trigger"):
        compactor = engine(scripted, trigger=("messages", 10), keep=("messages", 20))
    history = talk(30)
    for turn in talk(10):
        history = [*compacted(history, compactor).messages, turn]
    assert len(scripted.requests) < 10


def test_a_failure_that_is_raised_is_not_tried_again_without_growth():
    scripted = Scripted(lambda _: "")
    compactor = engine(scripted, trigger=("messages", 30), on_failure="raise")
    with pytest.raises(SummaryError):
        compacted(talk(20), compactor)
    assert compacted(talk(20), compactor).outcome == "kept"
    assert len(scripted.requests) == 1


def test_without_a_summary_a_history_over_the_window_is_stuck_and_says_so():
    compactor = engine(Scripted(lambda _: ""), window=3_000, on_failure="keep")
    result = compacted(talk(60), compactor)
    assert (result.outcome, result.failed) == ("stuck", "summary")
    assert result.messages == talk(60)


@pytest.mark.parametrize("seed", [1134, 1207])
def test_it_holds_where_what_replaces_a_secret_is_longer(seed):
    draw = random.Random(seed)
    window = draw.choice([300, 600, 1500, 4000])
    messages = []
    for n in range(draw.randint(2, 25)):
        secret = f"ask {n} sk-{'a1B2c3D4' * 6} "
        messages.append({"role": "user", "content": secret * draw.randint(1, 40)})
        if draw.random() < 0.7:
            path = json.dumps({"path": "p" * draw.randint(1, 900)}, separators=(",", ":"))
            function = {"name": "read_file", "arguments": path}
            call = {"id": f"c{n}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            text = "line of result\n" * draw.randint(1, 400)
            messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    archive = draw.choice(["memory:", None])
    keep = draw.choice([("messages", 2), ("messages", 20), ("tokens", 100)])
    compactor = Compactor(
        window=window,
        archive=archive,
        keep=keep,
        redact=lambda text: text.replace("sk-", "[a much longer placeholder for a secret] "),
    )
    result = compactor.compact(messages, thread_id="t")
    assert result.outcome == "compacted"
    assert result.tokens_after <= window


def naive_count(messages: Any) -> int:
    """Tokens as a child would count them: by characters."""
    return sum(4 + (len(text_of(m)) + 20 * len(calls_of(m))) // 3 for m in messages)


class BudgetHolds:
    def judge(self, look: Look) -> None:
        if look.error is None and look.budget is not None:
            size = naive_count(look.shown)
            if look.outcome == "stuck":
                after, needed = look.numbers
                assert size > look.budget
                assert after == size
                assert needed is None or needed > look.budget or look.failed
            else:
                assert size <= look.budget
        if look.asked_again and not look.forced and look.error is None:
            assert look.calls == 0, "summarised again although nothing was said"
            assert not look.committed
            assert [plain(message) for message in look.shown] == look.came


class BudgetHoldsCompactor(BudgetHolds, CompactorWorld):
    settings_of: ClassVar = {"token_counter": naive_count}
    forms = ("langchain",)


TestBudgetHoldsThroughCompactor = budgeted(BudgetHoldsCompactor, short=7, long=600)


class BudgetHoldsAgent(AgentWorld):
    settings_of: ClassVar = {"token_counter": naive_count}

    def judge(self, look: Look) -> None:
        if look.budget is not None:
            assert naive_count(look.shown) <= look.budget
        before, after = look.records
        assert len(after) - len(before) <= 2 * len(self.asked), "compacted over and over"

    def ends(
        self, channel: list[Any], reach: list[Any], error: BaseException | None, trouble: bool
    ) -> None:
        if isinstance(error, StuckError):
            assert error.needed > error.budget - 100 > 0
            assert naive_count(self.at.whole) > 0


TestBudgetHoldsThroughAgents = budgeted(BudgetHoldsAgent, short=2, long=100)
