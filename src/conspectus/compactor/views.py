"""What is remembered of channels as they grow: what the model sees of those that keep every
message, and which originals are within reach."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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


class Views:
    """The views of many threads: bounded; a channel that was changed is noticed.

    Of a view only what is not in its channel is kept alive: the summary and the clips.
    """

    def __init__(self) -> None:
        self._known: Grown[Sequence[Callable[[], BaseMessage | None]]] = Grown()

    def keep(self, held: Held, channel: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> None:
        """Remember the view of a channel as it is now."""
        refs = {id(message): ref(message) for message in channel}
        shown = [refs.get(id(message)) or partial(_itself, message) for message in view]
        self._known.keep(held, channel, shown)

    def find(self, held: Held, channel: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The view of a channel that has only grown since; None if it must be made anew."""
        found = self._known.find(held, channel)
        if found is None:
            return None
        # What is in the channel lives, so all of the view does.
        view = [one for one in map(call, found[0]) if one is not None]
        return [*view, *channel[found[1] :]]


def _itself(message: BaseMessage) -> BaseMessage:
    return message


def laid_over(
    view: Sequence[BaseMessage], channel: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """A view of a channel, made of messages that other middleware has changed, added or removed.

    What the view leaves out is left out, and what it shows short is, unless others have changed it
    already; summaries stand where they do in the view. Messages are told by their ids.
    """
    kept = {message.id: message for message in view}
    own = {message.id: message for message in channel}
    out = [
        kept.get(message.id, message) if message is own.get(message.id) else message
        for message in sent
        if message.id is None or message.id not in own or message.id in kept
    ]
    before: list[str | None] = []
    for message in view:
        if message.id not in own:
            last = next((n for n, m in enumerate(out) if before and m.id == before[-1]), -1)
            out.insert(last + 1, message)
        before.append(message.id)
    return out
