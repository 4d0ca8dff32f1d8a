"""Announce the engine's work in typed events; there are no listeners by default.

`conspectus.telemetry` makes spans, metrics, log lines and bills of them.
"""

from conspectus.events.hub import (
    Follower,
    Listener,
    Seen,
    add,
    are_listeners,
    heard_by,
    listening,
    money_of,
    observing,
    remove,
    tell,
)
from conspectus.events.kinds import (
    ArchiveOperation,
    Compaction,
    CompactionStep,
    Event,
    GuardFit,
    HistoryStuck,
    ModelUse,
    Preparing,
    Recall,
    RequestSent,
    SummarizerCall,
    Whose,
)

__all__ = [
    "ArchiveOperation",
    "Compaction",
    "CompactionStep",
    "Event",
    "Follower",
    "GuardFit",
    "HistoryStuck",
    "Listener",
    "ModelUse",
    "Preparing",
    "Recall",
    "RequestSent",
    "Seen",
    "SummarizerCall",
    "Whose",
    "add",
    "are_listeners",
    "heard_by",
    "listening",
    "money_of",
    "observing",
    "remove",
    "tell",
]
