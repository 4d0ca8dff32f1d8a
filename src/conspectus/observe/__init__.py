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

from conspectus.observe.events import Event as Event
from conspectus.observe.events import Kind as Kind
from conspectus.observe.events import Listener as Listener
from conspectus.observe.events import Observation as Observation
from conspectus.observe.events import emit as emit
from conspectus.observe.events import heard_by as heard_by
from conspectus.observe.events import listen as listen
from conspectus.observe.events import listeners_of as listeners_of
from conspectus.observe.events import listening as listening
from conspectus.observe.events import observing as observing
from conspectus.observe.events import unlisten as unlisten
from conspectus.observe.log import log as log
from conspectus.observe.otel import OpenTelemetry as OpenTelemetry
from conspectus.observe.prices import Price as Price
from conspectus.observe.prices import price_of as price_of
from conspectus.observe.prices import set_prices as set_prices

__all__ = [  # For users; the rest is for the engine.
    "Event",
    "Listener",
    "OpenTelemetry",
    "Price",
    "listen",
    "price_of",
    "set_prices",
    "unlisten",
]
