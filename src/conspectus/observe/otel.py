"""Events as OpenTelemetry's spans and metrics. No metric names a thread: series are few."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from conspectus.core.records import COUNTS
from conspectus.errors import install_command
from conspectus.observe.events import REMEDIES, Event, Listener

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

BAD = frozenset({"error", "failed", "stuck", "timeout", "overflow", "rejected"})
"""Outcomes that are errors of their span."""

PLAIN = "name error outcome seconds tokens_before tokens_after messages money currency".split()

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

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
RESULTS = (0, 1, 2, 3, 5, 8, 13, 21, 50)
SHARES = (0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)


class Metric(NamedTuple):
    """One series of an instrument: of a histogram where there are bounds, else of a counter.

    It counts 1, or the attribute `value`, of events of a kind, with these outcomes (empty for all).
    A label is an attribute; `operation:name` calls one by another name, `type=input` is always so.
    """

    name: str
    kind: str
    labels: str = ""
    value: str = ""
    outcomes: str = ""
    bounds: tuple[float, ...] = ()


METRICS = (
    Metric("compactions", "compaction", "cause outcome"),
    Metric("compaction.failures", "compaction", "failure", outcomes="failed error"),
    Metric("tokens.freed", "compaction", "cause", "freed", "compacted"),
    Metric("messages.evicted", "compaction", "cause", "messages", "compacted"),
    Metric("messages.clipped", "compaction", "cause", "clipped", "compacted"),
    Metric("secrets.redacted", "compaction", "cause", "redacted", "compacted"),
    Metric("summarizer.calls", "model_call", "summarizer outcome", "calls"),
    *(
        Metric("summarizer.tokens", "model_call", f"summarizer type={type}", f"{type}_tokens")
        for type in ("input", "output", "cached", "written", "reasoning")
    ),
    Metric("summarizer.cost", "model_call", "summarizer currency", "money"),
    Metric("archive.failures", "archive", outcomes="error"),
    Metric("guard.fits", "guard", "reason:name outcome"),
    Metric("stuck", "stuck"),
    Metric("compaction.duration", "compaction", "outcome", "seconds", bounds=SECONDS),
    Metric("summarizer.duration", "model_call", "summarizer outcome", "seconds", bounds=SECONDS),
    Metric("archive.duration", "archive", "operation:name outcome", "seconds", bounds=SECONDS),
    Metric("recall.duration", "recall", "kind:name outcome", "seconds", bounds=SECONDS),
    Metric("recall.results", "recall", "kind:name", "messages", "ok", RESULTS),
    Metric("request.window_share", "request", "", "share", bounds=SHARES),
)

ALERTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("stuck", {}),
    ("archive.failures", {}),
    *(("compaction.failures", {"failure": failure}) for failure in (*REMEDIES, "other")),
    *(
        ("guard.fits", {"reason": reason, "outcome": outcome})
        for reason in ("fit", "rescue")
        for outcome in ("ok", "stuck", "error")
    ),
)
"""Counters that stand at 0 from the start: one that begins with 1 has not grown."""


class OpenTelemetry:
    """A listener that makes spans and metrics, by the global providers unless others are given.

    Spans have hashes of tenant, thread and session, or with `thread="plain"` their names;
    `error_messages` writes texts of errors into them, in which providers quote requests.

    Raises:
        ImportError: OpenTelemetry is not installed; names the extra.

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
        package = ("conspectus", version("conspectus"))
        self._tracer = trace.get_tracer(*package, tracer_provider=tracer_provider)
        self._trace, self._context = trace, context
        self._thread, self._messages = thread, error_messages
        meter = metrics.get_meter(*package, meter_provider=meter_provider)
        self._record: dict[str, Callable[[float, dict[str, Any]], None]] = {}
        for metric in {each.name: each for each in METRICS}.values():
            name, unit = f"conspectus.{metric.name}", "s" if metric.value == "seconds" else "1"
            if metric.bounds:
                histogram = meter.create_histogram(
                    name, unit, explicit_bucket_boundaries_advisory=metric.bounds
                )
                self._record[metric.name] = histogram.record
            else:
                self._record[metric.name] = meter.create_counter(name, unit).add
        for alert, labels in ALERTS:
            self._record[alert](0, labels)

    def begin(self, event: Event) -> Listener:
        """Begin a span, current until its end; return what ends it."""
        span, context, trace = self._span(event), self._context, self._trace
        token = context.attach(trace.set_span_in_context(span))

        def end(event: Event) -> None:
            # A generator that the collector closes elsewhere has another context around it.
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
        scope, names = event.scope, dict[str, Any]()
        if scope is not None:
            for label, hashed in zip(("tenant", "thread", "session"), scope.hashes, strict=True):
                plain = getattr(scope, label)
                public = self._thread == "plain" or plain == "main"
                names[f"conspectus.{label}"] = plain if public else hashed[:16]
        kinds = self._trace.SpanKind
        kind = kinds.CLIENT if event.kind in ("model_call", "archive") else kinds.INTERNAL
        name = f"conspectus.{event.kind}"
        if event.kind == "model_call":
            name = f"chat {event.name}"
        elif event.kind in ("step", "archive", "guard"):
            name += f".{event.name}"
        return self._tracer.start_span(name, kind=kind, attributes=names)

    def _end(self, span: Span, event: Event) -> None:
        span.set_attributes(attributes_of(event))
        if event.outcome in BAD:
            text = event.error_message if self._messages else ""
            words = ": ".join(part for part in (event.error, text) if part)
            span.set_status(self._trace.StatusCode.ERROR, words or event.outcome)
        span.end()
        self._measure(event)

    def _measure(self, event: Event) -> None:
        facts = facts_of(event)
        for metric in METRICS:
            amount = facts.get(metric.value) if metric.value else 1
            counts = event.outcome in metric.outcomes.split() or not metric.outcomes
            if metric.kind == event.kind and counts and amount is not None:
                labels = dict(_label(one, facts) for one in metric.labels.split())
                self._record[metric.name](amount, labels)


def _label(label: str, facts: Mapping[str, Any]) -> tuple[str, Any]:
    name, _, value = label.partition("=")
    name, _, fact = name.partition(":")
    return name, value or facts.get(fact or name, "other")


def facts_of(event: Event) -> dict[str, Any]:
    """Return the known fields of an event, flat, without whose it is and what its error says."""
    facts = {
        **{name: getattr(event, name) for name in PLAIN},
        **{name: getattr(event.cost, name) or None for name in COUNTS},
        **event.extra,
    }
    if event.tokens_before is not None and event.tokens_after is not None:
        facts["freed"] = max(0, event.tokens_before - event.tokens_after)
    return {name: value for name, value in facts.items() if value is not None and value != ""}


def attributes_of(event: Event) -> dict[str, Any]:
    """Return the attributes of a span."""
    facts, named = facts_of(event), dict[str, Any]()
    del facts["seconds"]
    if event.error:
        named["error.type"] = facts.pop("error")
    if event.kind == "model_call":
        named["gen_ai.operation.name"] = "chat"
        named |= {name: facts.pop(key) for key, name in GEN_AI.items() if key in facts}
    return {**{f"conspectus.{name}": value for name, value in facts.items()}, **named}
