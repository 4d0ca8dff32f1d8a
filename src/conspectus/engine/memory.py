"""Remember records, drafts and failures of sessions in this process, and lock their summaries.

Between processes nothing can be locked, as stores cannot compare and set. There a commit compares
the archive's pointer with its plan's, before it writes and after (`Archive.commit`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from conspectus._newest import Newest
from conspectus.archive import Scope
from conspectus.bridge import home, io
from conspectus.core.items import Size
from conspectus.core.records import Draft, Record
from conspectus.model.riding import LastRequest

if TYPE_CHECKING:
    from conspectus.engine.seen import Seen

THREADS = 256
"""Most sessions in memory; the least recently used goes first."""

MESSAGES = 262_144
"""Most messages of histories in memory, beside those of a single longer one."""

KEPT = 8
"""Drafts, and chains, in memory for each session."""

LONGEST_REST = 3_600.0
"""Most seconds that a provider's header can switch its summariser off for."""


@dataclass(frozen=True, slots=True)
class FailedSummary:
    """A summary that failed, or that a person refused.

    Attributes:
        asked: the size of the history as its trigger counts.
        size: the size as the meter counts.
        over: it did not fit the window.
        why: reason to give while nothing is tried; empty if a summary failed.
    """

    head: str | None
    asked: Size
    size: Size
    over: bool
    why: str = ""


@dataclass(slots=True)
class SessionMemory:
    """The memory of one session.

    Attributes:
        chain: the records in force, where there is no archive.
        chains: other chains by the name of their head, where there is no archive.
        failed: the latest summary, if it failed.
        last_request: the agent's last request that was answered, for a summary that follows it.
        answered: number of its requests that were.
    """

    chain: tuple[Record, ...] = ()
    chains: Newest[str, tuple[Record, ...]] = field(default_factory=lambda: Newest(KEPT))
    drafts: Newest[str, Draft] = field(default_factory=lambda: Newest(KEPT))
    failed: FailedSummary | None = None
    last_request: LastRequest | None = None
    answered: int = 0

    def failure(self, head: str | None, messages: int, over: bool) -> FailedSummary | None:
        """Return the latest failure, if it is of the history as it is now.

        A history that no longer fits the window is tried once more. A shorter one has gone back.
        """
        found = self.failed
        if found is None or found.head != head or messages < found.size.messages:
            return None
        return None if over and not found.over else found


class Memory:
    """The bounded memory of a compactor between calls.

    With an archive it holds failures and pauses alone. Without one it holds the records, so that a
    history sent whole again is not summarised again.
    """

    def __init__(self) -> None:
        self._threads: Newest[Scope, SessionMemory] = Newest(THREADS)
        self._under_way: dict[tuple[Scope, str], int] = {}
        self._resting: dict[str, float] = {}
        self._said: set[str] = set()
        self._seen: Newest[Scope, Seen] = Newest(THREADS, MESSAGES, len)
        self._lock = threading.Lock()

    def is_news(self, sentence: str) -> bool:
        """Return whether a sentence is new in all sessions; from now on it is not."""
        with self._lock:
            news = sentence not in self._said
            self._said.add(sentence)
            return news

    def seen(self, scope: Scope) -> Seen | None:
        """Return the history of a session as it was read last."""
        return self._seen.get(scope)

    def saw(self, scope: Scope, seen: Seen) -> None:
        self._seen.put(scope, seen)

    def rest(self, summarizer: str, seconds: float) -> None:
        """Leave a summariser alone, in all sessions, as long as its provider has asked."""
        with self._lock:
            until = monotonic() + min(seconds, LONGEST_REST)
            self._resting[summarizer] = max(until, self._resting.get(summarizer, until))

    def rests(self, summarizer: str) -> float:
        with self._lock:
            return max(0.0, self._resting.get(summarizer, 0.0) - monotonic())

    def begin(self, scope: Scope, plan: str) -> bool:
        """Claim the summary of a plan until `end`; return False if another worker has it."""
        with self._lock:
            if (scope, plan) in self._under_way:
                return False
            self._under_way[scope, plan] = home()
            return True

    def under_way(self, scope: Scope, plan: str) -> int | None:
        """Return the thread that has claimed the summary of a plan, or None."""
        with self._lock:
            return self._under_way.get((scope, plan))

    def end(self, scope: Scope, plan: str) -> None:
        """Release the claim on the summary of a plan."""
        with self._lock:
            self._under_way.pop((scope, plan), None)

    @property
    def any_failed(self) -> bool:
        return any(one.failed is not None for one in self._threads.values())

    def of(self, scope: Scope) -> SessionMemory:
        return self._threads.get_or_make(scope, SessionMemory)


LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two checks of a summary or notes that another worker is writing, and until its
task is taken to be lost."""


async def taken_flow(memory: Memory, scope: Scope, plan: str) -> bool:
    """Claim the summary of a plan for this worker, which must then `end` it in the memory.

    If another worker has it, wait and return False: its draft is there then, or it has failed.
    """
    if memory.begin(scope, plan):
        return True
    until = time.monotonic() + LONGEST_LOOK
    while (owner := memory.under_way(scope, plan)) is not None:
        if time.monotonic() > until or not (await _short_pause(owner)):
            break
    return False


def _short_pause(owner: int) -> Awaitable[Any]:
    """Return a step that lets the owner of a claim go on.

    It answers False if the owner waits for this thread, or its own thread has ended.
    """

    def call() -> bool:
        if owner == home() or not lives():
            return False
        time.sleep(LOOK_AGAIN)
        return True

    def lives() -> bool:
        return any(thread.ident == owner for thread in threading.enumerate())

    return io(call, lambda: asyncio.sleep(LOOK_AGAIN, lives()))
