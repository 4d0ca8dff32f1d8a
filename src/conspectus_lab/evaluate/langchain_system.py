"""Measure LangChain's own middleware with a scripted summariser, and plain truncation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain.agents.middleware import SummarizationMiddleware
from langchain.agents.middleware.types import AgentState
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from conspectus.messages import is_summary_message
from conspectus_lab.evaluate.picker import pick
from conspectus_lab.evaluate.systems import Compacted, Family, Thread, gone
from conspectus_lab.evaluate.texts import TokenCount

TRIM = 4_000
"""Default tokens that LangChain's middleware gives to a summariser."""


@dataclass(frozen=True, slots=True)
class LangChainSystem:
    """LangChain's middleware beside ours.

    Attributes:
        keep: the tail that stays, in LangChain's form.
        trim: its `trim_tokens_to_summarize`, in tokens; None for no limit.
        count: the token counter.
        name: its name in results.
    """

    keep: tuple[str, int] = ("messages", 20)
    trim: int | None = TRIM
    count: TokenCount = count_tokens_approximately
    name: str = "langchain"
    family: Family = "langchain"
    sizes: tuple[int, ...] | None = None

    def open(self, summary_tokens: int) -> Thread:
        """Open a conversation without a summary."""
        return _Thread(self, summary_tokens)


class _Thread:
    """One conversation, which continues with the last view and the new messages."""

    def __init__(self, system: LangChainSystem, summary_tokens: int) -> None:
        self._read: list[BaseMessage] = []
        self._shown: list[BaseMessage] = []
        self._sent = 0
        self._count = system.count

        def summarise(messages: Sequence[BaseMessage]) -> str:
            self._read = list(messages)
            return pick(messages, summary_tokens)

        self._middleware = _middleware(system, summarise)

    def compact(self, messages: Sequence[BaseMessage]) -> Compacted:
        """Compact the last view and the new messages."""
        before = [*self._shown, *messages[self._sent :]]
        self._read = []
        started = time.perf_counter()
        after = _after(self._middleware, before)
        seconds = time.perf_counter() - started
        self._shown, self._sent = after, len(messages)
        left = gone(messages, after)
        read = {id(message) for message in self._read}
        summary = next((m for m in after if is_summary_message(m)), None)
        return Compacted(
            messages=after,
            done=after != before,
            evicted=len(left),
            read=sum(id(message) in read for message in left),
            summary_tokens=0 if summary is None else self._count([summary]),
            seconds=seconds,
        )

    def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(frozen=True, slots=True)
class TailSystem:
    """Plain truncation, cut where LangChain's middleware would cut.

    Attributes:
        keep: the tail that stays, in LangChain's form.
        count: the token counter.
        name: its name in results.
    """

    keep: tuple[str, int] = ("messages", 20)
    count: TokenCount = count_tokens_approximately
    name: str = "tail"
    family: Family = "tail"
    sizes: tuple[int, ...] | None = (0,)

    def open(self, summary_tokens: int) -> Thread:
        """Open a conversation: itself, as it has no memory."""
        return self

    def compact(self, messages: Sequence[BaseMessage]) -> Compacted:
        """Cut the conversation so far."""
        started = time.perf_counter()
        after = tail_of(messages, self.keep, self.count)
        seconds = time.perf_counter() - started
        left = gone(messages, after)
        return Compacted(after, done=bool(left), evicted=len(left), seconds=seconds)

    def close(self) -> None:
        """Do nothing: nothing is open."""


def tail_of(
    messages: Sequence[BaseMessage],
    keep: tuple[str, int],
    count: TokenCount = count_tokens_approximately,
) -> list[BaseMessage]:
    """Return the newest messages that stay when LangChain's middleware cuts."""
    middleware = _middleware(LangChainSystem(keep, None, count), lambda messages: "-")
    after = _after(middleware, messages)
    return [message for message in after if not is_summary_message(message)]


def _middleware(system: LangChainSystem, summarise: Any) -> SummarizationMiddleware[Any, Any]:
    more: dict[str, Any] = {}
    if system.count is not count_tokens_approximately:  # its own default is tuned to the model
        more["token_counter"] = system.count
    return SummarizationMiddleware(
        FakeListChatModel(responses=["never asked"]),
        trigger=("messages", 1),
        keep=cast("Any", system.keep),
        trim_tokens_to_summarize=system.trim,
        summarizer=summarise,
        **more,
    )


def _after(
    middleware: SummarizationMiddleware[Any, Any], messages: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """Return the messages that the middleware leaves in view."""
    state = cast("AgentState[Any]", {"messages": list(messages)})
    update = middleware.before_model(state, cast("Runtime[Any]", None))
    if update is None:
        return list(messages)
    return [message for message in update["messages"] if not isinstance(message, RemoveMessage)]
