"""Make spans of events. Only this module and `metrics.py` import OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from conspectus.events import (
    ArchiveOperation,
    CompactionStep,
    Event,
    GuardFit,
    HistoryStuck,
    SummarizerCall,
    Whose,
)
from conspectus.telemetry.log_lines import BAD, Naming, named

SCOPE, VERSION = "conspectus", version("conspectus")
"""Name and version of the tracer and of the meter."""

GEN_AI = {
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "written_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
"""Fields of a call for which OpenTelemetry has names of its own."""

CLIENTS: tuple[type[Event], ...] = (SummarizerCall, ArchiveOperation)
"""Kinds that call something outside."""


class Spans:
    """Begins and ends a span for each event that takes time."""

    def __init__(
        self, provider: trace.TracerProvider | None, thread: Naming, error_messages: bool
    ) -> None:
        self._tracer = trace.get_tracer(SCOPE, VERSION, tracer_provider=provider)
        self._thread, self._messages = thread, error_messages

    def begin(self, kind: type[Event], whose: Whose | None, facts: Mapping[str, Any]) -> object:
        """Begin a span, which stays in the context until it ends."""
        span = self._start(kind(**facts), whose)
        token = context.attach(trace.set_span_in_context(span))
        return span, token

    def end(self, event: Event, state: Any) -> None:
        """End the span of an event; make one if it had no beginning."""
        if state is not None:
            span, token = state
            # A generator that the collector closes elsewhere has another context around it.
            if trace.get_current_span() is span:
                context.detach(token)
        elif isinstance(event, HistoryStuck):
            trace.get_current_span().add_event("conspectus.stuck", self._attributes(event))
            return
        elif event.seconds:
            span = self._start(event, event.whose, time.time_ns() - int(event.seconds * 1e9))
        else:
            return
        if span.is_recording():
            span.set_attributes(self._attributes(event))
            if event.outcome in BAD:
                said = event.error_message if self._messages else ""
                words = ": ".join(part for part in (event.error_type, said) if part)
                span.set_status(Status(StatusCode.ERROR, words or event.outcome))
        span.end()

    def _start(self, event: Event, whose: Whose | None, start: int | None = None) -> Span:
        kind = SpanKind.CLIENT if isinstance(event, CLIENTS) else SpanKind.INTERNAL
        names = {f"conspectus.{k}": v for k, v in named(whose, self._thread).items()}
        return self._tracer.start_span(
            name_of(event), kind=kind, attributes=names, start_time=start
        )

    def _attributes(self, event: Event) -> dict[str, Any]:
        data = event.plain()
        data.pop("seconds", None)
        error = data.pop("error_type", None)
        found: dict[str, Any] = {} if error is None else {"error.type": error}
        if isinstance(event, SummarizerCall):
            found["gen_ai.operation.name"] = "chat"
            for field, name in GEN_AI.items():
                value = data.pop(field, None)
                if value or field in ("input_tokens", "output_tokens"):
                    found[name] = value
        return {**found, **{f"conspectus.{name}": value for name, value in data.items()}}


def name_of(event: Event) -> str:
    match event:
        case SummarizerCall():
            return f"chat {event.model or event.summarizer}"
        case CompactionStep():
            return f"conspectus.compaction.{event.step}"
        case ArchiveOperation():
            return f"conspectus.archive.{event.operation}"
        case GuardFit():
            return "conspectus.guard.rescue" if event.rescue else "conspectus.guard.fit"
        case _:
            return f"conspectus.{event.name}"
