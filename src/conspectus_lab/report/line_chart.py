"""Place the lines of a chart of the window's fill, call by call, under each policy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10

from conspectus_lab.report.replay_data import Opened, Run, TranscriptData
from conspectus_lab.report.tables import NOTHING

WIDTH, HEIGHT = 640, 280
"""Units across and down; text of 12 of them is readable on paper and on a screen."""

LEFT, RIGHT, ABOVE, BELOW = 72, 12, 12, 40
"""Units around the lines, for the labels of the axes."""

ROOM = 1.4
"""Maximum height of the first chart in windows, if a policy leaves the window far behind."""

TICKS = 6
"""Approximate number of labels on an axis."""

POINTED_AT = 600
"""Maximum calls with a label each; then one has a unit of width."""

LOOKS = (
    ("", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"),
    ("6 4", "M0-6.5L6.5 0L0 6.5L-6.5 0z"),
    ("8 3 2 3", "M-4.7-4.7h9.4v9.4h-9.4z"),
    ("12 4", "M0-6L6 5H-6z"),
    ("12 3 3 3", "M-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z"),
    ("2 3", "M-6 0L-3-5.2H3L6 0L3 5.2H-3z"),
)
"""Dashes and marks by colour, so that lines differ in more than their colours."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A number of an axis, and its place."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Point:
    """A mark for the compactions of one call, with the anchor of the first, in words."""

    x: float
    y: float
    anchor: str
    says: str


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One policy: `path` joins its requests, `shape` is the form of its marks."""

    colour: int
    dash: str
    shape: str
    path: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart in units of `WIDTH` and `HEIGHT`.

    Attributes:
        desc: the same in words, for people who cannot see it.
        across, up: numbers of the axes: calls, and tokens.
        window: its height.
        lines: one for each policy; the first policy is last, above the others.
        above: number of requests too high to show, with the policy's title.
        calls: place and numbers of each call; empty in the chart of whole height, which would
            repeat them.
        step: units from one call to the next.
    """

    desc: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    window: float
    lines: tuple[PolicyLine, ...]
    above: tuple[tuple[int, str], ...]
    calls: tuple[Tick, ...]
    step: float


def drawing(transcript: TranscriptData, whole: bool = False) -> Drawing:
    """Place the chart of a transcript; if `whole`, high enough for every request."""
    sizes = [{step.number: step.tokens for step in run.what.steps} for run in transcript.runs]
    window = transcript.what.window
    highest = 1.08 * max(window, *(run.what.peak for run in transcript.runs), 0)
    top = int(highest if whole else min(highest, window * ROOM)) + 1
    last = max(1, *(max(known, default=0) for known in sizes), 1)
    step = (WIDTH - LEFT - RIGHT) / last

    def x(call: float) -> float:
        return round(LEFT + (call - 0.5) * step, 1)

    def y(tokens: float) -> float:
        return round(HEIGHT - BELOW - tokens / top * (HEIGHT - ABOVE - BELOW), 1)

    def line(run: Run, known: Mapping[int, int]) -> PolicyLine:
        marks: dict[int, list[Opened]] = {}
        for one in run.compactions:
            marks.setdefault(one.what.step, []).append(one)
        points = []
        for call, ones in marks.items():
            # A run that stopped at a compaction has no request for it.
            size = known.get(call, ones[-1].what.after)
            what = "a compaction" if len(ones) == 1 else f"{len(ones):,} compactions"
            says = f"{run.what.title}: {what} before call {call:,}, {size:,} tokens"
            points.append(Point(x(call), y(min(size, top)), ones[0].anchor, says))
        path = " ".join(f"{x(at)},{y(size)}" for at, size in known.items())
        return PolicyLine(run.colour, *LOOKS[run.colour % len(LOOKS)], path, tuple(points))

    pairs = list(zip(transcript.runs, sizes, strict=True))
    over = [(sum(size > top for size in known.values()), run.what.title) for run, known in pairs]
    calls = _calls(pairs) if last <= POINTED_AT and not whole else ()
    return Drawing(
        " ".join(_desc(transcript)),
        tuple(Tick(x(at), f"{at:,}") for at in _ticks(last) if at),
        tuple(Tick(y(at), f"{at:,}") for at in _ticks(top)),
        y(window),
        tuple(line(*pair) for pair in reversed(pairs)),
        tuple((count, title) for count, title in over if count),
        tuple(Tick(x(at), text) for at, text in calls),
        round(step, 1),
    )


def _ticks(most: int) -> range:
    """Return round numbers from 0 to the most."""
    power = 10 ** int(log10(max(1, most / TICKS)))
    steps = [power * n for n in (1, 2, 5, 10)]
    return range(0, most + 1, steps[min(3, bisect_right(steps, (most - 1) // TICKS))])


def _desc(transcript: TranscriptData) -> Iterator[str]:
    yield f"The window holds {transcript.what.window:,} tokens."
    for run in transcript.runs:
        marks = len({one.what.step for one in run.compactions})
        yield (
            f"{run.what.title}: {len(run.what.steps):,} calls, the largest of {run.what.peak:,} "
            f"tokens, compactions before {marks:,} of them."
        )


def _calls(pairs: Sequence[tuple[Run, Mapping[int, int]]]) -> Iterator[tuple[int, str]]:
    """Describe each call with the sizes of its requests."""
    for call in sorted({call for _, known in pairs for call in known}):
        said = " · ".join(
            f"{run.what.title} {known[call]:,}" if call in known else f"{run.what.title} {NOTHING}"
            for run, known in pairs
        )
        yield call, f"Call {call:,}: {said} tokens"
