"""Cache views, and records in reach, of channels that only grow.

With `history="preserve"` the channel is never rewritten. Its view is known by identity while it
grows, and by fingerprints once it comes back from a checkpoint. Records are about the channel, so
that is folded, and other middleware's changes of a request are laid over the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import call, is_
from typing import Generic, TypeVar
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus._newest import Newest
from conspectus.archive import Scope
from conspectus.core.fold import place_of_summary
from conspectus.tokens.tally import fingerprint

THREADS = 64
"""Most threads in a cache; the least recently used goes first."""

MESSAGES = 262_144
"""Most messages in the channels of all threads; a single longer channel is cached."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    """A cached value of one channel.

    Attributes:
        channel: weak references to the messages of the channel.
        marks: their fingerprints, by which they are known after a checkpoint.
    """

    head: str
    channel: list[ref[BaseMessage]]
    marks: list[int]
    value: T


class Grown(Generic[T]):
    """A bounded cache over the channels of many threads, valid while they only grow.

    A grown channel is compared by identity, at some 20 ns a message; one that comes back from a
    checkpoint by fingerprints, at some 3 µs a message.
    """

    def __init__(self) -> None:
        self._threads: Newest[Scope, _Known[T]] = Newest(
            THREADS, MESSAGES, lambda known: len(known.marks)
        )

    @property
    def messages(self) -> int:
        return sum(len(known.marks) for known in self._threads.values())

    def keep(self, scope: Scope, head: str, channel: Sequence[BaseMessage], value: T) -> None:
        marks = [fingerprint(message) for message in channel]
        self._threads.put(scope, _Known(head, [*map(ref, channel)], marks, value))

    def find(self, scope: Scope, head: str, channel: Sequence[BaseMessage]) -> tuple[T, int] | None:
        """Find the value of a channel that has only grown since, and its length then."""
        known = self._threads.get(scope)
        if known is None or known.head != head:
            return None
        count = len(known.marks)
        if count > len(channel):
            return None
        before = channel[:count]
        if not all(map(is_, before, map(call, known.channel))):
            if [*map(fingerprint, before)] != known.marks:
                return None
            self._threads.put(scope, replace(known, channel=[*map(ref, before)]))
        return known.value, count


class Views:
    """The views of channels: places in the channel, and messages that are not in it."""

    def __init__(self) -> None:
        self._known: Grown[list[int | BaseMessage]] = Grown()

    @property
    def messages(self) -> int:
        return self._known.messages

    def keep(
        self,
        scope: Scope,
        head: str,
        channel: Sequence[BaseMessage],
        view: Sequence[BaseMessage],
    ) -> None:
        places = {id(message): place for place, message in enumerate(channel)}
        self._known.keep(scope, head, channel, [places.get(id(one), one) for one in view])

    def find(
        self, scope: Scope, head: str, channel: Sequence[BaseMessage]
    ) -> list[BaseMessage] | None:
        """Find the view of a channel that has only grown since."""
        found = self._known.find(scope, head, channel)
        if found is None:
            return None
        parts, count = found
        seen = [channel[part] if isinstance(part, int) else part for part in parts]
        return [*seen, *channel[count:]]


def laid_over(
    view: Sequence[BaseMessage], channel: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """Lay other middleware's changes of a channel over its view.

    Messages are known by id. What the view leaves out or shows short stays so, unless others have
    changed it; a mere copy is no change. Summaries stand where they do in the view.
    """
    kept = {message.id: message for message in view}
    own = {message.id: message for message in channel}
    out = [
        _laid(message, own.get(message.id), kept.get(message.id))
        for message in sent
        if message.id is None or message.id not in own or message.id in kept
    ]
    there = {message.id for message in sent}  # it may be a view already
    before: list[str | None] = []
    for message in view:
        if message.id not in own and message.id not in there:
            last = next((n for n, m in enumerate(out) if before and m.id == before[-1]), -1)
            out.insert(max(last + 1, place_of_summary([m.type == "system" for m in out])), message)
        before.append(message.id)
    return out


def _laid(
    sent: BaseMessage, original: BaseMessage | None, shown: BaseMessage | None
) -> BaseMessage:
    if shown is None or shown is original or original is None:
        return sent
    return shown if sent is original or sent == original else sent
