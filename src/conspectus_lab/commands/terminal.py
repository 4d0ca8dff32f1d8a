"""Tables of the lab on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conspectus.cli import output

if TYPE_CHECKING:
    from rich.console import Console

    from conspectus_lab.report.tables import Table


def print_table(screen: Console, table: Table) -> None:
    """Print a table without its title and note; a row of one cell is a heading.

    No cell is cut short: a number cut short would be another number.
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
