"""Compute means with percentile bootstrap intervals."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 1_000
"""Resamples; the ends of the interval are the 26th and the 976th of their means."""

LOW, HIGH = 25, 975


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % interval, which one value alone does not have."""

    value: float
    low: float | None
    high: float | None
    count: int


def mean_of(values: Sequence[float], seed: int) -> Mean | None:
    """Return the mean with its percentile bootstrap interval (Efron, 1979); None without values.

    Example:
        >>> mean_of([1.0, 1.0, 1.0], seed=1)
        Mean(value=1.0, low=1.0, high=1.0, count=3)
    """
    if not values:
        return None
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Mean(mean, None, None, len(values))
    chance = random.Random(seed)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(ROUNDS))
    return Mean(mean, means[LOW], means[HIGH], len(values))
