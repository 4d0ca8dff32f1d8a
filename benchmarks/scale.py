"""The cost of one compaction as the thread grows.

    make bench-scale      or: python benchmarks/scale.py --json

Threads of 1,000 to 100,000 made-up messages are compacted once, with the embedded summariser and
an archive in memory, and one of them into a SQLite file. Each size runs in a process of its own,
after a warm-up; of several runs the fastest counts. Time per message is processor time, so that
other work on the machine does not count. LangChain's `count_tokens_approximately` over the same
messages is there for comparison. The exit code is 1 if a result is wrong, or if a message costs
more than 1.3 times as much in the longest thread as in the shortest.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import printed
from langchain_core.messages.utils import count_tokens_approximately
from made_thread import made_thread
from rich.console import Console

from conspectus import CompactionResult, Compactor
from conspectus.archive import Archive, Scope

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
IN_SQLITE = 10_000
WINDOW = 8_000
WARM_UP = 300
ALLOWED = 1.3
"""How much more a message may cost in the longest thread than in the shortest."""

MEMORY = "memory"
SQLITE = "sqlite"


def measure_one(count: int, where: str, runs: int) -> dict[str, Any]:
    """Measure one size, in this process.

    Args:
        count: messages in the thread.
        where: `memory` or `sqlite`.
        runs: number of runs; the fastest counts, and the memory of the first.
    """
    with tempfile.TemporaryDirectory() as folder:
        _compact(made_thread(WARM_UP), _place(where, Path(folder), "warm"))
        thread = made_thread(count)
        text = sum(len(message["content"]) for message in thread)
        before = _peak()
        best: dict[str, Any] = {}
        peak = 0
        for number in range(runs):
            wall, processor = time.perf_counter(), time.process_time()
            result, wrong = _compact(thread, _place(where, Path(folder), str(number)))
            spent = result.pop("processor") - processor
            result["seconds"] = result.pop("wall") - wall
            peak = peak or _peak()
            if not best or spent < best["processor"]:
                best = {**result, "processor": spent, "wrong": wrong}
    peer = _fastest(lambda: count_tokens_approximately(thread), runs)
    return {
        "messages": count,
        "archive": where,
        "characters": text,
        "seconds": round(best["seconds"], 4),
        "microseconds_per_message": round(best["processor"] / count * 1e6, 1),
        "peak_megabytes": round((peak - before) / 1e6, 1),
        "bytes_per_message": round((peak - before) / count),
        "tokens_before": best["tokens_before"],
        "tokens_after": best["tokens_after"],
        "langchain_count_microseconds": round(peer / count * 1e6, 1),
        "wrong": best["wrong"],
    }


def _compact(thread: list[Any], where: str | Path) -> tuple[dict[str, Any], list[str]]:
    with Archive.open(where) as archive:
        compactor = Compactor(window=WINDOW, archive=archive)
        result = compactor.compact(thread, thread_id="bench")
        ends = {"wall": time.perf_counter(), "processor": time.process_time()}
        wrong = _wrong(thread, result, archive)
    sizes = {"tokens_before": result.tokens_before, "tokens_after": result.tokens_after}
    return {**ends, **sizes}, wrong


def _wrong(thread: list[Any], result: CompactionResult, archive: Archive) -> list[str]:
    """List the faults of a result; none if all is well."""
    covered = [key for record in archive.chain(Scope("local", "bench")) for key in record.covers]
    kept = [message for message in result.messages if any(message is one for one in thread[-99:])]
    checks = {
        f"the outcome is {result.outcome}": result.outcome == "compacted",
        f"{result.tokens_after} tokens do not fit": result.tokens_after <= WINDOW,
        "messages are missing": len(covered) + result.kept == len(thread),
        "a message is covered twice": len(set(covered)) == len(covered),
        "not all that stays is what was sent": len(kept) + 1 + result.clipped >= result.kept,
    }
    return [what for what, holds in checks.items() if not holds]


def _place(where: str, folder: Path, name: str) -> str | Path:
    return "memory:" if where == MEMORY else folder / f"{name}.db"


def _peak() -> int:
    """Give the most memory that this process has had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _fastest(call: Callable[[], Any], runs: int) -> float:
    times = []
    for _ in range(runs):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def measure(
    sizes: Sequence[int] = SIZES, in_sqlite: int | None = IN_SQLITE, most_runs: int = 3
) -> dict[str, Any]:
    """Measure all sizes, each in its own process, and say whether the claim holds."""
    rows = [_apart(size, MEMORY, most_runs) for size in sizes]
    if in_sqlite is not None:
        rows.append(_apart(in_sqlite, SQLITE, most_runs))
    base = rows[0]["microseconds_per_message"]
    for row in rows:
        row["ratio"] = round(row["microseconds_per_message"] / base, 2)
    ratio = max(row["ratio"] for row in rows if row["archive"] == MEMORY)
    return {"rows": rows, "ratio": ratio, "allowed": ALLOWED, "holds": ratio <= ALLOWED}


def _apart(size: int, where: str, most_runs: int) -> dict[str, Any]:
    runs = max(1, min(most_runs, 30_000 // size))
    command = [sys.executable, __file__, "--one", str(size), "--archive", where]
    done = subprocess.run(
        [*command, "--runs", str(runs)], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise RuntimeError(f"{size} messages could not be measured: {done.stderr.strip()}")
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def show(found: dict[str, Any], screen: Console) -> None:
    """Print the table and the claim."""
    sizes = ("messages", "tokens", "after", "seconds", "µs a message", "ratio", "peak MB")
    columns = ("archive", *sizes, "bytes a message", "LangChain count, µs")
    table = printed.table("One compaction, embedded summariser", columns)
    for row in found["rows"]:
        table.add_row(
            row["archive"],
            f"{row['messages']:,}",
            f"{row['tokens_before']:,}",
            f"{row['tokens_after']:,}",
            f"{row['seconds']:.2f}",
            f"{row['microseconds_per_message']:,.0f}",
            f"{row['ratio']:.2f}",
            f"{row['peak_megabytes']:,.0f}",
            f"{row['bytes_per_message']:,}",
            f"{row['langchain_count_microseconds']:,.1f}",
        )
    screen.print(table)
    for row in found["rows"]:
        for line in row["wrong"]:
            screen.print(f"WRONG at {row['messages']:,}: {line}", style="bold red", markup=False)
    sizes = [row["messages"] for row in found["rows"] if row["archive"] == MEMORY]
    screen.print(
        f"From {sizes[0]:,} to {sizes[-1]:,} messages, a message costs at most "
        f"{found['ratio']:.2f} times as much; {found['allowed']} is allowed: "
        f"{'holds' if found['holds'] else 'BROKEN'}",
        soft_wrap=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("--one", type=int, help="measure this many messages, in this process")
    parser.add_argument("--archive", choices=(MEMORY, SQLITE), default=MEMORY)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.one is not None:
        print(json.dumps(measure_one(given.one, given.archive, given.runs)))
        return 0
    found = measure()
    good = found["holds"] and not any(row["wrong"] for row in found["rows"])
    screen = printed.screen()
    return printed.end(given.json, lambda: found, lambda: show(found, screen), good)


if __name__ == "__main__":
    sys.exit(main())
