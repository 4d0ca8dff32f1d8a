"""Let LangChain's middleware use any summariser, and observe what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, get_buffer_string

from conspectus.core.records import Cost
from conspectus.messages import is_summary_message, read_messages
from conspectus.messages.summary import summary_body
from conspectus.model import EmbeddedSummarizer, Summarizer, SummaryRequest
from conspectus.model.calls import model_and_provider, reported
from conspectus.notes import rendering
from conspectus.notes.reading import read_segment
from conspectus.notes.segment import Segment

OnRead = Callable[[Mapping[str, int]], None]
Write = Callable[[Sequence[BaseMessage]], str]


def as_callable(
    summarizer: Summarizer | BaseChatModel,
    limit: int,
    count: Callable[[str], int],
    on_read: OnRead = lambda characters: None,
    on_cost: Callable[[Cost], None] = lambda cost: None,
) -> Write:
    """Make a summariser of the form that LangChain's middleware takes.

    A chat model is asked as LangChain asks it, with LangChain's own prompt. The embedded summariser
    writes the notes that it writes for us. Any other is asked for a whole text, and updates the
    summary that the input begins with.

    Args:
        limit: maximum tokens of a summary.
        count: tokens of a text.
        on_read: called with the characters that were read of each message, by its id.
        on_cost: called with the cost of each call of a model.
    """
    if isinstance(summarizer, BaseChatModel):
        ask = _asking(summarizer, count, on_cost)
    elif isinstance(summarizer, EmbeddedSummarizer):
        ask = _noting(limit, count)
    else:
        ask = _requesting(summarizer, limit, count, on_cost)

    def write(messages: Sequence[BaseMessage]) -> str:
        said = [message for message in messages if not is_summary_message(message)]
        text = ask(messages, said)
        on_read({entry.id: len(entry.reading) for entry in read_messages(said)})
        return text

    return write


Ask = Callable[[Sequence[BaseMessage], Sequence[BaseMessage]], str]
"""Writes a summary of messages; the second argument holds them without an earlier summary."""


def _noting(limit: int, count: Callable[[str], int]) -> Ask:
    segments: list[Segment] = []

    def note(messages: Sequence[BaseMessage], said: Sequence[BaseMessage]) -> str:
        if len(said) == len(messages):
            segments.clear()
        segments.append(read_segment(read_messages(said)))
        return rendering.Notes(segments).render(limit, count, archived=False)

    return note


def _requesting(
    summarizer: Summarizer,
    limit: int,
    count: Callable[[str], int],
    on_cost: Callable[[Cost], None],
) -> Ask:
    def request(messages: Sequence[BaseMessage], said: Sequence[BaseMessage]) -> str:
        earlier = [message for message in messages if is_summary_message(message)]
        notes = summary_body(str(earlier[-1].text)) if earlier else ""
        summary = summarizer.summarize(SummaryRequest(read_messages(said), notes, limit, count))
        on_cost(summary.cost)
        return summary.text

    return request


def _asking(
    model: BaseChatModel, count: Callable[[str], int], on_cost: Callable[[Cost], None]
) -> Ask:
    name = model_and_provider(model, "")[0]

    def ask(messages: Sequence[BaseMessage], said: Sequence[BaseMessage]) -> str:
        text = get_buffer_string(messages, format="xml")
        prompt = DEFAULT_SUMMARY_PROMPT.format(messages=text).rstrip()
        answer = model.invoke(prompt)
        usage = answer.usage_metadata
        sent, wrote = count(prompt), count(str(answer.text))
        cost = reported(usage) if usage else Cost(1, sent, wrote, estimated_calls=1)
        on_cost(cost.asked_of(name) if name else cost)
        return str(answer.text)

    return ask
