"""Stores that fail in every way that we could bring about, and the history after.

Each thread compacts once, then meets trouble in a turn that is to compact again, then goes on. It
is a caller of `Compactor` or a real agent, each with and without an event loop.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import printed
from command_line import Options, Progress, ended, stopped, tell
from failing_store_trial import WAYS, Outcome, trial
from killed_databases import schema_at
from store_failures import IN_MEMORY, SQLITE, Case, Postgres

MOST_STEPS = 60


@dataclass
class Row:
    """All threads of one case."""

    case: Case
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def cells(self) -> list[str]:
        """Give the figures, in the order of the table's columns."""
        found = self.outcomes
        harmless = self.case.harmless
        told = "-" if harmless else str(sum(one.clear for one in found))
        done = "-" if harmless else str(sum(one.quiet for one in found))
        return [
            self.case.name,
            self.case.database,
            str(len(found)),
            str(sum(one.changed for one in found)),
            str(sum(bool(one.lost) for one in found)),
            str(sum(bool(one.wrong) for one in found)),
            told,
            done,
            str(sum(one.went_on for one in found)),
            str(sum(one.after for one in found)),
        ]

    @property
    def bad(self) -> list[Outcome]:
        """List the threads that did not come through."""
        return [
            one
            for one in self.outcomes
            if not (one.went_on and one.after and (self.case.harmless or one.clear or one.quiet))
            or (one.changed or one.lost or one.wrong)
        ]

    @property
    def said(self) -> str:
        """Give one text about it, without the names of the thread."""
        told = [text for one in self.outcomes for text in one.told]
        return min(told, key=len) if told else "nothing, as nothing failed"


def went_through(case: Case, ways: Sequence[str] = WAYS, every: int = 1) -> Row:
    """Try all ways in, and each step, or each n-th, where trouble strikes at each."""
    row = Row(case)
    for way in ways:
        for step in range(1, MOST_STEPS if case.each_step else 2, every):
            outcome = trial(case, way, step)
            if not outcome.struck:
                break
            row.outcomes.append(outcome)
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 for a claim that does not hold, 2 for a bad option."""
    parser = Options(description=__doc__)
    parser.add_argument("--postgres", help="address of a database; a schema is made and dropped")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    given = parser.parse_args(arguments)
    parser.reaches(given.postgres)
    logging.getLogger("conspectus").addHandler(logging.NullHandler())
    logging.getLogger("conspectus").propagate = False
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    title = "Stores that fail: threads, and how many of them ..."
    columns = (
        *("trouble", "store", "threads", "changed", "lost", "torn or over", "told", "done"),
        *("went on", "compacted after"),
    )
    table = printed.table(title, columns, 2)
    said: list[tuple[str, str]] = []
    good = whole = True
    with ExitStack() as stack:
        cases = [*IN_MEMORY, *SQLITE]
        if given.postgres:
            name = f"conspectus_stores_{uuid.uuid4().hex[:12]}"
            cases += Postgres(stack.enter_context(schema_at(given.postgres, name))).cases()
        option = f"ONLY= or --only{'' if given.postgres else ', without POSTGRES='}"
        chosen = parser.holding(option, given.only, cases, lambda case: case.name)
        tell(f"{len(chosen)} kinds of trouble; all of them take some minutes.")
        progress = Progress("stores", len(chosen))
        for case in chosen:
            try:
                row = went_through(case)
            except KeyboardInterrupt:
                whole = False
                break
            progress.step(case.name)
            table.add_row(*row.cells)
            said.append((f"{case.name} ({case.database})", row.said))
            good &= bool(row.outcomes) and not row.bad
            for one in row.bad:
                print(case.name, one, file=sys.stderr)
    printed.screen(116).print(table)
    for about, text in said:
        print(f"{about}:\n    {text}")
    if not whole:
        return stopped()
    return 0 if good else 1


if __name__ == "__main__":
    ended(main, lambda: "a schema conspectus_stores_* may be left where POSTGRES= was given")
