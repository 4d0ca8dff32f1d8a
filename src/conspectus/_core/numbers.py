"""Check numbers that callers give."""

from __future__ import annotations

from conspectus.errors import PolicyError


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
