"""The bars of a chart, which a template draws."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = 6
"""Colours that there are; systems take them in turn."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        label: its name.
        value: its length.
        shown: its number, as text.
        colour: number of the colour, from 0.
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
class Chart:
    """Lying bars; one of full length has the value `most`.

    The title says what it shows to those who cannot see it.
    """

    title: str
    groups: tuple[Group, ...]
    most: float
    colours: int = COLOURS
