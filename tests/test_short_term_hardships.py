"""Summarisers that fail in every way, odd histories, odd settings: nothing lost, nothing torn."""

import functools
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate

import short_term_support
from conspectus import StuckError, SummaryError
from short_term_support import (
    LIMITS,
    PlainModel,
    ai,
    count,
    human,
    ours,
    result,
    summarised,
    talk,
    torn,
)

OVERFLOW = ValueError("This model's maximum context length is 8192 tokens, you sent more")

summarise = functools.partial(short_term_support.summarise, ours)


def raising(error: Exception) -> Any:
    def answer(messages: list[Any]) -> Any:
        raise error

    return PlainModel(answer)


# Histories


def test_an_exchange_larger_than_a_reading_is_shown_as_text():
    """Providers turn a result down whose call is not in the same request."""
    messages = [human("1"), ai("2", 5, "c"), result("3", "c", 900), ai("4", 5), human("5")]
    model = PlainModel()
    found = summarise(messages, model=model)
    assert {"1", "2", "3"} <= summarised(found.running_summary)
    for call in model.calls:
        assert not torn(call)


def test_a_limit_far_below_one_message_asks_a_model_a_few_times_only():
    model = PlainModel()
    summarise(talk(30), model=model, max_tokens=8, max_summary_tokens=4)
    assert 0 < len(model.calls) <= 20


def test_unusable_ids_and_summaries_are_refused_before_anything_is_paid_for():
    model = PlainModel()
    with pytest.raises(ValueError, match="Messages are required to have ID field"):
        summarise([HumanMessage("no id"), *talk(8)], model=model)
    for wrong in ("a text", None, 3, ["a"], [{"role": "user", "content": "x"}]):
        with pytest.raises(ValueError, match="message"):
            summarise(wrong, model=model)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 messages have the ID h0"):
        summarise([*talk(8), human("h0")], model=model)
    for bad in ("a text", 3, {"summary": "x"}, {"summary": None}):
        with pytest.raises(ValueError, match="running_summary must be a RunningSummary"):
            summarise(talk(1), bad, model=model)
    assert not model.calls
    assert summarise([SystemMessage("Be brief."), *talk(1, 1)]).running_summary is None


# Settings


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_summary_tokens": 200}, "`max_summary_tokens` must be less than `max_tokens`"),
        ({"max_tokens": 0}, "max_tokens must be a whole number"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number"),
        ({"max_tokens_before_summary": -1}, "max_tokens_before_summary must be"),
        ({"model": "gpt"}, "model must be a chat model, whose method invoke"),
        ({"token_counter": 4}, "token_counter must be a callable"),
        ({"token_counter": lambda messages: "many"}, "token_counter must return a whole number"),
        ({"on_failure": "ignore"}, "on_failure must be one of"),
        ({"archive": "memory:"}, "would be gone after each call"),
        ({"archive": 3, "thread_id": "t"}, "archive must be a path"),
        ({"archive": "x.db"}, "pass thread_id="),
        (
            {"final_prompt": ChatPromptTemplate([("user", "{other}")])},
            "must be a ChatPromptTemplate",
        ),
    ],
)
def test_a_setting_that_means_nothing_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        summarise(talk(8), **wrong)


# Summarisers


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "model",
    [
        raising(RuntimeError("boom")),
        raising(OVERFLOW),
        PlainModel(""),
        PlainModel(lambda m: None),
        PlainModel(lambda m: 7),
        PlainModel("I'm sorry, I cannot summarise that."),
        PlainModel("Error: rate limit"),
        PlainModel("Sure! How can I help?"),
        PlainModel("word " * 3_000),
        PlainModel(lambda m: AIMessage("half a", response_metadata={"finish_reason": "length"})),
        PlainModel(lambda m: AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}])),
    ],
    ids=lambda model: "",
)
def test_a_summariser_that_fails_never_becomes_the_summary(model):
    """It is over `max_tokens`: the embedded one takes over. Below it, the history stays."""
    messages = talk(30)
    found = summarise(messages, model=model)
    assert found.running_summary.summary.startswith("# Part 1\n## Said by the user\n")
    assert count(found.messages) <= LIMITS["max_tokens"]
    if isinstance(model, PlainModel) and len(str(model.answer)) < 40:
        return  # of a history of some 80 tokens nobody can tell what is too short
    roomy = {"max_tokens": 8_000, "max_tokens_before_summary": 100}
    assert summarise(messages, model=model, **roomy).messages == messages
    assert summarise(messages, model=model, on_failure="keep").messages == messages
    with pytest.raises((SummaryError, RuntimeError, ValueError)):
        summarise(messages, model=model, on_failure="raise")


def test_what_does_not_fit_raises_where_it_is_to():
    messages = [SystemMessage("Be brief. " * 200, id="s"), *talk(8)]
    with pytest.raises(StuckError) as caught:
        summarise(messages, on_failure="raise")
    assert caught.value.budget == 200
    assert caught.value.needed > 500
