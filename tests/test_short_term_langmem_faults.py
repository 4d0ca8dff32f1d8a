"""What LangMem 0.0.30 gets wrong, shown on it, and that it does not happen here."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from short_term_support import (
    BOTH,
    PlainModel,
    ai,
    count,
    human,
    ours,
    result,
    summarise,
    summarised,
    talk,
    theirs,
    torn,
)


def called_in_parallel(order: list[str]) -> list[AnyMessage]:
    """A question, one message with three calls, their results in a given order, a question."""
    results = [result(f"t-{call}", call) for call in order]
    return [human("h0", 40), ai("a0", 10, "c0", "c1", "c2"), *results, human("h1", 5)]


def test_parallel_results_in_another_order_than_their_calls():
    messages = called_in_parallel(["c2", "c0", "c1"])
    limits = {"max_tokens": 200, "max_tokens_before_summary": 75}
    first = {name: summarise(one, messages, **limits) for name, one in BOTH.items()}
    for answer in first.values():
        assert answer.running_summary is not None
    assert first["LangMem"].running_summary.last_summarized_message_id == "t-c2"
    more = [*messages, AIMessage("yes " * 10, id="a1"), human("h2", 10)]
    with pytest.raises(ValueError, match="already been summarized"):
        summarise(theirs, more, first["LangMem"].running_summary, **limits)

    again = summarise(ours, more, first["Conspectus"].running_summary, **limits)
    assert [m.id for m in again.messages if m.id] == ["h1", "a1", "h2"]


def test_a_cut_after_the_first_of_several_results():
    messages = called_in_parallel(["c0", "c1", "c2"])
    before = count(messages[:3])  # enough has gathered with the first result
    limits = {"max_tokens": 200, "max_tokens_before_summary": before}
    assert torn(summarise(theirs, messages, **limits).messages) == [
        "result t-c1 without its call",
        "result t-c2 without its call",
    ]
    found = summarise(ours, messages, **limits)
    assert not torn(found.messages)
    assert summarised(found.running_summary) == {"h0", "a0", "t-c0", "t-c1", "t-c2"}


def test_a_system_message_larger_than_the_budget():
    messages: list[Any] = [SystemMessage("Be brief. " * 64, id="s"), *talk(14)]
    assert 200 - 60 < count(messages[:1]) < 200
    model = PlainModel()
    answer = summarise(theirs, messages, model=model)
    assert not model.calls
    assert count(answer.messages) > 4 * 200
    # What must stay is more than there is, and all that may leave has left.
    found = summarise(ours, messages)
    assert [m.id for m in found.messages if m.id] == ["s", "h14"]
    assert count(found.messages) < count(messages[:1]) + count(messages[-1:]) + 60 + 20


def test_a_second_message_with_the_id_of_a_summarised_one_is_refused_as_there():
    messages = talk(6)
    for library in BOTH.values():
        first = summarise(library, messages).running_summary
        with pytest.raises(ValueError, match="Message with ID h0 has already been summarized"):
            summarise(library, [*messages, HumanMessage("another", id="h0")], first)
