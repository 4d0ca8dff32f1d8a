"""Switch spans and metrics of a whole process on and off."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from conspectus.events import add, remove
from conspectus.telemetry.log_lines import Naming
from conspectus.telemetry.open_telemetry import OpenTelemetry
from conspectus.telemetry.prices import Price, set_prices

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_lock = threading.Lock()
_current: list[OpenTelemetry] = []


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
