"""Bill real sessions under Conspectus, under LangChain's middleware, and without compaction.

    make bench-bill         or: python benchmarks/bill.py --json

Every `*.json` of more than 12,000 tokens in `agent` below `CONSPECTUS_DATA` runs again through a
real agent, in a window of its first request and a quarter of its growth. The provider's prefix
cache is simulated, prices are those of genai-prices. All summaries have the same number of
tokens, since a scripted model writes them; its calls are on the bill.

The exit code is 1 if, over the sum, another system that stays in the window costs less than
Conspectus with any of the prices, or LangChain's summarisation less than 15 % more; and 0 without
transcripts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import printed
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.messages import AIMessage
from rich.console import Console

from conspectus.tokens import TokenMeter
from conspectus_lab.billing import Bill, Pace, summed
from conspectus_lab.replay import PolicyRun, Replay, replay
from conspectus_lab.replay.measure import Sizes
from conspectus_lab.replay.policies import Middleware, Policy, Setting, ours
from conspectus_lab.replay.recorded import recorded_tools
from conspectus_lab.replay.recording import Recording
from conspectus_lab.testing.scripted_models import ScriptedChatModel

FOLDER = "agent"

LEAST_TOKENS = 12_000
"""Tokens up to which a transcript is left out."""

LEAST_WINDOW, SHARE = 2_000, 4
"""Tokens of the smallest window, and the divisor of the growth that it has room for."""

TRIGGER = 0.85
"""Share of the window, for every system."""

PRICES = ("claude-sonnet-5-5", "gpt-5.4", "gemini-3.1-pro-preview", "gpt-6.1-sol")
"""Models whose prices and caches count: a provider that charges for writes, two that do not, and
one that writes by itself and charges for it."""

TAKES = 30.0
"""Seconds of each summary."""

OURS, NOTES, THEIRS, EDITING, NONE = "conspectus", "notes", "langchain", "editing", "none"
BACKGROUND, CACHED, BOTH = "background", "cached", "background notes"
ALL_OURS = (OURS, BACKGROUND, CACHED, NOTES, BOTH)
TARGET = 0.15
"""Share by which Conspectus must cost less than LangChain's summarisation, over the sum."""


def _editing(setting: Setting) -> list[Middleware]:
    """Make LangChain's middleware that clears old tool results and asks no model."""
    trigger = int(TRIGGER * setting.plan.window)
    return [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=trigger)])]


POLICIES: dict[str, Policy | str] = {
    OURS: ours(OURS, "Conspectus, the model's summary alone", notes=False),
    BACKGROUND: ours(BACKGROUND, "Conspectus in the background", notes=False, background=True),
    CACHED: ours(CACHED, "Conspectus, riding the cache", notes=False, summary_request="cached"),
    NOTES: ours(NOTES, "Conspectus, with its notes"),
    BOTH: ours(BOTH, "Conspectus, with its notes, in the background", background=True),
    THEIRS: THEIRS,
    EDITING: Policy(EDITING, "LangChain's ContextEditingMiddleware", _editing),
}
TITLES = {
    OURS: "Conspectus, the model's summary alone",
    BACKGROUND: "Conspectus in the background",
    CACHED: "Conspectus, the summary rides the cache",
    NOTES: "Conspectus, with its notes",
    BOTH: "Conspectus, with its notes, in the background",
    THEIRS: "LangChain's SummarizationMiddleware",
    EDITING: "LangChain's ContextEditingMiddleware",
    NONE: "no compaction",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One transcript under every system.

    Attributes:
        too_large: requests over the window without compaction.
    """

    replay: Replay
    runs: dict[str, PolicyRun]
    too_large: int

    def bill(self, system: str, place: int) -> Bill:
        """Return the bill of one system at one list of prices."""
        bills = self.replay.without if system == NONE else self.runs[system].bills
        return bills[place]

    def why(self, place: int) -> str:
        """Explain why Conspectus costs more than LangChain's summarisation; empty if not."""
        ours, theirs = self.runs[OURS], self.runs[THEIRS]
        if self.bill(OURS, place).money <= self.bill(THEIRS, place).money:
            return ""
        if theirs.stopped:
            return f"theirs ended early: {theirs.stopped}"
        if theirs.over:
            return f"{theirs.over} of {len(theirs.steps)} of its requests are over the window"
        if len(ours.compactions) > len(theirs.compactions):
            return f"{len(ours.compactions)} compactions against {len(theirs.compactions)}"
        sizes = [self.bill(name, place).summarizer.input_tokens for name in (OURS, THEIRS)]
        return f"the summariser reads {sizes[0]:,} tokens against {sizes[1]:,}"


def scripted(tokens: int, meter: TokenMeter) -> ScriptedChatModel:
    """Make a model that writes so many tokens in every answer."""
    lines: list[str] = []
    while meter.text("\n".join(lines)) < tokens:
        number = len(lines) + 1
        lines.append(f"- Part {number} was looked at, and step {number} of the work is done.")
    text = "\n".join(lines[:-1] or lines)
    return ScriptedChatModel(answers=lambda messages: text, model_name="scripted")


def requests(recording: Recording, sizes: Sizes) -> list[int]:
    """Count the tokens of each request without compaction."""
    size = sizes.tools(recorded_tools(recording))
    size += sizes.messages([recording.system] if recording.system else [])
    found = []
    for message in recording.messages:
        if isinstance(message, AIMessage):
            found.append(size)
        size += sizes.message(message)
    return found


def one_row(
    name: str,
    messages: Sequence[Any],
    systems: Sequence[str] = tuple(POLICIES),
    pace: Pace = Pace(),  # noqa: B008 - it is frozen
) -> Row | None:
    """Run one transcript under every system; None if it is too short."""
    recording, sizes = Recording.of(messages), Sizes(TokenMeter())
    grown = requests(recording, sizes)
    if grown[-1] <= LEAST_TOKENS:
        return None
    window = max(LEAST_WINDOW, grown[0] + (grown[-1] - grown[0]) // SHARE)
    summary = max(256, min(4_096, window // 8))
    runs: dict[str, PolicyRun] = {}
    for system in systems:
        # The notes of code take their part of the same room.
        wanted = summary // 3 if system in (NOTES, BOTH) else summary - 16
        found = replay(
            messages,
            name=name,
            window=window,
            trigger=("fraction", TRIGGER),
            summarizer=scripted(wanted, sizes.meter),
            summary_tokens=summary,
            policies=[POLICIES[system]],
            priced_as=PRICES,
            pace=pace,
            summarizer_seconds=TAKES,
        )
        runs[system] = found.runs[0]
    return Row(found, runs, sum(size > window for size in grown))


def measure(
    files: Sequence[Path],
    systems: Sequence[str] = tuple(POLICIES),
    pace: Pace = Pace(),  # noqa: B008
) -> Iterator[Row]:
    """Run one transcript after the other."""
    for file in files:
        row = one_row(file.stem, json.loads(file.read_text(encoding="utf-8")), systems, pace)
        if row is not None:
            yield row


def figures(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Add up the figures of every system."""
    found: dict[str, dict[str, Any]] = {}
    for system in (*rows[0].runs, NONE):
        if system == NONE:
            bills = summed(row.replay.without for row in rows)
            over = sum(row.too_large for row in rows)
        else:
            runs = [row.runs[system] for row in rows]
            bills = summed(run.bills for run in runs)
            over = sum(run.over for run in runs)
        found[system] = {
            "requests": bills[0].requests,
            "over": over,
            "stopped": 0 if system == NONE else sum(bool(run.stopped) for run in runs),
            "compactions": 0 if system == NONE else sum(len(run.compactions) for run in runs),
            "summarizer_calls": bills[0].summarizer.calls,
            "summarizer_tokens": bills[0].summarizer.tokens,
            "input_tokens": bills[0].input_tokens,
            "waited_seconds": round(bills[0].waited, 1),
            "cached_share": {bill.model: bill.cached_share for bill in bills},
            "money": {bill.model: bill.money for bill in bills},
            "summarizer_money": {bill.model: bill.summarizer_money for bill in bills},
        }
    return found


def wrong(totals: dict[str, dict[str, Any]]) -> list[str]:
    """List the missed targets."""
    found = []
    for model in PRICES:
        money = {name: data["money"][model] for name, data in totals.items()}
        for name in ALL_OURS:
            if (saved := 1 - money[name] / money[THEIRS]) < TARGET:
                less = f"{saved:.1%} less than LangChain's, not {TARGET:.0%}"
                found.append(f"{model}: {TITLES[name]} costs {less}")
        for name in (THEIRS, EDITING):
            if not totals[name]["over"] and money[name] < money[OURS]:
                found.append(f"{model}: {TITLES[name]} stays in the window and costs less")
    for name in ALL_OURS:
        over, stopped = totals[name]["over"], totals[name]["stopped"]
        if over or stopped:
            found.append(f"{TITLES[name]}: {over} requests over the window, {stopped} ended early")
    return found


def show(rows: Sequence[Row], screen: Console, each: bool) -> None:
    """Print the sums, and the sessions that cost more with us."""
    totals = figures(rows)
    names = ("requests", "over", "compactions", "summariser", "input", "waited", *PRICES)
    table = printed.table("", (f"{len(rows)} transcripts", *names))
    for system, data in totals.items():
        cells = [
            TITLES[system],
            f"{data['requests']:,}",
            f"{data['over']:,}",
            f"{data['compactions']:,}",
            f"{data['summarizer_tokens']:,}",
            f"{data['input_tokens']:,}",
            f"{data['waited_seconds']:,.1f} s",
        ]
        for model in PRICES:
            share = data["cached_share"][model]
            cells.append(f"${data['money'][model]:.2f} ({share:.0%} cached)")
        table.add_row(*cells)
    screen.print(table)
    windows = sorted(row.replay.window for row in rows)
    screen.print(
        f"Windows from {windows[0]:,} to {windows[-1]:,} tokens, trigger at {TRIGGER:.0%}. "
        "summariser: tokens that it was sent and wrote, on the bill. "
        f"waited: each summary takes {TAKES:g} seconds."
    )
    for place, model in enumerate(PRICES):
        dearer = [(row, why) for row in rows if (why := row.why(place))]
        screen.print(f"{model}: Conspectus is dearer than LangChain's in {len(dearer)} rows")
        for row, why in dearer if each else dearer[:3]:
            ours, theirs = (row.bill(name, place).money for name in (OURS, THEIRS))
            screen.print(f"  {row.replay.name}: ${ours:.3f} against ${theirs:.3f}; {why}")
    for line in wrong(totals):
        screen.print(f"TARGET MISSED: {line}", style="bold red", soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("--limit", type=int, help="transcripts at most")
    parser.add_argument("--each", action="store_true", help="name every row that is dearer")
    parser.add_argument(
        "--turn", type=float, default=Pace().turn, help="seconds until a user spoke"
    )
    given = parser.parse_args(arguments)
    folder = printed.transcripts_folder() / FOLDER
    files = sorted(folder.glob("*.json"))[: given.limit]
    rows: list[Row] = []
    with Console(stderr=True).status("") as status:
        for row in measure(files, pace=Pace(turn=given.turn)):
            rows.append(row)
            status.update(f"{len(rows)}: {row.replay.name}")
    if not rows:
        return printed.skip(given.json, f"long ones in a folder {FOLDER!r}")
    totals = figures(rows)
    missed = wrong(totals)
    return printed.end(
        given.json,
        lambda: {"rows": list(map(_plain, rows)), "totals": totals, "wrong": missed},
        lambda: show(rows, printed.screen(220), given.each),
        not missed,
    )


def _plain(row: Row) -> dict[str, Any]:
    models = list(enumerate(PRICES))
    systems = (*row.runs, NONE)
    return {
        "name": row.replay.name,
        "window": row.replay.window,
        "money": {one: {model: row.bill(one, at).money for at, model in models} for one in systems},
        "over": {name: run.over for name, run in row.runs.items()},
        "compactions": {name: len(run.compactions) for name, run in row.runs.items()},
        "stopped": {name: run.stopped for name, run in row.runs.items() if run.stopped},
        "why": {model: row.why(at) for at, model in models},
    }


if __name__ == "__main__":
    sys.exit(main())
