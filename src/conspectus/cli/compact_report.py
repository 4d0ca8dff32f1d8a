"""The result of `conspectus compact`, as data or as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus.cli import options
from conspectus.cli.options import LOCAL
from conspectus.cli.output import say

if TYPE_CHECKING:
    from rich.console import Console

    from conspectus.engine import CompactionResult
    from conspectus.transcripts import HistoryFile

SAME = (
    "outcome reason cause tokens_before tokens_after budget evicted kept clipped dropped summary "
    "record_id archived"
).split()
"""Parts of a result that its JSON has by the same names."""

COST = ("calls", "input_tokens", "output_tokens")


def as_data(result: CompactionResult, history: HistoryFile) -> dict[str, Any]:
    """Return what is to be said of a result and its file, as plain data."""
    return {
        **{name: getattr(result, name) for name in SAME},
        "messages_before": len(history.messages),
        "messages_after": len(result.messages),
        "redacted": dict(result.redacted),
        "model": history.model,
        "format": history.form.name,
        "skipped": history.skipped + history.parsed.broken,
        "cost": {name: getattr(result.cost, name) for name in COST},
        "failures": list(result.failures),
    }


def print_report(data: Mapping[str, Any], screen: Console, *, why: bool) -> None:
    """Print the data; the reason only if no error message says it."""
    line = partial(say, screen=screen)
    outcome, dropped, cost = data["outcome"], data["dropped"], data["cost"]
    cause = f" ({data['cause']})" if data["cause"] else ""
    colour = {"compacted": "green", "kept": "cyan"}.get(outcome, "red")
    reason = f": {data['reason']}" if why else ""
    line(f"{outcome}{reason}{cause}", f"bold {colour}")
    # Like the tokens, without those that had left before.
    before = data["messages_before"] - dropped
    line(f"before {before:>9,} messages {data['tokens_before']:>11,} tokens")
    line(f"after  {data['messages_after']:>9,} messages {data['tokens_after']:>11,} tokens")
    if data["budget"] is not None:
        line(f"budget {data['budget']:>30,} tokens")
    if data["evicted"] or data["clipped"] or dropped:
        line(
            f"{data['evicted']:,} messages left the view now, {dropped:,} had left before, "
            f"{data['clipped']:,} are shown short"
        )
    if data["redacted"]:
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in sorted(data["redacted"].items()))
        line(f"Secrets taken out of what is kept, in places: {kinds}")
    if data["summary"]:
        line(f"\nSummary\n{data['summary']}\n")
    for note in [*data["failures"], *data["notes"]]:
        line(f"Note: {note}", "yellow")
    if cost["calls"]:
        tokens = cost["input_tokens"] + cost["output_tokens"]
        line(f"Cost: {cost['calls']:,} calls of a model, {tokens:,} tokens")
    if data["output"] is not None:
        line(f"Messages: {data['output']}")
    if outcome != "compacted" and not dropped:
        return
    if not data["archived"]:
        line("Originals: not archived, so nothing can be recalled; keep the file", "yellow")
        return
    line(f"Originals: {data['archive']} (thread {data['thread']})")
    parts = ["conspectus", "recall", "--thread", data["thread"]]
    parts += ["--archive", data["archive"]] if data["archive"] != options.archive_of(None) else []
    parts += ["--tenant", data["tenant"]] if data["tenant"] != LOCAL else []
    line(f"Next: {shlex.join(parts)} 'what you look for'", "bold")
