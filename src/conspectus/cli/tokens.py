"""`conspectus tokens`: the tokens of a history by role and message."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

from typer import Option

from conspectus.cli import options, output
from conspectus.cli.options import FileArgument, JsonOption
from conspectus.engine.settings import KEEP
from conspectus.messages import read_messages
from conspectus.model import windows
from conspectus.tokens import KNOWN, MAY_BE_HIGH, MAY_BE_LOW, TokenMeter
from conspectus.transcripts import HistoryFile, mend, read_history

LISTED_MESSAGES = 5
"""The largest messages, which are listed one by one."""

SHOWN_CHARACTERS = 60
"""Characters of each that are shown."""

MODEL = "The model that reads the history, such as gpt-4o. Default: the model that FILE names."
COUNTER = "The vocabulary of the model: tiktoken:o200k_base, or tokenizers:FILE."
UNKNOWN = (
    "the tokenizer of {!r} is not known here, so the estimate is that of the tokenizer which takes "
    "most; a name such as gpt-4o, claude-sonnet-4-5 or deepseek-chat counts as that model does"
)
ESTIMATED = (
    f"Estimated: rarely more than {MAY_BE_LOW:.0%} below what the model counts, some percent above "
    f"in prose and code, {MAY_BE_HIGH:.0%} above or, rarely, more in rare kinds of text. For an "
    "exact count, give the vocabulary of the model: --counter tiktoken:o200k_base for gpt-4o"
)


def tokens(
    file: FileArgument,
    model: Annotated[str | None, Option(metavar="NAME", help=MODEL, show_default=False)] = None,
    counter: Annotated[str | None, Option(metavar="SPEC", help=COUNTER, show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Count the tokens of a history: in total, by role, and of its largest messages.

    The count is an estimate for the tokenizer of the model. It is more often too high than too low.
    Without a model, the counts for all families of tokenizers are listed, too. The vocabulary of
    the model counts exactly (--counter). The command also lists tool calls without a result and
    results without a call, because providers refuse a history that has them.
    """
    if model is not None and options.known_model(model) is None:
        print(f"conspectus: note: {UNKNOWN.format(model)}", file=sys.stderr)
    with output.working("Counting …"):
        history = read_history(file)
        counted = _count(history, model or history.model, counter)
    if as_json:
        output.print_json(counted)
    else:
        _print(counted, history)


def _count(history: HistoryFile, model: str, counter: str | None) -> dict[str, Any]:
    """Return the numbers of one history for a model, as plain data."""
    meter = TokenMeter(counter, model=options.known_model(model))
    pairs = mend(history.messages)
    entries = read_messages(history.messages)
    sizes = [meter.count_entry(entry) for entry in entries]
    by_role: dict[str, dict[str, int]] = {}
    rows: list[dict[str, Any]] = []
    for index, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
        row = by_role.setdefault(entry.role, {"messages": 0, "tokens": 0})
        row["messages"] += 1
        row["tokens"] += size
        start = " ".join(entry.reading[: 2 * SHOWN_CHARACTERS].split())[:SHOWN_CHARACTERS]
        rows.append({"index": index, "role": entry.role, "tokens": size, "start": start})
    return {
        "format": history.format.name,
        "messages": len(entries),
        "tokens": sum(sizes),
        "exact": meter.exact,
        "model": model,
        "window": history.window or windows.input_limit_in_profile(model),
        "family": meter.family,
        "by_family": {
            name: sum(map(TokenMeter(model=name).count_entry, entries)) for name in KNOWN
        },
        "by_role": by_role,
        "largest": sorted(rows, key=lambda row: -row["tokens"])[:LISTED_MESSAGES],
        "exchanges": sum(bool(entry.calls) for entry in entries),
        "calls_without_result": list(pairs.unanswered),
        "results_without_call": list(pairs.orphans),
        "skipped": history.skipped + history.parsed.broken,
    }


def _print(counted: dict[str, Any], history: HistoryFile) -> None:
    """Print the numbers for a person."""
    say = output.say
    tokens = output.many(counted["tokens"], "token")
    messages = output.many(counted["messages"], "message")
    exchanges = output.many(counted["exchanges"], "tool exchange")
    say(f"{tokens} in {messages} ({counted['format']}), {exchanges}")
    window = counted["window"]
    if window:
        share = counted["tokens"] / window
        say(f"{share:.0%} of the window of {counted['model']}, {window:,} tokens")
    if not counted["exact"] and counted["messages"]:
        say(ESTIMATED)
    if counted["family"] == "unknown" and counted["messages"] and not counted["exact"]:
        each = ", ".join(f"{family} {size:,}" for family, size in counted["by_family"].items())
        say(f"By family of tokenizers: {each}; --model names one")
    if counted["messages"]:
        output.print_rows([{"role": role, **row} for role, row in counted["by_role"].items()])
        largest = [{"largest": f"message {row.pop('index')}", **row} for row in counted["largest"]]
        output.print_rows(largest)
    for key in ("calls_without_result", "results_without_call"):
        if counted[key]:
            numbers = ", ".join(map(str, counted[key]))
            say(f"Tool {key.replace('_without_', ' without a ')}: message {numbers}", fg="yellow")
    for remark in history.remarks:
        say(remark)
    if counted["messages"]:
        say(f"Next: {_next_command(counted, history)}", bold=True)


def _next_command(counted: dict[str, Any], history: HistoryFile) -> str:
    """Return a command that compacts the history.

    With --force the newest 20 messages stay. A shorter history is compacted if it fills its window.
    """
    file = "-" if history.path is None else str(history.path)
    command = ["conspectus", "compact", file]
    if counted["messages"] > KEEP[1]:
        command.append("--force")
    else:
        command += ["--window", str(counted["tokens"])]
    return shlex.join(command)
