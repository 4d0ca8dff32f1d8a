"""Real transcripts at five windows: the promises, checked from outside.

    make bench-transcripts      or: python benchmarks/transcripts.py --json

Every `*.json` in the folders below `CONSPECTUS_DATA` is one history, a list of messages in OpenAI's
form. Each is compacted at every window with the embedded summariser; then new messages come in, and
then the whole history is sent again to another compactor, as clients of a chat API do. The exit
code is 1 if any promise was broken, and 0 where there are no transcripts.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import printed
from langchain_core.messages import convert_to_messages
from promises import Verdict, judge, unanswered
from rich.console import Console

from conspectus import CompactionResult, Compactor, TokenMeter
from conspectus.archive import Archive, Scope

WINDOWS = (2_000, 4_000, 8_000, 16_000, 32_000)
AS_OBJECTS = 8_000
"""The window at which the same histories are also sent as LangChain messages."""

HELD_BACK = 6
"""Messages that come in after the first compaction."""

KEEP = ("messages", 20)
SCOPE = Scope("local", "bench")


@dataclass(slots=True)
class Run:
    """One transcript at one window.

    Attributes:
        name: of the transcript.
        outcome: of the first compaction.
        compactions: number of compactions in all three steps.
        evicted: messages that left the view.
        before: tokens of the whole history.
        after: tokens after the first compaction.
        again: 1 if the whole history, sent again, was seen otherwise or compacted once more.
        stuck: reasons given, each of them found true or listed in `verdict.said`.
    """

    name: str
    outcome: str = ""
    compactions: int = 0
    evicted: int = 0
    before: int = 0
    after: int = 0
    again: int = 0
    seconds: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)
    stuck: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Row:
    """All transcripts of one folder at one window, as `dicts` or `objects`."""

    folder: str
    form: str
    window: int
    runs: tuple[Run, ...]

    def data(self) -> dict[str, Any]:
        """Give the numbers of the table."""
        done = [run for run in self.runs if run.outcome == "compacted"]
        count = {name: sum(run.outcome == name for run in self.runs) for name in OUTCOMES}
        total = {name: sum(getattr(run.verdict, name) for run in self.runs) for name in FAULTS[:4]}
        return {
            "folder": self.folder,
            "form": self.form,
            "window": self.window,
            "runs": len(self.runs),
            **count,
            **total,
            "again": sum(run.again for run in self.runs),
            "median_after": int(statistics.median([run.after for run in done])) if done else None,
            "evicted": sum(run.evicted for run in self.runs),
            "compactions": sum(run.compactions for run in self.runs),
            "seconds": round(sum(run.seconds for run in self.runs), 2),
        }


def transcripts(data: Path, limit: int | None = None) -> dict[str, list[Path]]:
    """Find the transcripts of each folder, at most `limit` of each."""
    folders = sorted(folder for folder in data.glob("*") if folder.is_dir())
    found = {
        folder.name: list(islice(filter(_is_history, sorted(folder.glob("*.json"))), limit))
        for folder in folders
    }
    return {name: paths for name, paths in found.items() if paths}


def _is_history(path: Path) -> bool:
    return holds_messages(json.loads(path.read_text(encoding="utf-8")))


def holds_messages(read: object) -> bool:
    """Say whether data of a file is a history, and no questions beside one."""
    return isinstance(read, list) and all(isinstance(m, dict) and "role" in m for m in read)


def measure(
    data: Path, windows: Sequence[int] = WINDOWS, limit: int | None = None
) -> Iterable[Row]:
    """Measure every folder at every window, and once as LangChain messages."""
    for folder, paths in transcripts(data, limit).items():
        forms = [("dicts", window) for window in windows]
        forms += [("objects", window) for window in windows if window == AS_OBJECTS]
        for form, window in forms:
            yield Row(folder, form, window, tuple(_run(path, form, window) for path in paths))


def _run(path: Path, form: str, window: int) -> Run:
    messages: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    if form == "objects":
        messages = convert_to_messages(messages)
    with tempfile.TemporaryDirectory() as folder:
        return one_run(path.stem, messages, window, Path(folder) / "archive.db")


def one_run(
    name: str, messages: Sequence[Any], window: int, file: Path, held_back: int = HELD_BACK
) -> Run:
    """Compact, go on, and send it all again.

    Args:
        name: of the run.
        messages: the whole history.
        window: limit of every result, in tokens.
        file: will be the archive.
        held_back: number of messages that come after the first compaction, about.
    """
    run = Run(name)
    first = list(messages[: _pause(messages, held_back)])
    compactor = Compactor(window=window, keep=KEEP, archive=file)

    def step(sent: Sequence[Any], whole: Sequence[Any], by: Compactor) -> CompactionResult:
        started = time.perf_counter()
        result = by.compact(list(sent), thread_id=SCOPE.thread)
        run.seconds += time.perf_counter() - started
        with Archive.open(file) as archive:
            run.verdict += judge(whole, result, archive, SCOPE, window)
        run.compactions += result.outcome == "compacted"
        run.evicted += result.evicted
        if result.outcome == "stuck":
            run.stuck.append(result.reason)
        return result

    one = step(first, first, compactor)
    run.outcome, run.after = one.outcome, one.tokens_after
    # As an agent goes on: what it was given, and what is new.
    two = step([*one.messages, *messages[len(first) :]], messages, compactor)
    _archive_of(compactor).close()
    # As a client of a chat API goes on: everything, to a process that remembers nothing.
    other = Compactor(window=window, keep=KEEP, archive=file)
    three = step(messages, messages, other)
    _compare(run, two, three, _archive_of(other))
    _archive_of(other).close()
    run.before = TokenMeter().messages(messages)
    return run


def _compare(run: Run, two: CompactionResult, three: CompactionResult, archive: Archive) -> None:
    """Check that the whole history, sent again, is seen as before and not read twice."""
    covered = [key for record in archive.chain(SCOPE) for key in record.covers]
    checks = {
        "the same history sent again is seen otherwise": three.messages == two.messages,
        "it was compacted again": three.record is None and three.cost.calls == 0,
        f"{three.dropped} messages were left out and {len(covered)} are covered": (
            three.dropped == len(covered) == run.evicted
        ),
        "a message was summarised twice": len(set(covered)) == len(covered),
    }
    for what, holds in checks.items():
        if not holds:
            run.again = 1
            run.verdict.said.append(what)


def _pause(messages: Sequence[Any], held_back: int) -> int:
    """Choose the length before new messages come: never between call and result."""
    at = max(1, len(messages) - held_back)
    while at > 1 and unanswered(messages[:at]) != unanswered(messages):
        at -= 1
    return at


def _archive_of(compactor: Compactor) -> Archive:
    assert compactor.archive is not None
    return compactor.archive


FAULTS = ("broken", "missing", "altered", "over", "again")
OUTCOMES = ("compacted", "kept", "stuck")
COLUMNS = (
    *("folder", "form", "window", "runs", *OUTCOMES, *FAULTS),
    *("median_after", "evicted", "seconds"),
)


def totals(rows: Sequence[Row]) -> dict[str, Any]:
    """Add up all rows, with all faults and every reason for being stuck."""
    data = [row.data() for row in rows]
    names = ("runs", "compacted", "kept", "stuck", "compactions", "evicted", "seconds", *FAULTS)
    sums: dict[str, Any] = {name: sum(row[name] for row in data) for name in names}
    runs = [(row, run) for row in rows for run in row.runs]
    sums["seconds"] = round(sums["seconds"], 1)
    sums["tokens"] = sum(run.before for _, run in runs)
    sums["wrong"] = [_line(row, run, said) for row, run in runs for said in run.verdict.said]
    sums["stuck_because"] = [
        _line(row, run, why) for row, run in runs for why in dict.fromkeys(run.stuck)
    ]
    return sums


def _line(row: Row, run: Run, what: str) -> str:
    return f"{row.folder}/{run.name} at {row.window:,} ({row.form}): {what}"


def show(rows: Sequence[Row], screen: Console) -> None:
    """Print the table and one line of totals."""
    table = printed.table(
        "Real transcripts, embedded summariser, originals in a SQLite file",
        [name.removesuffix("_after") for name in COLUMNS],
        2,
        caption="median: tokens after the first compaction; again: the whole history, sent again",
    )
    last = ""
    for row in rows:
        if last and row.folder != last:
            table.add_section()
        last, data = row.folder, row.data()
        cells = [data[name] for name in COLUMNS]
        table.add_row(*(f"{c:,}" if isinstance(c, int) else str(c or "-") for c in cells))
    screen.print(table)
    all_of = totals(rows)
    for line in all_of["stuck_because"]:
        screen.print(f"stuck: {line}", markup=False, soft_wrap=True)
    for line in all_of["wrong"]:
        screen.print(f"BROKEN PROMISE: {line}", style="bold red", markup=False, soft_wrap=True)
    screen.print(
        f"{all_of['runs']:,} runs, {all_of['tokens']:,} tokens, {all_of['compactions']:,} "
        f"compactions, {all_of['evicted']:,} messages evicted: {all_of['broken']} broken pairs, "
        f"{all_of['missing']} messages missing, {all_of['altered']} altered, {all_of['over']} over "
        f"budget, {all_of['again']} seen otherwise when sent again; {all_of['stuck']} stuck; "
        f"{all_of['seconds']} seconds",
        soft_wrap=True,
        markup=False,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("--limit", type=int, help="transcripts of each folder at most")
    given = parser.parse_args(arguments)
    data = printed.transcripts_folder()
    if not transcripts(data):
        return printed.skip(given.json, "folders of *.json")
    rows = list(measure(data, limit=given.limit))
    found = totals(rows)
    return printed.end(
        given.json,
        lambda: {"rows": [row.data() for row in rows], "totals": found},
        lambda: show(rows, printed.screen()),
        not found["wrong"],
    )


if __name__ == "__main__":
    sys.exit(main())
