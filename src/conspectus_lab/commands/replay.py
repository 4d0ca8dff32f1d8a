"""`conspectus replay`: a recorded transcript through a real agent, once under each policy."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.failures import DONE, STUCK, one_line
from conspectus.cli.options import JsonOption
from conspectus.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from conspectus.cli.readers import History
    from conspectus_lab.billing import Bill
    from conspectus_lab.replay import PolicyRun, Replay

STDIN = "-"
OURS = frozenset({"conspectus", "background", "cached"})


def replay(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Transcripts; - for standard input."),
    ],
    window: Annotated[
        int, typer.Option(help="Input limit of the model that answers, in tokens.")
    ] = 8_000,
    trigger: Annotated[
        list[str] | None,
        typer.Option(
            help="When to compact: tokens:8000, messages:50, fraction:0.8 of the window; several "
            "that must all hold joined with +. Repeat it for alternatives.",
            show_default="fraction:0.85",
        ),
    ] = None,
    keep: Annotated[
        str, typer.Option(help="How much of the newest history stays, in the same form.")
    ] = "messages:20",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="What is compared: none, langchain (its own middleware), conspectus, background "
            "(its notes made beside the agent), cached (its summaries ride the provider's cache; "
            "takes a model as --summarizer). Repeat it.",
            show_default="the first three",
        ),
    ] = None,
    summarizer: Annotated[
        str,
        typer.Option(help="embedded (needs no model), or provider:model such as openai:gpt-5."),
    ] = "embedded",
    summary_tokens: Annotated[
        int | None,
        typer.Option(
            help="What a summary may take, in tokens.", show_default="an eighth of the window"
        ),
    ] = None,
    priced_as: Annotated[
        str,
        typer.Option(
            "--priced-as", metavar="MODEL", help="Model whose prices and prefix cache count."
        ),
    ] = "claude-sonnet-5-5",
    summarizer_seconds: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds that each summary takes longer than it does here."),
    ] = 0.0,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show each compaction as it happens.",
            show_default="on a terminal",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with every compaction here, as HTML."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the JSON here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run transcripts again through a real agent, and compare what each policy does to them.

    FILE is a transcript in any form that compact reads. Its model and its tools answer as was
    recorded, so nothing leaves this machine unless --summarizer names a model, and nothing is kept.
    """
    for file in (report, out):
        if file is not None:
            output.check_output(file)
    size = options.size(keep, "--keep")
    clauses = options.triggers(trigger or [])
    if report is not None:
        from conspectus_lab.report import templates

        templates()  # so that what is missing is known before the work is done
    from conspectus_lab.commands.live import Live
    from conspectus_lab.replay import replay as run

    settings: dict[str, Any] = {
        "window": window,
        "keep": size,
        "summarizer": options.summarizer_of(summarizer),
        "summary_tokens": summary_tokens,
        "priced_as": [priced_as],
        "summarizer_seconds": summarizer_seconds,
    }
    if clauses is not None:
        settings["trigger"] = clauses
    if policy:
        settings["policies"] = policy
    histories = _histories(files)
    found: list[Replay] = []
    with Live(window, live) as screen:
        for name, history in histories:
            screen.title(name, len(history.messages))
            try:
                found.append(run(history.messages, name=name, on_event=screen.tell, **settings))
            except InputError as error:
                raise InputError(f"{name}: {error}") from error
    data = _as_json(found)
    if out is not None:
        output.write_file(out, json.dumps(data, indent=1) + "\n")
    if report is not None:
        from conspectus_lab.report import replay_page

        output.write_file(report, replay_page(found))
    if as_json:
        output.print_json(data)
    else:
        _print(found, [*_skipped(histories), *screen.notes])
        if report is not None:
            output.console().print(f"Report: {report}", style="bold", soft_wrap=True)
    wrong = list(dict.fromkeys(what for one in found for what in _wrong(one)))
    for what in wrong:
        print(f"conspectus: error: {one_line(what)}", file=sys.stderr)
    raise typer.Exit(STUCK if wrong else DONE)


def _histories(files: Sequence[str]) -> list[tuple[str, History]]:
    """What is read, by its name; each file once, equal names told apart by their paths."""
    from conspectus.cli.readers import read_history

    found: dict[str, History] = {}
    for file in dict.fromkeys(files):
        name = "standard input" if file == STDIN else Path(file).name
        with output.working(f"Reading {output.shown(file)} …"):
            found[file if name in found else name] = read_history(file)
    return list(found.items())


def _skipped(histories: Sequence[tuple[str, History]]) -> list[str]:
    return [f"{name}: {history.skipped_lines}" for name, history in histories if history.skipped]


def summed(bills: Iterable[Sequence[Bill]]) -> list[Bill]:
    """Bills of several sessions added up, one for each model."""
    rows = [row for row in bills if row]
    return [reduce(add, column) for column in zip(*rows, strict=True)]


def totals(runs: Sequence[PolicyRun]) -> dict[str, Any]:
    """The figures of one policy over several transcripts; of one they are its own."""
    characters = sum(one.characters for run in runs for one in run.compactions)
    read = sum(one.read for run in runs for one in run.compactions)
    return {
        "requests": sum(len(run.steps) for run in runs),
        "compactions": sum(len(run.compactions) for run in runs),
        "peak_tokens": max((run.peak for run in runs), default=0),
        "sent_tokens": sum(run.sent for run in runs),
        "summarizer_calls": sum(run.summarizer_calls for run in runs),
        "summarizer_tokens": sum(run.summarizer_tokens for run in runs),
        "read_share": read / characters if characters else None,
        "carried": sum(run.carried for run in runs),
        "broken": sum(run.broken for run in runs),
        "over": sum(run.over for run in runs),
        "missing": sum(run.missing for run in runs),
        "waited_seconds": sum(run.waited for run in runs),
        "bills": [_plain(bill) for bill in summed(run.bills for run in runs)],
    }


def _plain(bill: Bill) -> dict[str, Any]:
    return {
        "model": bill.model,
        "requests": bill.requests,
        "input_tokens": bill.input_tokens,
        "cached_share": bill.cached_share,
        "money": bill.money,
        "summarizer_money": bill.summarizer_money,
    }


def _by_policy(found: Sequence[Replay]) -> dict[str, list[PolicyRun]]:
    runs: dict[str, list[PolicyRun]] = {}
    for one in found:
        for run in one.runs:
            runs.setdefault(run.policy, []).append(run)
    return runs


def _as_json(found: Sequence[Replay]) -> dict[str, Any]:
    return {
        "replays": [one.to_json() for one in found],
        "totals": {name: totals(runs) for name, runs in _by_policy(found).items()},
        "without": [_plain(bill) for bill in summed(one.without for one in found)],
    }


def _wrong(one: Replay) -> list[str]:
    """What our own run has not kept of its promises: none of it is a matter of taste."""
    return [what for run in one.runs if run.policy in OURS for what in _wrong_in(one, run)]


def _wrong_in(one: Replay, run: PolicyRun) -> list[str]:
    share = run.read_share
    checks = {
        f"it ended early: {run.stopped}": bool(run.stopped),
        f"{run.over:,} requests do not fit the window of {one.window:,} tokens": run.over > 0,
        f"{run.broken:,} requests have broken pairs of calls and results": run.broken > 0,
        f"{run.missing:,} originals are neither in view nor in the archive": run.missing > 0,
        f"of the text that left only {share or 0:.1%} was read": share is not None and share < 1,
    }
    return [f"{one.name}: {what}" for what, holds in checks.items() if holds]


COLUMNS = {
    "compactions": "compactions",
    "peak": "peak_tokens",
    "sent": "sent_tokens",
    "calls": "summarizer_calls",
    "summariser": "summarizer_tokens",
    "read": "read_share",
    "facts": "carried",
    "broken": "broken",
    "over": "over",
    "missing": "missing",
}
"""Headings of the table, and the figures under them."""

BAD = frozenset({"broken", "over", "missing"})
"""Figures that should be 0."""

NOTE = (
    "peak, sent: tokens of the largest request and of all together; calls, summariser: how often "
    "the summariser was asked, and its tokens; read: share of the text that left which it was "
    "given; facts: carried word for word at the end; broken, over: requests with a parted tool "
    "call or result, and above the window; missing: originals neither in view nor in the archive "
    "at the end; cached: share of the input that the provider's prefix cache, simulated, held; "
    "waited: seconds, on this machine unless told otherwise"
)


def _print(found: Sequence[Replay], notes: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen = output.console()
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(("", *COLUMNS)):
        drawn.add_column(name, justify="right" if place else "left", no_wrap=True)
    for one in found:
        size = f"{one.messages:,} messages, {one.tokens:,} tokens"
        title = f"{one.name} ({size})" if len(found) > 1 else size
        drawn.add_row(Text(output.shown(title), "bold"))
        for run in one.runs:
            drawn.add_row(*_cells(run.title, totals([run])))
        drawn.add_section()
    if len(found) > 1:
        drawn.add_row(Text(f"all {len(found):,} transcripts", "bold"))
        for runs in _by_policy(found).values():
            drawn.add_row(*_cells(runs[0].title, totals(runs)))
    width, screen.width = screen.width, 10_000  # a number cut short would be another number
    screen.print(drawn, crop=False)
    one = found[0]
    if one.without:
        screen.print(_bills(found), crop=False)
    screen.width = width
    screen.print(
        f"Window {one.window:,} tokens, trigger {one.trigger}, keep {one.keep}, summariser "
        f"{one.summarizer}, for all alike. {NOTE}.",
        style="dim",
    )
    stops = [f"{o.name}, {r.title}: {r.stopped}" for o in found for r in o.runs if r.stopped]
    for note in [*(f"ended early: {stop}" for stop in stops), *notes]:
        screen.print(Text(f"Note: {output.shown(note)}", "yellow"), soft_wrap=True)


def _bills(found: Sequence[Replay]) -> Table:
    """What the sessions cost under each policy, all transcripts together."""
    from rich import box
    from rich.table import Table

    without = summed(one.without for one in found)[0]
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column(f"bill as {output.shown(without.model)}", no_wrap=True)
    for name in ("requests", "input", "cached", "summariser", "money", "waited"):
        drawn.add_column(name, justify="right", no_wrap=True)
    rows = [
        (runs[0].title, summed(r.bills for r in runs)[0]) for runs in _by_policy(found).values()
    ]
    for title, bill in [*rows, ("in a window without end", without)]:
        share = bill.cached_share
        drawn.add_row(
            f"  {title}",
            f"{bill.requests:,}",
            f"{bill.input_tokens:,}",
            "-" if share is None else f"{share:.1%}",
            f"${bill.summarizer_money:,.3f}",
            f"${bill.money:,.3f}",
            f"{bill.waited:,.1f} s",
        )
    return drawn


def _cells(title: str, figures: Mapping[str, Any]) -> list[Any]:
    from rich.text import Text

    cells: list[Any] = [Text(f"  {title}")]
    for name in COLUMNS.values():
        value = figures[name]
        if name == "read_share":
            bad = value is not None and value < 1
            cells.append(Text("-" if value is None else f"{value:.1%}", "red" if bad else ""))
        else:
            cells.append(Text(f"{value:,}", "red" if name in BAD and value else ""))
    return cells
