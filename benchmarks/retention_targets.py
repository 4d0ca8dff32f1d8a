"""The share of later needs that survives a compaction, beside its targets.

    make bench-retention        or: python benchmarks/retention_targets.py --json

Folders below `CONSPECTUS_DATA`: `agent`, trajectories of agents, for future use; `locomo` and
`crosswoz`, long talks with questions, for answers. The measures are those of `conspectus eval`. The
exit code is 1 if a target is missed, and 0 where there is no data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import printed
from rich.console import Console

from conspectus_lab.commands.eval import read_transcripts
from conspectus_lab.evaluate import ConspectusSystem, Evaluation, SystemResult, beside, evaluate

KEEP = ("messages", 20)
QUOTED = {512: None, 1024: None, 2048: 0.8}
"""The least `quoted` by size of the summary, in tokens; None where it is only shown: short notes
say what users said and what was done, and leave what tools showed to recall."""

ANSWERS = (("locomo", 512, 0.83), ("locomo", 2048, 0.93), ("crosswoz", 128, 0.91))
"""Folder, tokens of recall, and the least share of answers, with a summary of `ANSWERS_SUMMARY`."""

ANSWERS_SUMMARY = 512
ROUNDS = 10
ROUNDS_RATIO = {512: 0.9, 1024: 0.9, 2048: 0.9}
"""The least `quoted` after so many rounds beside one, by size of the summary, in tokens."""

FOLDERS = ("agent", "locomo", "crosswoz")


@dataclass(frozen=True, slots=True)
class Check:
    """One figure beside its target.

    Attributes:
        what: name of the figure.
        value: the figure.
        target: its target.
        holds: whether the target is met.
        beside: the same of LangChain's middleware, or of a plain search; None where there is none.
    """

    what: str
    value: float
    target: str
    holds: bool
    beside: float | None = None


def checks(data: Path, folders: Sequence[str] = FOLDERS) -> Iterator[Check]:
    """Check all figures that there is data for."""
    there = [name for name in folders if (data / name).is_dir()]
    if "agent" in there:
        yield from agent(data / "agent")
    for name, recall, least in ANSWERS:
        if name in there:
            yield from answers(data / name, recall, least)


def agent(folder: Path) -> Iterator[Check]:
    """Check future use at each size beside LangChain's middleware, and rounds."""
    transcripts, _ = read_transcripts([str(folder)])
    sizes = tuple(QUOTED)
    ours = evaluate(
        transcripts, [ConspectusSystem(keep=KEEP, sizes=sizes)], keep=KEEP, rounds=ROUNDS
    )
    theirs = evaluate(transcripts, beside(["langchain"], KEEP), summary_tokens=sizes, keep=KEEP)
    for size, least in QUOTED.items():
        one = ours.system("conspectus", size)
        quoted = one.future_use.quoted.value
        name = f"agent, summary of {size:,}: "
        yield Check(
            f"{name}quoted",
            quoted,
            f"at least {least}" if least else "",
            least is None or quoted >= least,
            theirs.system("langchain", size).future_use.quoted.value,
        )
        yield from failures(name, one)
    for size in sizes:
        rounds, least = ours.system("conspectus", size).rounds, ROUNDS_RATIO[size]
        ratio = rounds.ratio or 0.0
        name = f"agent, {ROUNDS} rounds, summary of {size:,}: "
        yield Check(f"{name}quoted beside one round", ratio, f"at least {least}", ratio >= least)
        yield none_of(f"{name}summaries over their limit", rounds.over)
        yield none_of(f"{name}broken pairs", rounds.broken)


def answers(folder: Path, recall: int, least: float) -> Iterator[Check]:
    """Check answers with recall, beside the tail with a plain BM25 search."""
    transcripts, _ = read_transcripts([str(folder)])
    systems = [ConspectusSystem(keep=KEEP, sizes=(ANSWERS_SUMMARY,)), *beside(["langchain"], KEEP)]
    found: Evaluation = evaluate(
        transcripts,
        systems,
        summary_tokens=[ANSWERS_SUMMARY],
        keep=KEEP,
        recall_tokens=recall,
    )
    ours = found.systems[0]
    kept = ours.answers
    name = f"{folder.name}, recall of {recall:,}: "
    value = kept.answers.value
    yield Check(f"{name}answers", value, f"at least {least}", value >= least, kept.bm25.value)
    lower = kept.gain.low
    yield Check(f"{name}gain over plain BM25, lower end", lower, "above 0", lower > 0)
    yield none_of(f"{name}recalled more than asked for", kept.recall_over)
    yield from failures(name, ours)


def failures(name: str, result: SystemResult) -> Iterator[Check]:
    """Check failures that must not happen in any context."""
    part = result.future_use or result.answers
    yield none_of(f"{name}contexts over", part.contexts.over)
    yield none_of(f"{name}broken pairs", part.contexts.broken)
    unread = part.contexts.evicted - min(part.contexts.read, part.contexts.recoverable)
    yield none_of(f"{name}messages that left unread or cannot come back", unread)


def none_of(what: str, count: int) -> Check:
    """Check a count that must be 0."""
    return Check(what, count, "0", count == 0)


def show(found: Sequence[Check], screen: Console) -> None:
    """Print the table and one line of totals."""
    table = printed.table(
        "What survives a compaction, embedded summariser, keep 20 messages",
        ("figure", "target", "holds", "now", "beside"),
        3,
        caption="beside: LangChain's middleware for quoted, plain BM25 over the tail for answers",
    )
    for check in found:
        value = f"{check.value:,}" if isinstance(check.value, int) else f"{check.value:.4f}"
        other = "" if check.beside is None else f"{check.beside:.4f}"
        style = "" if check.holds else "bold red"
        holds = "yes" if check.holds else "MISSED"
        table.add_row(check.what, check.target, holds, value, other, style=style)
    screen.print(table)
    held = sum(check.holds for check in found)
    screen.print(f"{held} of {len(found)} figures are as promised")


def end(as_json: bool, found: Sequence[Check], folders: str) -> int:
    """Print the figures; give the exit code."""
    if not found:
        return printed.skip(as_json, folders)
    return printed.end(
        as_json,
        lambda: {"figures": [asdict(check) for check in found]},
        lambda: show(found, printed.screen()),
        all(check.holds for check in found),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("--only", choices=FOLDERS, help="one folder only")
    given = parser.parse_args(arguments)
    found = checks(printed.transcripts_folder(), [given.only] if given.only else FOLDERS)
    return end(given.json, list(found), ", ".join(FOLDERS))


if __name__ == "__main__":
    sys.exit(main())
