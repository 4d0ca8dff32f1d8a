"""Put the systems to compare behind the same small interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from langchain_core.messages import BaseMessage

Family = Literal["conspectus", "langchain", "tail"]
"""Makers of a system: only our own can fail a comparison with an earlier measurement."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of one compaction of a history.

    Attributes:
        messages: the model's view.
        done: anything was compacted.
        evicted: messages of the history that are not in `messages`, not even shown short.
        read: those of them that the summariser read whole.
        recoverable: those of them that came back from the archive unchanged.
        cited: those of them that the summary names, so that they can be recalled by id.
        summary_tokens: size of the whole summary message; 0 without one.
        calls: calls of a model.
        input_tokens, output_tokens: tokens to and from a model.
    """

    messages: list[BaseMessage]
    done: bool = False
    evicted: int = 0
    read: int = 0
    recoverable: int = 0
    cited: int = 0
    summary_tokens: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class Thread(Protocol):
    """One conversation under one system."""

    def compact(self, messages: Sequence[BaseMessage]) -> Compacted:
        """Compact the whole conversation so far, whatever its size."""
        ...

    def close(self) -> None:
        """Free the thread's resources."""
        ...


@runtime_checkable
class Recalling(Protocol):
    """A thread whose originals can be recalled."""

    def recall(self, query: str, tokens: int) -> str:
        """Recall originals in a message of at most so many tokens."""
        ...


class System(Protocol):
    """One way to compact.

    Attributes:
        name: its name in results.
        family: its makers.
        keep: the newest history that stays, as `("messages", N)` or `("tokens", N)`.
        sizes: limits of its summary in tokens, each measured by itself. None for those of the
            measurement.
    """

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> Family: ...

    @property
    def keep(self) -> tuple[str, int]: ...

    @property
    def sizes(self) -> tuple[int, ...] | None: ...

    def open(self, summary_tokens: int) -> Thread:
        """Open a conversation without a compaction."""
        ...


def written(keep: tuple[str, int]) -> str:
    """Write a kept tail as `messages:20`."""
    return f"{keep[0]}:{keep[1]}"


def gone(history: Sequence[BaseMessage], shown: Sequence[BaseMessage]) -> list[BaseMessage]:
    """List the messages of a history that have left; one shown short has not."""
    there = {message.id for message in shown}
    return [message for message in history if message.id not in there]
