"""Events as OpenTelemetry's spans and metrics. No metric names a thread: series are few."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from conspectus.core.records import COUNTS
from conspectus.errors import install_command
from conspectus.observe.event import Event
from conspectus.observe.logs import REMEDIES
from conspectus.observe.observation import Listener

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Span, TracerProvider

FAILED_OUTCOMES = frozenset({"error", "failed", "stuck", "timeout", "overflow", "rejected"})
"""Outcomes that are errors of their span."""

PLAIN_FIELDS = "name error outcome seconds tokens_before tokens_after messages money".split()

GEN_AI = {
    "name": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "written_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
"""Attributes of a model's call for which OpenTelemetry has names of its own."""

# Bounds of histograms
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
RESULTS = (0, 1, 2, 3, 5, 8, 13, 21, 50)
SHARES = (0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
TOKENS = "input_tokens output_tokens cached_tokens written_tokens reasoning_tokens"


class Metric(NamedTuple):
    """A histogram where there are bounds, else a counter."""

    kind: str  # of events
    labels: str = ""  # facts of an event that are attributes
    values: str = ""  # facts that are recorded, each with itself as `type`; empty for 1
    outcomes: str = ""  # of events that count; empty for all
    bounds: tuple[float, ...] = ()

    def counts(self, event: Event) -> bool:
        """Tell whether an event is recorded."""
        is_outcome = not self.outcomes or event.outcome in self.outcomes.split()
        return self.kind == event.kind and is_outcome


METRICS = {
    "compactions": Metric("compaction", "cause outcome"),
    "compaction.failures": Metric("compaction", "failure", outcomes="failed error"),
    "tokens.freed": Metric("compaction", "cause", "freed", "compacted"),
    "messages.evicted": Metric("compaction", "cause", "messages", "compacted"),
    "rules.left_out": Metric("compaction", "cause", "rules_left_out", "compacted"),
    "messages.clipped": Metric("compaction", "cause", "clipped", "compacted"),
    "secrets.redacted": Metric("compaction", "cause", "redacted", "compacted"),
    "summarizer.calls": Metric("model_call", "summarizer outcome", "calls"),
    "summarizer.tokens": Metric("model_call", "summarizer type", TOKENS),
    "summarizer.cost": Metric("model_call", "summarizer", "money"),
    "archive.failures": Metric("archive", outcomes="error"),
    "guard.fits": Metric("guard", "reason outcome"),
    "stuck": Metric("stuck"),
    "compaction.duration": Metric("compaction", "outcome", "seconds", bounds=SECONDS),
    "summarizer.duration": Metric("model_call", "summarizer outcome", "seconds", bounds=SECONDS),
    "archive.duration": Metric("archive", "operation outcome", "seconds", bounds=SECONDS),
    "recall.duration": Metric("recall", "kind outcome", "seconds", bounds=SECONDS),
    "recall.results": Metric("recall", "kind", "messages", "ok", RESULTS),
    "request.window_share": Metric("request", "", "share", bounds=SHARES),
}


class OpenTelemetry:
    """A listener that makes spans and metrics of OpenTelemetry.

    Args:
        tracer_provider: makes the spans. Default: the global provider.
        meter_provider: makes the metrics. Default: the global provider.
        thread: `"hashed"` puts hashes of tenant, thread and session into spans; `"plain"` puts
            their names into spans.
        error_messages: whether spans get the texts of errors. Providers quote requests in such
            texts.

    Raises:
        ImportError: OpenTelemetry is not installed. The error names the extra.

    Example:
        >>> from conspectus.observe import listen, unlisten
        >>> spans = OpenTelemetry()
        >>> listen(spans)
        >>> unlisten(spans)
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        thread: Literal["hashed", "plain"] = "hashed",
        error_messages: bool = False,
    ) -> None:
        from importlib.metadata import version

        try:
            from opentelemetry import context, metrics, trace
        except ImportError as error:
            text = f"OpenTelemetry is not installed; {install_command('otel')}"
            raise ImportError(text, name=error.name) from error
        own_version = version("conspectus")
        self._trace = trace
        self._context = context
        self._thread = thread
        self._shows_messages = error_messages
        self._tracer = trace.get_tracer("conspectus", own_version, tracer_provider=tracer_provider)
        meter = metrics.get_meter("conspectus", own_version, meter_provider=meter_provider)
        self._record = _instruments(meter)
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Show what alerts watch from the start: a counter that begins with 1 has not grown."""
        for name in ("stuck", "archive.failures"):
            self._record[name](0, {})
        for failure in (*REMEDIES, "other"):
            self._record["compaction.failures"](0, {"failure": failure})
        for reason, outcome in product(("fit", "rescue"), ("ok", "stuck", "error")):
            self._record["guard.fits"](0, {"reason": reason, "outcome": outcome})

    def begin(self, event: Event) -> Listener:
        """Begin a span, current until its end; return what ends it."""
        context = self._context
        trace = self._trace
        span = self._span(event)
        token = context.attach(trace.set_span_in_context(span))

        def end(event: Event) -> None:
            # The garbage collector may close a generator in another context.
            if trace.get_current_span() is span:
                context.detach(token)
            self._end(span, event)

        return end

    def __call__(self, event: Event) -> None:
        """Report an event that had no beginning."""
        if event.kind == "stuck":
            self._trace.get_current_span().add_event("conspectus.stuck", attributes_of(event))
        self._measure(event)

    def _span(self, event: Event) -> Span:
        kinds = self._trace.SpanKind
        kind = kinds.CLIENT if event.kind in ("model_call", "archive") else kinds.INTERNAL
        name = f"conspectus.{event.kind}"
        if event.kind == "model_call":
            name = f"chat {event.name}"
        elif event.kind in ("step", "archive", "guard"):
            name += f".{event.name}"
        return self._tracer.start_span(name, kind=kind, attributes=self._names(event.scope))

    def _names(self, scope: Any) -> dict[str, Any]:
        """Return the attributes that say whose history an event is of, hashed unless public."""
        if scope is None:
            return {}
        names = dict[str, Any]()
        for label, hashed in zip(("tenant", "thread", "session"), scope.hashes, strict=True):
            plain = getattr(scope, label)
            is_public = self._thread == "plain" or plain == "main"
            names[f"conspectus.{label}"] = plain if is_public else hashed[:16]
        return names

    def _end(self, span: Span, event: Event) -> None:
        span.set_attributes(attributes_of(event))
        if event.outcome in FAILED_OUTCOMES:
            message = event.error_message if self._shows_messages else ""
            description = ": ".join(part for part in (event.error, message) if part)
            span.set_status(self._trace.StatusCode.ERROR, description or event.outcome)
        span.end()
        self._measure(event)

    def _measure(self, event: Event) -> None:
        facts = facts_of(event)
        # Each kind has its own label for the name of an event: reason, operation or kind.
        facts |= dict.fromkeys(("reason", "operation", "kind"), event.name or "other")
        for name, metric in METRICS.items():
            if not metric.counts(event):
                continue
            for value in metric.values.split() or [""]:
                amount = facts.get(value) if value else 1
                if amount is None:
                    continue
                described = {**facts, "type": value.removesuffix("_tokens")}
                labels = {label: described.get(label, "other") for label in metric.labels.split()}
                self._record[name](amount, labels)


def _instruments(meter: Meter) -> dict[str, Callable[[float, dict[str, Any]], None]]:
    """Return the function that records a value of each metric."""
    record = dict[str, Callable[[float, dict[str, Any]], None]]()
    for name, metric in METRICS.items():
        full_name = f"conspectus.{name}"
        unit = "s" if metric.values == "seconds" else "1"
        if metric.bounds:
            histogram = meter.create_histogram(
                full_name, unit, explicit_bucket_boundaries_advisory=metric.bounds
            )
            record[name] = histogram.record
        else:
            record[name] = meter.create_counter(full_name, unit).add
    return record


def facts_of(event: Event) -> dict[str, Any]:
    """Return the fields of an event that are known, in one mapping.

    Its scope and the text of its error are left out.
    """
    facts = {
        **{name: getattr(event, name) for name in PLAIN_FIELDS},
        **{name: getattr(event.cost, name) or None for name in COUNTS},
        **event.extra,
    }
    if event.tokens_before is not None and event.tokens_after is not None:
        facts["freed"] = max(0, event.tokens_before - event.tokens_after)
    return {name: value for name, value in facts.items() if value is not None and value != ""}


def attributes_of(event: Event) -> dict[str, Any]:
    """Return the attributes of a span."""
    facts = facts_of(event)
    del facts["seconds"]
    attributes = dict[str, Any]()
    if event.error:
        attributes["error.type"] = facts.pop("error")
    if event.kind == "model_call":
        attributes["gen_ai.operation.name"] = "chat"
        attributes |= {name: facts.pop(key) for key, name in GEN_AI.items() if key in facts}
    attributes |= {f"conspectus.{name}": value for name, value in facts.items()}
    return attributes
