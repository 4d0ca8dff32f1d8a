"""Many workers at once: threads, tasks and processes on one instance, and calls that are cancelled.

    make workers        or: python benchmarks/workers.py [--count N] [--postgres ADDRESS]

So many threads of the operating system, and so many tasks of an event loop, share one agent with
its middleware and guard, or one `Compactor`, in memory, on SQLite and, where an address is given,
on PostgreSQL. Each conversation has a word of its own; requests, summaries, recalls and archives
are searched for the words of others. Then two processes compact one conversation at one moment,
again and again. At last each call is cancelled at each of its awaits, and interrupted in each
operation of the store. Ends with 1 if a promise does not hold, with 2 if an option makes no sense.
"""

from __future__ import annotations

import logging
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import command_line
from cancellations import SCENES, Cancelled, cancelled_everywhere, interrupted_everywhere
from rich import box
from rich.console import Console
from rich.table import Table
from two_processes import Rounds, rounds_of_two
from worker_cases import CASES, Seen, one_thread

screen = Console(width=130)

COUNT = 200
ROUNDS = 50
LENGTHS = 5
PARTS = ("workers", "processes", "stops")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and say whether what is promised held."""
    parser = command_line.Options(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--count", type=command_line.at_least(1), default=COUNT, help="threads, and tasks, at once"
    )
    parser.add_argument(
        "--rounds", type=command_line.at_least(1), default=ROUNDS, help="of two processes"
    )
    parser.add_argument(
        "--step", type=command_line.at_least(1), default=1, help="cancel at every so many awaits"
    )
    parser.add_argument("--postgres", default="", help="address of a database to make schemas in")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="tables to print")
    given = parser.parse_args(arguments)
    if "processes" in given.parts and len(given.parts) == 1 and not given.postgres:
        parser.error("processes meet in PostgreSQL: give POSTGRES= or --postgres an address")
    parser.reaches(given.postgres)
    command_line.tell(
        f"Parts: {', '.join(given.parts)}. 200 workers take some minutes, fewer take less."
    )
    if "processes" in given.parts and not given.postgres:
        command_line.tell(
            "Two processes meet in PostgreSQL only: without POSTGRES= that table is left out."
        )
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    said: list[str] = []
    good = True
    if "workers" in given.parts:
        good &= _workers(given.count, given.postgres, said)
    if "processes" in given.parts and given.postgres:
        good &= _processes(given.rounds, given.postgres, said)
    if "stops" in given.parts:
        good &= _cancellations(given.step, said)
    for one in said[:20]:
        screen.print(one, style="red", highlight=False)
    return 0 if good else 1


def _workers(count: int, address: str, said: list[str]) -> bool:
    table = _table(f"{count} workers at once", "case", "database")
    for name in ("at once", "compactions", "paid", "recalls", "foreign words", "missing"):
        table.add_column(name, justify="right")
    for name in ("doubled", "failed", "tasks left"):
        table.add_column(name, justify="right")
    good = True
    cases = (*CASES, partial(one_thread, lengths=LENGTHS))
    databases = ("memory", "sqlite", *(["postgres"] if address else []))
    progress = command_line.Progress("workers", len(cases) * len(databases))
    for database in databases:
        for case in cases:
            with tempfile.TemporaryDirectory() as folder, schema(address) as own:
                seen: Seen = case(database, count, Path(folder), own)
            progress.step(f"{seen.case}, {database}")
            good &= seen.good
            said += [f"{seen.case}, {database}: {one}" for one in seen.said]
            table.add_row(
                seen.case,
                database,
                f"{seen.at_once:,}",
                f"{seen.compactions:,}",
                f"{seen.paid:,}",
                f"{seen.recalled:,}" if seen.recalled else "-",
                *(str(n) for n in (seen.foreign, seen.missing, seen.doubled)),
                *(str(n) for n in (seen.failed, seen.left)),
            )
    screen.print(table)
    return good


def _processes(rounds: int, address: str, said: list[str]) -> bool:
    table = _table("two processes on one conversation, PostgreSQL", "both run")
    for name in ("rounds", "one won", "both wrote", "compactions", "paid"):
        table.add_column(name, justify="right")
    for name in ("shown apart", "missing", "doubled", "failed"):
        table.add_column(name, justify="right")
    good = True
    progress = command_line.Progress("processes", 2)
    for what in ("compactor", "agent"):
        with schema(address) as own:
            found: Rounds = rounds_of_two(own, rounds, what)
        progress.step(what)
        good &= found.good
        said += found.said
        row = (found.rounds, found.won, found.crossed, found.compactions, found.paid)
        end = (found.apart, found.missing, found.doubled, found.failed)
        table.add_row(what, *(f"{n:,}" for n in (*row, *end)))
    screen.print(table)
    return good


def _cancellations(step: int, said: list[str]) -> bool:
    table = _table("stopped at each place in turn", "call", "by")
    for name in ("times", "as before", "all done", "half done", "next call fails"):
        table.add_column(name, justify="right")
    for name in ("tasks left", "complaints"):
        table.add_column(name, justify="right")
    found: list[Cancelled] = []
    progress = command_line.Progress("stops", 2 * len(SCENES))
    for call in SCENES:
        found.append(cancelled_everywhere(call, step=step))
        progress.step(f"{call}, cancelled")
        found.append(interrupted_everywhere(call))
        progress.step(f"{call}, interrupted")
    for seen in found:
        row = (seen.times, seen.as_before, seen.done, seen.half, seen.stuck, seen.left, seen.warned)
        table.add_row(seen.call, seen.by, *map(str, row))
        said += [f"{seen.call}: {one}" for one in seen.said]
    screen.print(table)
    return all(seen.good for seen in found)


@contextmanager
def schema(address: str) -> Iterator[str]:
    """The address of an empty schema of its own, dropped at the end; empty where there is none."""
    if not address:
        yield ""
        return
    import psycopg

    name = f"conspectus_workers_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[arg-type]
        try:
            yield f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")  # type: ignore[arg-type]


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD)


if __name__ == "__main__":
    command_line.ended(
        main, lambda: "a schema conspectus_workers_* may be left where POSTGRES= was given"
    )
