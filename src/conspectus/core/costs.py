"""The cost of summarising: calls and tokens, in all and by model, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of summarising.

    Attributes:
        calls: calls of a model; the embedded summariser makes none.
        input_tokens: tokens sent, as reported by the model or else estimated.
        output_tokens: tokens received, likewise.
        cached_tokens: input tokens that came from a cache, as reported.
        reasoning_tokens: output tokens of reasoning, as reported.
        estimated_calls: successful calls whose tokens are an estimate.
        written_tokens: input tokens written to a cache, as reported.
        hour_tokens: those of `written_tokens` that were written for an hour.
        models: the same by model, or by summariser if it names none; empty if unknown. Costs are
            compared without it.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_calls: int = 0
    written_tokens: int = 0
    hour_tokens: int = 0
    models: Mapping[str, Cost] = field(default_factory=dict, compare=False)

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Cost) -> Cost:
        models = dict(self.models)
        for name, cost in other.models.items():
            models[name] = models[name] + cost if name in models else cost
        sums = {one: getattr(self, one) + getattr(other, one) for one in COUNTS}
        return Cost(**sums, models=models)

    def asked_of(self, model: str) -> Cost:
        """Return the same cost, of calls of one model.

        Example:
            >>> spent = Cost(1, 90, 10).asked_of("small") + Cost(1, 5, 5).asked_of("large")
            >>> spent.models["small"].tokens, spent.tokens
            (100, 110)
        """
        return replace(self, models={model: replace(self, models={})})

    def to_json(self) -> dict[str, Any]:
        """Return the cost as plain data, without unknown details.

        They are left out as in earlier versions, so that a record keeps its id.
        """
        data: dict[str, Any] = {one: getattr(self, one) for one in COUNTS}
        if self.models:
            data["models"] = {name: cost.to_json() for name, cost in self.models.items()}
        return {k: v for k, v in data.items() if v or k in COUNTS[:3]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cost:
        """Read a cost that `to_json` wrote, in any version; a `TypeError` if invalid."""
        if not isinstance(data, Mapping):
            raise TypeError("a cost is a mapping")
        models = data.get("models") or {}
        if not isinstance(models, Mapping):
            raise TypeError("costs stand by model")
        return cls(
            **{k: v for k, v in data.items() if k in COUNTS},
            models={str(name): cls.from_json(cost) for name, cost in models.items()},
        )


COUNTS = tuple(one.name for one in fields(Cost) if one.name != "models")
"""Names of its counts; the first three are always written."""
