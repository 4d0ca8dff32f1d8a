"""Summarise in parts with the caller's model and templates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda

from conspectus._core.choices import EMBEDDED
from conspectus._langchain import is_runnable
from conspectus.bridge import in_a_daemon
from conspectus.compactor.engine import SLACK
from conspectus.errors import SummarizerOverflow
from conspectus.messages import Entry, is_summary_message, read_messages
from conspectus.model.base import SummaryRequest
from conspectus.model.callables import readings
from conspectus.model.calls import Caller, Steps, named
from conspectus.model.checks import PART, wrong_with
from conspectus.short_term import prompts
from conspectus.short_term.settings import TIMEOUT, ShortTermSettings

ONE_MORE = 5 / 4
"""Factor by which a reading may exceed what gathers: the last message usually does."""

FEWEST = 10
"""Tokens below which a text is taken for an error message, where it stands for much: LangMem's
limits are small, and so are its users' summaries."""

SMALLEST = 64
"""Smallest part of a reading that is halved when it overflows the model's window."""


class PromptedSummarizer(Steps):
    """Ask the caller's model with the caller's templates.

    The first reading uses the template for a first summary, later ones the template that updates
    it. A reading takes what gathers before a summary is due, less the summary so far; one that
    overflows the model's window is read in halves.
    """

    min_tokens = 0  # it has its own measure
    _cure = "have it write less"

    def __init__(self, settings: ShortTermSettings) -> None:
        model = settings.model
        self._settings, self._model, self._timeout = settings, _runnable(model), TIMEOUT
        name = named(model) or type(model).__name__
        self.name = f"{name}'" if name == EMBEDDED else name

    @property
    def identity(self) -> str:
        """Model, templates and sizes that a draft depends on."""
        given, model = self._settings, self._settings.model
        used = (given.initial_summary_prompt, given.existing_summary_prompt)
        kind = f"{type(model).__module__}.{type(model).__qualname__} {self.name}"
        options = repr(getattr(model, "kwargs", None))
        return "\0".join([kind, options, str(given.max_tokens), *map(prompts.identity, used)])

    async def _write(self, request: SummaryRequest, caller: Caller) -> str:
        most = (request.limit if request.most is None else request.most) + SLACK
        leaving = sum(request.count(entry.reading) for entry in request.entries)
        check = partial(wrong_with, request=request, min_tokens=min(FEWEST, leaving // PART))
        text, room = request.notes, self._room(request)
        whole, left = room, deque((one, room) for one in self._read(request.entries, room, request))
        while left:
            piece, room = left.popleft()
            name = "existing_summary_prompt" if text else "initial_summary_prompt"
            slots = {"messages": piece, **({"existing_summary": text} if text else {})}
            prompt = prompts.filled(getattr(self._settings, name), name, slots)
            try:
                text = await caller.ask(prompt, check, most=0 if left else most)
            except SummarizerOverflow:
                if room // 2 <= whole // SMALLEST:
                    raise
                halves = list(self._read(read_messages(piece), room // 2, request))
                left.extendleft((half, room // 2) for half in reversed(halves))
        return text

    def _room(self, request: SummaryRequest) -> int:
        given = self._settings
        most = int(max(given.max_tokens, given.reach) * ONE_MORE)
        before = given.count([SystemMessage(request.notes)]) if request.notes else 0
        return max(most - before, most // 2, 1)

    def _read(
        self, entries: Sequence[Entry], room: int, request: SummaryRequest
    ) -> Iterator[list[BaseMessage]]:
        count = self._settings.count
        own = [entry for entry in entries if not is_summary_message(entry.source)]
        frame = count([HumanMessage("[part 10 of 10]\n")])
        for piece in readings(own, room, request.count, lambda one: (count([one.source]), frame)):
            yield self_contained(piece)


def _runnable(model: Any) -> Runnable[Any, Any]:
    """Return a model as a Runnable; LangMem asks of one for `invoke` and `content` alone."""
    if is_runnable(model):
        return model
    later = getattr(model, "ainvoke", None)

    def ask(messages: list[BaseMessage]) -> Any:
        return _answer(model.invoke(messages))

    async def ask_later(messages: list[BaseMessage]) -> Any:
        if later is None:
            return await in_a_daemon(lambda: ask(messages))
        return _answer(await later(messages))

    return RunnableLambda(ask, ask_later)


def _answer(answer: object) -> object:
    if isinstance(answer, (BaseMessage, str)):
        return answer if isinstance(answer, BaseMessage) else AIMessage(answer)
    content = getattr(answer, "content", None)
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
        calls = "\n".join(f"[call of {c['name']}] {c['args']}" for c in message.tool_calls)
        return AIMessage(f"{message.text}\n{calls}", id=message.id)
    return message
