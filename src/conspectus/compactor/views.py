"""What is remembered of channels as they grow: what the model sees of those that keep every
message, and which originals are within reach."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import call, is_
from typing import Generic, TypeVar
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus.compactor.agent_state import Held

THREADS = 64
"""Views remembered at most; the one used least recently goes first."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    head: str
    channel: list[ref[BaseMessage]]
    value: T


class Grown(Generic[T]):
    """Something known of the channels of many threads, which holds while they only grow.

    Bounded; a channel that was changed, or has another head, is noticed.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[str, _Known[T]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, held: Held, channel: Sequence[BaseMessage], value: T) -> None:
        """Remember something of a channel as it is now."""
        made = _Known(held.head_id, [ref(message) for message in channel], value)
        with self._lock:
            self._threads.pop(held.name, None)
            self._threads[held.name] = made
            while len(self._threads) > THREADS:
                self._threads.popitem(last=False)

    def find(self, held: Held, channel: Sequence[BaseMessage]) -> tuple[T, int] | None:
        """What is known of a channel that has only grown since, and its length then."""
        with self._lock:
            known = self._threads.get(held.name)
        if known is None or known.head != held.head_id:
            return None
        if not known.channel or len(known.channel) > len(channel):
            return None
        if not all(map(is_, channel, map(call, known.channel))):
            return None
        return known.value, len(known.channel)


class Views(Grown[list[BaseMessage]]):
    """What the model sees of channels that keep every message."""

    def view(self, held: Held, channel: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The view of a channel that has only grown since; None if it must be made anew."""
        found = self.find(held, channel)
        return None if found is None else [*found[0], *channel[found[1] :]]
