"""Correct the estimate by the usage that a model reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_RATIO, MOST_RATIO = 0.5, 2.0
"""Bounds of the correction. A report below the least measures something else, such as one without
cached tokens, and is ignored; if it is the newest, earlier ones do not lower the estimate either.
One above the most may count tools, and is cut; one as far above the window, too, belongs to no
request that a model has answered, and is ignored."""

LEAST_GROWTH = 500  # Least estimated tokens of a report, and between two of them, that are used


@dataclass(frozen=True, slots=True)
class Report:
    """Reported input tokens of one request, beside the estimate for its messages alone."""

    estimated: int
    reported: int


def correction(reports: Sequence[Report], overhead: int = 0, limit: int | None = None) -> float:
    """Return the factor for the estimate: 0.5 to 2, and 1 without usable reports.

    The rest of a request is the same in all reports, so the growth from the first to the last one
    is that of the messages alone. A single report counts less the known overhead; beyond that it
    can only show that the estimate is too large. Reports belong to one history since its last
    compaction, oldest first.

    Example:
        >>> correction([Report(1_000, 2_600), Report(3_000, 5_000)])
        1.2
        >>> correction([Report(1_000, 900)])
        0.9
    """
    newest_is_void = bool(reports) and reports[-1].reported < LEAST_RATIO * reports[-1].estimated
    usable = [
        r
        for r in reports
        if r.estimated >= LEAST_GROWTH
        and r.reported >= LEAST_RATIO * r.estimated
        and (limit is None or r.reported <= MOST_RATIO * max(r.estimated + overhead, limit))
    ]
    if not usable:
        return 1.0
    first, last = usable[0], usable[-1]
    growth, ratio = last.estimated - first.estimated, last.reported / last.estimated
    if growth >= LEAST_GROWTH and last.reported > first.reported:
        ratio = (last.reported - first.reported) / growth
    elif ratio > 1:
        ratio = max(1.0, (last.reported - overhead) / last.estimated)
    return min(MOST_RATIO, max(1.0 if newest_is_void else LEAST_RATIO, ratio))
