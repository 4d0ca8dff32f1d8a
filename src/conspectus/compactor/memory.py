"""Records and drafts of callers without an archive: in this process only, and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from conspectus._core.items import Size
from conspectus._core.records import Draft, Record
from conspectus.archive import Scope

THREADS = 256
"""Sessions remembered at most; the one that was used least recently goes first."""

DRAFTS = 8
"""Drafts remembered of each session."""


@dataclass(slots=True)
class Remembered:
    """What is remembered of one session.

    Attributes:
        chain: its records, where there is no archive to hold them.
        drafts: its drafts, likewise.
        failed: its size when the latest summary failed; None since the latest success.
    """

    chain: tuple[Record, ...] = ()
    drafts: OrderedDict[str, Draft] = field(default_factory=OrderedDict)
    failed: Size | None = None


class Memory:
    """What a compactor remembers between calls: bounded, and never more than a help.

    Losing it costs a summary at most: with an archive only the back-off lives here.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[Scope, Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, scope: Scope) -> Remembered:
        """What is remembered of a session, made empty if it is new."""
        with self._lock:
            found = self._threads.pop(scope, None) or Remembered()
            self._threads[scope] = found
            while len(self._threads) > THREADS:
                self._threads.popitem(last=False)
            return found

    def find_draft(self, scope: Scope, plan: str) -> Draft | None:
        """The draft of a plan, if it is remembered."""
        return self.of(scope).drafts.get(plan)

    def save_draft(self, scope: Scope, plan: str, draft: Draft) -> None:
        """Remember a draft; the oldest of the session goes when there are too many."""
        drafts = self.of(scope).drafts
        with self._lock:
            drafts[plan] = draft
            while len(drafts) > DRAFTS:
                drafts.popitem(last=False)

    def __len__(self) -> int:
        return len(self._threads)
