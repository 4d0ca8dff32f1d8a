"""A measurement as one page: charts, the numbers behind them, and how they came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Literal

from conspectus_lab.evaluate import Evaluation, Share, SystemResult
from conspectus_lab.report.charts import Bar, Group, bar_chart
from conspectus_lab.report.page import page
from conspectus_lab.report.tables import (
    Table,
    measured_how,
    number,
    share,
    skipped,
    tables_of,
)

TITLE = "What survives a compaction"
METHOD = (
    "Each transcript is cut at 40, 60 and 80 % of its tokens. An identifier (path, address, "
    "error, opaque id, symbol, number) is needed when it stands before the cut and the agent "
    "writes it itself after the cut before anything else has shown it again. It is far when "
    "neither the kept messages nor the first one hold it: then only the summary can have it. It "
    "is quoted when six consecutive words around it, or its whole line where that is shorter, "
    "stand in the context.",
    "An answer counts as kept when one line holds it together with enough of the message that "
    "was its evidence, or of the question. No model answers or judges anything.",
    "LangChain's own SummarizationMiddleware runs beside ours with a scripted summariser that "
    "reads what the middleware hands it and quotes the lines densest in identifiers. A context "
    "counts as over when it is larger than the kept messages, the first message and the "
    "summary's limit together, with 5 % and 40 tokens of slack.",
    "Intervals are percentile bootstrap intervals over transcripts, or over questions.",
)


def evaluation_page(found: Evaluation) -> str:
    """The page of a measurement, as HTML that needs nothing from anywhere else.

    Args:
        found: the measurement. Names in it are hostile input, and are escaped.

    Example:
        >>> from conspectus_lab.evaluate import Settings
        >>> nothing = Evaluation(Settings("messages:20", 0, 10_000, 0, "approximate", 1), (), ())
        >>> evaluation_page(nothing).startswith("<!doctype html>")
        True
    """
    body = [f"<h1>{TITLE}</h1>", f"<p>{escape(measured_how(found))}</p>", *_charts(found)]
    body += [_table(table) for table in tables_of(found)]
    body += _transcripts(found)
    body.append("<h2>How it was measured</h2>")
    body += [f"<p>{escape(text)}</p>" for text in METHOD]
    return page(TITLE, "\n".join(body))


def _charts(found: Evaluation) -> Iterator[str]:
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
            yield _framed(title, bar_chart(title, groups, 1.0))
    most = max((bar.value for bar in sizes), default=0.0)
    yield from _figure("Tokens of the context, median", sizes, most)


def _figure(title: str, bars: list[Bar], most: float) -> Iterator[str]:
    if bars:
        yield _framed(title, bar_chart(title, [Group("", tuple(bars))], most))


def _framed(title: str, chart: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}</figure>"


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


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = []
    for place, row in enumerate(table.rows):
        cells = [f'<th scope="row">{escape(row[0])}</th>']
        for column, cell in enumerate(row[1:], 1):
            bad = ' class="bad"' if (place, column) in table.bad else ""
            cells.append(f"<td{bad}>{escape(cell)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f"<h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _transcripts(found: Evaluation) -> list[str]:
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
    table = _table(Table("Transcripts", note, columns, rows))
    return [f"<details><summary>Transcripts</summary>{table}</details>"]
