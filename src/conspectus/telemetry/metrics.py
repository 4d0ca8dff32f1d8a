"""Events as metrics. No attribute names a thread, so there are few series whatever happens."""

from __future__ import annotations

from typing import Any

from opentelemetry import metrics

from conspectus.events import (
    ArchiveOperation,
    Compaction,
    Event,
    GuardFit,
    HistoryStuck,
    Recall,
    RequestSent,
    SummarizerCall,
)
from conspectus.telemetry.spans import SCOPE, VERSION

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
RESULTS = (0, 1, 2, 3, 5, 8, 13, 21, 50)
FAILURES = ("archive", "redaction", "timeout", "overflow", "rejected", "summary", "error")
"""Kinds of failures of a compaction."""

SHARES = (0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)


class Metrics:
    """Measures each event.

    Args:
        provider: OpenTelemetry's; None for the global one.
    """

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        meter = metrics.get_meter(SCOPE, VERSION, meter_provider=provider)

        def counter(name: str, unit: str, about: str) -> metrics.Counter:
            return meter.create_counter(f"conspectus.{name}", unit=unit, description=about)

        def histogram(name: str, unit: str, about: str, bounds: Any) -> metrics.Histogram:
            return meter.create_histogram(
                f"conspectus.{name}",
                unit=unit,
                description=about,
                explicit_bucket_boundaries_advisory=bounds,
            )

        self._compactions = counter("compactions", "{compaction}", "Compactions that were begun.")
        self._failures = counter(
            "compaction.failures", "{compaction}", "Compactions that did not take effect."
        )
        self._freed = counter("tokens.freed", "{token}", "Tokens that compactions took from views.")
        self._evicted = counter("messages.evicted", "{message}", "Messages that left views.")
        self._clipped = counter("messages.clipped", "{message}", "Messages shown short.")
        self._redacted = counter("secrets.redacted", "{secret}", "Secrets that were taken out.")
        self._compacting = histogram(
            "compaction.duration", "s", "How long a compaction takes.", SECONDS
        )
        self._calls = counter("summarizer.calls", "{call}", "Calls of summarisers.")
        self._tokens = counter("summarizer.tokens", "{token}", "Tokens that they took.")
        self._price = counter("summarizer.cost", "{currency}", "What they cost, by your prices.")
        self._calling = histogram("summarizer.duration", "s", "How long a call takes.", SECONDS)
        self._archiving = histogram(
            "archive.duration", "s", "How long an operation on the archive takes.", SECONDS
        )
        self._archive_failures = counter(
            "archive.failures", "{operation}", "Operations on the archive that failed."
        )
        self._recalling = histogram("recall.duration", "s", "How long a recall takes.", SECONDS)
        self._results = histogram("recall.results", "{message}", "Messages recalled.", RESULTS)
        self._fits = counter("guard.fits", "{request}", "Requests that had to be made to fit.")
        self._share = histogram(
            "request.window_share", "1", "Share of the window that a request takes.", SHARES
        )
        self._stuck = counter("stuck", "{history}", "Histories that do not fit: nothing helps.")
        self._begun = False
        self._begin()

    def _begin(self) -> None:
        """Start at 0 what alerts look for: a series that begins with 1 has not grown, so the first
        time would be missed."""
        self._stuck.add(0)
        self._archive_failures.add(0)
        for kind in FAILURES:
            self._failures.add(0, {"kind": kind})
        for reason in ("fit", "rescue"):
            for outcome in ("ok", "stuck", "error"):
                self._fits.add(0, {"reason": reason, "outcome": outcome})

    def __call__(self, event: Event) -> None:
        """Measure an event."""
        if not self._begun:  # the global provider may have been set since
            self._begun = True
            self._begin()
        match event:
            case Compaction():
                self._compaction(event)
            case SummarizerCall():
                self._call(event)
            case ArchiveOperation():
                said = {"operation": event.operation, "outcome": event.outcome}
                self._archiving.record(event.seconds, said)
                if event.outcome == "error":
                    self._archive_failures.add(1)
            case Recall():
                kind = {"kind": event.kind or "unknown", "outcome": event.outcome}
                self._recalling.record(event.seconds, kind)
                if event.outcome == "ok":
                    self._results.record(event.results, {"kind": kind["kind"]})
            case GuardFit():
                reason = "rescue" if event.rescue else "fit"
                self._fits.add(1, {"reason": reason, "outcome": event.outcome})
            case RequestSent(share=share) if share is not None:
                self._share.record(share)
            case HistoryStuck():
                self._stuck.add(1)
            case _:
                pass

    def _compaction(self, event: Compaction) -> None:
        self._compactions.add(1, {"outcome": event.outcome, "cause": event.cause})
        self._compacting.record(event.seconds, {"outcome": event.outcome})
        if event.outcome in ("failed", "error"):
            self._failures.add(1, {"kind": event.failure or "error"})
        if event.outcome == "compacted":
            cause = {"cause": event.cause}
            after = event.tokens_before if event.tokens_after is None else event.tokens_after
            self._freed.add(max(0, event.tokens_before - after), cause)
            self._evicted.add(event.evicted, cause)
            self._clipped.add(event.clipped, cause)
            if event.redacted is not None:
                self._redacted.add(event.redacted, cause)

    def _call(self, event: SummarizerCall) -> None:
        who = {"summarizer": event.summarizer}
        how = {**who, "outcome": event.outcome}
        self._calls.add(event.calls, how)
        self._calling.record(event.seconds, how)
        for kind in ("input", "output", "cached", "written", "reasoning"):
            tokens = getattr(event, f"{kind}_tokens")
            if tokens:
                said = {**who, "type": kind, "estimated": event.estimated}
                self._tokens.add(tokens, said)
        if event.price is not None:
            self._price.add(event.price, {**who, "currency": event.currency})
