"""Find the highest level that fits, by halves."""

from __future__ import annotations

from collections.abc import Callable


def highest_that_fits(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Find the highest level that fits, where all below one that fits do; `low` if none does.

    Example:
        >>> highest_that_fits(1, 100, lambda level: 3 * level <= 50)
        16
    """
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
