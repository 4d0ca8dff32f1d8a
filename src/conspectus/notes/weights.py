"""Which of the other lines give way first where not all of them fit: calls, reports, findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from conspectus.notes.data import Line
from conspectus.notes.protection import ShorteningStep

CUT_LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)
"""The characters to which a line is cut, step by step."""

SHORTEST_LINE = 120
"""Characters below which a line is not cut any more, but counted."""

RECENT = 24
"""The age of a line, in later lines, at which it has seven tenths of its weight:
1 / sqrt(1 + age / RECENT)."""

LONG_OUTCOME = 600
"""Characters of an outcome from which on a call of an unknown tool counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], object], float], ...] = (
    (lambda line: line.kind == "found", 50.0),
    (lambda line: line.kind == "agent", 5.0),
    (lambda line: line.failed or line.acts, 1.5),
    (lambda line: line.effect is False or len(line.outcome) > LONG_OUTCOME, 0.6),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So of lines of one length and age looks
give way first, then calls, those that changed something or failed, what the agent said, and last a
model's findings."""


def steps_by_weight(lines: Sequence[tuple[int, Line]]) -> list[ShorteningStep]:
    """Return the steps by which lines give way, in their order.

    Args:
        lines: the lines with their positions, the newest first.
    """
    steps: list[tuple[float, ShorteningStep]] = []
    for age, (position, line) in enumerate(lines):
        weight = weight_of(line)
        if line.kind != "found":
            weight /= sqrt(1.0 + age / RECENT)
        for level in CUT_LEVELS:
            if level < line.size:
                steps.append((-level / weight, ShorteningStep(position, level)))
        steps.append((-min(SHORTEST_LINE, line.size) / weight, ShorteningStep(position, 0)))
    return [step for _, step in sorted(steps)]


def weight_of(line: Line) -> float:
    """Return what a line weighs, without its age.

    Example:
        >>> weight_of(Line("found", text="The cause is a lock."))
        50.0
    """
    weight: float | None = line.derived.get("weight")
    if weight is None:
        weight = next(weight for test, weight in WEIGHTS if test(line))
        line.derived["weight"] = weight
    return weight
