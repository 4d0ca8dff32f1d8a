"""Real transcripts through a real agent, under LangChain's middleware and ours.

    make bench-replay       or: python benchmarks/replay.py --json

Every `*.json` in `agent` below `CONSPECTUS_DATA` runs again in a window so small that it compacts
at least twice: what its first request takes, and a quarter of what it grows by without compaction,
or less until it does. The exit code is 1 if under Conspectus a pair is broken, a request does not
fit, evicted text is unread, an original is missing, a run ends early, or a transcript compacts
fewer than two times; and 0 where there are no transcripts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import printed
from rich.console import Console

from conspectus_lab.replay import PolicyRun, Replay, replay
from conspectus_lab.replay.results import broken_promises
from conspectus_lab.replay.results import totals as added_up

FOLDER = "agent"
LEAST = 2_000
"""Tokens of the smallest window."""

SHARE, LESS, TRIES = 4, 0.7, 6
"""The part of the growth that there is room for; what each further try takes of that; tries."""

COMPACTIONS = 2
OURS, THEIRS = "conspectus", "langchain"
SHOWN = "requests compactions broken over read_share missing sent_tokens".split()
"""Figures of a replay that are shown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One transcript under both."""

    replay: Replay
    ours: PolicyRun
    theirs: PolicyRun

    @property
    def wrong(self) -> list[str]:
        """List the promises that Conspectus did not keep."""
        found, times = broken_promises(self.replay, self.ours), len(self.ours.compactions)
        few = f"{self.replay.name} at {self.replay.window:,}: {times} compactions"
        return found if times >= COMPACTIONS else [*found, few]


def measure(files: Sequence[Path]) -> Iterator[Row]:
    """Measure one transcript after the other."""
    for file in files:
        messages: list[Any] = json.loads(file.read_text(encoding="utf-8"))
        yield one_row(file.stem, messages)


def one_row(name: str, messages: Sequence[Any]) -> Row:
    """Run both policies in a window in which ours compacts at least twice."""
    grown = replay(messages, name=name, policies=["none"]).runs[0].steps
    first, peak = grown[0].tokens, max(step.tokens for step in grown)
    room = (peak - first) / SHARE
    found, ours = _in(name, messages, first, room, [OURS])
    for _ in range(TRIES):
        if len(ours.compactions) >= COMPACTIONS:
            break
        room *= LESS
        smaller, less = _in(name, messages, first, room, [OURS])
        if less.over:  # what must stay in view takes more: there is no such window
            break
        found, ours = smaller, less
    theirs = replay(messages, name=name, window=found.window, policies=[THEIRS]).runs[0]
    return Row(found, ours, theirs)


def _in(
    name: str, messages: Sequence[Any], first: int, room: float, policies: Sequence[str]
) -> tuple[Replay, PolicyRun]:
    window = max(LEAST, first + int(room))
    found = replay(messages, name=name, window=window, policies=policies)
    return found, found.runs[0]


def figures(runs: Sequence[PolicyRun]) -> dict[str, Any]:
    """Give the numbers of one policy over all transcripts."""
    every = added_up(runs)
    return {
        "transcripts": len(runs),
        **{name: every[name] for name in SHOWN},
        "stopped": sum(bool(run.stopped) for run in runs),
        "seconds": round(sum(run.seconds for run in runs), 1),
    }


def totals(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Give the numbers of both policies over all transcripts."""
    return {
        OURS: figures([row.ours for row in rows]),
        THEIRS: figures([row.theirs for row in rows]),
    }


def show(rows: Sequence[Row], screen: Console) -> None:
    """Print a row for each policy, and the broken promises."""
    names = [name for name in figures([]) if name != "transcripts"]
    headings = (f"{len(rows)} transcripts", *(name.replace("_", " ") for name in names))
    table = printed.table("", headings)
    for policy, data in totals(rows).items():
        cells = [data[name] for name in names]
        shown = [
            "-" if cell is None else f"{cell:.1%}" if name == "read_share" else f"{cell:,}"
            for name, cell in zip(names, cells, strict=True)
        ]
        table.add_row(policy, *shown)
    screen.print(table)
    windows = sorted(row.replay.window for row in rows)
    fewest = min(len(row.ours.compactions) for row in rows)
    screen.print(
        f"Windows from {windows[0]:,} to {windows[-1]:,} tokens; each transcript compacts at least "
        f"{fewest} times; embedded summariser for both."
    )
    for line in (line for row in rows for line in row.wrong):
        screen.print(f"BROKEN PROMISE: {line}", style="bold red", soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("--limit", type=int, help="transcripts at most")
    given = parser.parse_args(arguments)
    files = sorted((printed.transcripts_folder() / FOLDER).glob("*.json"))[: given.limit]
    if not files:
        return printed.skip(given.json, FOLDER)
    rows = []
    with Console(stderr=True).status("") as status:
        for row in measure(files):
            rows.append(row)
            status.update(f"{len(rows)} of {len(files)}: {row.replay.name}")
    each = [
        {
            "name": row.replay.name,
            "window": row.replay.window,
            OURS: figures([row.ours]),
            THEIRS: figures([row.theirs]),
            "wrong": row.wrong,
        }
        for row in rows
    ]
    return printed.end(
        given.json,
        lambda: {"rows": each, "totals": totals(rows)},
        lambda: show(rows, printed.screen(140)),
        not any(row.wrong for row in rows),
    )


if __name__ == "__main__":
    sys.exit(main())
