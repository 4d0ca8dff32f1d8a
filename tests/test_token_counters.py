"""A caller's counter that takes only what a provider takes, or fails, ends no agent."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime

from conspectus import Compactor, SummarizationMiddleware
from conspectus.errors import PolicyError

Messages = list[AnyMessage]


def turn(n: int) -> Messages:
    call = {"name": "look", "args": {"name": f"m{n}"}, "id": f"c{n}"}
    return [
        HumanMessage(f"Look at module {n}.", id=f"h{n}"),
        AIMessage("Looking.", tool_calls=[call], id=f"a{n}"),
        ToolMessage(f"module {n} " + "pass " * 40, tool_call_id=f"c{n}", id=f"t{n}"),
        AIMessage("It passes.", id=f"b{n}"),
    ]


HISTORY = [SystemMessage("Be careful.", id="s"), *(m for n in range(8) for m in turn(n))]


def size(messages: Messages) -> int:
    parts = [f"{m.text}{getattr(m, 'tool_calls', '')}" for m in messages]
    return sum(10 + len(part) for part in parts)


def result_behind_its_call(messages: Messages) -> bool:
    known: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id not in known:
            return False
        known |= {str(call["id"]) for call in getattr(message, "tool_calls", ())}
    return True


def calls_answered(messages: Messages) -> bool:
    calls = [str(c["id"]) for m in messages for c in getattr(m, "tool_calls", ())]
    return calls == [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]


def user_first(messages: Messages) -> bool:
    rest = [m for m in messages if not isinstance(m, SystemMessage)]
    return bool(rest) and isinstance(rest[0], HumanMessage)


def strict(*rules: Callable[[Messages], bool]) -> Callable[[Any], int]:
    def count(messages: Any) -> int:
        if not all(rule(messages) for rule in rules):
            raise ValueError("400: no valid request")
        return size(messages)

    return count


COUNTERS = {
    "results behind calls": strict(result_behind_its_call),
    "calls answered": strict(result_behind_its_call, calls_answered),
    "user first": strict(result_behind_its_call, user_first),
    "all": strict(result_behind_its_call, calls_answered, user_first),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_that_takes_legal_histories_only(name, caplog):
    whole = size(HISTORY)
    for trigger, due in ((whole + 200, False), (whole - 200, True)):
        own = SummarizationMiddleware(
            None,
            trigger=("tokens", trigger),
            keep=("messages", 4),
            token_counter=COUNTERS[name],
        )
        update = own.before_model({"messages": list(HISTORY)}, Runtime())
        assert (update is not None) is due
    assert "token_counter" not in caplog.text
    result = Compactor(
        token_counter=COUNTERS[name], trigger=("tokens", whole - 200), keep=("messages", 4)
    ).compact(HISTORY, thread_id="t")
    assert result.outcome == "compacted"
    assert whole - 200 <= result.tokens_before <= whole + 200


def test_a_counter_that_fails_is_said_once_and_the_estimate_counts(caplog):
    def down(messages: Any) -> int:
        raise ConnectionError("connection refused")

    own = SummarizationMiddleware(None, trigger=("tokens", 200), keep=("messages", 4))
    own.token_counter = down
    with caplog.at_level(logging.WARNING):
        update = own.before_model({"messages": list(HISTORY)}, Runtime())
    assert update is not None
    assert len(update["messages"]) < len(HISTORY)
    said = [r for r in caplog.records if "connection refused" in r.getMessage()]
    assert 1 <= len(said) <= 2, "once for the trigger, once for the window"


@pytest.mark.parametrize("count", ["12", -1, None, True, float("nan")])
def test_a_counter_that_returns_no_number_is_an_error(count):
    with pytest.raises(PolicyError, match="whole number of tokens"):
        SummarizationMiddleware(None, trigger=("tokens", 9), token_counter=lambda _: count)
