"""What a process remembers between calls: of each session, and of histories with nothing due.

With an archive, records, drafts and failures are stored there, and a process keeps only what saves
time. Without an archive it keeps these, too, so that a history that is sent whole again is not
summarised again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Scope
from conspectus.core.growth import REARM, scale_size
from conspectus.core.items import Role, Size
from conspectus.core.records import Chain, Draft, Record, from_plain, to_plain
from conspectus.engine.result import CompactionResult
from conspectus.engine.truncated import RecentStems
from conspectus.messages import Source
from conspectus.messages.reading import CHARACTERS, THREADS
from conspectus.model.base import LastRequest
from conspectus.tokens import UsageReport

MOST_FAILURES = 8
"""Failures in a row that delay the next try. 1.1 to the power of 8 is about 2, so that a history
doubles in the time of them."""

KEPT_OF_A_SESSION = 8
"""The most drafts, and chains of records, of a session without an archive."""


@dataclass(frozen=True, slots=True)
class FailedSummary:
    """A summary that failed, or that a person declined."""

    head_id: str  # of the record that was in force; empty if there was none
    trigger_size: Size  # of the history, as its trigger counts
    size: Size  # of the view, as the meter counts it; of a failed preparation `trigger_size`
    over: bool  # it did not fit the window
    times: int = 1  # failures in a row

    @property
    def next_try_from(self) -> Size:
        """The size from which the history must grow by a tenth before the next try.

        Each further failure in a row raises it by a tenth.
        """
        tenths = min(self.times, MOST_FAILURES) - 1
        return scale_size(self.trigger_size, REARM**tenths)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(to_plain(self))

    @classmethod
    def from_json(cls, data: Any) -> FailedSummary | None:
        """Read what `to_json` wrote; None for anything else."""
        try:
            return from_plain(cls, data) if data else None
        except TypeError:
            return None


@dataclass(frozen=True, slots=True)
class QuietHistory:
    """A history with nothing due, as it was sent and read."""

    received: list[Source]  # the caller's messages
    copies: list[Any]  # of their content, to notice a change in place
    stored_head_id: str  # id of the record that the store named as in force; empty if there is none
    head: Record | None
    result: CompactionResult
    sizes: list[int]  # tokens of the messages in view, without a correction
    reports: list[UsageReport] | None  # the models' reports of usage; None after another's summary
    characters: int  # of all messages, images included
    joins: bool  # messages of the user in a row are joined
    last_role: Role | None  # of the newest message
    recent: RecentStems
    stems_of_later: frozenset[str] = frozenset()  # as in `View`
    tokens_by_caller: int | None = None  # tokens of the view by a caller's counter, if any


@dataclass(slots=True)
class SessionMemory:
    """What this process remembers of one session."""

    chain: Chain = ()  # the records in force, if there is no archive
    chains: BoundedCache[str, Chain] = field(
        default_factory=lambda: BoundedCache(KEPT_OF_A_SESSION)
    )
    """Other chains, by the signature of their newest record, if there is no archive."""
    drafts: BoundedCache[str, Draft] = field(
        default_factory=lambda: BoundedCache(KEPT_OF_A_SESSION)
    )
    """Drafts by their names, if there is no archive."""
    latest_failure: FailedSummary | None = None  # the latest summary, if it failed
    last_request: LastRequest | None = None  # the agent's last request that was answered
    answered_requests: int = 0  # how many of its requests were answered
    recent_stems: Sequence[str] = ()  # of the history that was read last, up to its last answer
    recent_head_id: str = ""  # id of the record that was in force for it; empty for none
    reported_settings: set[object] = field(default_factory=set)  # settings logged as too tight

    def remember_read(self, recent: RecentStems, head_id: str) -> None:
        """Remember what was read last, to recognise the next history if it is truncated."""
        self.recent_stems = recent.answered
        self.recent_head_id = head_id

    def failure_of(self, head_id: str, messages: int, over: bool) -> FailedSummary | None:
        """Return the latest failure, if it concerns the history as it is now.

        If the history no longer fits the window, it is tried once more. If it is shorter, it has
        gone back.

        Args:
            head_id: the id of the record in force; empty if there is none.
            messages: number of messages in view.
            over: whether the view exceeds the window.
        """
        failed = self.latest_failure
        if failed is None or failed.head_id != head_id or messages < failed.size.messages:
            return None
        return None if over and not failed.over else failed


class Memories:
    """The bounded memory of a process."""

    def __init__(self) -> None:
        self._sessions: BoundedCache[Scope, SessionMemory] = BoundedCache(THREADS)
        self.quiet_histories: BoundedCache[Scope, QuietHistory] = BoundedCache(
            THREADS, CHARACTERS, attrgetter("characters")
        )

    def of(self, scope: Scope) -> SessionMemory:
        """Return the memory of one session, made at the first time."""
        return self._sessions.get_or_make(scope, SessionMemory)
