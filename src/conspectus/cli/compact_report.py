"""The result of `conspectus compact`, as data or as text."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from conspectus.archive import without_password
from conspectus.cli import options
from conspectus.cli.options import LOCAL
from conspectus.cli.output import columns, say, shown

if TYPE_CHECKING:
    from rich.console import Console

    from conspectus.compactor import CompactionResult
    from conspectus.transcripts import HistoryFile

SAME = (
    "outcome reason cause tokens_before tokens_after budget evicted kept clipped dropped summary "
    "record_id archived"
).split()
"""Parts of a result that its JSON has by the same names."""


def as_json(
    result: CompactionResult, history: HistoryFile, report: dict[str, Any]
) -> dict[str, Any]:
    """Return the result, and `report` about the run, as plain data."""
    cost, where = result.cost, report["archive"]
    return {
        **{name: getattr(result, name) for name in SAME},
        "messages_before": len(history.messages),
        "messages_after": len(result.messages),
        "redacted": dict(result.redacted),
        **report,
        "archive": None if where is None else without_password(where),
        "format": history.form.name,
        "skipped": history.skipped + history.parsed.broken,
        "cost": {name: getattr(cost, name) for name in ("calls", "input_tokens", "output_tokens")},
        "failures": list(result.failures),
    }


def print_report(
    result: CompactionResult,
    history: HistoryFile,
    report: dict[str, Any],
    screen: Console,
    *,
    why: bool,
) -> None:
    """Print the report; the reason only if no error message says it."""
    from rich.panel import Panel
    from rich.text import Text

    def line(text: str, style: str = "") -> None:
        say(text, style, screen)

    colour = {"compacted": "green", "kept": "cyan"}.get(result.outcome, "red")
    cause = f" ({result.cause})" if result.cause else ""
    line(f"{result.outcome}{f': {result.reason}' if why else ''}{cause}", f"bold {colour}")
    table = columns("", ">messages", ">tokens")
    # Like the tokens, without those that had left before.
    before = len(history.messages) - result.dropped
    table.add_row("before", f"{before:,}", f"{result.tokens_before:,}")
    table.add_row("after", f"{len(result.messages):,}", f"{result.tokens_after:,}")
    if result.budget is not None:
        table.add_row("budget", "", f"{result.budget:,}")
    screen.print(table)
    if result.evicted or result.clipped or result.dropped:
        line(
            f"{result.evicted:,} messages left the view now, {result.dropped:,} had left "
            f"before, {result.clipped:,} are shown short"
        )
    if result.redacted:
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in sorted(result.redacted.items()))
        line(f"Secrets taken out of what is kept, in places: {kinds}")
    if result.summary:
        screen.print(Panel(Text(shown(result.summary)), title="Summary", title_align="left"))
    for note in [*result.failures, *report["notes"]]:
        line(f"Note: {note}", "yellow")
    if result.cost.calls:
        line(f"Cost: {result.cost.calls:,} calls of a model, {result.cost.tokens:,} tokens")
    if report["output"] is not None:
        line(f"Messages: {report['output']}")
    if result.outcome == "compacted" or result.dropped:
        if report["archive"] is None or not result.archived:
            line("Originals: not archived, so nothing can be recalled; keep the file", "yellow")
            return
        where = without_password(report["archive"])
        line(f"Originals: {where} (thread {report['thread']})")
        parts = ["conspectus", "recall", "--thread", report["thread"]]
        parts += ["--archive", where] if report["archive"] != options.archive_of(None) else []
        parts += ["--tenant", report["tenant"]] if report["tenant"] != LOCAL else []
        line(f"Next: {shlex.join(parts)} 'what you look for'", "bold")
