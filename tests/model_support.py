"""What the tests of `conspectus.model` share."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

import scripted_models
from conspectus.messages import read_messages
from conspectus.model.base import AnswerForm, Summarizer, Summary, SummaryRequest
from conspectus.model.prompts import INSTRUCTIONS, REPORT
from conspectus.tokens import estimate
from scripted_models import RecordedCall


class ScriptedChatModel(scripted_models.ScriptedChatModel):
    """One that says what is written, without a source that is not."""

    cites: bool = False


def request(
    messages: Sequence[BaseMessage | dict[str, Any]],
    *,
    summary_so_far: str = "",
    limit: int = 400,
    focus: str = "",
    count: Callable[[str], int] = estimate,
    form: AnswerForm = "findings",
    check_summaries: bool = False,
    **fields: Any,
) -> SummaryRequest:
    """A request; what a scripted model answers is read as a summary only with `check_summaries`."""
    entries = read_messages(messages)
    return SummaryRequest(
        entries,
        summary_so_far,
        limit,
        count,
        form=form,
        focus=focus,
        check_summaries=check_summaries,
        **fields,
    )


def turns(count: int, words: int = 60) -> list[BaseMessage]:
    """Turns whose every word occurs once in the whole history."""
    messages: list[BaseMessage] = []
    for n in range(count):
        ask = " ".join(f"q{n}x{w}" for w in range(words))
        say = " ".join(f"a{n}x{w}" for w in range(words))
        messages += [HumanMessage(ask, id=f"u{n}"), AIMessage(say, id=f"r{n}")]
    return messages


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\b[qarw]\d+x\d+\b", text))


def words_read(calls: Sequence[RecordedCall]) -> list[str]:
    return [word for call in calls for word in re.findall(r"\b[qarw]\d+x\d+\b", call.text)]


def first_offered_id(messages: Sequence[BaseMessage]) -> str:
    """The first id that a prompt offers."""
    text = str(messages[-1].text)
    match = re.search(r'<message id="([^"]+)"', text) or re.search(r"\[(\w+)\]", text)
    return match[1] if match else "none"


def cited_note(messages: list[BaseMessage]) -> str:
    """What a model answers that reads and cites."""
    return f"- something was done [{first_offered_id(messages)}]"


def kind_of(messages: Sequence[BaseMessage]) -> str:
    if "hands over long work" in str(messages[0].content):
        return "shorter"
    kind_of_instructions: dict[str, str] = {
        text: prompt_kind for prompt_kind, text in INSTRUCTIONS.items()
    }
    return (
        "notes"
        if REPORT in str(messages[-1].content)
        else kind_of_instructions[str(messages[0].content)]
    )


def prompt_kinds(model: ScriptedChatModel) -> list[str]:
    return [kind_of(call.messages) for call in model.calls]


def too_long_above(tokens: int) -> Callable[[list[BaseMessage]], AIMessage | str | BaseException]:
    """A model with a window smaller than anybody knows."""

    def answer(messages: list[BaseMessage]) -> AIMessage | str | BaseException:
        if sum(estimate(str(message.text)) for message in messages) > tokens:
            return ContextOverflowError(f"maximum context length is {tokens} tokens")
        return cited_note(messages)

    return answer


def summarised(
    summarizer: Summarizer, summary_request: SummaryRequest, mode: str = "sync"
) -> Summary:
    if mode == "sync":
        return summarizer.summarize(summary_request)
    return asyncio.run(summarizer.asummarize(summary_request))


sync_and_async = pytest.mark.parametrize("mode", ["sync", "async"])


def profile(limit: int) -> Any:
    return {"max_input_tokens": limit}
