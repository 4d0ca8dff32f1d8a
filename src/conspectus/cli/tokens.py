"""`conspectus tokens`: the tokens of a history by role and message."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from conspectus.cli import options, output
from conspectus.cli.options import FileArgument, JsonOption

if TYPE_CHECKING:
    from conspectus.transcripts import HistoryFile

LARGEST = 5  # Messages that are listed by themselves
START = 60  # Characters shown of each of them


MODEL = "The model that reads it, such as gpt-4o. Default: the one that FILE names."


def tokens(
    file: FileArgument,
    model: Annotated[str | None, Option(metavar="NAME", help=MODEL, show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Count the tokens of a history: in all, by role, and its largest messages.

    The count is an estimate that needs no vocabulary, for the tokenizer of a model; without one,
    the count for each family of tokenizers is shown too. Tool calls without a result and results
    without a call are listed: a provider refuses a history with broken pairs.
    """
    from conspectus.tokens.families import UNKNOWN
    from conspectus.transcripts import read_history

    if model is not None and options.known_model(model) is None:
        print(f"conspectus: note: {UNKNOWN.format(name=model)}", file=sys.stderr)
    with output.working("Counting …"):
        history = read_history(file)
        counted = count(history, model or history.model)
    if as_json:
        output.print_json(counted)
    else:
        _print(counted, history)


def count(history: HistoryFile, model: str = "") -> dict[str, Any]:
    """Return the numbers of one history for a model, as plain data."""
    from conspectus.core.boundaries import exchanges
    from conspectus.core.items import Item
    from conspectus.messages import read_messages
    from conspectus.tokens import KNOWN, TokenMeter

    meter = TokenMeter(model=options.known_model(model))
    entries = read_messages(history.messages)
    items = [
        Item(
            key=entry.key,
            role=entry.role,
            tokens=meter.entry(entry),
            calls=tuple(call.id for call in entry.calls if call.id),
            answers=entry.answers,
            needs=entry.needs,
            joined=entry.joined,
        )
        for entry in entries
    ]
    paired = exchanges(items)
    sizes: Counter[str] = Counter()
    for item in items:
        sizes[item.role] += item.tokens
    messages = Counter(str(item.role) for item in items)
    largest = sorted(range(len(items)), key=lambda i: (-items[i].tokens, i))[:LARGEST]
    return {
        "format": history.form.name,
        "messages": len(items),
        "tokens": sum(sizes.values()),
        "model": model,
        "window": history.window or options.window_of(model),
        "family": meter.family,
        "by_family": {name: sum(map(TokenMeter(model=name).entry, entries)) for name in KNOWN},
        "by_role": {
            role: {"messages": messages[role], "tokens": size} for role, size in sizes.items()
        },
        "largest": [
            {
                "index": index,
                "role": items[index].role,
                "tokens": items[index].tokens,
                "start": " ".join(entries[index].reading[: 2 * START].split())[:START],
            }
            for index in largest
        ],
        "exchanges": len({paired.group[i] for i, item in enumerate(items) if item.calls}),
        "calls_without_result": sorted(paired.pending),
        "results_without_call": sorted(paired.orphans),
        "skipped": history.skipped + history.parsed.broken,
    }


def _print(counted: dict[str, Any], history: HistoryFile) -> None:
    many, say, window = output.many, output.say, counted["window"]
    say(
        f"{many(counted['tokens'], 'token')} in {many(counted['messages'], 'message')} "
        f"({counted['format']}), {many(counted['exchanges'], 'tool exchange')}"
    )
    if window:
        share = counted["tokens"] / window
        say(f"{share:.0%} of the window of {counted['model']}, {window:,} tokens")
    if counted["family"] == "unknown" and counted["messages"]:
        each = ", ".join(f"{family} {size:,}" for family, size in counted["by_family"].items())
        say(f"By family of tokenizers: {each}; --model names one")
    if counted["messages"]:
        output.print_rows([{"role": role, **row} for role, row in counted["by_role"].items()])
        output.print_rows(
            [{"largest": f"message {row.pop('index')}", **row} for row in counted["largest"]]
        )
    for key in ("calls_without_result", "results_without_call"):
        if counted[key]:
            what = f"Tool {key.replace('_without_', ' without a ')}"
            say(f"{what}: message {', '.join(map(str, counted[key]))}", "yellow")
    for remark in history.remarks:
        say(remark)
    file = "-" if history.path is None else shlex.quote(str(history.path))
    say(f"Next: conspectus compact {file} --force", "bold")
