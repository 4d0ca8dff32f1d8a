"""Lists of prices: our small dated one, and that of an installed LiteLLM."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from conspectus.errors import PolicyError
from conspectus.telemetry.prices import MILLION, Price, PriceList

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
