"""The summariser that is a function: what it is given, what it costs, what is no summary."""

import asyncio
import tracemalloc
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from conspectus.errors import SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.messages import is_summary_message
from conspectus.model.callables import CallableSummarizer
from test_model_support import both, request, summarised, turns, words_of

GOOD = "The user went through a list of words with the agent, and each of them was answered. " * 4


def test_it_gets_what_leaves_and_the_summary_so_far():
    given: list[Any] = []

    def write(messages: list[Any]) -> str:
        given.extend(messages)
        return GOOD

    asked = request(turns(2), notes="what was before", form="whole")
    summary = CallableSummarizer(write).summarize(asked)
    assert is_summary_message(given[0])
    assert "what was before" in given[0].content
    assert [message.id for message in given[1:]] == ["u0", "r0", "u1", "r1"]
    assert summary.text == GOOD.strip()
    assert summary.read == tuple(entry.key for entry in asked.entries)
    assert (summary.cost.calls, summary.request) == (1, "")


def test_a_long_span_is_read_in_several_calls_each_with_what_the_last_one_wrote():
    given: list[list[Any]] = []

    def write(messages: list[Any]) -> str:
        given.append(messages)
        return f"call {len(given)}: {GOOD}"

    messages = turns(12)
    CallableSummarizer(write, trim_tokens_to_summarize=600).summarize(request(messages))
    assert len(given) > 3
    assert all(f"call {n}" in call[0].content for n, call in enumerate(given[1:], 1))
    read = " ".join(str(m.content) for call in given for m in call if not is_summary_message(m))
    assert words_of(read) == words_of(" ".join(str(m.content) for m in messages))


async def _later(messages: list[Any]) -> str:
    await asyncio.sleep(0)
    return GOOD


@both
@pytest.mark.parametrize("function", [_later, RunnableLambda(_later), RunnableLambda(len and str)])
def test_async_functions_and_runnables_work_with_and_without_a_loop(function, mode):
    summary = summarised(CallableSummarizer(function, min_tokens=1), request(turns(1)), mode)
    assert summary.text


@both
def test_a_text_that_is_far_too_small_is_asked_for_once_more(mode):
    said = iter(["502 Bad Gateway", GOOD])
    summary = summarised(CallableSummarizer(lambda _: next(said)), request(turns(9)), mode)
    assert (summary.text, summary.cost.calls) == (GOOD.strip(), 2)
    with pytest.raises(SummaryRejected, match="far too small") as caught:
        summarised(CallableSummarizer(lambda _: "502 Bad Gateway"), request(turns(9)), mode)
    assert "min_tokens" in str(caught.value)
    assert caught.value.cost.calls == 2  # type: ignore[attr-defined]


def test_megabytes_are_refused_before_anything_is_counted():
    most = 0

    def count(text: str) -> int:
        nonlocal most
        most = max(most, len(text))
        return len(text) // 4

    text = "word and [u0] (word " * 500_000
    asked = request(turns(2), count=count)
    tracemalloc.start()
    with pytest.raises(SummaryRejected, match="10,000,000 characters"):
        CallableSummarizer(lambda _: text).summarize(asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most <= 100_000
    assert peak < 2_000_000


@both
def test_a_function_that_fails_or_hangs_is_told_so(mode):
    def fail(messages: list[Any]) -> str:
        raise ValueError("no such file")

    with pytest.raises(SummaryError, match=r"no such file.*check the function") as caught:
        summarised(CallableSummarizer(fail), request(turns(1)), mode)
    assert not caught.value.transient
    assert caught.value.cost.calls == 1  # type: ignore[attr-defined]

    async def hang(messages: list[Any]) -> str:
        await asyncio.sleep(30)
        return ""

    with pytest.raises(SummarizerTimeout, match=r"within 0\.05 seconds"):
        summarised(CallableSummarizer(hang, timeout=0.05), request(turns(1)), mode)
