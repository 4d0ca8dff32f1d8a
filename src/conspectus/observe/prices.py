"""Money for calls of models: by the caller's own prices, then by the package `genai-prices`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

from conspectus.core.records import COUNTS, Cost
from conspectus.errors import PolicyError
from conspectus.observe.logs import log

MILLION = 1_000_000

_prices: Mapping[str, Price] = {}


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of a model, in US dollars for a million tokens.

    Attributes:
        input: price of tokens that are sent.
        output: price of tokens that are received.
        cached: price of input that the provider reads from its cache. Default: `input`.
        written: price of input that the provider writes to its cache. Default: `input`.
        written_hour: price of input that the cache keeps for an hour. Default: `written`.

    Raises:
        PolicyError: a price is not a number of at least 0.

    Example:
        >>> Price(2.0, 8.0, cached=0.5).of(Cost(1, 1_000_000, cached_tokens=400_000))
        1.4
    """

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    written_hour: float | None = None

    def __post_init__(self) -> None:
        cache_prices = (self.cached or 0, self.written or 0, self.written_hour or 0)
        for price in (self.input, self.output, *cache_prices):
            if type(price) not in (int, float) or not price >= 0:
                raise PolicyError(
                    f"a price must be a number of at least 0, for a million tokens, not {price!r}"
                )

    def of(self, cost: Cost) -> float:
        """Return what calls cost."""
        cached, written, hour = _cache_tokens(cost)
        cached_price = self.input if self.cached is None else self.cached
        written_price = self.input if self.written is None else self.written
        hour_price = written_price if self.written_hour is None else self.written_hour
        amount = (
            (cost.input_tokens - cached - written) * self.input
            + cached * cached_price
            + (written - hour) * written_price
            + hour * hour_price
            + cost.output_tokens * self.output
        )
        return amount / MILLION


def _cache_tokens(cost: Cost) -> tuple[int, int, int]:
    """Return tokens of the input that were cached, written, and of these written for an hour."""
    cached = min(cost.cached_tokens, cost.input_tokens)
    written = min(cost.written_tokens, cost.input_tokens - cached)
    hour = min(cost.hour_tokens, written)
    return cached, written, hour


def set_prices(prices: Mapping[str, Price] | None) -> None:
    """Set your own prices for this process, by the name of the model. None removes them.

    Other prices come from the package `genai-prices`, if it is installed. If a price is unknown,
    the log says so once for each model, and costs have no `money`.

    Raises:
        PolicyError: it is not a mapping from names to `Price`.
    """
    global _prices
    _prices = dict(_checked({} if prices is None else prices))


def _checked(prices: object) -> Mapping[str, Price]:
    """Return prices by model, or raise a `PolicyError` with what is wrong."""
    if not isinstance(prices, Mapping) or not all(isinstance(p, Price) for p in prices.values()):
        raise PolicyError(
            f'prices are given by model, as in {{"gpt-5-mini": Price(0.25, 2.0)}}, not {prices!r}'
        )
    return prices


def price_of(cost: Cost, prices: Mapping[str, Price] | None = None) -> float | None:
    """Return what calls of models cost; 0 without calls, None if a price is unknown.

    `prices` are your own; by default those of `set_prices`. Where longer requests cost more, the
    mean size of a model's calls counts.

    Example:
        >>> price_of(Cost(1, 1_000_000).asked_of("small"), {"small": Price(2.0, 8.0)})
        2.0
    """
    if sum(spent.calls for spent in cost.models.values()) != cost.calls:
        return None
    own_prices = _prices if prices is None else _checked(prices)
    total = 0.0
    for model, spent in cost.models.items():
        if model in own_prices:
            amount: float | None = own_prices[model].of(spent)
        else:
            amount = _listed_price(model, spent)
        if amount is None:
            _log_unknown(model)
            return None
        total += amount
    return total


@lru_cache(256)  # an event and a record both ask for the same cost
def _listed_price(model: str, cost: Cost) -> float | None:
    """Return what calls of a model cost by `genai-prices`; None if it does not know that."""
    try:
        listed = import_module("genai_prices")
    except ImportError:
        return None
    count = max(1, cost.calls)
    mean = Cost(**{name: getattr(cost, name) // count for name in COUNTS})
    cached, written, hour = _cache_tokens(mean)
    usage = listed.Usage(
        input_tokens=mean.input_tokens,
        output_tokens=mean.output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=hour,
    )
    provider, _, name = re.sub("/", ":", model, count=1).rpartition(":")
    try:
        price = listed.calc_price(usage, name, provider_id=provider or None)
        return float(price.total_price) * count
    except (LookupError, ValueError):
        return None


@lru_cache(1_024)
def _log_unknown(model: str) -> None:
    """Log once for each model that its price is unknown; the cache remembers the models."""
    text = "no price is known for %s, so its calls name no money; give one to set_prices()"
    log("price_unknown", text, model, level=logging.INFO)
