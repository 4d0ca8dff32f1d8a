"""Spans, metrics, log lines and bills of the engine's work, off by default.

`instrument()` switches spans and metrics on; `listen(LogLines())` and `listen(UsageTally())` need
no other package. See `docs/telemetry.md`.

Example:
    >>> from conspectus import Compactor
    >>> from conspectus.telemetry import UsageTally
    >>> tally = UsageTally()
    >>> summary = "Eight modules have been looked at, and all is well."
    >>> compactor = Compactor(lambda messages: summary, keep=("messages", 1), telemetry=tally)
    >>> said = [{"role": "user", "content": f"Look at module {n}. " * 9} for n in range(9)]
    >>> compactor.compact(said, thread_id="t", force=True).outcome, tally.total.calls
    ('compacted', 1)
"""

from conspectus.events import (
    ArchiveOperation,
    Compaction,
    CompactionStep,
    Event,
    Follower,
    GuardFit,
    HistoryStuck,
    Listener,
    ModelUse,
    Preparing,
    Recall,
    RequestSent,
    SummarizerCall,
    Whose,
)
from conspectus.events import add as listen
from conspectus.events import remove as unlisten
from conspectus.telemetry.log_lines import JsonFormatter, LogLines
from conspectus.telemetry.open_telemetry import OpenTelemetry, instrument, uninstrument
from conspectus.telemetry.prices import (
    Price,
    PriceList,
    known_prices,
    litellm_prices,
    price_of,
    set_prices,
)
from conspectus.telemetry.usage import Usage, UsageTally

__all__ = [
    "ArchiveOperation",
    "Compaction",
    "CompactionStep",
    "Event",
    "Follower",
    "GuardFit",
    "HistoryStuck",
    "JsonFormatter",
    "Listener",
    "LogLines",
    "ModelUse",
    "OpenTelemetry",
    "Preparing",
    "Price",
    "PriceList",
    "Recall",
    "RequestSent",
    "SummarizerCall",
    "Usage",
    "UsageTally",
    "Whose",
    "instrument",
    "known_prices",
    "listen",
    "litellm_prices",
    "price_of",
    "set_prices",
    "uninstrument",
    "unlisten",
]
