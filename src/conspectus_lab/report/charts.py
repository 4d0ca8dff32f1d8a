"""Hold the bars of a chart, which a template draws."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = 6
"""Number of colours; systems take them in turn."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label, length, number as text, number of the colour, and interval."""

    label: str
    value: float
    shown: str
    colour: int = 0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Bars with a heading, which may be empty."""

    heading: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Horizontal bars; one of full length has the value `most`."""

    title: str
    groups: tuple[Group, ...]
    most: float
    colours: int = COLOURS
