"""A caller's counter counts lists, and no list need be the sum of its messages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, convert_to_messages
from langgraph.runtime import Runtime

from compactor_support import Scripted
from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.short_term import summarize_messages
from conspectus_sdk import Fitter
from histories import histories
from odd_counters import COUNTERS, Counter, Messages, by_usage, characters
from scripted_models import ScriptedChatModel


def counted(counter: Counter, messages: Messages) -> int:
    return int(counter(messages))


def check_size(result: Any, counter: Counter, window: int) -> None:
    size = counted(counter, result.messages)
    assert result.tokens_after == size
    assert result.budget == window
    if result.record is not None:
        assert result.record.tokens_after == size
    if result.outcome == "stuck":
        assert size > window
    else:
        assert size <= window


def summary_of(lines: int) -> Scripted:
    return Scripted(lambda _: "- A fact about the module and its settings.\n" * lines)


@pytest.mark.parametrize("name", COUNTERS)
@given(
    histories(broken=True),
    st.integers(300, 4_000),
    st.booleans(),
    st.sampled_from([None, 1, 40, 800]),
    st.booleans(),
    st.booleans(),
)
def test_no_view_is_over_the_window_by_the_callers_counter(
    name, messages, window, archived, lines, notes, force
):
    counter = COUNTERS[name]
    settings: Any = {"archive": "memory:"} if archived else {}
    if lines is not None:
        settings["summarizer"] = summary_of(lines)
    with Compactor(window=window, token_counter=counter, notes=notes, **settings) as compactor:
        for _ in range(2):
            check_size(compactor.compact(messages, thread_id="t", force=force), counter, window)


def talk(count: int, words: int = 60) -> list[Any]:
    message_classes = HumanMessage, AIMessage
    return [message_classes[n % 2](f"{n} " + "word " * words, id=f"m{n}") for n in range(count)]


def test_a_history_over_the_window_by_its_list_is_never_kept():
    def thousands(messages: Messages) -> int:
        return sum(len(m.content) for m in messages) // 4_000 * 1_000  # each alone counts as 0

    result = Compactor(window=2_000, token_counter=thousands).compact(talk(60), thread_id="t")
    assert result.outcome == "compacted"
    assert thousands(result.messages) == result.tokens_after <= 2_000 < result.tokens_before


@pytest.mark.parametrize("size", range(13_600, 13_900, 60))
def test_the_ids_of_the_view_count_before_the_commit(size):
    counter = COUNTERS["ids and names"]
    compactor = Compactor(
        summarizer=lambda _: ("- fact one two three four\n" * 900)[:size],
        window=6_000,
        token_counter=counter,
        archive="memory:",
        notes=False,
        trigger=("messages", 100),
        keep=("messages", 30),
    )
    check_size(compactor.compact(talk(120), thread_id="t"), counter, 6_000)


def test_what_a_plan_leaves_is_measured_before_anybody_is_asked():
    def with_a_secret(messages: Messages) -> int:
        """No message alone tells that one of them is large in a list."""
        large = len(messages) > 1 and any(m.id == "m35" for m in messages)
        return sum(len(m.content) // 4 for m in messages) + 1_900 * large

    answers = summary_of(1)
    compactor = Compactor(
        summarizer=answers,
        window=2_000,
        token_counter=with_a_secret,
        keep=("messages", 20),
        trigger=("messages", 30),
    )
    result = compactor.compact(talk(40, 5), thread_id="t")
    assert (result.outcome, result.failures) == ("compacted", ())
    assert result.tokens_after == with_a_secret(result.messages) <= 2_000
    assert len(answers.requests) == 1


def test_a_trigger_of_the_middleware_counts_the_list():
    calls = list[int]()

    def reported(messages: Messages) -> int:
        calls.append(len(messages))
        return by_usage(messages)

    middleware = SummarizationMiddleware(
        None, trigger=("tokens", 4_000), keep=("messages", 4), token_counter=reported
    )
    messages: list[Any] = []
    for n in range(30):
        usage = {"input_tokens": 60 * n, "output_tokens": 20, "total_tokens": 60 * n + 20}
        messages += [
            HumanMessage(f"q{n}", id=f"q{n}"),
            AIMessage("a", id=f"a{n}", usage_metadata=usage),
        ]
        assert middleware.before_model({"messages": list(messages)}, Runtime()) is None, by_usage(
            messages
        )
    assert calls[-1] == len(messages)
    usage = {"input_tokens": 4_000, "output_tokens": 1, "total_tokens": 4_001}
    messages += [HumanMessage("q", id="q"), AIMessage("a", id="a", usage_metadata=usage)]
    assert middleware.before_model({"messages": messages}, Runtime()) is not None


def test_a_compactor_with_a_trigger_counts_the_list():
    def reported(messages: Messages) -> int:
        return by_usage(messages)

    compactor = Compactor(trigger=("tokens", 4_000), token_counter=reported)
    messages: list[Any] = []
    for n in range(30):
        usage = {"input_tokens": 60 * n, "output_tokens": 20, "total_tokens": 60 * n + 20}
        messages += [HumanMessage(f"q{n}"), AIMessage("a", usage_metadata=usage)]
        assert compactor.compact(messages, thread_id="t").outcome == "kept"


def test_keep_in_tokens_counts_lists_as_langchain_does():
    def ten_a_hundred_characters(messages: Messages) -> int:
        return sum(len(m.content) for m in messages) // 100 * 10

    middleware = SummarizationMiddleware(
        None, trigger=("tokens", 700), keep=("tokens", 200), token_counter=ten_a_hundred_characters
    )
    update = middleware.before_model({"messages": talk(120, 12)}, Runtime())
    assert update is not None
    kept = update["messages"][2:]
    assert (
        ten_a_hundred_characters(kept)
        <= 200
        < ten_a_hundred_characters([HumanMessage("x" * 100), HumanMessage("x" * 100), *kept])
    )


def test_a_guarded_request_fits_with_its_prompt():
    counter = COUNTERS["pairs"]
    model = ScriptedChatModel(answers=lambda messages: "It is done. " * 20)
    middleware = SummarizationMiddleware(None, trigger=("tokens", 100_000), token_counter=counter)
    guard = ContextGuard(middleware, window=3_000)
    agent = create_agent(
        model, system_prompt="You are careful. " * 40, middleware=[middleware, guard]
    )
    history: list[Any] = talk(60)
    for n in range(6):
        history = agent.invoke(
            {"messages": [*history, HumanMessage(f"And {n}? " * 40, id=f"x{n}")]}
        )["messages"]
        assert counter(model.calls[-1].messages) <= 3_000


def test_the_short_term_api_counts_the_result_as_a_list():
    def paired(messages: Messages) -> int:
        return sum(len(str(m.content)) // 4 for m in messages) + len(messages) ** 2

    model = ScriptedChatModel(answers=lambda messages: "They talked about words.")
    result = summarize_messages(
        talk(60),
        running_summary=None,
        model=model,
        max_tokens=2_000,
        max_summary_tokens=200,
        token_counter=paired,
    )
    assert result.running_summary is not None
    assert paired(result.messages) <= 2_000


def test_a_fitter_counts_dicts_as_they_are_sent():
    def json_tokens(messages: Messages) -> int:
        return len(json.dumps(messages)) // 4

    dicts = [{"role": "user", "content": "question " * 30} for _ in range(80)]
    with Fitter(archive="memory:", window=2_000, token_counter=json_tokens) as fitter:
        fitted = fitter.fit(dicts, model="own-model", thread_id="t")
    assert fitted.outcome == "compacted"
    assert fitted.tokens_after == json_tokens(fitted.messages) <= 2_000


def test_a_counter_of_langchain_messages_counts_dicts_too():
    def contents(messages: Messages) -> int:
        return sum(len(m.content) // 4 + 4 for m in messages)

    dicts = [{"role": "user", "content": "question " * 30} for _ in range(80)]
    result = Compactor(window=2_000, token_counter=contents).compact(dicts, thread_id="t")
    assert result.outcome == "compacted"
    assert result.tokens_after == contents(convert_to_messages(result.messages))


def test_a_step_with_the_same_messages_asks_no_counter():
    calls = list[int]()

    def counter(messages: Messages) -> int:
        calls.append(len(messages))
        return characters(messages)

    compactor = Compactor(window=100_000, token_counter=counter)
    sent = talk(20)
    result = compactor.compact(sent, thread_id="t")
    calls_before = len(calls)
    assert compactor.compact(sent, thread_id="t").tokens_after == result.tokens_after
    assert len(calls) == calls_before
    compactor.compact([*sent, HumanMessage("And now?")], thread_id="t")
    assert calls[-1] == 21


def test_the_attribute_of_the_middleware_counts_as_its_trigger():
    class Claude(ScriptedChatModel):
        @property
        def _llm_type(self) -> str:
            return "anthropic-chat"

    messages = talk(40)
    middleware = SummarizationMiddleware(Claude(answers=["x" * 300]), trigger=("tokens", 1))
    size = middleware.token_counter(messages)
    middleware.trigger = ("tokens", size + 1)
    assert middleware.before_model({"messages": list(messages)}, Runtime()) is None
    middleware.trigger = ("tokens", size)
    assert middleware.before_model({"messages": list(messages)}, Runtime()) is not None
    middleware.token_counter = len
    assert middleware.token_counter is len


def answer_that_reports(size: int, number: int) -> AIMessage:
    usage: Any = {"input_tokens": size - 1, "output_tokens": 1, "total_tokens": size}
    return AIMessage(f"answer {number}", id=f"a{number}", usage_metadata=usage)


def test_old_usage_does_not_delay_the_next_compaction():
    middleware = SummarizationMiddleware(
        None, trigger=("tokens", 4_000), keep=("messages", 4), token_counter=by_usage
    )
    messages = [*talk(20), answer_that_reports(4_300, 0)]
    update = middleware.before_model({"messages": messages}, Runtime())
    assert update is not None
    state = {**update, "messages": update["messages"][1:]}
    assert by_usage(state["messages"]) >= 4_000, "what was reported before the compaction stands"
    state["messages"] += [HumanMessage("next", id="n1"), answer_that_reports(1_000, 1)]
    assert middleware.before_model(dict(state), Runtime()) is None
    state["messages"] += [*talk(6), HumanMessage("next", id="n2"), answer_that_reports(4_010, 2)]
    assert middleware.before_model(dict(state), Runtime()) is not None


def test_notes_that_were_prepared_fit_by_the_callers_counter():
    def counter(messages: Messages) -> int:
        return characters(messages) // 4 + 40 * len(messages)

    with Compactor(
        summarizer=summary_of(200), window=4_000, token_counter=counter, background=True
    ) as compactor:
        sent: list[Any] = []
        for message in talk(90, 20):
            sent.append(message)
            check_size(compactor.compact(sent, thread_id="t"), counter, 4_000)
            if len(sent) % 15 == 0:
                compactor.prepare(sent, thread_id="t").wait(20)
