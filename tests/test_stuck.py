"""A newest message that alone does not fit: what may leave leaves, and the numbers are said."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver

from compactor_support import Scripted
from conspectus import Compactor, ContextGuard, StuckError, SummarizationMiddleware
from histories import talk
from odd_counters import COUNTERS
from scripted_models import ScriptedChatModel

TALK: list[Any] = [
    (AIMessage if n % 2 else HumanMessage)(f"{n} " + "word " * 60, id=f"m{n}") for n in range(20)
]
GIANT = HumanMessage("number 12345 and so on. " * 900, id="giant")
RULES = SystemMessage("Rules to follow. " * 2_000, id="rules")


def test_what_may_leave_leaves_although_the_rest_does_not_fit():
    compactor = Compactor(window=4_000, alternate_roles="off")
    result = compactor.compact([*TALK, GIANT], thread_id="t")
    assert (result.outcome, result.evicted) == ("stuck", len(TALK))
    assert result.messages[-1] is GIANT
    assert result.needed is not None
    assert result.needed >= result.tokens_after > 4_000
    assert f"{4_000:,}" in result.reason
    with pytest.raises(StuckError):
        result.raise_if_stuck()


def test_what_left_a_stuck_history_is_archived_and_found():
    compactor = Compactor(window=4_000, archive="memory:")
    result = compactor.compact([RULES, *TALK], thread_id="t")
    assert (result.outcome, result.archived) == ("stuck", True)
    assert result.evicted > 15
    assert "7 word" in compactor.recall("7 word", thread_id="t").text


def test_a_stuck_history_is_not_compacted_again_without_growth():
    compactor = Compactor(summarizer=Scripted(lambda _: "- They talked."), window=4_000)
    messages: list[Any] = [RULES, *TALK]
    records = []
    for n in range(8):
        result = compactor.compact(messages, thread_id="t")
        assert result.outcome == "stuck"
        records.append(result.record_id)
        messages = [
            *messages,
            AIMessage(f"{n} done", id=f"a{n}"),
            HumanMessage(f"next {n}", id=f"n{n}"),
        ]
    assert records[0] is not None
    assert records[1:] == [None] * 7


def test_a_stuck_view_shows_what_the_user_asks():
    request = HumanMessage("Rename parse_config, and run the tests. " * 8, id="request")
    compactor = Compactor(window=4_000, archive="memory:", alternate_roles="off")
    result = compactor.compact([RULES, *TALK, request], thread_id="t")
    assert result.outcome == "stuck"
    assert result.messages[-1] is request


def test_a_view_by_an_odd_counter_shows_part_of_the_request():
    """By arithmetic over single messages this one would never fit."""
    counter = COUNTERS["superadditive"]
    rules = {"role": "system", "content": "Rule. " * 325}
    request = {"role": "user", "content": "Rename parse_config. " * 19}
    compactor = Compactor(
        window=1_500, archive="memory:", token_counter=counter, alternate_roles="off"
    )
    result = compactor.compact([rules, *talk(6, 60), request], thread_id="t")
    assert (result.outcome, result.clipped) == ("compacted", 1)
    assert result.messages[-1]["content"].startswith("Rename parse_config.")
    assert counter(result.messages) <= 1_500


def test_a_giant_that_may_leave_leaves_at_once():
    compactor = Compactor(window=4_000)
    messages = [*TALK, GIANT]
    assert compactor.compact(messages, thread_id="t").outcome == "stuck"
    messages += [AIMessage("I see.", id="a"), HumanMessage("Go on.", id="b")]
    result = compactor.compact(messages, thread_id="t")
    assert result.outcome == "compacted"
    assert result.tokens_after <= 4_000


@pytest.mark.parametrize("trigger", [3_000, 100_000])
def test_the_guard_sends_the_smallest_view_that_is_legal(trigger):
    model = ScriptedChatModel(answers=["Here you are."])
    middleware = SummarizationMiddleware(None, trigger=("tokens", trigger))
    guard = ContextGuard(middleware, window=4_000, on_stuck="send")
    agent = create_agent(model, middleware=[middleware, guard], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [*TALK, GIANT]}, config)
    giant_tokens = count_tokens_approximately([GIANT])
    sent_tokens = count_tokens_approximately(model.calls[-1].messages)
    assert giant_tokens <= sent_tokens <= giant_tokens + 600


def test_the_guard_raises_where_it_is_not_to_send():
    model = ScriptedChatModel(answers=["never"])
    middleware = SummarizationMiddleware(None, trigger=("tokens", 3_000))
    agent = create_agent(model, middleware=[middleware, ContextGuard(middleware, window=4_000)])
    with pytest.raises(StuckError) as raised:
        agent.invoke({"messages": [*TALK, GIANT]})
    assert raised.value.needed > raised.value.budget == 4_000
    assert not model.calls
