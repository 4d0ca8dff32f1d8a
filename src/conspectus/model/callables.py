"""The summariser that is a caller's own function: messages in, text out, as in LangChain."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any

from conspectus.bridge import await_in_daemon, call_within
from conspectus.core.policy import TIMEOUT
from conspectus.errors import PolicyError
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.message import message_of
from conspectus.model.base import SummaryRequest, check_settings
from conspectus.model.calls import ModelCalls, SteppedSummarizer
from conspectus.model.chunks import Fragment, divide
from conspectus.model.gate import reason_not_a_summary

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

FOREVER_SECONDS = 1e9
"""Seconds for a call that has no limit."""


class CallableSummarizer(SteppedSummarizer):
    """A summariser that lets a function or a Runnable write the summary.

    The function gets LangChain messages and returns the new summary. If there is an earlier
    summary, it is the first message. If the text is not a summary, the function is called once
    more.

    Args:
        function: takes a list of messages and returns a text. A sync or async function, or a
            LangChain Runnable. Without an event loop, an async function runs in its own thread.
        trim_tokens_to_summarize: the most tokens of messages in one call. The remaining messages
            are read in further calls, each with the summary that the call before it returned.
        timeout: seconds for each call; None: no limit.

    Raises:
        PolicyError: the function cannot be called, or a number is not valid.
    """

    _request_kind = ""

    def __init__(
        self,
        function: Runnable[Any, Any] | Callable[[list[Any]], Any],
        *,
        trim_tokens_to_summarize: int | None = None,
        timeout: float | None = TIMEOUT,
    ) -> None:
        check_settings(timeout, trim_tokens_to_summarize=trim_tokens_to_summarize)
        runnable = _runnable_of(function)
        self._trim = trim_tokens_to_summarize
        self._timeout = timeout
        self._model = _callable_either_way(runnable)
        self.name: str = getattr(function, "__name__", None) or type(function).__name__
        code: Any = getattr(runnable, "func", None) or getattr(runnable, "afunc", None)
        code = code or type(runnable)
        qualname = getattr(code, "__qualname__", self.name)
        place = f"{getattr(code, '__module__', '')}.{qualname}"
        self.identity = f"{place} {_hash_of_code(getattr(code, '__code__', None))} {self._trim}"

    async def _write(self, request: SummaryRequest, calls: ModelCalls) -> str:
        request = replace(request, form="whole")
        summary = request.summary_so_far
        # Each text may also tell of earlier readings, so it is compared with all of the entries.
        check = partial(reason_not_a_summary, request=request)
        for piece in readings(request.entries, self._trim, request.count):
            messages = _with_summary_first(summary, piece)
            if self._trim is None and request.tokens:  # all are read at once, and were counted
                read_tokens = request.tokens
            else:
                read_tokens = calls.size(piece)
            size = read_tokens + request.count(summary)
            summary = await calls.ask(messages, check, size=size)
        return summary


def _hash_of_code(code: CodeType | None) -> str:
    """Hash what a function does, as two lambdas may have one name; empty without code.

    Names, plain constants and inner functions count. The values that a closure holds do not.
    """
    if code is None:
        return ""
    inner = [_hash_of_code(part) for part in code.co_consts if isinstance(part, CodeType)]
    plain = [part for part in code.co_consts if isinstance(part, (str, bytes, int, float))]
    parts = (code.co_code, code.co_names, plain, inner)
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _with_summary_first(summary: str, messages: list[BaseMessage]) -> list[BaseMessage]:
    """Return messages with the summary so far before them, if there is one."""
    from langchain_core.messages import HumanMessage

    if not summary:
        return messages
    mark = {"lc_source": "summarization"}
    so_far = HumanMessage(f"{SUMMARY_LINE}\n\n{summary}", additional_kwargs=mark)
    return [so_far, *messages]


def _runnable_of(function: Any) -> Runnable[Any, Any]:
    from langchain_core.runnables.base import coerce_to_runnable

    try:
        runnable: Runnable[Any, Any] = coerce_to_runnable(function)
    except (TypeError, ValueError) as error:
        raise PolicyError(
            f"a summarizer must be callable with a list of messages, and {function!r} is not"
        ) from error
    return runnable


def _callable_either_way(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Give a function that is only sync, or only async, its other form."""
    from langchain_core.runnables.base import RunnableLambda

    is_sync = hasattr(runnable, "func")
    is_async = hasattr(runnable, "afunc")
    if is_async and not is_sync:
        return RunnableLambda(
            lambda messages: on_own_loop(lambda: runnable.ainvoke(messages)), runnable.ainvoke
        )
    if is_sync and not is_async:
        # Not in a thread of the loop's pool: the loop's end would wait for a function that hangs.
        function: Any = getattr(runnable, "func", None)
        return RunnableLambda(
            function, lambda messages: await_in_daemon(lambda: runnable.invoke(messages))
        )
    return runnable


def readings(
    entries: Sequence[Message],
    room: int | None,
    count: Callable[[str], int],
    size: Callable[[Message], int] | None = None,
    frame: int = 0,
) -> Iterator[list[BaseMessage]]:
    """Return all entries as LangChain messages, in as few readings of `room` tokens as it takes.

    Args:
        entries: the messages, oldest first.
        room: tokens of one reading. None puts all in one reading, and counts nothing.
        count: tokens of a text.
        size: tokens of a message. Default: those of its text.
        frame: tokens around each message.
    """
    if room is None:
        pieces = [[Fragment(entry, "", 0) for entry in entries]]
    else:
        size = size or (lambda entry: count(entry.reading))
        fragments = [Fragment(entry, entry.reading, size(entry)) for entry in entries]
        pieces = divide(fragments, room, count, lambda _: frame)
    for piece in filter(None, pieces):
        torn = _misses_calls_or_results(_whole_messages(piece))
        yield [_message(fragment, torn) for fragment in piece]


def _whole_messages(piece: Sequence[Fragment]) -> list[Message]:
    """Return the messages of which a reading has more than a fragment."""
    return [fragment.entry for fragment in piece if not fragment.label]


def _misses_calls_or_results(entries: Sequence[Message]) -> bool:
    """Tell whether a call has no result among these messages, or a result no call."""
    waiting = set[str]()
    admitted_without_call = set[str]()
    for entry in entries:
        if entry.calls or entry.answers:
            calls = {call.id for call in entry.calls if call.id}
            answers = set(entry.answers)
            if calls & waiting or not answers <= waiting | calls | admitted_without_call:
                return True
            waiting = (waiting | calls) - answers
        if entry.role == "assistant":
            admitted_without_call = {""}  # a result without an id answers the newest message
    return bool(waiting)


def _message(fragment: Fragment, torn: bool) -> BaseMessage:
    """Make a message of a reading that providers accept.

    A fragment of a message becomes text. In a `torn` reading, some calls and results are apart, for
    example because an exchange is larger than a reading. Then all calls and results become text.
    """
    entry = fragment.entry
    message = message_of(entry)
    is_fragment = bool(fragment.label)
    if not is_fragment and not (torn and (entry.calls or entry.answers)):
        return message
    from langchain_core.messages import AIMessage, HumanMessage

    if is_fragment:
        text = f"[part {fragment.label}]\n{fragment.text}"
    else:
        calls = [f"[call of {call.name}] {call.args}" for call in entry.calls]
        text = "\n".join([entry.text, *calls])
    if entry.role == "assistant":
        return AIMessage(text, id=message.id)
    label = "[result of a tool]\n" if entry.role == "tool" else ""
    return HumanMessage(f"{label}{text}", id=message.id)


def on_own_loop(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return the answer of an async call, which runs on a loop of its own in a daemon thread.

    It is for callers that have no loop, or must not block theirs.
    """

    async def call_on_loop() -> Any:
        return await call()

    return call_within(lambda: asyncio.run(call_on_loop()), seconds=FOREVER_SECONDS)
