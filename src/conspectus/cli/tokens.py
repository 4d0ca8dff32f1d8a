"""`conspectus tokens`: the tokens of a history by role and message."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import output
from conspectus.cli.options import JsonOption

if TYPE_CHECKING:
    from conspectus.cli.readers import HistoryFile

LARGEST = 5  # Messages that are listed by themselves
START = 60  # Characters shown of each of them


def tokens(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The history; - for standard input.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="The model that will read it, such as gpt-4o or claude-sonnet-4-5.",
            show_default="unknown: a little above the tokenizer that takes most",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count the tokens of a history: in all, by role, and its largest messages.

    The count is an estimate that needs no vocabulary, for the tokenizer of the model that is
    named; without one, the count for each family of tokenizers is shown too. Tool calls without a
    result and results without a call are listed: a provider refuses a history with broken pairs.
    """
    from conspectus.cli.readers import read_history
    from conspectus.tokens.families import UNKNOWN, family_of

    if model is not None and family_of(model) == "unknown":
        print(f"conspectus: note: {UNKNOWN.format(name=model)}", file=sys.stderr)
        model = None
    with output.working("Counting …"):
        history = read_history(file)
        counted = count(history, model)
    if as_json:
        output.print_json(counted)
    else:
        _print(counted, history)


def count(history: HistoryFile, model: str | None = None) -> dict[str, Any]:
    """Return the numbers of one history for a model, as plain data."""
    from conspectus._core.boundaries import exchanges
    from conspectus._core.items import Item
    from conspectus.messages import read_messages
    from conspectus.tokens import KNOWN, TokenMeter

    meter = TokenMeter(model=model)
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
    by_role: dict[str, dict[str, int]] = {}
    for item in items:
        row = by_role.setdefault(item.role, {"messages": 0, "tokens": 0})
        row["messages"] += 1
        row["tokens"] += item.tokens
    largest = sorted(range(len(items)), key=lambda i: (-items[i].tokens, i))[:LARGEST]
    return {
        "format": history.format.name,
        "messages": len(items),
        "tokens": sum(item.tokens for item in items),
        "family": meter.family,
        "by_family": {
            family: sum(map(TokenMeter(model=family).entry, entries)) for family in KNOWN
        },
        "by_role": by_role,
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
        "skipped": history.skipped,
    }


def _print(counted: dict[str, Any], history: HistoryFile) -> None:
    from rich.text import Text

    screen, many = output.console(), output.many
    screen.print(
        f"{many(counted['tokens'], 'token')} in {many(counted['messages'], 'message')} "
        f"({counted['format']}), {many(counted['exchanges'], 'tool exchange')}",
        soft_wrap=True,
    )
    roles = output.columns("role", ">messages", ">tokens")
    for role, row in counted["by_role"].items():
        roles.add_row(role, f"{row['messages']:,}", f"{row['tokens']:,}")
    if counted["family"] == "unknown" and counted["messages"]:
        each = ", ".join(f"{family} {size:,}" for family, size in counted["by_family"].items())
        screen.print(f"By family of tokenizers: {each}; --model names one", soft_wrap=True)
    largest = output.columns("largest", ">tokens", "role", "begins")
    for row in counted["largest"]:
        start = Text(output.shown(row["start"]), no_wrap=True, overflow="ellipsis")
        largest.add_row(f"message {row['index']}", f"{row['tokens']:,}", row["role"], start)
    if counted["messages"]:
        screen.print(roles)
        screen.print(largest)
    for key, what in (
        ("calls_without_result", "Tool calls without a result"),
        ("results_without_call", "Tool results without a call"),
    ):
        if counted[key]:
            named = ", ".join(str(index) for index in counted[key])
            screen.print(Text(f"{what}: message {named}", "yellow"), soft_wrap=True)
    if history.skipped:
        screen.print(history.skipped_lines[0].upper() + history.skipped_lines[1:], soft_wrap=True)
