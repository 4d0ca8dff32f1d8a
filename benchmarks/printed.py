"""Tables and data that benchmarks print, their transcripts, and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"


def table(title: str, columns: Sequence[str], left: int = 1, **more: Any) -> Table:
    """Make an empty table; the first `left` columns are text, the others numbers."""
    made = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), **more
    )
    for place, name in enumerate(columns):
        made.add_column(name, justify="left" if place < left else "right", no_wrap=place < left)
    return made


def screen(width: int = 126) -> Console:
    """Make a console as wide as the terminal, or of this width without one."""
    return Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)


def options(described: str | None) -> argparse.ArgumentParser:
    """Make a parser with `--json`, described by the first line of the text."""
    parser = argparse.ArgumentParser(description=(described or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the numbers as data")
    return parser


def end(as_json: bool, data: Callable[[], Any], show: Callable[[], object], good: bool) -> int:
    """Print the data or show the tables; give the exit code, 1 unless all is good."""
    if as_json:
        print(json.dumps(data(), indent=1, ensure_ascii=False))
    else:
        show()
    return 0 if good else 1


def complain(lines: Iterable[str], what: str = "BROKEN PROMISE") -> bool:
    """Name on stderr each promise that does not hold; say whether there was any."""
    found = list(lines)
    for line in found:
        print(f"{what}: {line}", file=sys.stderr)
    return bool(found)


def transcripts_folder() -> Path:
    """Give the folder of folders of transcripts, `CONSPECTUS_DATA`."""
    return Path(os.environ.get("CONSPECTUS_DATA") or DATA)


def skip(as_json: bool, folders: str) -> int:
    """Say that there are no transcripts; give the exit code."""
    why = f"there are no transcripts; set CONSPECTUS_DATA to a folder with {folders}"
    print(json.dumps({"skipped": why}) if as_json else f"skipped: {why}")
    return 0
