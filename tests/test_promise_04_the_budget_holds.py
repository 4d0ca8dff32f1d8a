"""Promise 4: after a compaction the messages fit, or the answer is stuck with the numbers."""

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages.utils import count_tokens_approximately

from compactor_support import Scripted, compacted, new_compactor, short_summary
from conspectus import Compactor, StuckError, SummaryError
from conspectus.engine import clips
from conspectus.tokens import TokenMeter
from histories import agent_history, call_and_result, histories, talk, tool_result, user
from stateful.agent_world import RESERVED, AgentWorld
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
    settings = {} if archived else {"archive": None}
    compactor = new_compactor(window=window, token_counter=counter, **settings)
    result = compacted(messages, compactor, force=force)
    measured = TokenMeter(counter).count_messages(result.messages)
    assert measured == result.tokens_after
    if result.outcome == "stuck":
        assert result.tokens_after > window
        assert f"{window:,}" in result.reason
    else:
        assert measured <= window


def test_a_summary_gets_the_room_that_messages_leave():
    messages = [user(f"{n} " + "word " * 120) for n in range(60)]
    long_writer = Scripted(lambda _: "fact " * 1_800)
    result = compacted(messages, new_compactor(long_writer, window=3_000, notes=False))
    assert result.tokens_after <= 3_000
    # What is not allowed is never asked for.
    [request] = long_writer.requests
    kept = [message for message in result.messages if message in messages]
    assert request.accepted_up_to <= 3_000 - TokenMeter().count_messages(kept)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("window", [700, 1_500, 6_000])
def test_one_giant_message_is_clipped_until_it_fits(window):
    for messages in (
        [user("x " * 50_000)],
        [*agent_history(2), user("y " * 50_000)],
        [*agent_history(3)[:-1], tool_result("c2", "z " * 50_000)],
    ):
        compactor = new_compactor(window=window)
        result = compacted(messages, compactor)
        assert result.outcome == "compacted"
        assert result.tokens_after <= window
        assert "original archived as" in str(result.messages)


def test_a_clip_larger_than_planned_has_no_effect(monkeypatch):
    # A plan measures what it makes, so only a clip that is made otherwise can be too large.
    monkeypatch.setattr(clips, "clip_message", lambda message, *_, **__: message.source)
    messages = [user("x " * 50_000)]
    result = compacted(messages, new_compactor(window=700))
    assert (result.outcome, result.failed, result.messages) == ("stuck", "summary", messages)
    assert "with messages clipped" in result.reason


def check_stuck(compactor: Compactor, messages: list[Any], reason_part: str) -> None:
    """The messages are as they were, and the result says why."""
    result = compacted(messages, compactor)
    assert result.outcome == "stuck"
    assert result.messages == messages
    assert reason_part in result.reason


def test_a_giant_message_without_an_archive_is_stuck():
    compactor = new_compactor(window=1_000, archive=None)
    check_stuck(compactor, [user("x " * 50_000)], "with an archive")


def test_instructions_larger_than_the_window_are_stuck():
    instructions = {"role": "system", "content": "rule " * 5_000}
    check_stuck(new_compactor(window=2_000), [instructions, *talk(1)], "2,000")


def test_a_failed_summary_over_the_window_is_stuck():
    empty_writer = Scripted(lambda _: "")
    compactor = new_compactor(empty_writer, window=3_000, on_failure="keep")
    check_stuck(compactor, talk(60), "it is empty")


def test_reserved_tokens_are_not_given_to_messages():
    result = compacted(talk(60), new_compactor(window=4_000, reserved_tokens=1_500))
    assert result.budget == 2_500
    assert result.tokens_after <= 2_500


def test_a_keep_above_its_trigger_warns_and_does_not_loop():
    scripted = Scripted(short_summary)
    with pytest.warns(UserWarning, match="Lower keep or raise trigger"):
        compactor = new_compactor(scripted, trigger=("messages", 10), keep=("messages", 20))
    history = talk(30)
    for turn in talk(10):
        history = [*compacted(history, compactor).messages, turn]
    assert len(scripted.requests) < 10


@pytest.mark.parametrize(("size", "kept"), [(80, 20), (220, 5)])
def test_a_callers_keep_gives_way_only_without_room(size, kept):
    result = compacted(talk(60, size), new_compactor(window=8_000, keep=("messages", 20)))
    assert result.kept == kept
    assert result.tokens_after <= 0.6 * 8_000, "two fifths of the window are free"


def test_a_failure_that_is_raised_is_not_tried_again_without_growth():
    scripted = Scripted(lambda _: "")
    compactor = new_compactor(scripted, trigger=("messages", 30), on_failure="raise")
    with pytest.raises(SummaryError):
        compacted(talk(20), compactor)
    assert compacted(talk(20), compactor).outcome == "kept"
    assert len(scripted.requests) == 1


class FailingWriter:
    """A compactor, due from 15 turns on, whose summariser writes nothing."""

    def __init__(self) -> None:
        self.summarizer = Scripted(lambda _: "")
        self.compactor = new_compactor(
            self.summarizer, trigger=("messages", 30), window=100_000, on_failure="keep"
        )

    def is_asked_at(self, turns: int) -> bool:
        requests_before = len(self.summarizer.requests)
        assert compacted(talk(turns), self.compactor).outcome == "kept"
        return len(self.summarizer.requests) > requests_before


TURNS_OF_TRIES = [15, 17, 21, 28]
"""After the nth failure a history must grow 1.1**n times: from 30 messages to 33, which is
17 turns, as a turn has two; from 34 to 41.1; from 42 to 55.9."""


def test_each_failure_in_a_row_delays_the_next_try():
    writer = FailingWriter()
    assert [turns for turns in range(15, 30) if writer.is_asked_at(turns)] == TURNS_OF_TRIES


def test_failures_without_growth_delay_the_next_try_once():
    writer = FailingWriter()
    for _ in range(5):
        assert compacted(talk(14), writer.compactor, force=True).failed == "summary"
    assert [turns for turns in range(15, 30) if writer.is_asked_at(turns)] == TURNS_OF_TRIES


@pytest.mark.parametrize("window", [300, 4_000])
def test_it_holds_where_what_replaces_a_secret_is_longer(window):
    messages: list[Any] = []
    for n in range(9):
        messages.append(user(f"ask {n} sk-{'a1B2c3D4' * 6} " * 20))
        messages += call_and_result(
            "read_file", {"path": "p" * 10}, "line of result\n" * 200, f"{n}"
        )
    compactor = Compactor(
        window=window,
        archive="memory:",
        keep=("messages", 2),
        redact=lambda text: text.replace("sk-", "[a much longer placeholder for a secret] "),
    )
    result = compactor.compact(messages, thread_id="t")
    assert result.outcome == "compacted"
    assert result.tokens_after <= window


def naive_count(messages: Any) -> int:
    """Tokens as a child would count them: by characters."""
    return sum(4 + (len(text_of(m)) + 20 * len(calls_of(m))) // 3 for m in messages)


class BudgetHolds:
    """What is shown fits the window, or the result is stuck with the right numbers.

    Nothing is done twice if nothing was said in between.
    """

    def judge(self, look: Look) -> None:
        if look.error is not None:
            return
        if look.budget is not None and look.outcome == "stuck":
            self.check_stuck_has_the_right_numbers(look, look.budget)
        elif look.budget is not None:
            assert naive_count(look.shown) <= look.budget
        if look.asked_again and not look.forced:
            self.check_nothing_is_done_twice(look)

    def check_stuck_has_the_right_numbers(self, look: Look, budget: int) -> None:
        size = naive_count(look.shown)
        assert size > budget
        assert look.tokens_after == size
        assert look.needed is None or look.needed > budget or look.failed

    def check_nothing_is_done_twice(self, look: Look) -> None:
        assert look.calls == 0, "summarised again although nothing was said"
        assert not look.committed
        assert [plain(message) for message in look.shown] == look.sent_texts


class BudgetHoldsCompactor(BudgetHolds, CompactorWorld):
    settings_of: ClassVar = {"token_counter": naive_count}
    forms = ("langchain",)


TestBudgetHoldsThroughCompactor = budgeted(BudgetHoldsCompactor, short=7, long=600)


class BudgetHoldsAgent(AgentWorld):
    """No request is larger than the window without the reserved tokens; no step is repeated."""

    settings_of: ClassVar = {"token_counter": naive_count}

    def judge(self, look: Look) -> None:
        if look.budget is not None:
            assert naive_count(look.shown) <= look.budget
        new = len(look.records_after) - len(look.records_before)
        assert new <= 2 * len(self.requests), "compacted over and over"

    def judge_end(self, channel: list[Any], reach: list[Any]) -> None:
        if isinstance(self.error, StuckError):
            assert self.error.needed > self.error.budget - RESERVED > 0


TestBudgetHoldsThroughAgents = budgeted(BudgetHoldsAgent, short=2, long=100)
