"""Render a measurement as one page: its charts, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from conspectus_lab.evaluate import Evaluation, Mean
from conspectus_lab.report.pages import page
from conspectus_lab.report.tables import Table, measured_how, number, share, skipped, tables_of

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


TITLE = "What survives a compaction"


def evaluation_page(found: Evaluation) -> str:
    """Render a measurement as HTML that needs no other file.

    Args:
        found: the measurement. Names in it are hostile input, and are escaped.

    Raises:
        InputError: the extra `report` is not installed.

    Example:
        >>> from conspectus_lab.evaluate import Settings
        >>> nothing = Evaluation(Settings("messages:20", 0, 10_000, 0, "approximate", 1), (), ())
        >>> evaluation_page(nothing).startswith("<!doctype html>")
        True
    """
    return page(
        "evaluation.html",
        ("page.css",),
        title=TITLE,
        measured=measured_how(found),
        charts=list(_charts(found)),
        tables=tables_of(found),
        transcripts=_transcripts(found),
    )


def _charts(found: Evaluation) -> Iterator[Chart]:
    names = list(dict.fromkeys(result.name for result in found.systems))
    colours = {name: place for place, name in enumerate(names)}
    quoted, answers, sizes = list[Bar](), list[Bar](), list[Bar]()
    for result in found.systems:
        colour = colours[result.name]
        if (use := result.future_use) is not None:
            quoted.append(_bar(result.label, use.quoted, colour))
            tokens = use.contexts.tokens
            sizes.append(Bar(result.label, tokens, number(tokens), colour))
        if (kept := result.answers) is not None:
            answers.append(_bar(result.label, kept.answers, colour))
    plain = [result.answers.bm25 for result in found.systems if result.answers is not None][:1]
    answers += [_bar("tail with plain BM25", mean, len(names)) for mean in plain]
    made = [
        Chart("Quoted: what is needed again and still stands there", _alone(quoted), 1.0),
        Chart("Answers that still stand there", _alone(answers), 1.0),
        Chart("Quoted, by kind of identifier", _groups(found, "by_kind", colours), 1.0),
        Chart("Quoted, by distance in messages", _groups(found, "by_distance", colours), 1.0),
        Chart(
            "Tokens of the context, median",
            _alone(sizes),
            max((bar.value for bar in sizes), default=0.0),
        ),
    ]
    yield from (chart for chart in made if chart.groups)


def _bar(label: str, mean: Mean, colour: int) -> Bar:
    return Bar(label, mean.value, share(mean.value), colour, mean.low, mean.high)


def _alone(bars: list[Bar]) -> tuple[Group, ...]:
    return (Group("", tuple(bars)),) if bars else ()


def _groups(
    found: Evaluation, which: Literal["by_kind", "by_distance"], colours: Mapping[str, int]
) -> tuple[Group, ...]:
    """Group the bars of all systems by kind or distance."""
    bars: dict[str, list[Bar]] = {}
    for result in found.systems:
        shares = getattr(result.future_use, which, {})
        for name, one in shares.items():
            heading = f"{name}: {one.wanted:,} needed"
            bar = Bar(result.label, one.share or 0.0, share(one.share), colours[result.name])
            bars.setdefault(heading, []).append(bar)
    return tuple(Group(heading, tuple(some)) for heading, some in bars.items())


def _transcripts(found: Evaluation) -> Table:
    """Make the table of all transcripts with their outcomes."""
    reasons = "; ".join(f"{count:,}: {why}" for why, count in skipped(found))
    note = f"Left out: {reasons}." if reasons else "None was left out."
    first = next((r for r in found.systems if r.future_use is not None), None)
    scores = {} if first is None or first.future_use is None else first.future_use.quoted_in
    heading = f"quoted, {first.label}" if first is not None else "quoted"
    rows = tuple(
        (
            noted.name,
            f"{noted.messages:,}",
            f"{noted.tokens:,}",
            f"{noted.cuts:,}",
            f"{noted.questions:,}",
            share(scores.get(noted.name)),
            noted.skipped,
        )
        for noted in found.transcripts
    )
    columns = ("transcript", "messages", "tokens", "cuts", "questions", heading, "left out because")
    return Table("Transcripts", note, columns, rows)
