"""Price models' calls, by prices of the user or of a list."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from conspectus._core.records import Cost
from conspectus.errors import PolicyError
from conspectus.events import SummarizerCall
from conspectus.events.hub import Pricing, set_pricing
from conspectus.events.notes import log

READ_ON = "2026-11-23"  # Day on which the pages of `prices.json` were read

_FILE = resources.files("conspectus.telemetry").joinpath("prices.json")
ROWS: dict[str, dict[str, list[float]]] = json.loads(_FILE.read_text(encoding="utf-8"))
"""US dollars for a million tokens, by the page of the source: input, output, input from the cache,
written for at most half an hour, written for an hour. Prices of short requests; see `LONG`."""

LONG: dict[str, tuple[int, float, float]] = {
    r"claude-haiku-5-5$": (100_000, 5, 5),
    r"gpt-(5\.[456]|6)(?!.*(mini|nano))": (272_000, 2, 1.5),
    r"gemini-(2\.5|3\.1)-pro": (200_000, 2, 1.5),
}
"""Models whose longer requests cost more: above these tokens of input, all input and all output
cost this many times as much."""

LITELLM = "model_prices_and_context_window_backup.json"

MILLION = 1_000_000

DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{3}|latest)$")
"""An ending of a model's name that names the same model."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model for a million tokens.

    Attributes:
        input: of the input.
        output: of the answer, reasoning included.
        cached: of input from the provider's cache. Default: as `input`.
        written: of input written to that cache. Default: as `input`.
        written_hour: of input written for an hour. Default: as `written`.
        long_from: tokens of input above which one call costs `long`; 0 for no such tier.
        long: prices of such a call, for all of it.

    Raises:
        PolicyError: one of them is no number of at least 0.
    """

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    written_hour: float | None = None
    long_from: int = 0
    long: Price | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "written", "written_hour"):
            value = getattr(self, name)
            left_out = value is None and name not in ("input", "output")
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not left_out and not (number and value >= 0):
                raise PolicyError(
                    f"the price of {name} must be a number of at least 0, for a million tokens, "
                    f"not {value!r}"
                )

    def of(self, call: Tokens) -> float:
        """Return the cost of one call: an event, a `Cost`, or another object with their counts.

        Example:
            >>> Price(2.0, 8.0, cached=0.5).of(
            ...     SummarizerCall(input_tokens=1_000_000, cached_tokens=400_000))
            1.4
        """
        if self.long is not None and call.input_tokens > self.long_from:
            return self.long.of(call)
        cached = min(call.cached_tokens, call.input_tokens)
        written = min(call.written_tokens, call.input_tokens - cached)
        hour = min(call.hour_tokens, written)
        of_writes = self.input if self.written is None else self.written
        whole = (
            (call.input_tokens - cached - written) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + (written - hour) * of_writes
            + hour * (of_writes if self.written_hour is None else self.written_hour)
        )
        return (whole + call.output_tokens * self.output) / MILLION


class Tokens(Protocol):
    """Counts of a call: input and output; the others are parts of the input."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def written_tokens(self) -> int: ...
    @property
    def hour_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


class PriceList(Mapping[str, Price]):
    """Prices by model, found by the name that a model or a provider uses.

    A name is found exactly, without the provider before it (`openai:gpt-5.4`, `openai/gpt-5.4`),
    and without the date behind it (`gpt-5.4-2026-03-05`); never by a part of it, as `gpt-5.4-mini`
    is another model than `gpt-5.4`.

    Args:
        prices: by model.
        source: of the prices.
        read_on: date such as `2026-11-23`; empty if unknown.

    Raises:
        PolicyError: `prices` is not a mapping from names to `Price`.

    Example:
        >>> prices = PriceList({"gpt-5.4": Price(2.5, 15.0)}, "a page", "2026-11-23")
        >>> prices["openai:gpt-5.4-2026-03-05"].output
        15.0
        >>> "gpt-5.4-mini" in prices
        False
    """

    def __init__(self, prices: Mapping[str, Price], source: str, read_on: str = "") -> None:
        check_prices(prices)
        self._prices = dict(prices)
        self.source, self.read_on = source, read_on

    def __getitem__(self, name: str) -> Price:
        """Return the price of a model, or raise `KeyError`."""
        parts = re.split(r"[:/]", name) if isinstance(name, str) else [""]
        bare, after = parts[-1], name[len(parts[0]) + 1 :] if len(parts) > 1 else ""
        for one in (name, after, bare, DATED.sub("", bare)):  # Bedrock's names end with `:0`
            if one in self._prices:
                return self._prices[one]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._prices)

    def __len__(self) -> int:
        return len(self._prices)

    def __repr__(self) -> str:
        return f"<prices of {len(self):,} models, {self.source}, {self.read_on or 'no date'}>"


def price_of(cost: Cost, prices: Mapping[str, Price]) -> float | None:
    """Return the cost of a finished compaction in money, 0 without calls.

    None if a model has no price, or it is not known which models were asked. Tiers for long calls
    are left out, as a record holds sums.

    Args:
        cost: of a record or a result.
        prices: by model, such as `known_prices()`.

    Example:
        >>> price_of(Cost(1, 1_000_000).asked_of("small"), {"small": Price(2.0, 8.0)})
        2.0
    """
    if sum(one.calls for one in cost.models.values()) != cost.calls:
        return None
    total = 0.0
    for model, spent in cost.models.items():
        price = prices.get(model)
        if price is None:
            return None
        total += replace(price, long=None).of(spent)
    return total


def set_prices(prices: Mapping[str, Price] | None, currency: str = "USD") -> None:
    """Set the prices of models in this process; None for no prices.

    Args:
        prices: by the name of the model (`gpt-5-mini`), or of the summariser (`openai:gpt-5-mini`),
            exactly; or a list: `known_prices()`, `litellm_prices()`. A model without a price is
            logged once.
        currency: of the prices.

    Raises:
        PolicyError: it is not a mapping from names to `Price`.
    """
    if prices is None:
        set_pricing(None)
        return
    check_prices(prices)
    if not isinstance(currency, str) or not currency:
        raise PolicyError(f"currency must be a text such as 'USD', not {currency!r}")
    held = prices if isinstance(prices, PriceList) else dict(prices)
    set_pricing(_pricing(held), currency)


def check_prices(prices: object) -> None:
    """Refuse what is no mapping from names to `Price`.

    Raises:
        PolicyError: with what is wrong.
    """
    if not isinstance(prices, Mapping):
        raise PolicyError(
            f'prices stand by model, as in {{"gpt-5-mini": Price(0.25, 2.0)}}, not {prices!r}'
        )
    for name, price in prices.items():
        if not isinstance(price, Price):
            raise PolicyError(
                f"the price of {name!r} must be a Price(input, output), not {price!r}"
            )


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
            said = "no price is set for %s: its calls are counted without one"
            log("price_unknown", said, name, level=logging.INFO)
        return None

    return price_of


def known_prices() -> PriceList:
    """Return our dated list: Anthropic, OpenAI and Google, in US dollars.

    Example:
        >>> known_prices()
        <prices of 44 models, the providers' pages, 2026-11-23>
    """
    prices = {
        name: Price(*row, **_long(name, row))  # type: ignore[arg-type]
        for rows in ROWS.values()
        for name, row in rows.items()
    }
    return PriceList(prices, "the providers' pages", READ_ON)


def _long(name: str, row: Sequence[float]) -> dict[str, Any]:
    for pattern, (tokens, input_times, output_times) in LONG.items():
        if re.match(pattern, name):
            times = (input_times, output_times, *[input_times] * 3)
            more = (one * n for one, n in zip(row, times, strict=False))
            return {"long_from": tokens, "long": Price(*more)}  # type: ignore[arg-type]
    return {}


def litellm_prices() -> PriceList:
    """Read the list of an installed LiteLLM, without an import or a request.

    In US dollars, standard service, text.

    Raises:
        PolicyError: LiteLLM is not installed, or holds no such list.
    """
    found = find_spec("litellm")
    if found is None or found.origin is None:
        raise PolicyError(
            "LiteLLM is not installed: pip install 'conspectus[litellm]', or take known_prices()"
        )
    file = Path(found.origin).with_name(LITELLM)
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"{file} cannot be read as LiteLLM's prices ({error}); take known_prices()"
        ) from error
    rows.pop("sample_spec", None)  # it explains the list's fields, and is no model
    prices: dict[str, Price] = {}
    for name, row in rows.items():
        price = _of_litellm(row) if isinstance(row, Mapping) else None
        if price is None:
            continue
        prices[name] = price
        if row.get("litellm_provider") in ("anthropic", "openai", "gemini"):
            prices.setdefault(name.split("/")[-1], price)  # `gemini/gemini-2.5-pro`
    return PriceList(prices, "LiteLLM")


def _of_litellm(row: Mapping[str, Any], above: str = "") -> Price | None:
    def cost(name: str) -> float | None:
        value = row.get(name + above)
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        return round(value * MILLION, 9) if plain and value >= 0 else None  # type: ignore[operator]

    sent, said = cost("input_cost_per_token"), cost("output_cost_per_token")
    if sent is None or said is None:
        return None
    long_from = 0
    if not above:
        keys = (re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key) for key in row)
        long_from = min((int(key[1]) for key in keys if key), default=0)
    # `..._above_1hr_above_100k_tokens`: the part for an hour comes first.
    return Price(
        sent,
        said,
        cached=cost("cache_read_input_token_cost"),
        written=cost("cache_creation_input_token_cost"),
        written_hour=cost("cache_creation_input_token_cost_above_1hr"),
        long_from=long_from * 1_000,
        long=_of_litellm(row, f"_above_{long_from}k_tokens") if long_from else None,
    )
