"""Sizes and triggers in LangChain's forms, checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from conspectus.core.items import Size
from conspectus.errors import PolicyError

Unit = Literal["tokens", "messages", "fraction"]
ContextSize = tuple[Unit, int | float]
"""`("tokens", 4000)`, `("messages", 20)` or `("fraction", 0.8)` of the answering model's window."""

KINDS: tuple[Unit, ...] = ("tokens", "messages", "fraction")
RIGHT_FORM = (
    'Write ("tokens", 4000), ("messages", 20) or ("fraction", 0.8) with a fraction above 0 and '
    "at most 1"
)
TRIGGER_FORM = (
    RIGHT_FORM + '; conditions that must all hold as {"tokens": 4000, "messages": 10}; '
    "alternatives as a list of these"
)


def check_size(value: object, name: str) -> ContextSize:
    """Check one size; a `PolicyError` shows the right form."""
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise PolicyError(f"{name} cannot be {value!r}. {RIGHT_FORM}.")
    kind, amount = value
    if kind not in KINDS:
        raise PolicyError(f"Unsupported context size type {kind} for {name}. {RIGHT_FORM}.")
    return _check(kind, amount, name)


def _check(kind: object, amount: object, name: str) -> ContextSize:
    # The first sentences are those that users of LangChain's middleware look for.
    if kind not in KINDS:
        raise PolicyError(f"Unsupported {name} metric: {kind!r}. {RIGHT_FORM}.")
    if isinstance(amount, bool):
        raise PolicyError(f"{kind} {name} value must be numeric, got {amount!r}. {RIGHT_FORM}.")
    number = amount if isinstance(amount, (int, float)) else math.nan
    if kind == "fraction":
        if not isinstance(amount, (int, float)):
            raise PolicyError(
                f"Fraction {name} values must be numeric, got {amount!r}. {RIGHT_FORM}."
            )
        if not 0 < number <= 1:
            meant = f" Did you mean {number / 100:g}?" if 1 < number <= 100 else ""
            raise PolicyError(
                f"Fractional {name} values must be between 0 and 1, got {amount!r}.{meant} "
                f"{RIGHT_FORM}."
            )
        return ("fraction", float(number))
    if math.isfinite(number) and number <= 0:
        raise PolicyError(
            f"{name} thresholds must be greater than 0, got {amount!r}. {RIGHT_FORM}."
        )
    if not isinstance(number, int):
        raise PolicyError(f"{kind} {name} values must be integers, got {amount!r}. {RIGHT_FORM}.")
    return (kind, number)


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
    if isinstance(value, list):
        if not value:
            raise PolicyError(f"{name} is an empty list; pass None for no trigger. {TRIGGER_FORM}.")
        return tuple(clause for part in value for clause in _clause(part, name))
    return _clause(value, name)


def _clause(value: object, name: str) -> tuple[TriggerClause, ...]:
    if isinstance(value, TriggerClause):
        return (value,)
    if isinstance(value, Mapping):
        if not value:
            raise PolicyError(
                f"{name} clause must specify at least one of 'tokens', 'messages', 'fraction'. "
                f"{TRIGGER_FORM}."
            )
        sizes = [_check(kind, amount, name) for kind, amount in value.items()]
    elif isinstance(value, tuple):
        sizes = [check_size(value, name)]
    else:
        raise PolicyError(f"{name} cannot be {value!r}. {TRIGGER_FORM}.")
    parts: dict[str, Any] = dict(sizes)
    return (TriggerClause(**parts),)


def tightest(trigger: Sequence[TriggerClause]) -> int | None:
    """Return the least tokens of a clause that asks for tokens alone."""
    return min(
        (c.tokens for c in trigger if c.tokens is not None and c.messages is None), default=None
    )


def whole(value: object, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`, or raise `PolicyError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PolicyError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return value


def share(value: object, name: str) -> float:
    """Return a share of a history, 0 or more and less than 1, or raise `PolicyError`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value < 1:  # type: ignore[operator]
        raise PolicyError(
            f"{name} must be a share of the history, 0 or more and less than 1, got {value!r}."
        )
    return float(value)  # type: ignore[arg-type]
