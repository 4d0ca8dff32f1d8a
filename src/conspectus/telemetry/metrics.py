"""Measure events. No attribute names a thread, so there are few series."""

from __future__ import annotations

from collections.abc import Mapping
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

FAILURES = ("archive", "redaction", "timeout", "overflow", "rejected", "summary", "error")
"""Kinds of failures of a compaction."""

COUNTERS = {
    "compactions": ("{compaction}", "Compactions that were begun."),
    "compaction.failures": ("{compaction}", "Compactions that did not take effect."),
    "tokens.freed": ("{token}", "Tokens that compactions took from views."),
    "messages.evicted": ("{message}", "Messages that left views."),
    "messages.clipped": ("{message}", "Messages shown short."),
    "secrets.redacted": ("{secret}", "Secrets that were taken out."),
    "summarizer.calls": ("{call}", "Calls of summarisers."),
    "summarizer.tokens": ("{token}", "Tokens that they took."),
    "summarizer.cost": ("{currency}", "Their cost, by your prices."),
    "archive.failures": ("{operation}", "Operations on the archive that failed."),
    "guard.fits": ("{request}", "Requests that had to be made to fit."),
    "stuck": ("{history}", "Histories that do not fit: nothing helps."),
}
"""Unit and description of each counter."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
RESULTS = (0, 1, 2, 3, 5, 8, 13, 21, 50)
SHARES = (0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)

HISTOGRAMS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "compaction.duration": ("s", "How long a compaction takes.", SECONDS),
    "summarizer.duration": ("s", "How long a call takes.", SECONDS),
    "archive.duration": ("s", "How long an operation on the archive takes.", SECONDS),
    "recall.duration": ("s", "How long a recall takes.", SECONDS),
    "recall.results": ("{message}", "Messages recalled.", RESULTS),
    "request.window_share": ("1", "Share of the window that a request takes.", SHARES),
}
"""Unit, description and boundaries of each histogram."""


class Metrics:
    """A listener that measures each event with a provider; None for the global one."""

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        meter = metrics.get_meter(SCOPE, VERSION, meter_provider=provider)
        self._counters = {
            name: meter.create_counter(f"conspectus.{name}", unit=unit, description=about)
            for name, (unit, about) in COUNTERS.items()
        }
        self._histograms = {
            name: meter.create_histogram(
                f"conspectus.{name}",
                unit=unit,
                description=about,
                explicit_bucket_boundaries_advisory=bounds,
            )
            for name, (unit, about, bounds) in HISTOGRAMS.items()
        }
        self._begun = False
        self._begin()

    def _begin(self) -> None:
        """Start the series of alerts at 0: one that begins with 1 has not grown."""
        self._add("stuck", 0)
        self._add("archive.failures", 0)
        for kind in FAILURES:
            self._add("compaction.failures", 0, kind=kind)
        for reason in ("fit", "rescue"):
            for outcome in ("ok", "stuck", "error"):
                self._add("guard.fits", 0, reason=reason, outcome=outcome)

    def _add(self, name: str, amount: float = 1, **attributes: Any) -> None:
        self._counters[name].add(amount, attributes)

    def _record(self, name: str, amount: float, **attributes: Any) -> None:
        self._histograms[name].record(amount, attributes)

    def __call__(self, event: Event) -> None:
        if not self._begun:  # the global provider may have been set since
            self._begun = True
            self._begin()
        outcome = event.outcome
        match event:
            case Compaction():
                self._compaction(event)
            case SummarizerCall():
                self._call(event)
            case ArchiveOperation(operation=operation):
                self._record(
                    "archive.duration", event.seconds, operation=operation, outcome=outcome
                )
                if outcome == "error":
                    self._add("archive.failures")
            case Recall():
                kind = event.kind or "unknown"
                self._record("recall.duration", event.seconds, kind=kind, outcome=outcome)
                if outcome == "ok":
                    self._record("recall.results", event.results, kind=kind)
            case GuardFit():
                reason = "rescue" if event.rescue else "fit"
                self._add("guard.fits", reason=reason, outcome=outcome)
            case RequestSent(share=share) if share is not None:
                self._record("request.window_share", share)
            case HistoryStuck():
                self._add("stuck")
            case _:
                pass

    def _compaction(self, event: Compaction) -> None:
        outcome, cause = event.outcome, event.cause
        self._add("compactions", outcome=outcome, cause=cause)
        self._record("compaction.duration", event.seconds, outcome=outcome)
        if outcome in ("failed", "error"):
            self._add("compaction.failures", kind=event.failure or "error")
        if outcome == "compacted":
            after = event.tokens_before if event.tokens_after is None else event.tokens_after
            self._add("tokens.freed", max(0, event.tokens_before - after), cause=cause)
            self._add("messages.evicted", event.evicted, cause=cause)
            self._add("messages.clipped", event.clipped, cause=cause)
            if event.redacted is not None:
                self._add("secrets.redacted", event.redacted, cause=cause)

    def _call(self, event: SummarizerCall) -> None:
        by: Mapping[str, str] = {"summarizer": event.summarizer}
        self._add("summarizer.calls", event.calls, **by, outcome=event.outcome)
        self._record("summarizer.duration", event.seconds, **by, outcome=event.outcome)
        for kind in ("input", "output", "cached", "written", "reasoning"):
            if tokens := getattr(event, f"{kind}_tokens"):
                self._add("summarizer.tokens", tokens, **by, type=kind, estimated=event.estimated)
        if event.price is not None:
            self._add("summarizer.cost", event.price, **by, currency=event.currency)
