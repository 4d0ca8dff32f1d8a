"""Render a replay as one page: policies side by side, the window over time, compactions."""

from __future__ import annotations

from collections.abc import Sequence

from conspectus_lab.replay import Replay
from conspectus_lab.report import line_chart
from conspectus_lab.report.pages import page
from conspectus_lab.report.replay_data import percent, report_of
from conspectus_lab.report.tables import NOTHING

TITLE = "What each policy did to the window"
ON_PAPER = 200
"""Maximum compactions that paper shows; more would be hundreds of pages."""

FIRST = 90
"""Characters of an original in its line while it is closed."""


def replay_page(replays: Sequence[Replay]) -> str:
    """Render some replays as HTML that needs no other file and no network.

    Equal replays give equal pages.

    Args:
        replays: one for each transcript. Their texts are hostile input, and are escaped.

    Raises:
        InputError: the extra `report` is not installed.

    Example:
        >>> replay_page([]).startswith("<!doctype html>")
        True
    """
    report = report_of(replays)
    count = sum(
        len(run.compactions) for transcript in report.transcripts for run in transcript.runs
    )
    return page(
        "replay.html",
        ("page.css", "replay.css"),
        ("replay.js",),
        title=TITLE,
        report=report,
        few=count <= ON_PAPER,
        first=FIRST,
        nothing=NOTHING,
        percent=percent,
        drawing=line_chart.drawing,
        unit=line_chart,
    )
