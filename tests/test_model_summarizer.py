"""The summariser that asks a chat model: it reads everything, in as many calls as it takes."""

import asyncio
import itertools
import re

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.tokens import estimate
from test_model_support import (
    ScriptedChatModel,
    both,
    kind_of,
    kinds,
    noted,
    profile,
    request,
    source,
    summarised,
    too_long_above,
    turns,
    words_of,
    words_read,
)


def test_a_span_that_fits_takes_one_call_with_everything_in_it():
    model = ScriptedChatModel(answers=["## Goal\n- ship it [u0]"])
    asked = request(turns(3), notes="## Done\n- began [m0]", focus="the login page")
    summary = ChatModelSummarizer(model).summarize(asked)
    assert summary.text == "## Goal\n- ship it [u0]"
    assert summary.read == tuple(entry.key for entry in asked.entries)
    assert kinds(model) == ["findings"]
    prompt = model.calls[0].text
    assert "<summary>\n## Done\n- began [m0]\n</summary>" in prompt
    assert "<focus>\nthe login page\n</focus>" in prompt
    assert '<message id="u0" role="user">' in prompt
    assert "400 tokens" in prompt


@both
def test_every_word_is_read_exactly_once_however_small_a_reading_is(mode):
    messages = turns(12)
    model = ScriptedChatModel(answers=noted)
    summarizer = ChatModelSummarizer(model, trim_tokens_to_summarize=1_000)
    asked = request(messages)
    summary = summarised(summarizer, asked, mode)
    read = words_read([call for call in model.calls if kind_of(call.messages) == "notes"])
    assert set(read) == words_of(" ".join(str(m.text) for m in messages))
    assert len(read) == len(set(read))
    assert summary.read == tuple(entry.key for entry in asked.entries)


@pytest.mark.parametrize("said", ["", "I write it down."])
def test_tool_calls_with_their_arguments_are_read(said):
    call = {"name": "write_file", "args": {"path": "src/w1x1.py"}, "id": "c1"}
    model = ScriptedChatModel(answers=noted)
    ChatModelSummarizer(model).summarize(
        request([AIMessage(said, tool_calls=[call]), ToolMessage("w2x2", tool_call_id="c1")])
    )
    assert "write_file" in model.calls[0].text
    assert set(words_read(model.calls)) == {"w1x1", "w2x2"}


def test_no_prompt_of_ours_exceeds_the_window():
    model = ScriptedChatModel(
        answers=lambda _: noted(_) + " long note" * 30, profile=profile(4_000)
    )
    ChatModelSummarizer(model).summarize(request(turns(40), limit=400))
    sizes = [sum(estimate(str(m.text)) for m in call.messages) for call in model.calls]
    assert len(sizes) > 3
    assert max(sizes) + 400 <= 4_000


@pytest.mark.parametrize("words", [3, 900])
def test_notes_on_all_pieces_reach_the_answer_whatever_their_length(words):
    numbers = itertools.count()
    model = ScriptedChatModel(
        answers=lambda _: f"- note N{next(numbers)} [{source(_)}]\n" + "- note\n" * words,
        profile=profile(4_000),
    )
    summarizer = ChatModelSummarizer(model, trim_tokens_to_summarize=600)
    summary = summarizer.summarize(request(turns(30)))
    pieces = kinds(model).count("notes")
    assert pieces > 5
    last = next(call for call in model.calls if kind_of(call.messages) == "findings")
    handed_on = {*re.findall(r"\bN\d+\b", last.text)}
    assert handed_on == {f"N{n}" for n in range(pieces)}
    assert sum(estimate(str(m.text)) for m in last.messages) + 400 <= 4_000
    assert summary.cost.calls == len(model.calls)


@both
def test_a_hanging_model_times_out_and_may_be_tried_again(mode):
    model = ScriptedChatModel(answers=noted, delay=30)
    asked = request(turns(1))
    with pytest.raises(SummarizerTimeout, match=r"within 0\.05 seconds") as caught:
        summarised(ChatModelSummarizer(model, timeout=0.05), asked, mode)
    assert caught.value.transient
    cost = caught.value.cost
    assert cost.calls == 1  # type: ignore[attr-defined]
    assert cost.input_tokens > 0  # type: ignore[attr-defined]


@both
def test_a_timeout_of_the_models_own_is_not_told_as_ours(mode):
    model = ScriptedChatModel(answers=lambda _: TimeoutError("read timed out"))
    with pytest.raises(SummarizerTimeout, match=r"read timed out.*of its client") as caught:
        summarised(ChatModelSummarizer(model, timeout=600), request(turns(1)), mode)
    assert "600" not in str(caught.value)
    assert caught.value.transient


@both
def test_an_overflow_halves_the_reading_and_still_nothing_is_dropped(mode):
    messages = turns(30)
    model = ScriptedChatModel(answers=too_long_above(2_500))
    asked = request(messages)
    summary = summarised(ChatModelSummarizer(model), asked, mode)
    fitting = [
        call for call in model.calls if sum(estimate(str(m.text)) for m in call.messages) <= 2_500
    ]
    assert len(fitting) < len(model.calls)
    assert set(words_read(fitting)) == words_of(" ".join(str(m.text) for m in messages))
    assert summary.read == tuple(entry.key for entry in asked.entries)
    assert summary.cost.calls == len(model.calls)


def test_a_window_too_small_for_the_prompt_is_said_before_anything_is_spent():
    model = ScriptedChatModel(answers=[])
    with pytest.raises(SummarizerOverflow, match="500 tokens"):
        ChatModelSummarizer(model, window=500).summarize(request(turns(1)))
    assert model.calls == []


def test_cost_is_what_the_model_reports_summed_over_all_calls():
    model = ScriptedChatModel(answers=noted, usage=(100, 10))
    summary = ChatModelSummarizer(model, trim_tokens_to_summarize=600).summarize(request(turns(6)))
    calls = len(model.calls)
    assert (summary.cost.calls, summary.cost.input_tokens) == (calls, 100 * calls)
    assert summary.cost.output_tokens == 10 * calls


@both
def test_a_failure_carries_what_all_calls_cost(mode):
    def answer(messages: list[BaseMessage]) -> AIMessage | str | BaseException:
        return ValueError("down") if kind_of(messages) == "findings" else noted(messages)

    model = ScriptedChatModel(answers=answer, usage=(100, 10))
    summarizer = ChatModelSummarizer(model, trim_tokens_to_summarize=600)
    with pytest.raises(SummaryError, match="down") as caught:
        summarised(summarizer, request(turns(6)), mode)
    cost = caught.value.cost
    before = len(model.calls) - 1
    assert before > 2
    assert (cost.calls, cost.tokens) == (before + 1, 110 * before)  # type: ignore[attr-defined]


def test_a_cancelled_summary_leaves_no_task_and_no_call_behind():
    model = ScriptedChatModel(answers=noted, delay=30)
    summarizer = ChatModelSummarizer(model, trim_tokens_to_summarize=600)

    async def scenario() -> tuple[int, int]:
        task = asyncio.ensure_future(summarizer.asummarize(request(turns(12))))
        while model.running < 4:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return model.running, len(asyncio.all_tasks() - {asyncio.current_task()})

    assert asyncio.run(scenario()) == (0, 0)
