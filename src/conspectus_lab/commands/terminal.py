"""Share options, files and tables between the lab's commands."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
MOST_WARNINGS = 5


def check_files(report: Path | None, out: Path | None) -> None:
    """Refuse files that cannot be written, before the work is done.

    Raises:
        InputError: with the reason.
    """
    for file in (report, out):
        if file is not None:
            output.check_output(file)
    if report is not None:
        from conspectus_lab.report import check_installed

        check_installed()


def write_files(
    report: Path | None, page: Callable[[], str], out: Path | None, data: dict[str, Any]
) -> None:
    """Write the page and the data to the given files."""
    if out is not None:
        output.write_file(out, json.dumps(data, indent=1) + "\n")
    if report is not None:
        output.write_file(report, page())


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables with their notes; no cell is shortened."""
    screen = output.console()
    for table in tables:
        _print(screen, table)
        if table.note:
            screen.print(table.note, style="dim")


def _print(screen: Console, table: Table) -> None:
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


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep the library's warnings for the end, each once, so that they do not run into tables."""
    warnings: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said = record.getMessage()
            if said not in warnings and len(warnings) < MOST_WARNINGS:
                warnings.append(said)

    handler, logger = Keep(logging.WARNING), logging.getLogger("conspectus")
    logger.addHandler(handler)
    try:
        yield warnings
    finally:
        logger.removeHandler(handler)
