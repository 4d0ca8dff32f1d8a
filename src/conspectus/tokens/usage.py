"""What a model reported of its input, as a correction of the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_RATIO = 0.5
MOST_RATIO = 2.0
"""Bounds of the correction. A report of less than the least is of something else, such as one that
leaves cached tokens out, and says nothing. One above the most may count tools, and is cut."""

LEAST_GROWTH = 500
"""Estimated tokens of a report, and between two of them, from which on they say something."""


@dataclass(frozen=True, slots=True)
class Report:
    """One report of usage.

    Attributes:
        estimated: tokens of the messages before the answer, by the estimate.
        reported: tokens of the input that the model reported with it; the system prompt and
            tools that are not among the messages are in it.
    """

    estimated: int
    reported: int


def bounded(ratio: float) -> float:
    """A correction within its bounds."""
    return min(MOST_RATIO, max(LEAST_RATIO, ratio))


def correction(reports: Sequence[Report], overhead: int = 0) -> float:
    """By what the estimate is to be multiplied: between 0.5 and 2, and 1 where nothing is known.

    What is not among the messages is the same in all reports, so that the growth from the first
    to the last one is that of the messages alone. A single report counts less the overhead that
    the caller knows of; beyond that it can only show that the estimate is too large.

    Args:
        reports: those of one history since its last compaction, oldest first.
        overhead: tokens that were reserved for what is not among the messages.

    Example:
        >>> correction([Report(1_000, 2_600), Report(3_000, 5_000)])
        1.2
        >>> correction([Report(1_000, 900)])
        0.9
    """
    usable = [
        r
        for r in reports
        if r.estimated >= LEAST_GROWTH and r.reported >= LEAST_RATIO * r.estimated
    ]
    if not usable:
        return 1.0
    first, last = usable[0], usable[-1]
    growth = last.estimated - first.estimated
    if growth >= LEAST_GROWTH and last.reported > first.reported:
        return bounded((last.reported - first.reported) / growth)
    most = last.reported / last.estimated
    if most < 1:
        return bounded(most)
    return bounded(max(1.0, (last.reported - overhead) / last.estimated))
