"""Records and drafts of callers without an archive: in this process only, and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from conspectus._core.items import Size
from conspectus._core.records import Draft, Record
from conspectus._newest import Newest
from conspectus.archive import Scope
from conspectus.summarize.riding import LastRequest

THREADS = 256
"""Sessions remembered at most; the one that was used least recently goes first."""

KEPT = 8
"""Drafts, and chains, remembered of each session."""

LONGEST_REST = 3_600.0
"""Seconds that a summariser is left alone at most because its provider asks for it: nonsense in a
header must not switch it off for good."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A summary that failed, or that a person refused.

    Attributes:
        head: the record that was in force.
        asked: the size of the history as its trigger counts.
        size: and as the meter does.
        over: it did not fit the window.
        why: what is told where nothing is tried until the history has grown; empty for a summary.
    """

    head: str | None
    asked: Size
    size: Size
    over: bool
    why: str = ""


@dataclass(slots=True)
class Remembered:
    """What is remembered of one session.

    Attributes:
        chain: the records in force, where there is no archive to hold them.
        chains: earlier and other ones by the name of their head, likewise.
        drafts: its drafts, likewise.
        failed: the latest summary, if it failed; None since the latest success.
        prepared: which drafts were prepared beside the agent, where there is no archive.
        last_request: the agent's last request, where summaries may ride on it.
    """

    chain: tuple[Record, ...] = ()
    chains: Newest[str, tuple[Record, ...]] = field(default_factory=lambda: Newest(KEPT))
    drafts: Newest[str, Draft] = field(default_factory=lambda: Newest(KEPT))
    failed: Failure | None = None
    prepared: Newest[str, dict[str, Any]] = field(default_factory=lambda: Newest(KEPT))
    last_request: LastRequest | None = None

    def failure(self, head: str | None, messages: int, over: bool) -> Failure | None:
        """The latest failure, if it tells anything of the history as it is now.

        Args:
            head: the record in force.
            messages: in the history; one that is shorter has gone back and failed elsewhere.
            over: the history does not fit the window. Where it did when the summary failed, more
                is at stake now than was then, and it is asked for once more.
        """
        found = self.failed
        if found is None or found.head != head or messages < found.size.messages:
            return None
        return None if over and not found.over else found


class Memory:
    """What a compactor remembers between calls: bounded.

    With an archive only what failed lives here, and who is not to be asked for now. Without one the
    records do, so that a history sent whole again is not summarised again; once they are forgotten,
    it is.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[Scope, Remembered] = OrderedDict()
        self._under_way: dict[tuple[Scope, str], int] = {}
        self._resting: dict[str, float] = {}
        self._said = False
        self._lock = threading.Lock()

    def first_beyond(self) -> bool:
        """Whether a trigger out of reach is met for the first time, in all sessions."""
        with self._lock:
            said, self._said = self._said, True
            return not said

    def rest(self, summarizer: str, seconds: float) -> None:
        """Leave a summariser alone, in all sessions, for as long as its provider has asked."""
        with self._lock:
            until = monotonic() + min(seconds, LONGEST_REST)
            self._resting[summarizer] = max(until, self._resting.get(summarizer, until))

    def rests(self, summarizer: str) -> float:
        """Seconds for which a summariser is still to be left alone; 0 where it may be asked."""
        with self._lock:
            return max(0.0, self._resting.get(summarizer, 0.0) - monotonic())

    def begin(self, scope: Scope, plan: str) -> bool:
        """Take the summary of a plan upon oneself; False where another worker is at it.

        Whoever has taken it must `end` it, whatever comes of it.
        """
        with self._lock:
            if (scope, plan) in self._under_way:
                return False
            self._under_way[scope, plan] = threading.get_ident()
            return True

    def under_way(self, scope: Scope, plan: str) -> int | None:
        """The thread that began the summary of a plan and is still at it; None for nobody."""
        with self._lock:
            return self._under_way.get((scope, plan))

    def end(self, scope: Scope, plan: str) -> None:
        """Let others go on: the draft is there, or there is none."""
        with self._lock:
            self._under_way.pop((scope, plan), None)

    @property
    def any_failed(self) -> bool:
        """Whether the latest summary of any session has failed."""
        with self._lock:  # other workers come and go
            return any(one.failed is not None for one in self._threads.values())

    def of(self, scope: Scope) -> Remembered:
        """What is remembered of a session, made empty if it is new."""
        with self._lock:
            found = self._threads.pop(scope, None) or Remembered()
            self._threads[scope] = found
            while len(self._threads) > THREADS:
                self._threads.popitem(last=False)
            return found

    def commit(self, scope: Scope, chain: tuple[Record, ...]) -> None:
        """Put a chain in force."""
        remembered = self.of(scope)
        remembered.chain = chain
        remembered.chains.put(chain[-1].name, chain)

    def find_draft(self, scope: Scope, plan: str) -> Draft | None:
        """The draft of a plan, if it is remembered."""
        return self.of(scope).drafts.get(plan)

    def save_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """Remember a draft."""
        self.of(scope).drafts.put(plan, draft)

    def save_prepared(self, scope: Scope, name: str, data: dict[str, Any]) -> None:
        """Remember which draft was prepared for the record in force of this name."""
        self.of(scope).prepared.put(name, data)
