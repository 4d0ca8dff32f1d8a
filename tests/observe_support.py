"""What tests of events look at: finished spans as paths, metrics as plain numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from conspectus import Compactor
from conspectus.observe import Event, OpenTelemetry, listen, observation, prices

SECRET = "xyzzy-4711"
"""Stands in messages, summaries and errors of these tests, and must not be seen in telemetry."""


class _CountingProcessor(SimpleSpanProcessor):
    """Exports what has ended, and knows how many have begun."""

    begun = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.begun += 1
        super().on_start(span, parent_context)


class Telemetry:
    """An in-memory OpenTelemetry."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self._processor = _CountingProcessor(self.exporter)
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(self._processor)
        self.meters = MeterProvider([self.reader])
        self.user = self.tracers.get_tracer("user")

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended; asserts that no other was begun."""
        ended = list(self.exporter.get_finished_spans())
        assert len(ended) == self._processor.begun, "a span was left open"
        return ended

    def path(self, span: ReadableSpan) -> str:
        """A span's name after those of its parents."""
        by_id = {ended_span.context.span_id: ended_span for ended_span in self.spans}
        names = [span.name]
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            names.append(span.name)
        return " > ".join(reversed(names))

    @property
    def paths(self) -> list[str]:
        """Of all spans, as they ended."""
        return [self.path(span) for span in self.spans]

    def spans_named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    @property
    def metrics(self) -> dict[str, Any]:
        """Each metric by its name."""
        data = self.reader.get_metrics_data()
        resources = data.resource_metrics if data else []
        scopes = [scope for resource in resources for scope in resource.scope_metrics]
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def points(self, name: str) -> dict[tuple[tuple[str, Any], ...], float]:
        """The values of a metric, or counts of a histogram, by sorted attributes."""
        metric = self.metrics.get(name)
        return {
            tuple(sorted(point.attributes.items())): point.count
            if hasattr(point, "count")
            else point.value
            for point in (metric.data.data_points if metric else ())
        }

    def total(self, name: str, **attributes: Any) -> float:
        """The sum of a metric over the points that have these attributes."""
        required = attributes.items()
        return sum(v for k, v in self.points(name).items() if required <= dict(k).items())

    @property
    def everything(self) -> str:
        """All that was exported, as one text."""
        data = self.reader.get_metrics_data()
        return "\n".join([*(span.to_json() for span in self.spans), data.to_json() if data else ""])


@contextmanager
def without_other_listeners() -> Iterator[None]:
    """No listeners and no prices but those of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observation, "_listeners", ())
        patch.setattr(observation, "_failed", set())
        patch.setattr(prices, "_prices", {})
        yield


@contextmanager
def instrumented(**options: Any) -> Iterator[Telemetry]:
    """Spans and metrics in memory, and nothing left of it afterwards."""
    telemetry = Telemetry()
    with without_other_listeners():
        listen(OpenTelemetry(telemetry.tracers, telemetry.meters, **options))
        yield telemetry


@contextmanager
def events_heard(*kinds: str) -> Iterator[list[Event]]:
    """The events of these kinds, or of all."""
    events_heard: list[Event] = []
    with without_other_listeners():
        listen(
            lambda event: events_heard.append(event) if event.kind in kinds or not kinds else None
        )
        yield events_heard


def openai_talk(count: int, words: int = 40) -> list[dict[str, str]]:
    """A talk in OpenAI's form."""
    roles = ("user", "assistant")
    texts = [f"Module {n} ({SECRET}): " + f"line {n} of it. " * words for n in range(count)]
    return [{"role": roles[n % 2], "id": f"d{n}", "content": text} for n, text in enumerate(texts)]


def compact(summarizer: Any = None, name: str = "t", **settings: Any) -> Any:
    """What comes of one compaction by force."""
    compactor = Compactor(summarizer, keep=("messages", 2), **settings)
    return compactor.compact(openai_talk(9), thread_id=name, force=True)
