"""A replay as one page: the policies beside each other, the window over time, every compaction."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from conspectus.errors import InputError
from conspectus_lab.replay import Original, Replay
from conspectus_lab.report.charts import COLOURS
from conspectus_lab.report.page import page
from conspectus_lab.report.replay_data import (
    Chart,
    Left,
    Line,
    Opened,
    Piece,
    Report,
    Run,
    Told,
    percent,
    report_of,
)
from conspectus_lab.report.tables import NOTHING, Table

TITLE = "What each policy did to the window"
LEAD = (
    "Each recorded conversation was run again under every policy, with the same input, the same "
    "budget and the same summariser. What left the view, what was written in its place and what "
    "was carried stands below, every original whole."
)
ON_PAPER = 200
"""Compactions up to which paper shows all of them; more would be hundreds of pages."""

PAPER = "Of the compactions, those are shown that were open on the screen when this was printed."
FIRST = 90
"""Characters of an original that stand in its line while it is closed."""

LOOKS = (
    ("solid", "circle"),
    ("dash", "diamond"),
    ("dashdot", "square"),
    ("longdash", "triangle-up"),
    ("longdashdot", "star"),
    ("dot", "hexagon"),
)
"""Dashes and marks by colour, so that no line is told by its colour alone."""

_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
"""No place in HTML or UTF-8: controls, halves of characters. Seen by nobody: turns of direction."""

MISSING = (
    "a page with charts needs Plotly, which is not installed: pip install 'conspectus[report]'"
)


def replay_page(replays: Sequence[Replay]) -> str:
    """The page of some replays, as HTML that needs nothing from anywhere else.

    It is one file of some 5 MB, since the library that draws the charts stands in it, and opens
    without a network. Equal replays give equal pages.

    Args:
        replays: one for each transcript. What they hold is hostile input, and is escaped.

    Raises:
        InputError: the extra `report` is not installed.

    Example:
        >>> replay_page([]).startswith("<!doctype html>")
        True
    """
    library = chart_library()
    here = files("conspectus_lab.report")
    style, program = (
        (here / f"replay_page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    return page(
        TITLE, "\n".join(_body(report_of(replays))), style=style, scripts=(library, program)
    )


def chart_library() -> str:
    """The program that draws the charts; ask for it early to learn early that it is missing.

    Raises:
        InputError: the extra `report` is not installed; says how to install it.
    """
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError as error:
        raise InputError(MISSING) from error
    return str(get_plotlyjs())


def visible(text: str) -> str:
    """Text as HTML between tags: escaped, and what no page can hold or show written as its code.

    Example:
        >>> visible("<b>\\x00")
        '&lt;b&gt;\\\\x00'
    """
    return escape(_UNSEEN.sub(lambda found: _code(found[0]), text), quote=False)


def _code(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"


def _body(report: Report) -> Iterator[str]:
    runs = (run for told in report.transcripts for run in told.runs)
    few = sum(len(run.compactions) for run in runs) <= ON_PAPER
    yield f"<main{' class=few' if few else ''}><h1>{TITLE}</h1><p class='lead'>{LEAD}</p>"
    if not few:
        yield f'<p class="paper">{PAPER}</p>'
    if not report.transcripts:
        yield "<p>No transcript was replayed.</p>"
    if report.total is not None:
        yield _table(report.total)
    if report.overview is not None:
        links = [told.anchor for told in report.transcripts]
        yield f"<nav aria-label='Transcripts'>{_table(report.overview, links)}</nav>"
    for place, told in enumerate(report.transcripts):
        yield from _transcript(place, told)
    yield "</main>"
    charts = [_plain(told.chart) for told in report.transcripts]
    yield (
        '<script type="application/json" id="charts">'
        f"{_json({'colours': COLOURS, 'charts': charts})}</script>"
    )


def _json(data: Any) -> str:
    """JSON that ends no element around it, whatever it holds."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _table(table: Table, links: Sequence[str] = ()) -> str:
    head = "".join(f'<th scope="col">{visible(name)}</th>' for name in table.columns)
    rows = []
    for place, row in enumerate(table.rows):
        name = visible(row[0])
        if links:
            name = f'<a href="#{links[place]}">{name}</a>'
        cells = [f'<th scope="row">{name}</th>']
        for column, cell in enumerate(row[1:], 1):
            bad = ' class="bad"' if (place, column) in table.bad else ""
            cells.append(f"<td{bad}>{visible(cell)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    title = visible(table.title)
    label = escape(table.title)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table>'
        f"<caption>{title}</caption><thead><tr>{head}</tr></thead>"
        f'<tbody>{"".join(rows)}</tbody></table></div><p class="note">{visible(table.note)}</p>'
    )


def _transcript(place: int, told: Told) -> Iterator[str]:
    yield f'<section class="transcript" id="{told.anchor}" aria-labelledby="{told.anchor}-name">'
    yield f'<h2 id="{told.anchor}-name"><bdi>{visible(told.what.name)}</bdi></h2>'
    yield _table(told.table)
    for run in told.runs:
        if run.what.stopped:
            yield (
                f'<p><span class="bad">{visible(run.what.title)} stopped early:</span> '
                f"{visible(run.what.stopped)}</p>"
            )
    yield _chart(place, told.chart)
    for run in told.runs:
        yield from _run(run, told.what.window)
    yield "</section>"


def _chart(place: int, chart: Chart) -> str:
    keys = "".join(
        f'<li><span class="swatch c{line.colour}"></span>{visible(line.title)}</li>'
        for line in chart.lines
    )
    keys += f'<li><span class="limit"></span>window, {chart.window:,}</li>'
    outside = [line for line in chart.lines if line.above]
    words = ", ".join(f"{line.above:,} of {line.title}" for line in outside)
    marks = any(line.marks for line in chart.lines)
    hint = ["Each mark is a compaction; choose one to open it."] if marks else []
    says = visible(" ".join([*hint, *([f"Requests too high to show: {words}."] if words else [])]))
    scale = (
        '<button type="button" data-scale hidden aria-pressed="false">Whole height</button>'
        if outside
        else ""
    )
    return (
        f"<figure><figcaption><b>Tokens of each request</b><ul class='key'>{keys}</ul>"
        f'</figcaption><div class="plot" data-chart="{place}"></div>'
        f'<div class="readout"><span class="says">{says}</span>{scale}</div>'
        "<noscript><p>The chart needs JavaScript; everything else on this page does not.</p>"
        "</noscript></figure>"
    )


def _plain(chart: Chart) -> dict[str, Any]:
    return {
        "window": chart.window,
        "top": chart.top,
        "peak": chart.peak,
        "lines": [_plain_line(line) for line in chart.lines],
    }


def _plain_line(line: Line) -> dict[str, Any]:
    dash, symbol = LOOKS[line.colour % len(LOOKS)]
    return {
        "title": line.title,
        "colour": line.colour,
        "dash": dash,
        "symbol": symbol,
        "steps": line.steps,
        "tokens": line.tokens,
        "marks": [
            {"step": mark.step, "tokens": mark.tokens, "anchors": mark.anchors}
            for mark in line.marks
        ],
    }


def _run(run: Run, window: int) -> Iterator[str]:
    count = len(run.compactions)
    many = f"{count:,} compaction{'s' if count != 1 else ''}" if count else "nothing left the view"
    yield (
        f'<h3 id="{run.anchor}"><span class="swatch c{run.colour}"></span>'
        f"{visible(run.what.title)}: {many}</h3>"
    )
    yield from (_compaction(one, run.colour, window) for one in run.compactions)


def _compaction(one: Opened, colour: int, window: int) -> str:
    what = one.what
    figures = {
        "cause": what.cause,
        "tokens before": f"{what.before:,}",
        "tokens after": f"{what.after:,}",
        "text that left": f"{what.characters:,} characters in {_messages(one)}",
        "of it read": percent(one.read_share),
        "summariser": what.by or NOTHING,
        "its calls": f"{what.calls:,}",
        "its tokens": f"{what.summarizer_tokens:,}",
    }
    listed = "".join(f"<dt>{name}</dt><dd>{visible(text)}</dd>" for name, text in figures.items())
    out = "nothing left the view"
    if one.left:
        bad = " bad" if one.read_share is not None and one.read_share < 1 else ""
        read = f'<span class="part{bad}">{percent(one.read_share)} read</span>'
        out = f"{_messages(one)} left the view · {read}"
    return (
        f'<details class="compaction" id="{one.anchor}"><summary>'
        f"<b>{one.number:,}. before call {what.step:,}</b>"
        f'<span class="figures">{what.before:,} → {what.after:,} tokens · {out}</span>'
        f"{_gauge(what.before, what.after, colour, window)}"
        f'</summary><div class="inside"><dl class="figures-of">{listed}</dl>'
        f'<h4>Summary</h4><div class="summary text" dir="auto">{_summary(one.summary)}</div>'
        f"<h4>Carried word for word</h4>{_carried(one)}"
        f"{_left(one)}</div></details>\n"
    )


def _messages(one: Opened) -> str:
    count = len(one.left)
    return f"{count:,} message{'s' if count != 1 else ''}"


def _gauge(before: int, after: int, colour: int, window: int) -> str:
    """How full the window was before and after."""
    scale = 100 / max(window, before, after, 1)
    return (
        '<svg class="gauge" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="back" width="100" height="1"/>'
        f'<rect class="c{colour}" opacity=".35" width="{before * scale:.1f}" height="1"/>'
        f'<rect class="c{colour}" width="{after * scale:.1f}" height="1"/></svg>'
    )


def _summary(pieces: Sequence[Piece]) -> str:
    return "".join(
        f'<a href="#{piece.anchor}">{visible(piece.text)}</a>'
        if piece.kind == "link"
        else f"<strong>{visible(piece.text)}</strong>"
        if piece.kind == "heading"
        else visible(piece.text)
        for piece in pieces
    )


def _carried(one: Opened) -> str:
    if not one.carried:
        return '<p class="note">Nothing.</p>'
    rows = []
    for kind, values in one.carried:
        items = "".join(f"<li>{visible(value)}</li>" for value in values)
        rows.append(f"<dt>{visible(kind)} ({len(values):,})</dt><dd><ul>{items}</ul></dd>")
    return f'<dl class="carried">{"".join(rows)}</dl>'


def _left(one: Opened) -> str:
    if not one.left:
        return '<h4>What left</h4><p class="note">Nothing.</p>'
    every = (
        '<button type="button" hidden data-all="Open all" data-close="Close all" '
        'aria-pressed="false">Open all</button>'
    )
    items = "".join(f"<li>{_original(left)}</li>" for left in one.left)
    return (
        f'<div class="head"><h4>What left</h4>{every if len(one.left) > 1 else ""}</div>'
        f'<ul class="originals">{items}</ul>'
    )


def _original(left: Left) -> str:
    original = left.original
    first = " ".join(original.text[: 4 * FIRST].split())[:FIRST]
    elsewhere = left.whole != left.anchor
    again = f' data-whole="{left.whole}"' if elsewhere else ""
    if elsewhere:
        text = (
            f'<p class="meta"><a href="#{left.whole}">Its text stands where it first left</a></p>'
        )
    else:
        text = f'<div class="text" dir="auto">{visible(original.text)}</div>'
    return (
        f'<details class="original" id="{left.anchor}"{again}><summary>'
        f'<span class="cite">{visible(original.cite)}</span>'
        f'<span class="who">{_who(original)}</span>'
        f'<span class="first"><bdi>{visible(first)}</bdi></span>'
        f'<span class="size">{original.tokens:,}</span></summary>'
        f'<div class="whole"><p class="meta">{_who(original)}, {original.tokens:,} tokens, '
        f"id <bdi>{visible(original.id)}</bdi></p>{text}</div></details>"
    )


def _who(original: Original) -> str:
    name = f" <bdi>{visible(original.name)}</bdi>" if original.name else ""
    return f"{visible(original.role)}{name}"
