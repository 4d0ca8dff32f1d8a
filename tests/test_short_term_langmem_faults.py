"""What LangMem 0.0.30 gets wrong, shown on it, and that it does not happen here."""

import pytest
from langchain_core.messages import AnyMessage, HumanMessage

from short_term_support import (
    BOTH,
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


def test_a_second_message_with_the_id_of_a_summarised_one_is_refused_as_there():
    messages = talk(6)
    for library in BOTH.values():
        first = summarise(library, messages).running_summary
        with pytest.raises(ValueError, match="Message with ID h0 has already been summarized"):
            summarise(library, [*messages, HumanMessage("another", id="h0")], first)
