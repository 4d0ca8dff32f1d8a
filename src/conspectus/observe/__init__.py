"""Observe the engine's work: events to listeners, spans and metrics, log lines, money.

Example:
    >>> from conspectus import Compactor
    >>> summary = "Eight modules have been looked at, and all is well."
    >>> events = []
    >>> compactor = Compactor(lambda messages: summary, keep=("messages", 1))
    >>> messages = [{"role": "user", "content": f"Look at module {n}. " * 9} for n in range(9)]
    >>> listen(events.append)
    >>> result = compactor.compact(messages, thread_id="7", force=True)
    >>> unlisten(events.append)
    >>> [(event.kind, event.outcome) for event in events if event.kind == "compaction"]
    [('compaction', 'compacted')]
"""

from conspectus.observe.event import Event
from conspectus.observe.logs import log
from conspectus.observe.observation import (
    Listener,
    emit,
    heard_by,
    listen,
    listeners_of,
    listening,
    observing,
    unlisten,
)
from conspectus.observe.otel import OpenTelemetry
from conspectus.observe.prices import Price, price_of, set_prices

__all__ = [
    "Event",
    "Listener",
    "OpenTelemetry",
    "Price",
    "emit",
    "heard_by",
    "listen",
    "listeners_of",
    "listening",
    "log",
    "observing",
    "price_of",
    "set_prices",
    "unlisten",
]
