"""Both libraries on the same histories: wherever LangMem's result is valid, ours is the same."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langmem import short_term as theirs

from conspectus import short_term as ours
from short_term_support import (
    SUMMARY_TEXT,
    PlainModel,
    count,
    histories,
    human,
    pairing_faults,
    summarise,
    summarised,
    valid_answer,
    words_of,
)
from stateful.budgets import few

LIMITS = st.fixed_dictionaries(
    {
        "max_tokens": st.integers(60, 400),
        "max_tokens_before_summary": st.one_of(st.none(), st.integers(20, 600)),
        "max_summary_tokens": st.integers(20, 50),
    }
)
PROMPTS = {
    "initial_summary_prompt": theirs.summarization.DEFAULT_INITIAL_SUMMARY_PROMPT,
    "existing_summary_prompt": theirs.summarization.DEFAULT_EXISTING_SUMMARY_PROMPT,
    "final_prompt": theirs.summarization.DEFAULT_FINAL_SUMMARY_PROMPT,
}
SEEN: Counter[str] = Counter()


def answer_of(
    library: Any, messages: list[AnyMessage], running: Any, limits: dict[str, Any]
) -> tuple[Any, PlainModel]:
    model = PlainModel()
    if library is ours:
        limits = {**limits, "check_summaries": False}
    return summarise(library, messages, running, model=model, **limits, **PROMPTS), model


def state_of(running: Any) -> Any:
    return None if running is None else (running.summary, running.summarized_message_ids)


@pytest.mark.slow
@settings(max_examples=few(250), deadline=None)
@given(histories(), LIMITS, st.integers(1, 4))
def test_the_result_is_langmems_wherever_that_is_valid(messages, limits, calls):
    """Over several calls on a growing history, each library with the state of its own."""
    running_summaries: dict[Any, Any] = {theirs: None, ours: None}
    for step in range(calls):
        try:
            expected, model = answer_of(theirs, messages, running_summaries[theirs], limits)
        except ValueError:
            SEEN["LangMem raised"] += 1
            return
        our_result, our_model = answer_of(ours, messages, running_summaries[ours], limits)
        summarised_before = summarised(running_summaries[theirs])
        if not valid_answer(messages, expected, limits, model, summarised_before):
            SEEN["LangMem's was not valid"] += 1
            return
        assert words_of(our_result.messages) == words_of(expected.messages)
        assert state_of(our_result.running_summary) == state_of(expected.running_summary)
        assert bool(our_model.calls) == bool(model.calls)
        if model.calls:
            # LangMem sends more than its own limit where trimming leaves nothing; we ask twice.
            # It puts results of parallel calls in the order of the calls, we as they came.
            if len(our_model.calls) == 1:
                our_prompt = [without_length(message) for message in our_model.calls[0]]
                assert sorted(map(repr, words_of(our_prompt))) == sorted(
                    map(repr, words_of(model.calls[0]))
                )
            assert (
                our_result.running_summary.last_summarized_message_id
                == expected.running_summary.last_summarized_message_id
            )
        SEEN["same, with a summary" if model.calls else "same, without a call"] += 1
        running_summaries = {theirs: expected.running_summary, ours: our_result.running_summary}
        next_turn = [AIMessage("done " * 25, id=f"more-a{step}"), human(f"more-h{step}", 25)]
        messages = [*messages, *next_turn]


def without_length(message: Any) -> Any:
    """A message of a prompt without the length that ours names, where a limit is set."""
    content = str(message.content).partition("\n\nWrite at most ")[0]
    return message.model_copy(update={"content": content})


@settings(max_examples=few(100), deadline=None)
@given(histories(), LIMITS, st.integers(1, 5))
def test_ours_is_always_valid(messages, limits, calls):
    """Calls stay with their results, the newest question and the last message stay, all is read.

    What was summarised is below its limit wherever what must stay leaves room for it.
    """
    running: Any = None
    read: dict[str, str] = {}
    for step in range(calls):
        our_result, model = answer_of(ours, messages, running, limits)
        running = our_result.running_summary
        read |= model.read
        shown = [m for m in our_result.messages if m.id is not None]
        kept_ids = {m.id for m in shown}
        newest = next((m.id for m in reversed(messages) if isinstance(m, HumanMessage)), None)
        assert not pairing_faults(shown)
        assert newest in kept_ids
        assert messages[-1].id in kept_ids
        gone_messages = [m for m in messages if m.id not in kept_ids]
        assert {m.id for m in gone_messages} == (
            running.summarized_message_ids if running else set()
        )
        assert all(read.get(str(m.id)) == m.content for m in gone_messages)
        if running:
            assert running.summary in "\n".join(str(m.content) for m in our_result.messages)
            assert all(m in messages for m in shown)
        messages = [*messages, AIMessage("done " * 25, id=f"more-a{step}"), human(f"m-h{step}", 25)]


def test_the_signatures_are_langmems_and_a_few_more_keywords():
    import inspect

    for name in ("summarize_messages", "asummarize_messages", "SummarizationNode"):
        their_parameters = inspect.signature(getattr(theirs, name)).parameters
        our_parameters = inspect.signature(getattr(ours, name)).parameters
        assert list(our_parameters)[: len(their_parameters)][:1] == list(their_parameters)[:1]
        our_keywords = {"archive", "thread_id", "on_failure", "redact", "alternate_roles"}
        our_keywords |= {"check_summaries"}
        assert set(our_parameters) - set(their_parameters) <= our_keywords
        assert set(their_parameters) <= set(our_parameters)
        for parameter, theirs_of_name in their_parameters.items():
            assert our_parameters[parameter].kind == theirs_of_name.kind
            if not parameter.endswith("_prompt"):
                assert our_parameters[parameter].default == theirs_of_name.default, parameter
    assert our_parameters["token_counter"].default is count


def test_the_templates_have_langmems_slots_and_roles():
    names = [name for name in dir(ours) if name.startswith("DEFAULT_")]
    assert names == [n for n in dir(theirs.summarization) if n.startswith("DEFAULT_")]
    for name in names:
        theirs_of_name = getattr(theirs.summarization, name)
        ours_of_name = getattr(ours, name)
        assert set(ours_of_name.input_variables) == set(theirs_of_name.input_variables)
        assert set(ours_of_name.optional_variables) == set(theirs_of_name.optional_variables)
        assert [type(m) for m in ours_of_name.messages] == [
            type(m) for m in theirs_of_name.messages
        ]
        assert ours_of_name.pretty_repr() != theirs_of_name.pretty_repr()
    for name in ("RunningSummary", "SummarizationResult"):
        theirs_of_name, ours_of_name = (
            getattr(library, name).__dataclass_fields__ for library in (theirs, ours)
        )
        assert ours_of_name.keys() == theirs_of_name.keys()


def test_langmems_own_running_summary_and_summary_message_are_taken_over():
    messages: list[AnyMessage] = [human("1", 40), AIMessage("so " * 40, id="2"), human("3")]
    limits: dict[str, Any] = {"max_tokens": 100, "max_summary_tokens": 40}
    their_result, _ = answer_of(theirs, messages, None, limits)
    assert their_result.running_summary is not None
    our_result, model = answer_of(ours, messages, their_result.running_summary, limits)
    # What the user said last stays, though LangMem has summarised it and shows its summary alone.
    assert words_of(our_result.messages[:-1]) == words_of(their_result.messages)
    assert our_result.messages[-1] is messages[-1]
    assert not model.calls
    assert our_result.running_summary.summary == SUMMARY_TEXT
