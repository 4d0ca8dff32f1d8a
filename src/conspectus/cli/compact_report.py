"""The result of `conspectus compact`, as data or as text."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus.archive import without_password
from conspectus.cli import options
from conspectus.cli.options import LOCAL
from conspectus.cli.output import say

if TYPE_CHECKING:
    from rich.console import Console

    from conspectus.compactor import CompactionResult
    from conspectus.transcripts import HistoryFile

SAME = (
    "outcome reason cause tokens_before tokens_after budget evicted kept clipped dropped summary "
    "record_id archived"
).split()
"""Parts of a result that its JSON has by the same names."""

COST = ("calls", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Run:
    """What the caller asked for, and where things went; without an archive, it is None."""

    archive: str | None
    thread: str
    tenant: str
    model: str
    window: int | None
    output: str | None
    notes: list[str]


def result_as_json(result: CompactionResult, history: HistoryFile, run: Run) -> dict[str, Any]:
    """Return the result as plain data."""
    return {
        **{name: getattr(result, name) for name in SAME},
        "messages_before": len(history.messages),
        "messages_after": len(result.messages),
        "redacted": dict(result.redacted),
        **asdict(run),
        "archive": None if run.archive is None else without_password(run.archive),
        "format": history.form.name,
        "skipped": history.skipped + history.parsed.broken,
        "cost": {name: getattr(result.cost, name) for name in COST},
        "failures": list(result.failures),
    }


def print_report(
    result: CompactionResult, history: HistoryFile, run: Run, screen: Console, *, why: bool
) -> None:
    """Print the report; the reason only if no error message says it."""
    line = partial(say, screen=screen)
    colour = {"compacted": "green", "kept": "cyan"}.get(result.outcome, "red")
    cause = f" ({result.cause})" if result.cause else ""
    line(f"{result.outcome}{f': {result.reason}' if why else ''}{cause}", f"bold {colour}")
    # Like the tokens, without those that had left before.
    before = len(history.messages) - result.dropped
    line(f"before  {before:>9,} messages {result.tokens_before:>11,} tokens")
    line(f"after   {len(result.messages):>9,} messages {result.tokens_after:>11,} tokens")
    if result.budget is not None:
        line(f"budget {result.budget:>31,} tokens")
    if result.evicted or result.clipped or result.dropped:
        line(
            f"{result.evicted:,} messages left the view now, {result.dropped:,} had left "
            f"before, {result.clipped:,} are shown short"
        )
    if result.redacted:
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in sorted(result.redacted.items()))
        line(f"Secrets taken out of what is kept, in places: {kinds}")
    if result.summary:
        line(f"\nSummary\n{result.summary}\n")
    for note in [*result.failures, *run.notes]:
        line(f"Note: {note}", "yellow")
    if result.cost.calls:
        line(f"Cost: {result.cost.calls:,} calls of a model, {result.cost.tokens:,} tokens")
    if run.output is not None:
        line(f"Messages: {run.output}")
    if result.outcome != "compacted" and not result.dropped:
        return
    if run.archive is None or not result.archived:
        line("Originals: not archived, so nothing can be recalled; keep the file", "yellow")
        return
    where = without_password(run.archive)
    line(f"Originals: {where} (thread {run.thread})")
    parts = ["conspectus", "recall", "--thread", run.thread]
    parts += ["--archive", where] if run.archive != options.archive_of(None) else []
    parts += ["--tenant", run.tenant] if run.tenant != LOCAL else []
    line(f"Next: {shlex.join(parts)} 'what you look for'", "bold")
