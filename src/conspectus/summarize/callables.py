"""The summariser that is a user's own function: messages in, text out, as LangChain has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from conspectus._core.records import Cost
from conspectus._drive import Flow, Io, arun, run
from conspectus._langchain import is_message
from conspectus.errors import PolicyError, SummaryError
from conspectus.events import SummarizerCall, observing
from conspectus.messages import SUMMARY_LINE, Entry
from conspectus.summarize.base import Summary, SummaryRequest
from conspectus.summarize.calls import call_config, cost_fields, outcome_of
from conspectus.summarize.chunks import Part, divide, texts_of
from conspectus.summarize.provider_errors import explained

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable


class CallableSummarizer:
    """Has a function or Runnable write the summary.

    It gets LangChain messages: the summary so far, where there is one, as a summary message, then
    what leaves the view. What it returns is the new summary. With a reading size, a longer span is
    handed over in several calls, each with the summary that the one before returned: all is read.

    Args:
        function: takes a list of messages and returns text; sync or async, or a LangChain
            Runnable. An async one works without an event loop as well, in a thread of its own.
        trim_tokens_to_summarize: tokens of messages in one call; what is above it is read in
            further calls. Default: everything in one call.
        timeout: seconds for each call; None for no limit.

    Raises:
        PolicyError: it can be neither called nor invoked; the size is no whole number above 0.

    Example:
        >>> CallableSummarizer(lambda messages: f"{len(messages)} messages").name
        '<lambda>'
    """

    def __init__(
        self,
        function: Runnable[Any, Any] | Callable[[list[Any]], Any],
        *,
        trim_tokens_to_summarize: int | None = None,
        timeout: float | None = 120.0,
    ) -> None:
        trim = trim_tokens_to_summarize
        if trim is not None and (isinstance(trim, bool) or not isinstance(trim, int) or trim < 1):
            raise PolicyError(f"trim_tokens_to_summarize must be at least 1 token, got {trim!r}.")
        from langchain_core.runnables.base import coerce_to_runnable

        try:
            self._runnable: Runnable[Any, Any] = coerce_to_runnable(function)
        except (TypeError, ValueError) as error:
            raise PolicyError(
                f"a summarizer must be callable with a list of messages, and {function!r} is not"
            ) from error
        self._only_async = getattr(self._runnable, "func", self) is None or (
            not hasattr(self._runnable, "func") and hasattr(self._runnable, "afunc")
        )
        self._name = getattr(function, "__name__", None) or type(function).__name__
        self._trim, self._timeout = trim, timeout

    @property
    def name(self) -> str:
        """Name of the function, or of the Runnable's class."""
        return self._name

    @property
    def identity(self) -> str:
        """Its module and name, and the size of a reading."""
        function = getattr(self._runnable, "func", None) or getattr(self._runnable, "afunc", None)
        whose = function if function is not None else type(self._runnable)
        module = getattr(whose, "__module__", "")
        return f"{module}.{getattr(whose, '__qualname__', self._name)} {self._trim}"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise.

        Raises:
            SummarizerTimeout: no answer came in time.
            SummaryError: it failed, or returned something that is no text.
        """
        return run(self.summarize_flow(request))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """`summarize` on an event loop."""
        return await arun(self.summarize_flow(request))

    def summarize_flow(self, request: SummaryRequest) -> Flow[Summary]:
        """Summarise, step by step for a driver."""
        text, cost = request.standing, Cost()
        for piece in self._readings(request):
            given = [_standing(text), *piece] if text else piece
            sent = sum(request.count(str(message.content)) for message in given)
            with observing(SummarizerCall, summarizer=self._name) as seen:
                try:
                    answer = yield self._call(given)
                except Exception as error:
                    failure = explained(
                        error,
                        self._name,
                        self._timeout,
                        check="the function and what it calls",
                        retry_unknown=False,
                    )
                    seen.tell(outcome=outcome_of(failure))
                    failure.cost = cost + Cost(1).asked_of(self._name)
                    try:
                        raise failure from error
                    finally:
                        del failure  # it holds this frame
                if not isinstance(answer, str):
                    seen.tell(outcome="rejected")
                    raise SummaryError(
                        f"{self._name} must return text, and returned {type(answer).__name__}"
                    )
                text = answer.strip()
                spent = Cost(1, sent, request.count(text), estimated_calls=1)
                seen.tell(**cost_fields(spent))
            cost += spent.asked_of(self._name)
        return Summary(text, tuple(entry.key for entry in request.entries), cost)

    def _call(self, given: list[BaseMessage]) -> Io:
        runnable = self._runnable

        def call() -> Any:
            if self._only_async:
                return apart(lambda: runnable.ainvoke(given, config=call_config()))
            return runnable.invoke(given, config=call_config())

        return Io(call, lambda: runnable.ainvoke(given, config=call_config()), self._timeout)

    def _readings(self, request: SummaryRequest) -> Iterator[list[BaseMessage]]:
        if self._trim is None:
            if request.entries:
                yield [message_of(entry) for entry in request.entries]
            return
        yield from readings(request.entries, self._trim, request.count)


def readings(
    entries: Sequence[Entry],
    room: int,
    count: Callable[[str], int],
    size: Callable[[Entry], tuple[int, int]] | None = None,
) -> Iterator[list[BaseMessage]]:
    """Return all entries as LangChain messages, in as many readings as it takes.

    Args:
        entries: what is to be read.
        room: tokens of one reading.
        count: tokens of a text.
        size: tokens of a message, and of its frame alone. Default: those of its text, and none.
    """
    messages = [message_of(entry) for entry in entries]
    texts = texts_of(entries, size or (lambda entry: (count(entry.reading), 0)))
    for piece in divide(texts, room, count):
        yield [_part(messages[part.index], part, texts[part.index].text) for part in piece]


def message_of(entry: Entry) -> BaseMessage:
    """Return the original as a LangChain message, under the id that summaries cite."""
    source = entry.source
    if is_message(source):
        return source
    from langchain_core.messages import HumanMessage, convert_to_messages

    try:
        return convert_to_messages([dict(source)])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return HumanMessage(entry.reading, id=entry.id)


def _part(message: BaseMessage, part: Part, text: str) -> BaseMessage:
    """Return a message, or a part of a long one.

    The text of the parts has the calls.
    """
    if not part.label:
        return message
    shown = f"[part {part.label}]\n{text[part.start : part.stop]}"
    changed: dict[str, Any] = {"content": shown}
    if getattr(message, "tool_calls", None):
        changed |= {"tool_calls": [], "additional_kwargs": {}}
    return message.model_copy(update=changed)


def _standing(text: str) -> BaseMessage:
    from langchain_core.messages import HumanMessage

    return HumanMessage(
        f"{SUMMARY_LINE}\n\n{text}", additional_kwargs={"lc_source": "summarization"}
    )


def apart(call: Callable[[], Any]) -> Any:
    """Return the answer of an async call to a caller that cannot wait for it.

    It has no loop, or its loop must not stand still.
    """
    import asyncio
    import contextvars
    import threading

    box: dict[str, Any] = {}
    context = contextvars.copy_context()

    async def ask() -> Any:
        return await call()

    def work() -> None:
        try:
            box["answer"] = asyncio.run(ask())
        except BaseException as error:
            box["failure"] = error

    thread = threading.Thread(target=context.run, args=(work,), daemon=True)
    thread.start()
    thread.join()
    if "failure" in box:
        raise box["failure"]
    return box["answer"]
