"""Which of the other lines give way first where not all of them fit: calls, reports, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt

from conspectus.notes.cutting import GAP
from conspectus.notes.data import Line
from conspectus.notes.protection import ShorteningStep

CUT_LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)
"""The characters to which a line is cut, step by step."""

SHORTEST_LINE = 120
"""Characters below which a line is not cut any more, but counted."""

RECENT = 24
"""The age of a line, in later lines, at which it has seven tenths of its weight:
1 / sqrt(1 + age / RECENT)."""

NEWEST_CALL = 2.0
"""The newest line weighs so many times as much if it is a call: who goes on begins with it."""

LONG_OUTCOME = 600
"""Characters of an outcome from which on a call of an unknown tool counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], object], float], ...] = (
    (lambda line: line.kind == "found", 50.0),
    (lambda line: line.args and line.args[0][1] == GAP, 0.1),
    (lambda line: line.kind == "agent", 2.0),
    (lambda line: line.failed or line.acts, 1.5),
    (lambda line: line.effect is False or len(line.outcome) > LONG_OUTCOME, 0.6),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So of lines of one length and age calls
that wrote a to-do list give way first, because the newest list stands elsewhere; then looks, other
calls, those that changed something or failed, what the agent said, and last a model's findings.
The numbers were tried on ten recorded sessions, each in four windows, with twelve questions each:
from 1.5 to 2 for the agent's words the views answered the most."""


def steps_by_weight(lines: Sequence[tuple[int, Line]]) -> Iterator[ShorteningStep]:
    """Return the steps by which lines give way, in their order.

    Args:
        lines: the lines with their positions, the newest first.
    """
    steps: list[tuple[float, int, int]] = []
    for age, (position, line) in enumerate(lines):
        weight = weight_of(line)
        if line.kind != "found":
            weight /= sqrt(1.0 + age / RECENT)
        if age == 0 and line.kind == "done":
            weight *= NEWEST_CALL
        for level in CUT_LEVELS:
            if level < line.size:
                steps.append((-level / weight, position, level))
        steps.append((-min(SHORTEST_LINE, line.size) / weight, position, 0))
    steps.sort()
    return (ShorteningStep(position, characters) for _, position, characters in steps)


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
