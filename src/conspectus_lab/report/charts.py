"""Bar charts as inline SVG: no script, no font and no picture from anywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 400
"""Units across a chart; about what a telephone has, so that text stays readable there."""

BAR, LABEL, GAP, HEADING = 12, 15, 5, 22
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


def bar_chart(title: str, groups: Sequence[Group], most: float) -> str:
    """A chart of lying bars, each with its label above it and its number behind it.

    Args:
        title: what it shows, for those who cannot see it.
        groups: the bars.
        most: the value of a bar of full length.

    Example:
        >>> "<svg" in bar_chart("Kept", [Group("", (Bar("a", 0.5, "0.50"),))], 1.0)
        True
    """
    parts: list[str] = []
    top = 0
    room = WIDTH - 70  # the number stands behind the bar
    scale = room / most if most > 0 else 0.0
    for group in groups:
        if group.heading:
            top += HEADING
            parts.append(f'<text class="group" x="0" y="{top - 7}">{escape(group.heading)}</text>')
        for bar in group.bars:
            length = max(0.0, min(bar.value, most)) * scale
            y = top + LABEL
            parts += [
                f'<text x="0" y="{top + LABEL - 4}">{escape(bar.label)}</text>',
                f'<rect class="back" x="0" y="{y}" width="{room}" height="{BAR}"/>',
                f'<rect class="c{bar.colour % COLOURS}" x="0" y="{y}" width="{length:.1f}" '
                f'height="{BAR}"><title>{escape(bar.label)}: {escape(bar.shown)}</title></rect>',
                f'<text class="value" x="{WIDTH}" y="{y + BAR - 2}">{escape(bar.shown)}</text>',
            ]
            if bar.low is not None and bar.high is not None:
                left, right, middle = bar.low * scale, bar.high * scale, y + BAR / 2
                parts.append(
                    f'<path class="whisker" d="M{left:.1f} {middle}H{right:.1f}'
                    f'M{left:.1f} {y + 3}v{BAR - 6}M{right:.1f} {y + 3}v{BAR - 6}"/>'
                )
            top = y + BAR + GAP
    head = f'<svg role="img" viewBox="0 0 {WIDTH} {top}" aria-label="{escape(title, quote=True)}">'
    return f"{head}{''.join(parts)}</svg>"
