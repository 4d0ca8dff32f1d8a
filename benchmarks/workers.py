"""Test many workers at once: threads, tasks and processes, and calls that are cancelled.

    make workers        or: python benchmarks/workers.py [--count N] [--rounds N] [--parts ...]

N threads of the operating system, and N tasks of an event loop, share one agent with its middleware
and guard, or one `Compactor`, in memory, on SQLite and, if an address is given, on PostgreSQL; then
ten of them share a conversation, whose notes are prepared in the background. Each conversation has
a word of its own; requests, summaries, recalls and archives are searched for the words of others.
Then two processes compact one conversation at one moment, again and again. Last, each call is
cancelled at each of its awaits, and interrupted in each operation of the store. Ends with 1 if a
promise does not hold or a part fails, with 2 for an invalid option; finished rows are printed.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import command_line
import printed
from background_workers import BACKGROUND_CASES
from cancellations import SCENES, Cancelled, cancelled_everywhere, interrupted_everywhere
from rich.table import Table
from two_processes import Rounds, rounds_of_two
from worker_cases import CASES, Seen, one_thread
from worker_places import own_schema

screen = printed.screen(130)

COUNT = 200
ROUNDS = 50
LENGTHS = 5
CONNECTIONS = 20
"""Maximum connections of a part at one time."""
PARTS = ("workers", "processes", "stops")
SCHEMAS = "conspectus_workers"
PROCESSES = ("compactor", "compactor in the background", "agent")
TAKES = {
    "workers": f"{COUNT} workers take some minutes, fewer take less",
    "processes": f"{ROUNDS} rounds of two processes take a minute or two, fewer take less",
    "stops": "all stops take some four minutes, whatever COUNT is",
}

unshown: list[Table] = []
"""The table that is being filled."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and return 0 if all promises held."""
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
    if set(given.parts) == {"processes"} and not given.postgres:
        parser.error("processes meet in PostgreSQL: give POSTGRES= or --postgres an address")
    parser.reaches(given.postgres)
    parts = [one for one in PARTS if one in given.parts]
    if "processes" in parts and not given.postgres:
        command_line.tell(
            "Two processes meet in PostgreSQL only: without POSTGRES= that table is left out."
        )
        parts.remove("processes")
    command_line.tell(f"Parts: {', '.join(parts)}; {'; '.join(TAKES[one] for one in parts)}.")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    said: list[str] = []
    good = whole = True
    shown = False
    for part in parts:
        try:
            good &= _filled(part, given, said)
        except KeyboardInterrupt:
            whole = False
            break
        except Exception as error:
            good = False
            shown |= show()
            command_line.told(part, error, _todo(part, given.postgres))
        finally:
            shown |= show()
    for one in said[:20]:
        screen.print(one, style="red")
    if not whole:
        some = "the tables hold what was done until then"
        return command_line.stopped(some if shown else "nothing had come to its end")
    return 0 if good else 1


def show() -> bool:
    """Print the unfinished table once; return whether it has rows."""
    rows = 0
    while unshown:
        if (table := unshown.pop()).row_count:
            screen.print(table)
            rows += table.row_count
    return rows > 0


def _filled(part: str, given: Any, said: list[str]) -> bool:
    if part == "workers":
        return _workers(given.count, given.postgres, said)
    if part == "processes":
        return _processes(given.rounds, given.postgres, said)
    return _cancellations(given.step, said)


def _todo(part: str, address: str) -> str:
    again = f"run it again with PARTS={part}"
    if part == "stops" or not address:
        return again
    free = f"once PostgreSQL answers and has {CONNECTIONS} connections free"
    return f"{again}, {free} (a schema {SCHEMAS}_* may be left there)"


def _workers(count: int, address: str, said: list[str]) -> bool:
    names = "case,database,at once,compactions,paid,recalls,foreign words,missing,doubled,failed"
    table = _table(f"{count} workers at once", f"{names},tasks left", 2)
    good = True
    cases = (*CASES, partial(one_thread, lengths=LENGTHS), *BACKGROUND_CASES)
    databases = ("memory", "sqlite", *(["postgres"] if address else []))
    progress = command_line.Progress("workers", len(cases) * len(databases))
    for database in databases:
        for case in cases:
            with tempfile.TemporaryDirectory() as folder, own_schema(address, SCHEMAS) as own:
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
    return good


def _processes(rounds: int, address: str, said: list[str]) -> bool:
    names = "both run,rounds,one won,both wrote,compactions,paid,shown apart,missing,doubled,failed"
    table = _table("two processes on one conversation, PostgreSQL", names, 1)
    good = True
    progress = command_line.Progress("processes", len(PROCESSES))
    for what in PROCESSES:
        with own_schema(address, SCHEMAS) as own:
            found: Rounds = rounds_of_two(own, rounds, what)
        progress.step(what)
        good &= found.good
        said += found.said
        row = (found.rounds, found.won, found.crossed, found.compactions, found.paid)
        end = (found.apart, found.missing, found.doubled, found.failed)
        table.add_row(what, *(f"{n:,}" for n in (*row, *end)))
    return good


def _cancellations(step: int, said: list[str]) -> bool:
    names = "call,by,times,as before,all done,half done,next call fails,tasks left,complaints"
    table = _table("stopped at each place in turn", names, 2)
    good = True
    progress = command_line.Progress("stops", 2 * len(SCENES))
    for call in SCENES:
        for stop in (partial(cancelled_everywhere, step=step), interrupted_everywhere):
            seen: Cancelled = stop(call)
            progress.step(f"{seen.call}, {seen.by}")
            good &= seen.good
            said += [f"{seen.call}: {one}" for one in seen.said]
            row = (seen.times, seen.as_before, seen.done, seen.half, seen.stuck, seen.left)
            table.add_row(seen.call, seen.by, *map(str, (*row, seen.warned)))
    return good


def _table(title: str, columns: str, left: int) -> Table:
    unshown.append(printed.table(title, columns.split(","), left))
    return unshown[-1]


def _left() -> str:
    """Print the finished rows even if threads do not end."""
    show()
    return f"a schema {SCHEMAS}_* may be left where POSTGRES= was given"


if __name__ == "__main__":
    command_line.ended(main, _left)
