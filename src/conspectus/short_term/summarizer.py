"""Summarise in parts with the caller's model and templates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from conspectus._core.choices import EMBEDDED
from conspectus._core.records import Cost, Draft
from conspectus.bridge import arun, io, run
from conspectus.compactor.checking import refused
from conspectus.compactor.engine import SLACK
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError
from conspectus.messages import Entry, is_summary_message, read_messages
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.callables import readings
from conspectus.model.calls import model_and_provider, outcome_of, reported
from conspectus.model.checks import PART, wrong_with
from conspectus.model.provider_errors import answer_text, explained
from conspectus.observe import observing
from conspectus.short_term import prompts
from conspectus.short_term.settings import TIMEOUT, ShortTermSettings

ONE_MORE = 5 / 4
"""Factor by which a reading may exceed what gathers: the last message usually does."""

FEWEST = 10
"""Tokens below which a text is taken for an error message, where it stands for much: LangMem's
limits are small, and so are its users' summaries."""

SMALLEST = 64
"""Smallest part of a reading that is halved when it overflows the model's window."""


class PromptedSummarizer:
    """Ask the caller's model with the caller's templates.

    The first reading uses the template for a first summary, later ones the template that updates
    it. A reading takes what gathers before a summary is due, less the summary so far; one that
    overflows the model's window is read in halves.
    """

    min_tokens = 0  # it has its own measure

    def __init__(self, settings: ShortTermSettings) -> None:
        self._settings = settings
        model = settings.model
        named = getattr(model, "model_name", None) or getattr(model, "model", None)
        name = str(named) if isinstance(named, str) else type(model).__name__
        self.name = f"{name}'" if name == EMBEDDED else name

    @property
    def identity(self) -> str:
        """Model, templates and sizes that a draft depends on."""
        given, model = self._settings, self._settings.model
        options = getattr(model, "kwargs", None)
        used = (given.initial_summary_prompt, given.existing_summary_prompt)
        words = map(prompts.identity, used)
        kind = f"{type(model).__module__}.{type(model).__qualname__} {self.name} {options!r}"
        return "\0".join([kind, str(given.max_tokens), *words])

    def summarize(self, request: SummaryRequest) -> Summary:
        return run(self.summarize_flow(request))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return await arun(self.summarize_flow(request))

    async def summarize_flow(self, request: SummaryRequest) -> Summary:
        text, cost, prompt = request.notes, Cost(), list[BaseMessage]()
        room = whole = self._room(request)
        left = deque((piece, room) for piece in self._readings(request.entries, room, request))
        while left:
            piece, room = left.popleft()
            name = "existing_summary_prompt" if text else "initial_summary_prompt"
            slots = {"messages": piece, **({"existing_summary": text} if text else {})}
            prompt = prompts.filled(getattr(self._settings, name), name, slots)
            try:
                text, spent = await self._ask(prompt, request, cost)
            except SummarizerOverflow:
                if room // 2 <= whole // SMALLEST:
                    raise
                halves = self._readings(read_messages(piece), room // 2, request)
                left.extendleft(reversed([(half, room // 2) for half in halves]))
                continue
            cost += spent
        leaving = sum(request.count(entry.reading) for entry in request.entries)
        least = min(FEWEST, leaving // PART)
        if prompt and wrong_with(text, request, min_tokens=least):
            text, spent = await self._ask(prompt, request, cost)  # an error may have passed
            cost += spent
            if wrong := wrong_with(text, request, min_tokens=least):
                raise refused(self.name, Draft(text, self.name, (), cost), wrong)
        most = request.limit if request.most is None else request.most
        if prompt and request.count(text) > most + SLACK:
            again = prompts.shorter(prompt, AIMessage(text), request.limit)
            text, spent = await self._ask(again, request, cost)
            cost += spent
        return Summary(text, tuple(entry.key for entry in request.entries), cost)

    async def _ask(
        self, prompt: list[BaseMessage], request: SummaryRequest, before: Cost
    ) -> tuple[str, Cost]:
        model = self._settings.model
        on_a_loop = getattr(model, "ainvoke", None)
        acall = None if on_a_loop is None else lambda: on_a_loop(prompt)
        sent = sum(self._settings.count([message]) for message in prompt)
        asked, provider = model_and_provider(model, self.name)
        asked, facts = asked or self.name, {"summarizer": self.name, "provider": provider}
        with observing("model_call", name=asked, **facts) as seen:
            try:
                answer = _said(await io(lambda: model.invoke(prompt), acall, TIMEOUT))
            except Exception as error:
                failure = explained(error, self.name, TIMEOUT, "have it write less")
                failure.cost = before + Cost(1, sent).asked_of(asked)
                # Providers charge nothing for what they turn down, but for what comes too late.
                late = Cost(1, sent, estimated_calls=1)
                spent = late if isinstance(failure, SummarizerTimeout) else Cost(1)
                seen.add(outcome=outcome_of(failure), cost=spent.asked_of(asked))
                try:
                    raise failure from error
                finally:
                    del failure  # it holds this frame
            usage = getattr(answer, "usage_metadata", None)
            said = request.count(str(getattr(answer, "text", answer)))
            spent = reported(usage) if usage else Cost(1, sent, said, estimated_calls=1)
            cost = spent.asked_of(asked)
            seen.add(cost=cost)
            try:
                return answer_text(answer, self.name), cost
            except SummaryError as refusal:
                seen.add(outcome=outcome_of(refusal))
                refusal.cost = before + cost
                raise

    def _room(self, request: SummaryRequest) -> int:
        given = self._settings
        most = int(max(given.max_tokens, given.reach) * ONE_MORE)
        before = given.count([SystemMessage(request.notes)]) if request.notes else 0
        return max(most - before, most // 2, 1)

    def _readings(
        self, entries: Sequence[Entry], room: int, request: SummaryRequest
    ) -> Iterator[list[BaseMessage]]:
        given = self._settings
        own = [entry for entry in entries if not is_summary_message(entry.source)]
        frame = given.count([HumanMessage("[part 10 of 10]\n")])

        def size(entry: Entry) -> tuple[int, int]:
            return given.count([entry.source]), frame

        for piece in readings(own, room, request.count, size):
            yield self_contained(piece)


def _said(answer: object) -> object:
    """Return an answer as a message or text; LangMem asks for `content` alone."""
    content = None if isinstance(answer, BaseMessage) else getattr(answer, "content", None)
    return AIMessage(content) if isinstance(content, (str, list)) else answer


def self_contained(piece: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Make a reading that providers accept.

    Calls and results without each other, as of an exchange larger than a reading, become text.
    """
    answers = {m.tool_call_id for m in piece if isinstance(m, ToolMessage)}
    whole: set[str | None] = set()
    for message in piece:
        if isinstance(message, AIMessage) and (made := {c["id"] for c in message.tool_calls}):
            whole |= made if made <= answers else set()
    return [_as_text(message, whole) for message in piece]


def _as_text(message: BaseMessage, whole: set[str | None]) -> BaseMessage:
    if isinstance(message, ToolMessage) and message.tool_call_id not in whole:
        return HumanMessage(f"[result of a tool]\n{message.text}", id=message.id)
    if isinstance(message, AIMessage) and not {c["id"] for c in message.tool_calls} <= whole:
        told = "\n".join(f"[call of {c['name']}] {c['args']}" for c in message.tool_calls)
        return AIMessage(f"{message.text}\n{told}", id=message.id)
    return message
