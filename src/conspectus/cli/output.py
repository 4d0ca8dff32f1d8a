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

ESCAPED = "backslashreplace"  # what becomes of characters that an encoding does not have
STDOUT = Path("-")
NUMERIC = "0123456789$–"  # what a number, or the sign for none, may begin with
PATIENCE, PACE = 2.0, 5.0  # seconds until progress is said, and between two lines of it


def printable(text: str) -> str:
    """Make a text safe for a terminal: replace its escape sequences."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def many(count: int, what: str) -> str:
    """Count things, with an `s` unless there is one."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def say(text: str, **style: Any) -> None:
    """Print a text, made safe, on one line however long; `style` is that of `typer.secho`."""
    typer.secho(printable(text), **style)


def print_rows(rows: Sequence[Mapping[str, str | int | None]], otherwise: str = "") -> None:
    """Print rows: in columns on a terminal, elsewhere with tabs between the values.

    Where there are none, print what is to be said `otherwise`.
    """
    if rows:
        values = (["" if v is None else str(v) for v in row.values()] for row in rows)
        print_table([[*rows[0]], *values], tabs=not sys.stdout.isatty())
    else:
        say(otherwise)


def print_table(
    lines: Sequence[Sequence[str]], *, tabs: bool = False, bad: Collection[tuple[int, int]] = ()
) -> None:
    """Print lines of cells in columns, those of numbers flush right, or with tabs between them.

    `bad` cells, by row below the first line and column, are red on a terminal. A line of one cell
    is a heading.
    """
    cells = [[printable(cell).replace("\t", " ") for cell in line] for line in lines]
    columns = list(zip_longest(*cells, fillvalue=""))
    widths = [0 if tabs else max(map(len, column)) for column in columns]
    right = [all(cell[:1] in NUMERIC for cell in column[1:]) for column in columns]
    for row, line in enumerate(cells, -1):
        padded = [
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, right, strict=False)
        ]
        if len(line) == 1:
            padded = [typer.style(line[0], bold=True)]
        for at in (at for at in range(len(line)) if (row, at) in bad):
            padded[at] = typer.style(padded[at], fg="red", bold=True)
        typer.echo(("\t" if tabs else "  ").join(padded).rstrip(" "))


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))  # in ASCII, which every encoding has


@contextlib.contextmanager
def working(label: str) -> Iterator[None]:
    """Say on standard error what takes longer than `PATIENCE`."""
    start, ended = time.monotonic(), threading.Event()

    def remind() -> None:
        wait = PATIENCE
        while not ended.wait(wait):
            with contextlib.suppress(OSError, ValueError):  # nobody need listen
                say(f"conspectus: {label} ({time.monotonic() - start:.0f} s)", err=True)
            wait = PACE

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
    """Refuse a path that cannot be written to, or that is `read`, before anything is paid for."""
    if path is None or path == STDOUT:
        return
    target = target_of(path)
    if target in [target_of(one) for one in read if one is not None]:
        raise InputError(f"{path} is an input, and is only read; give -o another name")
    if target.exists() and not target.is_file() and not target.is_dir():
        return  # a device or a pipe, which no folder has to take in
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        need = "the name of a file, in a folder that exists and that you may write to"
        raise InputError(f"{path} cannot be written; give {need}")


def write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, as UTF-8; on an error the old one is still there.

    Permissions of an existing file stay. A device or a pipe is written to directly.
    """
    target = target_of(path)  # a link stays a link
    written = target.with_name(f".{target.name[:100]}.{os.getpid()}")
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8", errors=ESCAPED)
            return
        with written.open("x", encoding="utf-8", errors=ESCAPED, newline="\n") as file:
            if target.exists():
                shutil.copymode(target, written)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        written.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        said = f"{path} cannot be written: {error.strerror or error}; nothing there has changed"
        raise InputError(said) from error
    finally:
        with suppress(OSError):
            written.unlink()


def write_text(out: Path | None, text: str) -> None:
    """Write a text to a file, or to standard output (None or `-`), as UTF-8."""
    if out is None or out == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", ESCAPED))
    else:
        write_file(out, text)
