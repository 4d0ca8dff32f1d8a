"""What a process remembers of sessions between calls: failures, pauses, and histories as read.

With an archive it holds no records. Without one it holds them, so that a history sent whole again
is not summarised again.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import is_
from time import monotonic, sleep
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Scope
from conspectus.bridge import home, io
from conspectus.core.items import Size
from conspectus.core.records import Draft, Record
from conspectus.engine.view import History, like_of, reported, reports_of
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Source,
    is_summary_message,
    read_messages,
)
from conspectus.model.base import LastRequest
from conspectus.tokens import Report, TokenMeter

THREADS, MESSAGES = 256, 262_144
"""Most sessions in memory, and most messages of histories that were read, beside the newest."""

KEPT = 8  # Drafts, and chains, in memory for each session
LONGEST_REST = 3_600.0  # Most seconds that a provider's header can switch its summariser off for


LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two looks at a draft that another worker is writing, and until its task is taken
to be lost."""

_WRITING: dict[tuple[int, Scope, str], tuple[int, object]] = {}
"""The drafts that workers of this process are writing, each with the thread that it needs."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WRITING.clear)


@dataclass(frozen=True, slots=True)
class FailedSummary:
    """A summary that failed, or that a person refused."""

    head: str | None
    asked: Size  # the size of the history as its trigger counts
    size: Size  # the size as the meter counts
    over: bool  # it did not fit the window
    why: str = ""  # reason to give while nothing is tried; empty if a summary failed


@dataclass(slots=True)
class SessionMemory:
    """What this process remembers of one session."""

    # where there is no archive, the records in force, other chains by the name of their head, and
    # drafts by the name of their plan
    chain: tuple[Record, ...] = ()
    chains: Newest[str, tuple[Record, ...]] = field(default_factory=lambda: Newest(KEPT))
    drafts: Newest[str, Draft] = field(default_factory=lambda: Newest(KEPT))
    failed: FailedSummary | None = None  # the latest summary, if it failed
    last_request: LastRequest | None = None  # the agent's last request that was answered
    answered: int = 0  # number of its requests that were

    def failure(self, head: str | None, messages: int, over: bool) -> FailedSummary | None:
        """Return the latest failure, if it is of the history as it is now.

        A history that no longer fits the window is tried once more. A shorter one has gone back.
        """
        failed = self.failed
        if failed is None or failed.head != head or messages < failed.size.messages:
            return None
        return None if over and not failed.over else failed


class Memory:
    """The bounded memory of a process: of sessions, summarisers, and summaries under way."""

    def __init__(self) -> None:
        self._sessions: Newest[Scope, SessionMemory] = Newest(THREADS)
        self.histories: Newest[Scope, Seen] = Newest(THREADS, MESSAGES, len)
        self._resting: dict[str, float] = {}
        self._said: set[str] = set()
        self.lock = threading.Lock()

    def of(self, scope: Scope) -> SessionMemory:
        return self._sessions.get_or_make(scope, SessionMemory)

    def is_news(self, sentence: str) -> bool:
        """Return whether a sentence is new in all sessions; from now on it is not."""
        with self.lock:
            news = sentence not in self._said
            self._said.add(sentence)
            return news

    def rest(self, summarizer: str, seconds: float) -> None:
        """Leave a summariser alone, in all sessions, as long as its provider has asked."""
        with self.lock:
            until = monotonic() + min(seconds, LONGEST_REST)
            self._resting[summarizer] = max(until, self._resting.get(summarizer, until))

    def rests(self, summarizer: str) -> float:
        """Return the seconds for which a summariser is still left alone."""
        return max(0.0, self._resting.get(summarizer, 0.0) - monotonic())


@asynccontextmanager
async def alone(store: object, scope: Scope, draft: str) -> AsyncIterator[None]:
    """Wait until no other worker of this process writes a draft of this name into a store.

    Nobody waits for work that needs the thread which would wait.
    """
    key, mine, until = (id(store), scope, draft), (home(), object()), monotonic() + LONGEST_LOOK

    def look(needs: int) -> bool:
        if needs == home():
            return False
        sleep(LOOK_AGAIN)
        return True

    while (writer := _WRITING.setdefault(key, mine)) is not mine and monotonic() < until:
        if not await io(partial(look, writer[0]), partial(asyncio.sleep, LOOK_AGAIN, True)):
            break
    try:
        yield
    finally:
        if _WRITING.get(key) is mine:
            del _WRITING[key]


@dataclass(frozen=True, slots=True)
class Seen:
    """A history with nothing due, as it was sent and read, and its view.

    A loop sends its history again and again, a little longer each time. Whether its beginning is
    the one that was read is told by copies of what the messages held, so that a change in place is
    noticed.
    """

    sent: list[Source]  # the caller's messages, and copies of what they held
    held: list[Any]
    pointer: object  # what the archive, or this process's memory, said was in force
    chain: tuple[Record, ...]
    sources: list[Source]
    sizes: list[int]
    reports: list[Report]  # the models' reports of usage among all of them
    foreign: bool
    counts: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.sent)

    @classmethod
    def of(cls, messages: Sequence[Source], history: History, pointer: object) -> Seen:
        return cls(
            sent=list(messages),
            held=[_copied(_state(one)) for one in messages],
            pointer=pointer,
            chain=history.chain,
            sources=history.sources,
            sizes=[one.tokens for one in history.places],
            reports=reports_of(history),
            foreign=history.foreign,
            counts=history.counts,
        )

    def followed(self, messages: Sequence[Source], meter: TokenMeter) -> Seen | None:
        """Return the history with the messages after those that were sent.

        None if the messages do not begin with those, or if a new one may change how earlier ones
        are seen: then all must be read. Equal messages may be other objects, as in a request that
        was read anew; the view has those then.

        Raises:
            MessageError: a new message cannot be understood.
        """
        count = len(self.sent)
        if not isinstance(messages, (list, tuple)) or len(messages) < count:
            return None
        now, later = messages[:count], messages[count:]
        try:
            if not all(
                type(one) is type(before) and _state(one) == held
                for one, before, held in zip(now, self.sent, self.held, strict=True)
            ):
                return None
        except Exception:  # values that cannot be compared, such as arrays
            return None
        if all(map(is_, now, self.sent)):
            if not later:
                return self
            sources = self.sources
        else:
            own = {id(before): one for one, before in zip(now, self.sent, strict=True)}
            if len(own) < count:  # one object stood in two places
                return None
            sources = [own.get(id(one), one) for one in self.sources]
        if later and like_of(later) is not like_of(self.sent):
            return None
        entries = read_messages(later)
        for entry in entries:
            mark = entry.text.startswith(SUMMARY_LINE) or POINTER in entry.reading
            if mark or is_summary_message(entry.source):
                return None
        before = self.chain[-1].messages_after if self.chain else 0
        tokens, sizes, reports = sum(self.sizes), [*self.sizes], [*self.reports]
        for message, entry in zip(later, entries, strict=True):
            usage = reported(message)
            if usage and not self.foreign and len(sizes) >= before:
                reports.append(Report(tokens, usage))
            sizes.append(meter.entry(entry))
            tokens += sizes[-1]
        return replace(
            self,
            sent=[*now, *later],
            held=[*self.held, *(_copied(_state(one)) for one in later)],
            sources=[*sources, *later],
            sizes=sizes,
            reports=reports,
            counts={**self.counts, "kept": self.counts["kept"] + len(later)},
        )

    def size(self, ratio: float) -> Size:
        """Return the size of the view, corrected message by message as a plan does."""
        tokens = sum(self.sizes)
        if ratio != 1.0:
            tokens = sum(math.ceil(one * ratio) for one in self.sizes)
        return Size(tokens, len(self.sizes))


def _state(message: Source) -> Any:
    """Return all that a message holds."""
    if isinstance(message, Mapping):
        return message if isinstance(message, dict) else dict(message)
    return [vars(message), getattr(message, "__pydantic_extra__", None)]


def _copied(value: Any) -> Any:
    """Copy dicts and lists; what they hold besides is compared by identity or equality."""
    if isinstance(value, Mapping):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return value
