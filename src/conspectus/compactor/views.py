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


def as_sent(
    view: Sequence[BaseMessage], channel: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """The view, with what other middleware has made of the channel's messages on the way.

    Middleware that stands before ours may show a message in another form, put messages between
    them, or leave some out. The records are about the channel, so it is folded as it is, and their
    changes are carried over.

    Args:
        view: what the model would see of the channel.
        channel: the messages in the state.
        sent: the messages of the request that reached us.
    """
    if len(sent) == len(channel) and all(map(is_, sent, channel)):
        return list(view)
    own = {message.id: message for message in channel}
    seen = {message.id: message for message in view if message.id in own}
    first = next((i for i, one in enumerate(view) if one.id not in own), len(view))
    before = {message.id for message in view[:first]}
    there = {message.id for message in sent}
    added = [one for one in view[first:] if one.id not in own and one.id not in there]
    out: list[BaseMessage] = []
    for message in sent:
        original = own.get(message.id)
        if original is None:
            out.append(message)
        elif message.id in seen:
            out.append(seen[message.id] if message is original else message)
    place = next((i for i, one in enumerate(out) if one.id not in before), len(out))
    out[place:place] = added
    return out
