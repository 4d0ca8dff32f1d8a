"""A measurement as one page: its charts, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from conspectus_lab.evaluate import Evaluation, Share, SystemResult
from conspectus_lab.report.charts import Bar, Chart, Group, bar_chart
from conspectus_lab.report.pages import page
from conspectus_lab.report.tables import (
    Table,
    measured_how,
    number,
    share,
    skipped,
    tables_of,
)

TITLE = "What survives a compaction"


def evaluation_page(found: Evaluation) -> str:
    """The page of a measurement, as HTML that needs nothing from anywhere else.

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
    quoted, answers, sizes = [], [], []
    for result in found.systems:
        colour = colours[result.name]
        if (use := result.future_use) is not None:
            mean = use.quoted
            shown = share(mean.value)
            quoted.append(Bar(result.label, mean.value, shown, colour, mean.low, mean.high))
            tokens = use.contexts.tokens
            sizes.append(Bar(result.label, tokens, number(tokens), colour))
        if (kept := result.answers) is not None:
            mean = kept.answers
            shown = share(mean.value)
            answers.append(Bar(result.label, mean.value, shown, colour, mean.low, mean.high))
    if answers:
        plain = next(r.answers for r in found.systems if r.answers is not None).bm25
        name = "tail with plain BM25"
        answers.append(
            Bar(name, plain.value, share(plain.value), len(names), plain.low, plain.high)
        )
    yield from _figure("Quoted: what is needed again and still stands there", quoted, 1.0)
    yield from _figure("Answers that still stand there", answers, 1.0)
    for which, title in (
        ("by_kind", "Quoted, by kind of identifier"),
        ("by_distance", "Quoted, by distance in messages"),
    ):
        groups = _groups(found, which, colours)
        if groups:
            yield bar_chart(title, groups, 1.0)
    most = max((bar.value for bar in sizes), default=0.0)
    yield from _figure("Tokens of the context, median", sizes, most)


def _figure(title: str, bars: list[Bar], most: float) -> Iterator[Chart]:
    if bars:
        yield bar_chart(title, [Group("", tuple(bars))], most)


def _groups(
    found: Evaluation, which: Literal["by_kind", "by_distance"] | str, colours: Mapping[str, int]
) -> list[Group]:
    """For each kind or distance, the bars of all systems."""
    rows: list[tuple[SystemResult, Mapping[str, Share]]] = [
        (result, getattr(result.future_use, which))
        for result in found.systems
        if result.future_use is not None
    ]
    groups = []
    for name in dict.fromkeys(name for _, shares in rows for name in shares):
        bars = []
        for result, shares in rows:
            value = shares[name].share if name in shares else None
            if value is not None:
                bars.append(Bar(result.label, value, share(value), colours[result.name]))
        wanted = next(shares[name].wanted for _, shares in rows if name in shares)
        groups.append(Group(f"{name}: {wanted:,} needed", tuple(bars)))
    return groups


def _transcripts(found: Evaluation) -> Table:
    """All transcripts with what became of them."""
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
