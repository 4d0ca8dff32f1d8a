"""The summariser that is a user's own function: messages in, text out, as LangChain has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_ai_message, is_tool_message
from conspectus.bridge import in_a_daemon, io, run
from conspectus.core.policy import TIMEOUT
from conspectus.errors import PolicyError
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.message import message_of
from conspectus.model.base import SummaryRequest, check_settings
from conspectus.model.calls import Caller, Steps
from conspectus.model.checks import wrong_with
from conspectus.model.chunks import Part, divide, parts_of

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
            Default: it is not far too small for what it replaces.

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
    size: Callable[[Message], tuple[int, int]] | None = None,
) -> Iterator[list[BaseMessage]]:
    """Return all entries as LangChain messages, in as many readings of `room` tokens as it takes.

    Without a room it is one reading, and nothing is counted.
    `size` tells the tokens of a message, and of its frame alone. Default: those of its text, and 0.
    """
    if room is None:
        if entries:
            yield self_contained([message_of(entry) for entry in entries])
        return
    parts = parts_of(entries, size or (lambda entry: (count(entry.reading), 0)))
    for piece in divide(parts, room, count):
        yield self_contained([_part(message_of(entries[part.index]), part) for part in piece])


def _part(message: BaseMessage, part: Part) -> BaseMessage:
    if not part.label:
        return message
    changed: dict[str, Any] = {"content": f"[part {part.label}]\n{part.text}"}
    if hasattr(message, "tool_calls"):  # the text has them
        changed |= {"tool_calls": [], "additional_kwargs": {}}
    return message.model_copy(update=changed)


def self_contained(piece: list[BaseMessage]) -> list[BaseMessage]:
    """Make a reading that providers accept.

    Where calls and results miss each other, as of an exchange larger than a reading, all become
    text.
    """
    from langchain_core.messages import AIMessage, HumanMessage

    calls = [call["id"] for m in piece if is_ai_message(m) for call in m.tool_calls]
    if set(calls) == {m.tool_call_id for m in piece if is_tool_message(m)}:
        return piece
    made: list[BaseMessage] = []
    for message in piece:
        if is_tool_message(message):
            message = HumanMessage(f"[result of a tool]\n{message.text}", id=message.id)
        elif is_ai_message(message) and message.tool_calls:
            each = "\n".join(f"[call of {c['name']}] {c['args']}" for c in message.tool_calls)
            message = AIMessage(f"{message.text}\n{each}", id=message.id)
        made.append(message)
    return made


def apart(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the answer of an async call to a caller that has no loop, or must not stop it."""

    async def ask() -> Any:
        return await call()

    # With a timeout the call is made in a daemon thread.
    return run(io(lambda: asyncio.run(ask()), timeout=1e9))
