"""Where the bars of a chart stand, for a template to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 400
"""Units across a chart; about what a telephone has, so that text stays readable there."""

BAR, LABEL, GAP, HEADING = 12, 15, 5, 22
ROOM = WIDTH - 70
"""Units of a full bar: its number stands behind it."""

COLOURS = 6
"""Colours that there are; systems take them in turn."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        label: what it stands for.
        value: how long it is.
        shown: its number, as text.
        colour: which colour, from 0.
        low: lower end of its interval, if it has one.
        high: upper end of it.
    """

    label: str
    value: float
    shown: str
    colour: int = 0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Bars with a heading; none where it is empty."""

    heading: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a group, and its height."""

    label: str
    y: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A bar, its height, its length, and the path of its interval, if it has one."""

    bar: Bar
    y: int
    length: float
    whisker: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Lying bars, each `thick`, in a picture of so many units; `room` is that of a full bar."""

    title: str
    height: int
    headings: tuple[Heading, ...]
    bars: tuple[Placed, ...]
    width: int = WIDTH
    room: int = ROOM
    thick: int = BAR
    colours: int = COLOURS


def bar_chart(title: str, groups: Sequence[Group], most: float) -> Chart:
    """A chart of lying bars.

    Args:
        title: what it shows, for those who cannot see it.
        groups: the bars.
        most: the value of a bar of full length.

    Example:
        >>> bar_chart("Kept", [Group("", (Bar("a", 0.5, "0.50"),))], 1.0).bars[0].length
        165.0
    """
    headings: list[Heading] = []
    bars: list[Placed] = []
    top = 0
    scale = ROOM / most if most > 0 else 0.0
    for group in groups:
        if group.heading:
            top += HEADING
            headings.append(Heading(group.heading, top - 7))
        for bar in group.bars:
            y = top + LABEL
            length = max(0.0, min(bar.value, most)) * scale
            bars.append(Placed(bar, y, round(length, 1), _whisker(bar, y, scale)))
            top = y + BAR + GAP
    return Chart(title, top, tuple(headings), tuple(bars))


def _whisker(bar: Bar, y: int, scale: float) -> str:
    if bar.low is None or bar.high is None:
        return ""
    left, right = bar.low * scale, bar.high * scale
    return (
        f"M{left:.1f} {y + BAR / 2}H{right:.1f}"
        f"M{left:.1f} {y + 3}v{BAR - 6}M{right:.1f} {y + 3}v{BAR - 6}"
    )
