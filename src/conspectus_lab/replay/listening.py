"""Observe summarisers, and note their input and their cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, get_buffer_string

from conspectus._core.choices import EMBEDDED
from conspectus._core.records import Cost
from conspectus.compactor.riding import LIVES
from conspectus.errors import SummaryError
from conspectus.messages import is_summary_message, read_messages
from conspectus.messages.summary import summary_body
from conspectus.model import (
    ChatModelSummarizer,
    EmbeddedSummarizer,
    Form,
    Summarizer,
    Summary,
    SummaryRequest,
)
from conspectus.model.calls import model_and_provider, reported
from conspectus.model.riding import LastRequest, instruction
from conspectus.notes import rendering
from conspectus.notes.reading import read_segment
from conspectus.notes.segment import Segment
from conspectus.observe import Event


@dataclass(slots=True)
class Notes:
    """Notes on one run's summariser.

    Attributes:
        by: its name.
        asked: called with the cost of each call of a model.
        rode: called with the cost of a call on the agent's last request, that request, and the
            tokens of the instruction after it.
        seconds: that each summary takes longer than here.
        shift: difference of the agent's time from this machine's: the extra seconds of summaries,
            less the real ones on an event loop, as those pass on the loop's clock.
        read: characters that were read of each message, by its id.
        calls, tokens: of the summariser, since `take`; the embedded one has none.
        embedded: the embedded summariser has read what no other one read, since `take`.
    """

    by: str
    asked: Callable[[Cost], None] = lambda cost: None
    rode: Callable[[Cost, LastRequest, int], None] = lambda cost, last, instruction: None
    seconds: float = 0.0
    shift: float = 0.0
    read: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    embedded: bool = False
    _wrote: bool = False

    def saw(
        self, given: Mapping[str, int], calls: int, tokens: int, cost: Cost | None = None
    ) -> None:
        """Note one reading."""
        if cost is not None and cost.calls:
            self.asked(cost)
        for name, characters in given.items():
            self.read[name] = max(characters, self.read.get(name, 0))
        self.calls += calls
        self.tokens += tokens

    def heard(self, event: Event) -> None:
        """Note that the embedded summariser has read messages.

        Nobody calls it: the engine writes its notes itself, from the whole messages that leave. It
        also reads those that came after a prepared draft, and those that no other one could read.
        """
        if event.kind == "step" and event.name == "summarize":
            written = event.extra["by"] == EMBEDDED and event.outcome == "ok"
            self._wrote = self._wrote or written
        elif event.kind == "compaction":
            if event.outcome in ("compacted", "passing"):
                self.embedded = self.embedded or self._wrote or event.name == EMBEDDED
            self._wrote = False

    def take(self) -> tuple[int, int, bool]:
        """Return calls, tokens and whether the embedded one has read, since the last time."""
        taken = self.calls, self.tokens, self.embedded
        self.calls, self.tokens, self.embedded = 0, 0, False
        return taken


@dataclass(frozen=True, slots=True)
class Listening:
    """Observe a summariser."""

    summarizer: Summarizer
    notes: Notes

    @property
    def name(self) -> str:
        """Return the summariser's own name."""
        return self.summarizer.name

    @property
    def identity(self) -> str:
        """Return the summariser's own identity."""
        return self.summarizer.identity

    @property
    def form(self) -> Form:
        """Return the summariser's own form."""
        return getattr(self.summarizer, "form", "whole")

    def summarize(self, request: SummaryRequest) -> Summary:
        """Let the summariser write."""
        self.notes.shift += self.notes.seconds
        return self._asked(request)

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Let it write in this thread; its real time passes on the loop's simulated clock."""
        began = time.perf_counter()
        try:
            return self._asked(request)
        finally:
            took = time.perf_counter() - began
            self.notes.shift -= took
            await asyncio.sleep(took + self.notes.seconds)

    def _asked(self, request: SummaryRequest) -> Summary:
        try:
            summary = self._answer(request)
        except SummaryError as error:
            cost = getattr(error, "cost", None)
            if isinstance(cost, Cost):
                self.notes.saw({}, cost.calls, cost.tokens, self._paid(cost))
            raise
        given = _given(request, summary)
        tokens = summary.cost.tokens
        if not summary.cost.calls:  # it calls no model: its input counts
            texts = [request.notes, summary.text, *(e.reading for e in request.entries)]
            tokens = sum(request.count(text) for text in texts)
        if summary.request == "cached" and request.last is not None:
            self.notes.saw(given, summary.cost.calls, tokens)
            added = request.count(instruction(request))
            self.notes.rode(summary.cost, request.last, added)
        else:
            self.notes.saw(given, summary.cost.calls or 1, tokens, self._paid(summary.cost))
        return summary

    def _paid(self, cost: Cost) -> Cost:
        return cost

    def _answer(self, request: SummaryRequest) -> Summary:
        return self.summarizer.summarize(request)


@dataclass(frozen=True, slots=True)
class Riding(Listening):
    """Observe a summariser, and let it ask a model in place of the agent's recorded one.

    Attributes:
        age: seconds since the agent's last request, in the session's time.
    """

    model: BaseChatModel
    age: Callable[[], float]

    def rides(self, last: LastRequest, tokens: int, request: SummaryRequest) -> str:
        """Return the reason against the agent's last request; empty if it can be used."""
        assert isinstance(self.summarizer, ChatModelSummarizer)
        if self.age() > LIVES:
            return "its provider has forgotten it"
        return self.summarizer.rides(replace(last, any_model=True), tokens, request)

    def _paid(self, cost: Cost) -> Cost:
        """Leave the model out: it stands for the agent's own, at whose price it is paid."""
        return replace(cost, models={})

    def _answer(self, request: SummaryRequest) -> Summary:
        if request.last is not None:
            request = replace(request, last=replace(request.last, model=self.model))
        return self.summarizer.summarize(request)


def _given(request: SummaryRequest, summary: Summary) -> dict[str, int]:
    """Count the characters of each message that a summary has read."""
    read = set(summary.read)
    return {entry.id: len(entry.reading) for entry in request.entries if entry.key in read}


def as_callable(
    summarizer: Summarizer | BaseChatModel, notes: Notes, limit: int, count: Callable[[str], int]
) -> Callable[[Sequence[BaseMessage]], str]:
    """Make a summariser of the form that LangChain's middleware takes.

    It reads the middleware's input. A summary in that is updated, as ours is. A chat model is asked
    as LangChain asks it, with LangChain's own prompt; any other summariser for a whole text.

    Args:
        limit: maximum tokens of a summary.
        count: tokens of a text.
    """
    if isinstance(summarizer, BaseChatModel):
        return _asking(summarizer, notes, count)
    if isinstance(summarizer, EmbeddedSummarizer):
        return _noting(notes, limit, count)
    listening = Listening(summarizer, notes)

    def ask(messages: Sequence[BaseMessage]) -> str:
        earlier = [message for message in messages if is_summary_message(message)]
        standing = summary_body(str(earlier[-1].text)) if earlier else ""
        entries = read_messages([message for message in messages if message not in earlier])
        request = SummaryRequest(entries, standing, limit, count)
        return listening.summarize(request).text

    return ask


def _noting(
    notes: Notes, limit: int, count: Callable[[str], int]
) -> Callable[[Sequence[BaseMessage]], str]:
    """Write the notes of the embedded summariser, and add to those that the input begins with."""
    segments: list[Segment] = []

    def note(messages: Sequence[BaseMessage]) -> str:
        said = [message for message in messages if not is_summary_message(message)]
        if len(said) == len(messages):
            segments.clear()
        entries = read_messages(said)
        segments.append(read_segment(entries))
        notes.saw({entry.id: len(entry.reading) for entry in entries}, 0, 0)
        return rendering.Notes(segments).render(limit, count, archived=False)

    return note


def _asking(
    model: BaseChatModel, notes: Notes, count: Callable[[str], int]
) -> Callable[[Sequence[BaseMessage]], str]:
    name = model_and_provider(model, "")[0]

    def ask(messages: Sequence[BaseMessage]) -> str:
        notes.shift += notes.seconds
        text = get_buffer_string(messages, format="xml")
        prompt = DEFAULT_SUMMARY_PROMPT.format(messages=text).rstrip()
        said = model.invoke(prompt)
        answer = str(said.text)
        given = {entry.id: len(entry.reading) for entry in read_messages(messages)}
        sent, wrote = count(prompt), count(answer)
        usage = said.usage_metadata
        cost = reported(usage) if usage else Cost(1, sent, wrote, estimated_calls=1)
        notes.saw(given, 1, sent + wrote, cost.asked_of(name) if name else cost)
        return answer

    return ask
