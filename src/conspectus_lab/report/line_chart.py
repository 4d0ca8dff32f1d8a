"""Where the lines of a chart run: how full the window was, call by call, under each policy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import log10

from conspectus_lab.report.replay_data import Chart, Line, Mark
from conspectus_lab.report.tables import NOTHING

WIDTH, HEIGHT = 640, 280
"""Units across and down; text of 12 of them is readable on paper and on a screen."""

LEFT, RIGHT, ABOVE, BELOW = 72, 12, 12, 40
"""Units around the lines, for what the axes say."""

TICKS = 6
"""Numbers on an axis, about."""

POINTED_AT = 600
"""Calls up to which each says its numbers where it is pointed at: one has a unit of width."""

LOOKS = (
    ("", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"),
    ("6 4", "M0-6.5L6.5 0L0 6.5L-6.5 0z"),
    ("8 3 2 3", "M-4.7-4.7h9.4v9.4h-9.4z"),
    ("12 4", "M0-6L6 5H-6z"),
    ("12 3 3 3", "M-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z"),
    ("2 3", "M-6 0L-3-5.2H3L6 0L3 5.2H-3z"),
)
"""Dashes and marks by colour, so that no line is told by its colour alone."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A number of an axis, and where it stands."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Point:
    """A mark for the compactions of one call.

    Attributes:
        x, y: where it stands.
        anchor: of the first of them.
        says: what it means, in words.
    """

    x: float
    y: float
    anchor: str
    says: str


@dataclass(frozen=True, slots=True)
class Run:
    """One policy: `path` joins its requests, `shape` is the look of its marks."""

    colour: int
    dash: str
    shape: str
    path: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart in units of `WIDTH` and `HEIGHT`.

    Attributes:
        desc: the same in words, for those who cannot see it.
        across, up: numbers of the axes: calls, and tokens.
        window: how high the window stands.
        runs: the lines, the first of them last, as that one stands above the others.
        calls: where each call stands, and its numbers in words; not in the chart of whole height,
            which would say them again.
        step: units from one call to the next.
    """

    desc: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    window: float
    runs: tuple[Run, ...]
    calls: tuple[Tick, ...]
    step: float


def drawing(chart: Chart, whole: bool = False) -> Drawing:
    """Place a chart.

    Args:
        chart: what it shows.
        whole: whether it is so high that every request is in it.
    """
    top = chart.peak if whole else chart.top
    last = max(1, *(line.steps[-1] for line in chart.lines if line.steps), 1)
    step = (WIDTH - LEFT - RIGHT) / last

    def x(call: float) -> float:
        return round(LEFT + (call - 0.5) * step, 1)

    def y(tokens: float) -> float:
        return round(HEIGHT - BELOW - tokens / top * (HEIGHT - ABOVE - BELOW), 1)

    def run(line: Line) -> Run:
        path = " ".join(
            f"{x(at)},{y(size)}" for at, size in zip(line.steps, line.tokens, strict=True)
        )
        points = (
            Point(x(one.step), y(min(one.tokens, top)), one.anchors[0], _says(line, one))
            for one in line.marks
        )
        return Run(line.colour, *LOOKS[line.colour % len(LOOKS)], path, tuple(points))

    return Drawing(
        " ".join(_desc(chart)),
        tuple(Tick(x(at), f"{at:,}") for at in _ticks(last) if at),
        tuple(Tick(y(at), f"{at:,}") for at in _ticks(top)),
        y(chart.window),
        tuple(run(line) for line in reversed(chart.lines)),
        tuple(Tick(x(at), text) for at, text in _calls(chart))
        if last <= POINTED_AT and not whole
        else (),
        round(step, 1),
    )


def _ticks(most: int) -> range:
    """Round numbers from 0 to the most."""
    power = 10 ** int(log10(max(1, most / TICKS)))
    steps = [power * n for n in (1, 2, 5, 10)]
    return range(0, most + 1, steps[min(3, bisect_right(steps, (most - 1) // TICKS))])


def _says(line: Line, mark: Mark) -> str:
    many = len(mark.anchors)
    what = "a compaction" if many == 1 else f"{many:,} compactions"
    return f"{line.title}: {what} before call {mark.step:,}, {mark.tokens:,} tokens"


def _desc(chart: Chart) -> Iterator[str]:
    yield f"The window holds {chart.window:,} tokens."
    for line in chart.lines:
        peak = max(line.tokens, default=0)
        yield (
            f"{line.title}: {len(line.steps):,} calls, the largest of {peak:,} tokens, "
            f"compactions before {len(line.marks):,} of them."
        )


def _calls(chart: Chart) -> Iterator[tuple[int, str]]:
    """Each call with the sizes of its requests, in words."""
    sizes = [(line.title, dict(zip(line.steps, line.tokens, strict=True))) for line in chart.lines]
    for call in sorted({call for _, known in sizes for call in known}):
        said = " · ".join(
            f"{title} {known[call]:,}" if call in known else f"{title} {NOTHING}"
            for title, known in sizes
        )
        yield call, f"Call {call:,}: {said} tokens"
