"""Report the result of `conspectus compact`, as data or as text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conspectus.archive import without_password
from conspectus.cli import options
from conspectus.cli.options import LOCAL
from conspectus.cli.output import columns, say, shown

if TYPE_CHECKING:
    from rich.console import Console

    from conspectus.cli.readers import HistoryFile
    from conspectus.compactor import CompactionResult


SAME = (
    "outcome reason cause tokens_before tokens_after budget evicted kept clipped dropped summary "
    "record_id archived"
).split()
"""Parts of a result that its JSON has by the same names."""


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the command; `archive` is None without one."""

    result: CompactionResult
    history: HistoryFile
    archive: str | None
    thread: str
    tenant: str
    notes: tuple[str, ...]
    out: Path | None

    def as_json(self) -> dict[str, Any]:
        result, cost = self.result, self.result.cost
        return {
            **{name: getattr(result, name) for name in SAME},
            "messages_before": len(self.history.messages),
            "messages_after": len(result.messages),
            "redacted": dict(result.redacted),
            "archive": None if self.archive is None else without_password(self.archive),
            "thread": self.thread,
            "tenant": self.tenant,
            "format": self.history.format.name,
            "skipped": self.history.skipped,
            "output": None if self.out is None else str(self.out),
            "cost": {one: getattr(cost, one) for one in ("calls", "input_tokens", "output_tokens")},
            "failures": list(result.failures),
            "notes": list(self.notes),
        }

    def print(self, screen: Console, *, why: bool = True) -> None:
        """Print the report; the reason only if no error message says it."""
        result = self.result
        colour = {"compacted": "green", "kept": "cyan"}.get(result.outcome, "red")
        cause = f" ({result.cause})" if result.cause else ""
        reason = f": {result.reason}" if why else ""
        say(f"{result.outcome}{reason}{cause}", f"bold {colour}", screen)
        self._sizes(screen)
        if result.evicted or result.clipped or result.dropped:
            say(
                f"{result.evicted:,} messages left the view now, {result.dropped:,} had left "
                f"before, {result.clipped:,} are shown short",
                screen=screen,
            )
        if result.redacted:
            kinds = ", ".join(f"{kind} {n:,}" for kind, n in sorted(result.redacted.items()))
            say(f"Secrets taken out of what is kept, in places: {kinds}", screen=screen)
        self._summary(screen)
        for note in [*result.failures, *self.notes]:
            say(f"Note: {note}", "yellow", screen)
        if result.cost.calls:
            cost = result.cost
            say(f"Cost: {cost.calls:,} calls of a model, {cost.tokens:,} tokens", screen=screen)
        if self.out is not None:
            say(f"Messages: {self.out}", screen=screen)
        if result.outcome == "compacted" or result.dropped:
            self._originals(screen)

    def _sizes(self, screen: Console) -> None:
        result = self.result
        table = columns("", ">messages", ">tokens")
        # Like the tokens, without those that had left before.
        before = len(self.history.messages) - result.dropped
        after = len(result.messages)
        table.add_row("before", f"{before:,}", f"{result.tokens_before:,}")
        table.add_row("after", f"{after:,}", f"{result.tokens_after:,}")
        if result.budget is not None:
            table.add_row("budget", "", f"{result.budget:,}")
        screen.print(table)

    def _summary(self, screen: Console) -> None:
        from rich.panel import Panel
        from rich.text import Text

        result = self.result
        if result.summary:
            body = Text(shown(result.summary))
            screen.print(Panel(body, title="Summary", title_align="left"))

    def _originals(self, screen: Console) -> None:
        if self.archive is None or not self.result.archived:
            text = "Originals: not archived, so nothing can be recalled; keep the file"
            say(text, "yellow", screen)
            return
        where = without_password(self.archive)
        say(f"Originals: {where} (thread {self.thread})", screen=screen)
        parts = ["conspectus", "recall", "--thread", self.thread]
        if self.archive != options.archive_of(None):
            parts += ["--archive", where]
        if self.tenant != LOCAL:
            parts += ["--tenant", self.tenant]
        say(f"Next: {shlex.join(parts)} 'what you look for'", "bold", screen)
