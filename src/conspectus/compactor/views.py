"""What the model sees of channels that keep every message: remembered, so that it is made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import call, is_
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus.compactor.agent_state import Held

THREADS = 64
"""Views remembered at most; the one used least recently goes first."""


@dataclass(frozen=True, slots=True)
class _View:
    head: str
    channel: list[ref[BaseMessage]]
    messages: Sequence[Callable[[], BaseMessage | None]]


class Views:
    """The views of many threads: bounded; a channel that was changed is noticed.

    Of a view only what is not in its channel is kept alive: the summary and the clips.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[str, _View] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, held: Held, channel: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> None:
        """Remember the view of a channel as it is now."""
        refs = {id(message): ref(message) for message in channel}
        shown = [refs.get(id(message)) or partial(_itself, message) for message in view]
        made = _View(held.head_id, [refs[id(message)] for message in channel], shown)
        with self._lock:
            self._threads.pop(held.name, None)
            self._threads[held.name] = made
            while len(self._threads) > THREADS:
                self._threads.popitem(last=False)

    def find(self, held: Held, channel: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The view of a channel that has only grown since; None if it must be made anew."""
        with self._lock:
            known = self._threads.get(held.name)
        if known is None or known.head != held.head_id or len(known.channel) > len(channel):
            return None
        if not all(map(is_, channel, map(call, known.channel))):
            return None
        # What is in the channel lives, so all of the view does.
        view = [one for one in map(call, known.messages) if one is not None]
        return [*view, *channel[len(known.channel) :]]


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
