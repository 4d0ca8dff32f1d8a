"""Measure the seconds that an agent waits for its notes, made when due or in the background.

    make bench-waiting      or: python benchmarks/waiting.py --json

Every transcript of `CONSPECTUS_DATA/agent` that is larger than 12,000 tokens is replayed step by
step, in windows a tenth larger than the trigger. The summariser takes 30 seconds, a step of the
agent 1, 5 or 20; the clock is simulated. The exit code is 1 if an agent with steps of 5 seconds or
more and a trigger of 32,000 tokens waited although its notes were prepared in the background, if
anything was lost, or if a name or value that the agent wrote after the snapshot is out of view once
the notes are swapped in. It is 0 without transcripts.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import printed
from promises import Verdict, judge
from transcripts import holds_messages

from conspectus import Compactor, Summary, SummaryRequest, TokenMeter
from conspectus.archive import Archive, Scope
from conspectus.observe import Event
from conspectus_lab.replay.simulated_time import simulated

LEAST = 12_000
"""Tokens above which a transcript is replayed."""

TAKES = 30.0
"""Seconds of the summariser."""

STEPS = (1.0, 5.0, 20.0)
"""Seconds of a step of the agent."""

TRIGGERS = (16_000, 32_000, 48_000)
"""Tokens; the window is a tenth larger."""

SCOPE = Scope("local", "t")

CLAIMED = 5.0, 32_000
"""Seconds of a step, and the trigger, from which on no agent may wait. In smaller windows the agent
itself at times writes more within 30 seconds than there is room for, and its words stay whole."""

NAMED = re.compile(r"[\w./:-]*\w")
"""A word that may be a name; see `named`."""


class Slow:
    """A summariser that is slow by the simulated clock."""

    name, identity, form = "slow", "slow", "findings"

    def __init__(self) -> None:
        self.calls = 0

    def summarize(self, request: SummaryRequest) -> Summary:
        raise AssertionError("the replay runs on an event loop")

    async def asummarize(self, request: SummaryRequest) -> Summary:
        self.calls += 1
        await asyncio.sleep(TAKES)
        cite = request.entries[0].cite
        text = f"- the work went on through {len(request.entries)} messages [{cite}]"
        return Summary(text, tuple(entry.key for entry in request.entries))


@dataclass(frozen=True, slots=True)
class Run:
    """One transcript, replayed once.

    Attributes:
        waited: seconds that the agent waited for notes.
        longest: seconds of the longest wait.
        steps: of the agent.
        stood: steps at which it waited.
        compactions: records put in force.
        calls: of the summariser.
        topped: drafts to which the embedded summariser added.
        dropped: unused drafts.
        written: names and values that the agent wrote between a snapshot and the swap.
        unsaid: those out of view then; those of drafts that were topped up are not counted, as
            they have been read.
        wrong: messages lost or changed, pairs broken, and requests over the window.
    """

    name: str
    waited: float
    longest: float
    steps: int
    stood: int
    compactions: int
    calls: int
    topped: int
    dropped: int
    written: int
    unsaid: int
    wrong: int


def named(messages: Sequence[Any]) -> set[str]:
    """Find paths, numbers and names with more than letters in them that an agent has written."""
    own = [one for one in messages if one["role"] == "assistant"]
    calls = [call["function"]["arguments"] for one in own for call in one.get("tool_calls") or ()]
    text = "\n".join([*(str(one.get("content") or "") for one in own), *calls])
    return {word for word in NAMED.findall(text) if re.search(r"\d{2}|[A-Za-z][_./]\w", word)}


async def _replayed(
    name: str, messages: Sequence[Any], trigger: int, step: float, background: bool
) -> Run:
    model, heard, began, found = Slow(), list[Event](), 0, [0, 0]

    def hear(event: Event) -> None:
        if event.kind == "preparation":
            heard.append(event)

    window = trigger + trigger // 10
    compactor = Compactor(
        model,
        trigger=("tokens", trigger),
        window=window,
        archive=Archive.open("memory:"),
        background=background,
        telemetry=hear,
    )
    clock = asyncio.get_running_loop().time
    waits, made, wrong = list[float](), 0, Verdict()
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or not at:
            continue
        sent, start, before = list(messages[:at]), clock(), len(heard)
        result = await compactor.acompact(sent, thread_id=SCOPE.thread)
        waits.append(clock() - start)
        if "swapped_in" in [one.name for one in heard[before:]]:
            names, view = named(sent[began:]), json.dumps(result.messages, ensure_ascii=False)
            found[0] += len(names)
            found[1] += sum(json.dumps(one, ensure_ascii=False)[1:-1] not in view for one in names)
        if result.record is not None:
            made += 1
            assert compactor.archive is not None
            wrong += judge(sent, result, compactor.archive, SCOPE, window)
        wrong.over += result.outcome != "stuck" and result.tokens_after > window
        await asyncio.sleep(step)
        if "began" in [one.name for one in heard[before:]]:
            began = len(sent)
    steps = [one.name for one in heard]
    return Run(
        name,
        round(sum(waits), 1),
        round(max(waits, default=0.0), 1),
        len(waits),
        sum(one > 0.5 for one in waits),
        made,
        model.calls,
        steps.count("topped_up"),
        steps.count("dropped"),
        *found,
        wrong.broken + wrong.missing + wrong.altered + wrong.over,
    )


def measure(
    data: Path, triggers: Sequence[int], steps: Sequence[float], limit: int | None = None
) -> Iterator[dict[str, Any]]:
    """Measure a row for each trigger, duration of a step and way to make notes."""
    meter = TokenMeter()
    found = {}
    for path in sorted((data / "agent").glob("*.json"))[:limit]:
        read = json.loads(path.read_text(encoding="utf-8"))
        if holds_messages(read) and meter.messages(read) > LEAST:
            found[path.stem] = read
    for trigger in triggers if found else ():
        for step in steps:
            for background in (False, True):
                runs = [
                    simulated(_replayed(name, messages, trigger, step, background))
                    for name, messages in found.items()
                ]
                yield {
                    "trigger": trigger,
                    "window": trigger + trigger // 10,
                    "step": step,
                    "background": background,
                    "transcripts": len(runs),
                    **{name: round(sum(getattr(run, name) for run in runs), 1) for name in SUMS},
                    "runs": [asdict(run) for run in runs],
                }


SUMS = "steps compactions calls waited stood topped dropped written unsaid wrong".split()
COLUMNS = ("trigger", "window", "step", "background", *SUMS)


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    table = printed.table("", COLUMNS, left=0)
    for row in rows:
        table.add_row(*(f"{row[name]:,}" for name in COLUMNS))
    printed.screen(140).print(table)


def main() -> int:
    """Print the table, or the numbers as JSON."""
    parser = printed.options(__doc__)
    parser.add_argument("--data", type=Path, default=printed.transcripts_folder())
    parser.add_argument("--triggers", type=int, nargs="+", default=TRIGGERS)
    parser.add_argument("--steps", type=float, nargs="+", default=STEPS)
    parser.add_argument("--limit", type=int, help="transcripts at most")
    given = parser.parse_args()
    rows = list(measure(given.data, given.triggers, given.steps, given.limit))
    step, trigger = CLAIMED
    ours = (row for row in rows if row["background"])
    claimed = (row for row in ours if row["step"] >= step and row["trigger"] >= trigger)
    wrong = any(row["wrong"] or row["unsaid"] for row in rows)
    good = not wrong and not any(row["waited"] for row in claimed)
    return printed.end(given.json, lambda: rows, lambda: show(rows), good)


if __name__ == "__main__":
    sys.exit(main())
