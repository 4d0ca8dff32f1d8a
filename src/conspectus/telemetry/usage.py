"""Totals of summarising, by model and by thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Any

from conspectus.events import Event, SummarizerCall

LOCAL = "local"  # The default tenant


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls of summarisers, added up.

    Attributes:
        calls: all of them.
        failed: those that ended without a text.
        input_tokens, output_tokens: of all calls, those of failed ones as far as known.
        cached_tokens, reasoning_tokens, written_tokens: as far as models report them.
        estimated_calls: calls whose tokens are an estimate.
        seconds: added up; concurrent calls count each.
        price: of the calls with a price.
        unpriced_calls: those without.
    """

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_calls: int = 0
    seconds: float = 0.0
    price: float = 0.0
    unpriced_calls: int = 0
    written_tokens: int = 0

    @classmethod
    def of(cls, call: SummarizerCall) -> Usage:
        """Return the usage of one event."""
        found: dict[str, Any] = {one.name: getattr(call, one.name, 0) for one in fields(cls)}
        found |= {
            "failed": call.calls * (call.outcome != "ok"),
            "estimated_calls": call.calls * call.estimated,
            "unpriced_calls": call.calls * (call.price is None),
            "price": call.price or 0.0,
        }
        return cls(**found)

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


class UsageTally:
    """A listener that adds up every call of a summariser.

    Args:
        most_threads: threads counted apart; the least recently used are dropped first, and stay in
            the other sums.

    Example:
        >>> tally = UsageTally()
        >>> tally(SummarizerCall(model="m", input_tokens=90, output_tokens=10))
        >>> tally.by_model["m"].input_tokens, tally.total.calls
        (90, 1)
    """

    def __init__(self, most_threads: int = 10_000) -> None:
        self._most = max(1, most_threads)
        self._lock = threading.Lock()
        self._total = Usage()
        self._models: dict[str, Usage] = {}
        self._threads: OrderedDict[tuple[str, str], Usage] = OrderedDict()

    def __call__(self, event: Event) -> None:
        """Add an event, if it is a call."""
        if not isinstance(event, SummarizerCall):
            return
        own, model = Usage.of(event), event.model or event.summarizer
        with self._lock:
            self._total += own
            self._models[model] = self._models.get(model, Usage()) + own
            if event.whose is None:
                return
            thread = event.whose.tenant, event.whose.thread
            self._threads[thread] = self._threads.pop(thread, Usage()) + own
            while len(self._threads) > self._most:
                self._threads.popitem(last=False)

    @property
    def total(self) -> Usage:
        """All calls."""
        with self._lock:
            return self._total

    @property
    def by_model(self) -> dict[str, Usage]:
        """Usage by the name of the model, or of the summariser if it names none."""
        with self._lock:
            return dict(self._models)

    @property
    def by_thread(self) -> dict[tuple[str, str], Usage]:
        """Usage by tenant and thread."""
        with self._lock:
            return dict(self._threads)

    def of_thread(self, thread_id: str, tenant: str = LOCAL) -> Usage:
        """Return the usage of one conversation; zero if it is unknown."""
        with self._lock:
            return self._threads.get((tenant, thread_id), Usage())
