"""What the model sees of channels that keep every message: remembered, so that it is made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import call, is_
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus.compactor.agent_state import Held
from conspectus.tokens.tally import fingerprint

THREADS = 64
"""Views remembered at most; the one used least recently goes first."""

MESSAGES = 262_144
"""Messages in the channels of all views together, at most; a single longer one is remembered."""


@dataclass(frozen=True, slots=True)
class _View:
    """One view.

    Attributes:
        head: the record in force.
        channel: the messages of the channel; weak, so that none is kept alive.
        marks: fingerprints of the same, by which they are known after a checkpoint.
        parts: the view: places in the channel, and messages that stand nowhere in it.
    """

    head: str
    channel: list[ref[BaseMessage]]
    marks: list[int]
    parts: list[int | BaseMessage]


class Views:
    """The views of many threads: bounded; a channel that was changed is noticed.

    A channel that has only grown is compared by identity, some 20 nanoseconds a message; one that
    comes back from a checkpoint as other objects by fingerprints, some 3 microseconds a message.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[str, _View] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def messages(self) -> int:
        """Messages in the channels of all views together."""
        return sum(len(view.marks) for view in tuple(self._threads.values()))

    def keep(self, held: Held, channel: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> None:
        """Remember the view of a channel as it is now."""
        places = {id(message): place for place, message in enumerate(channel)}
        parts = [places.get(id(message), message) for message in view]
        marks = [fingerprint(message) for message in channel]
        self._put(held, _View(held.head_id, [*map(ref, channel)], marks, parts))

    def find(self, held: Held, channel: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The view of a channel that has only grown since; None if it must be made anew."""
        with self._lock:
            known = self._threads.get(held.name)
        if known is None or known.head != held.head_id:
            return None
        count = len(known.marks)
        if count > len(channel):
            return None
        before = channel[:count]
        if not all(map(is_, before, map(call, known.channel))):
            if [*map(fingerprint, before)] != known.marks:
                return None
            self._put(held, _View(known.head, [*map(ref, before)], known.marks, known.parts))
        seen = [channel[part] if isinstance(part, int) else part for part in known.parts]
        return [*seen, *channel[count:]]

    def _put(self, held: Held, view: _View) -> None:
        with self._lock:
            self._threads.pop(held.name, None)
            self._threads[held.name] = view
            while len(self._threads) > 1 and (
                len(self._threads) > THREADS or self.messages > MESSAGES
            ):
                self._threads.popitem(last=False)


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
    there = {message.id for message in sent}  # it may be a view already
    before: list[str | None] = []
    for message in view:
        if message.id not in own and message.id not in there:
            last = next((n for n, m in enumerate(out) if before and m.id == before[-1]), -1)
            out.insert(last + 1, message)
        before.append(message.id)
    return out
