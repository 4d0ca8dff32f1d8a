"""Events as OpenTelemetry's spans and metrics, for a process or for one instance."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conspectus.errors import PolicyError
from conspectus.events import Event, Whose, add, remove
from conspectus.telemetry.log_lines import Naming, check_naming
from conspectus.telemetry.prices import Price, set_prices

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_lock = threading.Lock()
_current: list[OpenTelemetry] = []


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


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    thread: Naming = "hashed",
    error_messages: bool = False,
    prices: Mapping[str, Price] | None = None,
    currency: str = "USD",
) -> None:
    """Make spans and metrics of all work in this process; a second call replaces.

    Telemetry of single instances, given as `telemetry=`, is not affected.

    Args:
        tracer_provider, meter_provider: OpenTelemetry's. Default: the global ones.
        thread: form of tenant, thread and session in spans: `"hashed"`, `"plain"` or `"off"`. They
            are never in metrics.
        error_messages: write texts of errors into spans. Providers quote requests in them, so that
            may hold text of the conversation.
        prices: by model; see `set_prices`. Default: those that are set already, if any.
        currency: of the prices.

    Raises:
        ImportError: OpenTelemetry is not installed; names the extra.
        PolicyError: an invalid setting.

    Example:
        >>> instrument(prices={"gpt-5-mini": Price(input=0.25, output=2.0, cached=0.025)})
        >>> uninstrument()
    """
    made = OpenTelemetry(
        tracer_provider, meter_provider, thread=thread, error_messages=error_messages
    )
    if prices is not None:
        set_prices(prices, currency)
    with _lock:
        _drop()
        _current.append(made)
        add(made)


def uninstrument() -> None:
    """Undo `instrument`, prices included; a second call does nothing."""
    with _lock:
        if _current:
            set_prices(None)
        _drop()


def _drop() -> None:
    while _current:
        remove(_current.pop())
