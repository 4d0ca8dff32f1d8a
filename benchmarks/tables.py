"""What the commands share: rows and their limits, a table, CPU time, child processes."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent

# The only imports from the tests; the others of this folder take these names from here.
sys.path.append(str(ROOT / "tests"))
from fault_server import FaultServer as FaultServer  # noqa: E402
from fault_server import faults as faults  # noqa: E402
from hostile_kinds import KINDS as KINDS  # noqa: E402
from hostile_kinds import prose as prose  # noqa: E402
from odd_counters import COUNTERS as COUNTERS  # noqa: E402
from scripted_models import ScriptedChatModel as ScriptedChatModel  # noqa: E402


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value.

    Attributes:
        name: what was measured.
        value: the result.
        asked: the limit; None for a value that is printed for information.
        unit: of both, such as `ms`; `x` for a ratio.
        detail: the figures behind it.
        at_least: whether `asked` is a lower limit.
    """

    name: str
    value: float
    asked: float | None = None
    unit: str = "x"
    detail: str = ""
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Say whether the value keeps its limit."""
        if self.asked is None:
            return True
        return self.value >= self.asked if self.at_least else self.value <= self.asked


def number(value: float) -> str:
    """Format a number with three digits that count, or all before its point."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{2 if abs(value) >= 1 else 3}f}".rstrip("0").rstrip(".")


def show(title: str, rows: Sequence[Row]) -> None:
    """Print the table of the rows, and name those that are over their limits."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column, justify in (("measure", "left"), ("value", "right"), ("asked", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("", no_wrap=True)
    table.add_column("detail")
    for row in rows:
        asked = "" if row.asked is None else f"{'≥' if row.at_least else '≤'} {number(row.asked)}"
        word = "" if row.asked is None else "ok" if row.holds else "OVER"
        value = f"{number(row.value)} {row.unit}".rstrip()
        table.add_row(row.name, value, asked, word, row.detail)
    width = None if sys.stdout.isatty() else 150
    Console(width=width, markup=False, highlight=False).print(table)


def end(title: str, rows: Sequence[Row], as_json: bool) -> int:
    """Print the rows as a table or as JSON; return the exit status, 1 if one breaks its limit."""
    over = [row.name for row in rows if not row.holds]
    if as_json:
        print(json.dumps([asdict(row) | {"holds": row.holds} for row in rows], ensure_ascii=False))
    else:
        show(title, rows)
        limited = sum(row.asked is not None for row in rows)
        print(f"{limited - len(over)} of {limited} limits hold.")
    for name in over:
        print(f"over its limit: {name}", file=sys.stderr)
    return bool(over)


def cpu(call: Callable[[], object]) -> float:
    """Return the milliseconds of processor time that a call takes, in all threads."""
    began = time.process_time()
    call()
    return 1000 * (time.process_time() - began)


def interleaved(
    rounds: int, *calls: Callable[[], float], seconds: float = float("inf")
) -> list[list[float]]:
    """Run measurements in turns, so that what disturbs the machine disturbs all of them.

    Args:
        rounds: number of turns.
        calls: each measures once and returns its result.
        seconds: after so many no further turn begins.

    Returns:
        The results of each call.
    """
    results: list[list[float]] = [[] for _ in calls]
    began = time.monotonic()
    for _ in range(rounds):
        for call, into in zip(calls, results, strict=True):
            gc.collect()
            into.append(call())
        if time.monotonic() - began > seconds:
            break
    return results


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float], asked: float | None) -> Row:
    """Make the row of two medians, ours by theirs; both in milliseconds."""
    mine = statistics.median(ours)
    other = statistics.median(theirs)
    detail = f"{number(mine)} ms, theirs {number(other)} ms"
    return Row(name, mine / other, asked, detail=detail)


def child(code: str, *arguments: str, environment: dict[str, str] | None = None) -> Any:
    """Run lines in a fresh interpreter in this folder; return the JSON of their last line.

    Raises:
        RuntimeError: they fail; with their last words.
    """
    around = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        capture_output=True, text=True, cwd=HERE, env=around | (environment or {}), check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"a child process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
