"""Share options, files and tables between the lab's commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import output

if TYPE_CHECKING:
    from rich.console import Console

    from conspectus_lab.report.tables import Table

SummarizerOption = Annotated[
    str, typer.Option(help="embedded (needs no model), or provider:model such as openai:gpt-5.")
]
ReportOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a page with charts here, as HTML.")
]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the JSON here.")
]


def check_files(report: Path | None, out: Path | None) -> None:
    """Refuse files that cannot be written, before the work is done.

    Raises:
        InputError: with the reason.
    """
    for file in (report, out):
        if file is not None:
            output.check_output(file)
    if report is not None:
        from conspectus_lab.report import templates

        templates()


def write_files(
    report: Path | None, page: Callable[[], str], out: Path | None, data: dict[str, Any]
) -> None:
    """Write the page and the data to the given files."""
    if out is not None:
        output.write_file(out, json.dumps(data, indent=1) + "\n")
    if report is not None:
        output.write_file(report, page())


def print_table(screen: Console, table: Table) -> None:
    """Print a table without its title and note; a row of one cell is a heading.

    No cell is shortened: a shortened number would be another number.
    """
    from rich import box
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(table.columns):
        drawn.add_column(output.shown(name), justify="right" if place else "left", no_wrap=True)
    for row, cells in enumerate(table.rows):
        plain = "bold" if len(cells) == 1 else ""
        styles = ("bold red" if (row, at) in table.bad else plain for at in range(len(cells)))
        drawn.add_row(*map(Text, map(output.shown, cells), styles))
    width, screen.width = screen.width, 10_000
    screen.print(drawn, crop=False)
    screen.width = width
