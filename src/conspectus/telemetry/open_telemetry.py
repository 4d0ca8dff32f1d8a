"""Events as OpenTelemetry's spans and metrics, for a process or for one instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conspectus.errors import PolicyError
from conspectus.events import Event, Whose
from conspectus.telemetry.log_lines import Naming, check_naming

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


class OpenTelemetry:
    """A listener that makes spans and metrics.

    `instrument()` adds one for the whole process. For one instance alone, give it as `telemetry=`.

    Args:
        tracer_provider, meter_provider, thread, error_messages: see `instrument`.

    Raises:
        ImportError: OpenTelemetry is not installed; names the extra.
        PolicyError: an invalid setting.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        thread: Naming = "hashed",
        error_messages: bool = False,
    ) -> None:
        check_naming(thread)
        if not isinstance(error_messages, bool):
            raise PolicyError(f"error_messages is True or False, not {error_messages!r}")
        _check_provider("tracer_provider", tracer_provider, "get_tracer")
        _check_provider("meter_provider", meter_provider, "get_meter")
        try:
            from conspectus.telemetry.metrics import Metrics
            from conspectus.telemetry.spans import Spans
        except ImportError as error:
            if not (error.name or "").startswith("opentelemetry"):
                raise
            raise ImportError(
                "spans and metrics need OpenTelemetry; install it with "
                "pip install 'conspectus[otel]'",
                name=error.name,
            ) from error
        self._spans = Spans(tracer_provider, thread, error_messages)
        self._metrics = Metrics(meter_provider)

    def begin(self, kind: type[Event], whose: Whose | None, facts: Mapping[str, Any]) -> object:
        """Begin a span."""
        return self._spans.begin(kind, whose, facts)

    def end(self, event: Event, state: object) -> None:
        """End a span, and measure its event."""
        try:
            self._spans.end(event, state)
        finally:
            self._metrics(event)

    def __call__(self, event: Event) -> None:
        """Report an event that begins and ends at once."""
        self.end(event, None)


def _check_provider(name: str, given: object, needs: str) -> None:
    if given is not None and not hasattr(given, needs):
        raise PolicyError(
            f"{name} is a {type(given).__name__}, which has no {needs}: pass OpenTelemetry's "
            "tracer provider first and its meter provider second, or each by its name"
        )
