"""Write text, tables, JSON, progress and files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

import typer

from conspectus.errors import InputError

ESCAPED = "backslashreplace"
"""How characters are written that an encoding does not have."""

STDOUT = Path("-")
NUMERIC = "0123456789$–"
"""The first characters of numbers, and the sign for none."""

UNFOLDED_COLUMNS = 10_000
"""Columns of a table that is not printed on a terminal."""

SEPARATORS = str.maketrans("\t\n", "  ")
"""The separators of cells and rows, which no cell may have."""

PATIENCE_SECONDS = 2.0
"""Seconds until progress is shown."""

PACE_SECONDS = 5.0
"""Seconds between two lines of progress."""


def printable(text: str) -> str:
    """Make a text safe for a terminal: replace its escape sequences."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def many(count: int, noun: str) -> str:
    """Return a number with its noun; the noun gets an `s` unless the number is 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def say(text: str, **style: Any) -> None:
    """Print a text, made safe for a terminal; `style` is that of `typer.secho`."""
    typer.secho(printable(text), **style)


def print_rows(rows: Sequence[Mapping[str, str | int | None]], otherwise: str = "") -> None:
    """Print rows: in columns on a terminal, elsewhere with tabs between the values.

    If there are no rows, print the text `otherwise`.
    """
    if not rows:
        say(otherwise)
        return
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    if sys.stdout.isatty():
        print_table(lines)
        return
    for line in lines:
        cells = (printable(cell).translate(SEPARATORS) for cell in line)
        print("\t".join(cells).rstrip(" "))


def _cell(value: str | int | None) -> str:
    return "" if value is None else str(value)


def print_table(lines: Sequence[Sequence[str]], *, bad: Collection[tuple[int, int]] = ()) -> None:
    """Print lines of cells in columns; numbers are aligned to the right.

    On a terminal a wide table is folded to its width. `bad` cells, by row below the first line and
    by column, are red there. A line of one cell is a heading.
    """
    from rich.console import Console  # imported here, because it takes a while
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    columns = list(zip_longest(*lines, fillvalue=""))
    for column in columns:
        is_numeric = all(cell[:1] in NUMERIC for cell in column[1:])
        table.add_column(justify="right" if is_numeric else "left", overflow="fold")
    for row, line in enumerate(lines, -1):
        styles = ["bold red" if (row, column) in bad else "" for column in range(len(line))]
        if len(line) == 1:
            styles = ["bold"]
        cells = zip(line, styles, strict=True)
        table.add_row(*(Text(printable(cell), style) for cell, style in cells))
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = UNFOLDED_COLUMNS
    with console.capture() as capture:
        console.print(table)
    for text in capture.get().splitlines():
        print(text.rstrip(" "))


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))  # in ASCII, which every encoding has


@contextlib.contextmanager
def working(label: str) -> Iterator[None]:
    """Show progress on standard error, if the work takes longer than `PATIENCE_SECONDS`."""
    start = time.monotonic()
    ended = threading.Event()

    def remind() -> None:
        wait = PATIENCE_SECONDS
        while not ended.wait(wait):
            with contextlib.suppress(OSError, ValueError):  # nobody need listen
                say(f"conspectus: {label} ({time.monotonic() - start:.0f} s)", err=True)
            wait = PACE_SECONDS

    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def target_of(path: Path) -> Path:
    """Follow the links of a path; one that leads back to itself is an `InputError`."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise InputError(f"{path} is a link that leads back to itself; give -o another name")
    return target


def check_output(path: Path | None, *read: Path | None) -> None:
    """Check before a model is paid that a path can be written, and is not one that is `read`."""
    if path is None or path == STDOUT:
        return
    target = target_of(path)
    if target in [target_of(other) for other in read if other is not None]:
        raise InputError(f"{path} is an input, and is only read; give -o another name")
    if target.exists() and not target.is_file() and not target.is_dir():
        return  # a device or a pipe, whose folder need not be writable
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        need = "the name of a file, in a folder that exists and that you may write to"
        raise InputError(f"{path} cannot be written; give {need}")


def write_file(path: Path, text: str) -> None:
    """Write a file as UTF-8, completely or not at all; after an error the old file is there.

    Permissions of an existing file stay. A device or a pipe is written to directly.
    """
    target = target_of(path)  # a link stays a link
    draft = target.with_name(f".{target.name[:100]}.{os.getpid()}")
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8", errors=ESCAPED)
            return
        with draft.open("x", encoding="utf-8", errors=ESCAPED, newline="\n") as file:
            if target.exists():
                shutil.copymode(target, draft)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror or error}; nothing there has changed"
        raise InputError(text) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def write_text(out: Path | None, text: str) -> None:
    """Write a text to a file, or to standard output (None or `-`), as UTF-8."""
    if out is None or out == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", ESCAPED))
    else:
        write_file(out, text)
