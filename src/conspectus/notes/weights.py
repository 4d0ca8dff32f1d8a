"""Which lines give way first if not all fit: calls, words of the agent and of others, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt

from conspectus.notes.cutting import GAP
from conspectus.notes.data import Line
from conspectus.notes.protection import ShorteningStep

OTHERS_LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)
"""The characters to which a line is cut, step by step."""

SHORTEST_LINE_CHARACTERS = 120
"""A line is not cut to fewer characters, but left out and counted."""

RECENT_LINES = 24
"""The age of a line, in later lines, at which it has seven tenths of its weight:
1 / sqrt(1 + age / RECENT_LINES)."""

NEWEST_CALL_FACTOR = 2.0
"""The newest line weighs so many times as much if it is a call: the work continues there."""

LONG_OUTCOME_CHARACTERS = 600
"""Characters of an outcome from which on a call of an unknown tool counts as a look."""

WEIGHTS: tuple[tuple[Callable[[Line], object], float], ...] = (
    (lambda line: line.kind == "found", 50.0),
    (lambda line: line.args and line.args[0][1] == GAP, 0.1),
    (lambda line: line.kind == "agent", 2.0),
    (lambda line: line.failed or line.acts, 1.5),
    (lambda line: line.effect is False or len(line.outcome) > LONG_OUTCOME_CHARACTERS, 0.6),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So of lines of one length and age calls
that wrote a to-do list give way first, because the newest list stands elsewhere; then looks, other
calls, those that changed something or failed, what the agent said, and last a model's findings.
The numbers were tried on ten recorded sessions, each in four windows, with twelve questions each:
with 1.5 to 2 for the agent's words, the views answered most questions."""


def steps_by_weight(lines: Sequence[tuple[int, Line]]) -> Iterator[ShorteningStep]:
    """Return the steps by which lines give way, in their order.

    Args:
        lines: the lines with their positions, the newest first.
    """
    steps: list[tuple[float, int, int]] = []
    for age, (position, line) in enumerate(lines):
        weight = weight_of(line)
        if line.kind != "found":
            weight /= sqrt(1.0 + age / RECENT_LINES)
        if age == 0 and line.kind == "done":
            weight *= NEWEST_CALL_FACTOR
        for level in OTHERS_LEVELS:
            if level < line.size:
                steps.append((-level / weight, position, level))
        steps.append((-min(SHORTEST_LINE_CHARACTERS, line.size) / weight, position, 0))
    steps.sort()
    return (ShorteningStep(position, characters) for _, position, characters in steps)


def weight_of(line: Line) -> float:
    """Return what a line weighs, without its age.

    Example:
        >>> weight_of(Line("found", text="The cause is a lock."))
        50.0
    """
    if line.weight is None:
        line.weight = next(weight for test, weight in WEIGHTS if test(line))
    return line.weight
