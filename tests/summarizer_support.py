"""What the tests of the model-backed summariser share."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from conspectus.ledger import Ledger
from conspectus.messages import read_messages
from conspectus.summarize.base import Summarizer, Summary, SummaryRequest
from conspectus.summarize.prompts import NOTES, SHORTEN, UPDATE
from conspectus.tokens import estimate
from conspectus_lab.testing.scripted_models import RecordedCall, ScriptedChatModel

NOTE = "- something was done [m1]"


def request(
    messages: Sequence[BaseMessage | dict[str, Any]],
    *,
    standing: str = "",
    limit: int = 400,
    focus: str = "",
    count: Callable[[str], int] = estimate,
) -> SummaryRequest:
    entries = read_messages(messages)
    return SummaryRequest(entries, standing, Ledger().updated(entries), limit, count, focus)


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


def kind_of(messages: Sequence[BaseMessage]) -> str:
    return {UPDATE: "update", NOTES: "notes", SHORTEN: "shorten"}[str(messages[0].content)]


def kinds(model: ScriptedChatModel) -> list[str]:
    return [kind_of(call.messages) for call in model.calls]


def too_long_above(tokens: int) -> Callable[[list[BaseMessage]], AIMessage | str | BaseException]:
    """A model with a window smaller than anybody knows."""

    def answer(messages: list[BaseMessage]) -> AIMessage | str | BaseException:
        if sum(estimate(str(message.text)) for message in messages) > tokens:
            return ContextOverflowError(f"maximum context length is {tokens} tokens")
        return NOTE

    return answer


def summarised(summarizer: Summarizer, asked: SummaryRequest, mode: str) -> Summary:
    if mode == "sync":
        return summarizer.summarize(asked)
    return asyncio.run(summarizer.asummarize(asked))


both = pytest.mark.parametrize("mode", ["sync", "async"])


def profile(limit: int) -> Any:
    return {"max_input_tokens": limit}
