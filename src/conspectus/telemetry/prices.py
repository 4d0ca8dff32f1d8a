"""What calls of summarisers cost in money, by prices that the user gives; there is no list here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from conspectus.errors import PolicyError
from conspectus.events import SummarizerCall
from conspectus.events.hub import Pricing, set_pricing
from conspectus.events.notes import noted

logger = logging.getLogger("conspectus")

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost.

    Attributes:
        input: of what is sent.
        output: of what is answered, thoughts included.
        cached: of what is sent and comes from the provider's cache. Default: as `input`.

    Raises:
        PolicyError: one of them is no number of at least 0.
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise PolicyError(
                    f"the price of {name} is a number for a million tokens, not {value!r}"
                )

    def of(self, call: SummarizerCall) -> float:
        """What a call costs.

        Example:
            >>> Price(2.0, 8.0, cached=0.5).of(
            ...     SummarizerCall(input_tokens=1_000_000, cached_tokens=400_000))
            1.4
        """
        cached = min(call.cached_tokens, call.input_tokens)
        dear = self.input if self.cached is None else self.cached
        whole = (call.input_tokens - cached) * self.input + cached * dear
        return (whole + call.output_tokens * self.output) / MILLION


def set_prices(prices: Mapping[str, Price] | None, currency: str = "USD") -> None:
    """What models cost from now on, in this process; None for no prices.

    Args:
        prices: by the name of the model (`gpt-5-mini`), or of the summariser
            (`openai:gpt-5-mini`), exactly. A model that is not there has no price, and the log says
            so once.
        currency: what the prices are in.

    Raises:
        PolicyError: a price is no `Price`, or they do not stand by model.
    """
    if prices is None:
        set_pricing(None)
        return
    if not isinstance(prices, Mapping):
        raise PolicyError(
            f'prices stand by model, as in {{"gpt-5-mini": Price(0.25, 2.0)}}, not {prices!r}'
        )
    for name, price in prices.items():
        if not isinstance(price, Price):
            raise PolicyError(
                f"the price of {name!r} must be a Price(input, output), not {price!r}"
            )
    if not isinstance(currency, str) or not currency:
        raise PolicyError(f"currency must be a text such as 'USD', not {currency!r}")
    set_pricing(_pricing(dict(prices)), currency)


def _pricing(prices: Mapping[str, Price]) -> Pricing:
    unknown: set[str] = set()
    lock = threading.Lock()

    def price_of(call: SummarizerCall) -> float | None:
        price = prices.get(call.model) or prices.get(call.summarizer)
        if price is not None:
            return price.of(call)
        name = call.model or call.summarizer
        with lock:
            new = name not in unknown and len(unknown) < MILLION
            unknown.add(name)
        if new:
            logger.info(
                "no price is set for %s: its calls are counted without one",
                name,
                extra=noted("price_unknown"),
            )
        return None

    return price_of
