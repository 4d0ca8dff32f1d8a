"""Put the systems to compare behind the same small interface: one compaction of a history."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, messages_from_dict
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.archive import Archive, Scope
from conspectus.engine import Compactor
from conspectus.errors import InputError, NotFoundError, SummaryError
from conspectus.messages import is_summary_message
from conspectus.model import EmbeddedSummarizer
from conspectus_lab.summarise import as_callable

THREAD = "measured"
Keep = tuple[str, int]
"""The newest history that stays, as `("messages", 20)` or `("tokens", 4_000)`."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of one compaction of a history.

    Attributes:
        messages: the model's view.
        evicted: messages of the history that are not in `messages`, not even clipped.
        read: those of them that the summariser read whole.
        recoverable: those of them that came back from the archive unchanged.
        summary_tokens: size of the whole summary message; 0 without one.
        seconds: that it took.
        recall: recalls originals for a query within so many tokens; empty for none.
    """

    messages: list[BaseMessage]
    evicted: int = 0
    read: int = 0
    recoverable: int = 0
    summary_tokens: int = 0
    seconds: float = 0.0
    recall: Callable[[str, int], str] = lambda query, tokens: ""


class System(Protocol):
    """One way to compact.

    Attributes:
        name: its name in results.
        ours: whether it can fail a comparison with an earlier measurement.
    """

    @property
    def name(self) -> str: ...

    @property
    def ours(self) -> bool: ...

    def compacted(
        self, messages: Sequence[BaseMessage], keep: Keep, summary_tokens: int
    ) -> AbstractContextManager[Compacted]:
        """Compact a whole history, whatever its size; recall works until the context ends."""
        ...


@dataclass(frozen=True, slots=True)
class ConspectusSystem:
    """A `Compactor` with its archive in memory.

    Attributes:
        name: its name in results.
        settings: arguments of `Compactor` that replace those of the measurement.
    """

    name: str = "conspectus"
    settings: Mapping[str, Any] = field(default_factory=dict)
    ours: bool = True

    def compactor(
        self, keep: Keep, summary_tokens: int, archive: Archive | None = None
    ) -> Compactor:
        """Make a compactor with these settings and this limit of a summary.

        Raises:
            PolicyError: a setting is invalid.
        """
        settings: dict[str, Any] = {
            "keep": keep,
            "max_summary_tokens": summary_tokens,
            "token_counter": count_tokens_approximately,
            "on_failure": "raise",
            **self.settings,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return Compactor(archive=archive, **settings)

    @contextmanager
    def compacted(
        self, messages: Sequence[BaseMessage], keep: Keep, summary_tokens: int
    ) -> Iterator[Compacted]:
        """Compact a history; see `System`.

        Raises:
            SummaryError: no summary could be made, so that a measurement would mislead.
        """
        with Archive.open("memory:") as archive:
            compactor = self.compactor(keep, summary_tokens, archive)
            started = time.perf_counter()
            result = compactor.compact(messages, thread_id=THREAD, force=True)
            seconds = time.perf_counter() - started
            if result.failed is not None:
                raise SummaryError(f"nothing can be measured: {result.reason}")
            rows = archive.export(Scope("local", THREAD))
            covered = set(result.record.covers) if result.record else set()
            read = {row["id"] for row in rows if row["key"] in covered}
            kept = [messages_from_dict([row["message"]])[0] for row in rows]
            left = gone(messages, result.messages)

            def recall(query: str, tokens: int) -> str:
                try:
                    return compactor.recall(query, thread_id=THREAD, tokens=tokens).text
                except (InputError, NotFoundError):
                    return ""

            yield Compacted(
                messages=list(result.messages),
                evicted=len(left),
                read=sum(message.id in read for message in left),
                recoverable=sum(message in kept for message in left),
                summary_tokens=summary_size(result.messages),
                seconds=seconds,
                recall=recall,
            )


@dataclass(frozen=True, slots=True)
class LangChainSystem:
    """LangChain's middleware as it comes, with the embedded summariser in the place of a model."""

    name: str = "langchain"
    ours: bool = False

    @contextmanager
    def compacted(
        self, messages: Sequence[BaseMessage], keep: Keep, summary_tokens: int
    ) -> Iterator[Compacted]:
        """Compact a history; see `System`."""
        read: dict[str, int] = {}
        write = as_callable(
            EmbeddedSummarizer(),
            summary_tokens,
            lambda text: count_tokens_approximately([HumanMessage(text)]),
            on_read=read.update,
        )
        middleware: Any = SummarizationMiddleware(
            FakeListChatModel(responses=["never asked"]),
            trigger=("messages", 1),
            keep=cast("Any", keep),
            summarizer=write,
        )
        started = time.perf_counter()
        update = middleware.before_model({"messages": list(messages)}, None)
        seconds = time.perf_counter() - started
        after = list(messages) if update is None else update["messages"]
        view = [message for message in after if not isinstance(message, RemoveMessage)]
        left = gone(messages, view)
        yield Compacted(
            messages=view,
            evicted=len(left),
            read=sum(message.id in read for message in left),
            summary_tokens=summary_size(view),
            seconds=seconds,
        )


def gone(history: Sequence[BaseMessage], view: Sequence[Any]) -> list[BaseMessage]:
    """List the messages of a history that have left; a clipped one has not."""
    there = {message.id for message in view}
    return [message for message in history if message.id not in there]


def summary_size(view: Sequence[Any]) -> int:
    """Count the tokens of the summary message in a view."""
    return sum(count_tokens_approximately([m]) for m in view if is_summary_message(m))
