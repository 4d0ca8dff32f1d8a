"""Kill workers by SIGKILL at every boundary; others continue from the databases.

One process imports everything and opens nothing. For each boundary it forks a worker that dies
there, and one that continues; some die again on the way. The end is compared with the messages that
were said, and with a run that was never killed.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import tempfile
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import printed
from command_line import Options, Progress, at_least, deaf, ended, stopped, tell
from kill_boundaries import EFFECT, KINDS
from killed_databases import schema_at
from killed_process import WORKERS, Place, judged, warm_up, work
from rich.table import Table
from scripted_thread import TURNS

TWICE = "twice"
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Folder of SQLite files: a kill of a process loses nothing in files, so no disk is needed."""

SAME = ("left", "here", "summaries", "records", "shown")
"""Fields that are the same at the end. A worker that is killed while notes are prepared in the
background starts them a step later, or finds them a step sooner, so that there they may differ."""

LEAST = 2
"""Minimum compactions of a run without kills."""

OUTCOMES = ("stuck", "missing", "doubled", "wrong", "paid twice", "other end")


@dataclass
class Row:
    """The outcome of kills.

    Attributes:
        kills: by the kind of boundary.
        outcomes: threads that ended in one of `OUTCOMES`.
        why: descriptions of those.
    """

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    why: list[str] = field(default_factory=list)

    def add(self, other: Row) -> None:
        """Add another outcome."""
        self.kills += other.kills
        self.outcomes += other.outcomes
        self.why += other.why

    @property
    def cells(self) -> list[str]:
        """Return the figures, in the order of the table's columns."""
        kinds = [self.kills[kind] for kind in (*KINDS, TWICE)]
        bad = [self.outcomes[one] for one in OUTCOMES]
        return [f"{count:,}" for count in (*kinds, self.kills.total(), *bad)]


def in_a_process(place: Place, die_at: int) -> dict[str, Any] | None:
    """Return the report of a worker process, or None if it was killed.

    Raises:
        RuntimeError: it failed in another way.
    """
    report = place.note("told")
    child = os.fork()
    if not child:
        code = 1
        try:
            report.write_text(json.dumps(work(place, die_at)))
            code = 0
        except BaseException:
            place.note("failed").write_text(traceback.format_exc())
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    if status:
        raise RuntimeError(place.note("failed").read_text())
    found: dict[str, Any] = json.loads(report.read_text())
    return found


@dataclass(frozen=True)
class Course:
    """One worker on one database, and its end without a kill."""

    worker: str
    where: str | Path
    end: dict[str, Any]
    paid: list[str]

    @classmethod
    def unharmed(cls, worker: str, where: str | Path) -> Course:
        """Run the worker without a kill, for comparison."""
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            place = _place(worker, where, Path(name))
            end = in_a_process(place, 0)
            assert end is not None
            found = judged(end), place.lines("wrong")
            if found != (([], []), []) or len(end["records"]) < LEAST:
                raise RuntimeError(f"{worker} fails without being killed: {found}")
            return cls(worker, where, end, place.lines("paid"))

    def killed(self, at: Sequence[int], below: str | None = MEMORY) -> Row:
        """Kill the worker at each of these boundaries in turn, let it continue, and judge the end.

        Each boundary counts from its own process's start; files lie below a folder.
        """
        row, deaths = Row(), 0
        with tempfile.TemporaryDirectory(dir=below) as name:
            place = _place(self.worker, self.where, Path(name))
            end: dict[str, Any] | None = None
            try:
                for die_at in (*at, 0):
                    end = in_a_process(place, die_at)
                    if end is not None:
                        break
                    deaths += 1
                    row.kills[TWICE if len(at) > 1 else "".join(place.lines("died"))] += 1
            except RuntimeError as error:
                row.outcomes["stuck"] += 1
                row.why.append(str(error))
            if end is not None:
                row.outcomes += self._judged(place, end, deaths)
        if row.outcomes:
            row.why.append(f"{self.worker}, killed at {list(at)}: {dict(row.outcomes)}")
        return row

    def _judged(self, place: Place, end: dict[str, Any], deaths: int) -> Counter[str]:
        missing, doubled = judged(end)
        paid = place.lines("paid")
        # A draft that a process finds at its start is not paid for again; one that was not kept yet
        # when another process died may be, once for each death.
        starts = [json.loads(line) for line in place.lines("starts")]
        again = any(one in drafts for count, drafts in starts for one in paid[count:])
        too_many = len(paid) > len(self.paid) + deaths
        return +Counter(
            {
                "missing": int(bool(missing)),
                "doubled": int(bool(doubled)),
                "wrong": int(bool(place.lines("wrong"))),
                "paid twice": int(again or too_many),
                "other end": int(
                    not place.background and any(end[one] != self.end[one] for one in SAME)
                ),
            }
        )


def _place(worker: str, where: str | Path, folder: Path) -> Place:
    if isinstance(where, Path):
        where = folder
    return Place(worker, where, folder, f"thread-{uuid.uuid4().hex[:12]}")


def plans(course: Course, effects: int, sample: int, twice: int) -> list[tuple[int, ...]]:
    """Choose boundaries: so many effects and others of each kind, 0 for all; and pairs of them."""
    kinds = course.end["kinds"]
    draw = random.Random(f"{course.worker}{len(kinds)}")
    numbers = []
    for kind in KINDS:
        own = [n for n, one in enumerate(kinds, 1) if one == kind]
        most = (effects if kind == EFFECT else sample) or len(own)
        numbers += draw.sample(own, min(most, len(own)))
    pairs = [(draw.randrange(1, len(kinds)), draw.randrange(2, 60)) for _ in range(twice)]
    return [*((n,) for n in numbers), *pairs]


def spread(course: Course, wanted: Sequence[tuple[int, ...]], jobs: int) -> Row:
    """Carry out all kills, in so many processes at once."""
    total = Row()
    # A stopped process cleans nothing up, so all files lie in one folder.
    with tempfile.TemporaryDirectory(dir=MEMORY) as name, _ended_with_us() as children:
        for job in range(jobs):
            path = Path(name) / str(job)
            child = os.fork()
            if not child:
                code = 1
                try:
                    os.setpgid(0, 0)
                    deaf()
                    row, progress = Row(), Progress(_title(course), len(wanted))
                    for at in wanted[job::jobs]:
                        row.add(course.killed(at, name))
                        if not job:
                            progress.step(count=jobs)
                    path.write_text(json.dumps(vars(row)))
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            children[child] = path
        for child, path in list(children.items()):
            status = os.waitpid(child, 0)[1]
            del children[child]
            if status:
                raise RuntimeError("a process that kills workers failed; see above")
            found = json.loads(path.read_text())
            total.add(Row(Counter(found["kills"]), Counter(found["outcomes"]), found["why"]))
    return total


@contextmanager
def _ended_with_us() -> Iterator[dict[int, Path]]:
    """Kill the given processes, with those that they have started, after a failure."""
    children: dict[int, Path] = {}
    try:
        yield children
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _title(course: Course) -> str:
    where = "SQLite" if isinstance(course.where, Path) else "PostgreSQL"
    return f"kills of {course.worker!r} on {where}"


def columns() -> Table:
    """Make the table, without rows."""
    title = (
        f"Workers killed by SIGKILL, by what they were about to do or had just done; {TURNS} turns"
    )
    return printed.table(title, ("worker", "database", *KINDS, TWICE, "kills", *OUTCOMES), left=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a claim does not hold, 2 for an invalid option."""
    parser = Options(description=__doc__)
    parser.add_argument("--postgres", help="address of a database; a schema is made and dropped")
    parser.add_argument("--only-postgres", action="store_true", help="leave SQLite out")
    parser.add_argument("--effects", type=at_least(0), default=0, help="how many; default: all")
    parser.add_argument(
        "--sample", type=at_least(0), default=35, help="others of each kind; 0: all"
    )
    parser.add_argument("--twice", type=at_least(0), default=10, help="threads killed twice")
    parser.add_argument("--workers", nargs="*", default=WORKERS, help="which, or 'one; other'")
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    workers = parser.of_these("WORKERS= or --workers", given.workers, WORKERS)
    if given.only_postgres and not given.postgres:
        parser.error("--only-postgres needs an address; give --postgres too")
    parser.reaches(given.postgres)
    logging.getLogger("conspectus").setLevel(logging.ERROR)
    table, total = columns(), Row()
    count = len(workers) * (bool(given.postgres) + (not given.only_postgres))
    rest = "each takes some minutes, and more with SAMPLE=0"
    tell(f"Kinds of worker times databases: {count}; {rest}.")
    try:
        _fill(table, total, workers, given)
        whole = True
    except KeyboardInterrupt:
        whole = False
    table.add_row("all", "", *total.cells)
    printed.screen(156).print(table)
    for one in total.why[:5]:
        print(one, file=sys.stderr)
    if not whole:
        return stopped("the table holds the workers that were done until then")
    return 1 if total.outcomes or not total.kills else 0


def _fill(table: Table, total: Row, workers: Sequence[str], given: Any) -> None:
    """Fill a row for each worker and database."""
    warm_up()
    with ExitStack() as stack:
        databases: dict[str, str | Path] = {} if given.only_postgres else {"SQLite": Path()}
        if given.postgres:
            name = f"conspectus_kills_{uuid.uuid4().hex[:12]}"
            databases["PostgreSQL"] = stack.enter_context(schema_at(given.postgres, name))
        for database, where in databases.items():
            for worker in workers:
                course = Course.unharmed(worker, where)
                row = spread(
                    course, plans(course, given.effects, given.sample, given.twice), given.jobs
                )
                table.add_row(worker, database, *row.cells)
                total.add(row)


if __name__ == "__main__":
    ended(main)
