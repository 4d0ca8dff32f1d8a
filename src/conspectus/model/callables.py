"""The summariser that is a user's own function: messages in, text out, as LangChain has it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conspectus._core.records import Cost
from conspectus._drive import Flow, Io
from conspectus._langchain import is_message
from conspectus.errors import PolicyError, SummaryError
from conspectus.events import SummarizerCall, observing
from conspectus.messages import SUMMARY_LINE, Entry
from conspectus.model.base import Steps, Summary, SummaryRequest, check_numbers
from conspectus.model.calls import call_config, call_flow, cost_fields, rejected
from conspectus.model.checks import LONGEST, wrong_with
from conspectus.model.chunks import Part, divide, parts_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable


class CallableSummarizer(Steps):
    """Has a function or Runnable write the summary.

    It gets LangChain messages: the summary so far, where there is one, as a summary message, then
    what leaves the view. What it returns is the new summary. With a reading size, a longer span is
    handed over in several calls, each with the summary that the one before returned: all is read.
    A text that is no summary is asked for once more.

    Args:
        function: takes a list of messages and returns text; sync or async, or a LangChain
            Runnable. An async one works without an event loop as well, in a thread of its own.
        trim_tokens_to_summarize: tokens of messages in one call; what is above it is read in
            further calls. Default: everything in one call.
        timeout: seconds for each call; None for no limit.
        min_tokens: tokens that make any text a summary; 0 takes every text that is not empty.
            Default: a text is not far too small for what it stands for.

    Raises:
        PolicyError: it can be neither called nor invoked; a number makes no sense.
    """

    def __init__(
        self,
        function: Runnable[Any, Any] | Callable[[list[Any]], Any],
        *,
        trim_tokens_to_summarize: int | None = None,
        timeout: float | None = 120.0,
        min_tokens: int | None = None,
    ) -> None:
        check_numbers(trim_tokens_to_summarize=trim_tokens_to_summarize, min_tokens=min_tokens)
        from langchain_core.runnables.base import coerce_to_runnable

        try:
            self._runnable: Runnable[Any, Any] = coerce_to_runnable(function)
        except (TypeError, ValueError) as error:
            raise PolicyError(
                f"a summarizer must be callable with a list of messages, and {function!r} is not"
            ) from error
        inner = self._runnable
        self._function = getattr(inner, "func", None) or getattr(inner, "afunc", None)
        self._only_async = self._function is not None and not getattr(inner, "func", None)
        self._name = getattr(function, "__name__", None) or type(function).__name__
        self._trim, self._min_tokens = trim_tokens_to_summarize, min_tokens
        self._timeout = timeout

    @property
    def name(self) -> str:
        """Name of the function, or of the Runnable's class."""
        return self._name

    @property
    def identity(self) -> str:
        """Its module and name, and the size of a reading."""
        whose = self._function if self._function is not None else type(self._runnable)
        module = getattr(whose, "__module__", "")
        return f"{module}.{getattr(whose, '__qualname__', self._name)} {self._trim}"

    def summarize_flow(self, request: SummaryRequest) -> Flow[Summary]:
        """Summarise, step by step for a driver."""
        from langchain_core.messages import HumanMessage

        request, text, costs = replace(request, form="whole"), request.notes, [Cost()]
        mark = {"lc_source": "summarization"}
        entries, pieces = request.entries, [[message_of(one) for one in request.entries]]
        if self._trim is not None or not entries:
            pieces = list(readings(entries, self._trim or 1, request.count))
        try:
            for piece in pieces:
                leaving = sum(request.count(str(message.content)) for message in piece)
                before = HumanMessage(f"{SUMMARY_LINE}\n\n{text}", additional_kwargs=mark)
                given = [before, *piece] if text else piece
                for _ in range(2):
                    text, wrong = yield from self._answer(given, request, leaving, costs)
                    if not wrong:
                        break
                else:
                    raise rejected(self._name, wrong)
        except SummaryError as failure:
            failure.cost = sum(costs, Cost())
            raise
        return Summary(text, tuple(entry.key for entry in entries), sum(costs, Cost()))

    def _answer(
        self, given: list[BaseMessage], request: SummaryRequest, leaving: int, costs: list[Cost]
    ) -> Flow[tuple[str, tuple[str, ...]]]:
        def acall() -> Awaitable[Any]:
            return self._runnable.ainvoke(given, config=call_config())

        def call() -> Any:
            return apart(acall) if self._only_async else self._runnable.invoke(given, call_config())

        how = {"check": "the function and what it calls", "retry_unknown": False}
        with observing(SummarizerCall, summarizer=self._name) as seen:
            costs.append(Cost(1).asked_of(self._name))
            step = Io(call, acall, self._timeout)
            answer = yield from call_flow(step, seen, self._name, **how)
            if not isinstance(answer, str):
                seen.tell(outcome="rejected")
                kind = type(answer).__name__
                raise SummaryError(f"{self._name} must return text, and returned {kind}")
            sent = sum(request.count(str(message.content)) for message in given)
            spent = Cost(1, sent, request.count(answer[:LONGEST]), estimated_calls=1)
            costs[-1] = spent.asked_of(self._name)
            wrong = wrong_with(answer, request, min_tokens=self._min_tokens, leaving=leaving)
            seen.tell(**cost_fields(spent), **({"outcome": "rejected"} if wrong else {}))
            return "" if wrong else answer.strip(), wrong


def readings(
    entries: Sequence[Entry],
    room: int,
    count: Callable[[str], int],
    size: Callable[[Entry], tuple[int, int]] | None = None,
) -> Iterator[list[BaseMessage]]:
    """Return all entries as LangChain messages, in as many readings of `room` tokens as it takes.

    `size` tells the tokens of a message, and of its frame alone. Default: those of its text, and 0.
    """
    messages = [message_of(entry) for entry in entries]
    parts = parts_of(entries, size or (lambda entry: (count(entry.reading), 0)))
    for piece in divide(parts, room, count):
        yield [_part(messages[part.index], part) for part in piece]


def message_of(entry: Entry) -> BaseMessage:
    """Return the original as a LangChain message, under the id that summaries cite."""
    if is_message(entry.source):
        return entry.source
    from langchain_core.messages import HumanMessage, convert_to_messages

    try:
        return convert_to_messages([dict(entry.source)])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return HumanMessage(entry.reading, id=entry.id)


def _part(message: BaseMessage, part: Part) -> BaseMessage:
    """Return a message, or a part of a long one, whose text has the calls."""
    if not part.label:
        return message
    changed: dict[str, Any] = {"content": f"[part {part.label}]\n{part.text}"}
    if getattr(message, "tool_calls", None):
        changed |= {"tool_calls": [], "additional_kwargs": {}}
    return message.model_copy(update=changed)


def apart(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the answer of an async call to a caller that has no loop, or must not stop it."""
    answer: Future[Any] = Future()

    async def ask() -> Any:
        return await call()

    def work() -> None:
        try:
            answer.set_result(asyncio.run(ask()))
        except BaseException as error:
            answer.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
    return answer.result()
