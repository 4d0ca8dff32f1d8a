"""The summariser that is a user's own function: messages in, text out, as LangChain has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus.bridge import in_a_daemon, within
from conspectus.core.policy import TIMEOUT
from conspectus.errors import PolicyError
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.message import message_of
from conspectus.model.answers import wrong_with
from conspectus.model.base import SummaryRequest, check_settings
from conspectus.model.calls import Caller, Steps
from conspectus.model.chunks import Part, divide

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable


class CallableSummarizer(Steps):
    """Has a function or Runnable write the summary; a text that is none is asked for once more.

    It gets LangChain messages, the summary so far first, where there is one, and returns the new
    summary.

    Args:
        function: takes a list of messages and returns text; sync or async, or a LangChain
            Runnable. An async one works without an event loop as well, in a thread of its own.
        trim_tokens_to_summarize: tokens of messages in one call; what is above it is read in
            further calls, each with the summary that the one before returned.
        timeout: seconds for each call; None for no limit.
        min_tokens: tokens that make any text a summary, for 0 every text that is not empty.
            Default: it is not too short for what it replaces.

    Raises:
        PolicyError: it can be neither called nor invoked; a number makes no sense.
    """

    _kind = ""

    def __init__(
        self,
        function: Runnable[Any, Any] | Callable[[list[Any]], Any],
        *,
        trim_tokens_to_summarize: int | None = None,
        timeout: float | None = TIMEOUT,
        min_tokens: int | None = None,
    ) -> None:
        trim, self.min_tokens = trim_tokens_to_summarize, min_tokens
        check_settings(timeout, trim_tokens_to_summarize=trim, min_tokens=min_tokens)
        from langchain_core.runnables.base import RunnableLambda, coerce_to_runnable

        try:
            inner: Runnable[Any, Any] = coerce_to_runnable(function)
        except (TypeError, ValueError) as error:
            needed = "a summarizer must be callable with a list of messages"
            raise PolicyError(f"{needed}, and {function!r} is not") from error
        whose: Any = getattr(inner, "func", None) or getattr(inner, "afunc", None) or type(inner)
        self._model, self._trim, self._timeout = inner, trim, timeout
        if hasattr(inner, "afunc") and not hasattr(inner, "func"):
            later = inner.ainvoke
            self._model = RunnableLambda(lambda messages: apart(lambda: later(messages)), later)
        elif hasattr(inner, "func") and not hasattr(inner, "afunc"):
            # In no thread of the loop's own: its end would wait for a function that hangs.
            self._model = RunnableLambda(
                inner.func, lambda messages: in_a_daemon(lambda: inner.invoke(messages))
            )
        self.name: str = getattr(function, "__name__", None) or type(function).__name__
        qualname = getattr(whose, "__qualname__", self.name)
        self.identity = f"{getattr(whose, '__module__', '')}.{qualname} {trim}"

    async def _write(self, request: SummaryRequest, caller: Caller) -> str:
        from langchain_core.messages import HumanMessage

        request, text = replace(request, form="whole"), request.notes
        check = partial(wrong_with, request=request, min_tokens=self.min_tokens)
        for piece in readings(request.entries, self._trim, request.count):
            mark = {"lc_source": "summarization"}
            so_far = HumanMessage(f"{SUMMARY_LINE}\n\n{text}", additional_kwargs=mark)
            messages = [so_far, *piece] if text else piece
            counted = request.tokens if self._trim is None else 0
            leaving = 0 if counted else caller.size(piece)  # messages are no texts
            size = (counted or leaving) + request.count(text)
            text = await caller.ask(messages, partial(check, leaving=leaving), size=size)
        return text


def readings(
    entries: Sequence[Message],
    room: int | None,
    count: Callable[[str], int],
    size: Callable[[Message], int] | None = None,
    frame: int = 0,
) -> Iterator[list[BaseMessage]]:
    """Return all entries as LangChain messages, in as many readings of `room` tokens as it takes.

    Without a room it is one reading, and nothing is counted.
    `size` tells the tokens of a message, by default those of its text; `frame` are those around it.
    """
    if room is None:
        pieces = [[Part(entry, "", 0) for entry in entries]]  # texts of parts alone are used
    else:
        size = size or (lambda entry: count(entry.reading))
        parts = [Part(entry, entry.reading, size(entry)) for entry in entries]
        pieces = divide(parts, room, count, lambda _: frame)
    for piece in filter(None, pieces):
        torn = _is_torn([part.entry for part in piece if not part.label])  # a part of one is text
        yield [_message(part, torn) for part in piece]


def _is_torn(entries: Sequence[Message]) -> bool:
    """Tell whether a call misses its result, or a result its call."""
    waiting, nameless = set[str](), set[str]()  # a result without an id is of the newest answer
    for entry in entries:
        if entry.calls or entry.answers:
            calls, answers = {call.id for call in entry.calls if call.id}, set(entry.answers)
            if calls & waiting or not answers <= waiting | calls | nameless:
                return True
            waiting = (waiting | calls) - answers
        if entry.role == "assistant":
            nameless = {""}
    return bool(waiting)


def _message(part: Part, torn: bool) -> BaseMessage:
    """Make a message of a reading that providers accept.

    A part of a message becomes text, and so do calls and results where they miss each other, as of
    an exchange larger than a reading.
    """
    entry, message = part.entry, message_of(part.entry)
    if not part.label and not (torn and (entry.calls or entry.answers)):
        return message
    from langchain_core.messages import AIMessage, HumanMessage

    if part.label:
        text = f"[part {part.label}]\n{part.text}"
    elif entry.calls:
        text = "\n".join([entry.text, *(f"[call of {one.name}] {one.args}" for one in entry.calls)])
    else:
        text = entry.text
    if entry.role == "assistant":
        return AIMessage(text, id=message.id)
    result = "[result of a tool]\n" if entry.role == "tool" else ""
    return HumanMessage(f"{result}{text}", id=message.id)


def apart(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the answer of an async call to a caller that has no loop, or must not stop it."""

    async def ask() -> Any:
        return await call()

    return within(lambda: asyncio.run(ask()), seconds=1e9)  # in a daemon thread
