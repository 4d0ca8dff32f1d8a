"""Sizes and triggers in LangChain's forms, checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from conspectus.core.items import Size
from conspectus.errors import PolicyError

Unit = Literal["tokens", "messages", "fraction"]
ContextSize = tuple[Unit, int | float]
"""`("tokens", 4000)`, `("messages", 20)` or `("fraction", 0.8)` of the answering model's window."""

RIGHT_FORM = (
    'Write ("tokens", 4000), ("messages", 20) or ("fraction", 0.8) with a fraction above 0 and '
    "at most 1"
)
TRIGGER_FORM = (
    RIGHT_FORM + '; conditions that must all hold as {"tokens": 4000, "messages": 10}; '
    "alternatives as a list of these"
)


def check_size(value: object, name: str) -> ContextSize:
    """Return one size, checked; a `PolicyError` shows the right form."""
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise PolicyError(f"{name} cannot be {value!r}. {RIGHT_FORM}.")
    if value[0] not in ("tokens", "messages", "fraction"):
        raise PolicyError(f"Unsupported context size type {value[0]} for {name}. {RIGHT_FORM}.")
    return _check(*value, name)


def _check(kind: object, amount: object, name: str) -> ContextSize:
    # The first words are those that users of LangChain's middleware look for.
    number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
    wrong = ""
    if kind == "fraction":
        if not number:
            wrong = f"Fraction {name} values must be numeric"
        elif not 0 < amount <= 1:  # type: ignore[operator]
            wrong = f"Fractional {name} values must be between 0 and 1"
    elif kind not in ("tokens", "messages"):
        raise PolicyError(f"Unsupported {name} metric: {kind!r}. {RIGHT_FORM}.")
    elif isinstance(amount, bool):
        wrong = f"{kind} {name} value must be numeric"
    elif number and amount <= 0:  # type: ignore[operator]
        wrong = f"{name} thresholds must be greater than 0"
    elif not isinstance(amount, int):
        wrong = f"{kind} {name} values must be integers"
    if wrong:
        percent = kind == "fraction" and number and 1 < amount <= 100  # type: ignore[operator]
        meant = f" Did you mean {amount / 100:g}?" if percent else ""  # type: ignore[operator]
        raise PolicyError(f"{wrong}, got {amount!r}.{meant} {RIGHT_FORM}.")
    return (kind, float(amount) if kind == "fraction" else amount)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True, slots=True)
class TriggerClause:
    """Sizes that must all be reached; None asks nothing.

    Attributes:
        tokens: size of the history, in tokens.
        messages: its length, in messages.
        fraction: share of the answering model's window.
    """

    tokens: int | None = None
    messages: int | None = None
    fraction: float | None = None

    def threshold(self, limit: int | None) -> int | None:
        """Return the tokens that this clause waits for, in a window of `limit`."""
        wanted = [] if self.tokens is None else [self.tokens]
        if self.fraction is not None and limit is not None:
            wanted.append(max(1, int(limit * self.fraction)))
        return max(wanted, default=None)

    def met(self, size: Size, limit: int | None) -> bool:
        """Tell whether all of it holds; a fraction of an unknown window never does."""
        if self.fraction is not None and limit is None:
            return False
        tokens = self.threshold(limit)
        return (tokens is None or size.tokens >= tokens) and (
            self.messages is None or size.messages >= self.messages
        )

    def __str__(self) -> str:
        parts = [f"{self.tokens:,} tokens"] if self.tokens is not None else []
        parts += [f"{self.messages:,} messages"] if self.messages is not None else []
        parts += [f"{self.fraction:g} of the window"] if self.fraction is not None else []
        return " and ".join(parts)


def parse_trigger(value: object, name: str = "trigger") -> tuple[TriggerClause, ...]:
    """Parse LangChain's forms of a trigger into clauses, any of which is enough.

    Example:
        >>> [str(c) for c in parse_trigger([("messages", 50), {"tokens": 4000, "messages": 10}])]
        ['50 messages', '4,000 tokens and 10 messages']
    """
    if value is None:
        return ()
    if isinstance(value, list) and not value:
        raise PolicyError(f"{name} is an empty list; pass None for no trigger. {TRIGGER_FORM}.")
    return tuple(_clause(one, name) for one in (value if isinstance(value, list) else [value]))


def _clause(value: object, name: str) -> TriggerClause:
    if isinstance(value, TriggerClause):
        return value
    if isinstance(value, tuple):
        sizes = [check_size(value, name)]
    elif not isinstance(value, Mapping):
        raise PolicyError(f"{name} cannot be {value!r}. {TRIGGER_FORM}.")
    elif not value:
        raise PolicyError(
            f"{name} clause must specify at least one of 'tokens', 'messages', 'fraction'. "
            f"{TRIGGER_FORM}."
        )
    else:
        sizes = [_check(kind, amount, name) for kind, amount in value.items()]
    parts: dict[str, Any] = dict(sizes)
    return TriggerClause(**parts)


def whole(value: object, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`, or raise `PolicyError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PolicyError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return value
