"""Run a transcript through a real agent under each policy: `conspectus replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.config import show_notes
from conspectus.cli.failures import DONE, STUCK, complain
from conspectus.cli.options import JsonOption
from conspectus.errors import InputError, PolicyError
from conspectus_lab.commands.terminal import (
    OutputOption,
    ReportOption,
    SummarizerOption,
    check_files,
    print_table,
    write_files,
)
from conspectus_lab.files import read_data

if TYPE_CHECKING:
    from conspectus.observe import Price
    from conspectus.transcripts import HistoryFile
    from conspectus_lab.billing import Bill
    from conspectus_lab.replay import PolicyRun, Replay
    from conspectus_lab.report.tables import Table

STDIN = "-"
PRICED = ("input", "output", "cached", "written", "written_hour")
FORM_OF_PRICES = 'write {"my-model": {"input": 0.25, "output": 2.0}}'
OURS = frozenset({"conspectus", "background", "cached"})


def replay(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Transcripts; - for standard input.")
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
    summarizer: SummarizerOption = "embedded",
    summary_tokens: Annotated[
        int | None,
        typer.Option(
            help="What a summary may take, in tokens.", show_default="an eighth of the window"
        ),
    ] = None,
    priced_as: Annotated[
        list[str] | None,
        typer.Option(
            "--priced-as",
            metavar="MODEL",
            help="Model whose prices and prefix cache count. Repeat it for a bill of each.",
            show_default="claude-sonnet-5-5, if its price is known",
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Prices of your own, in US dollars for a million tokens, as JSON: "
            '{"my-model": {"input": 0.25, "output": 2, "cached": 0.025, "written": 0.3}}.',
        ),
    ] = None,
    summarizer_seconds: Annotated[
        float, typer.Option(help="Seconds that each summary takes longer than it does here.")
    ] = 0.0,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show each compaction as it happens.",
            show_default="on a terminal",
        ),
    ] = None,
    report: ReportOption = None,
    out: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run transcripts again through a real agent, and compare what each policy does to them.

    FILE is a transcript in any form that compact reads. Its model and its tools answer as was
    recorded, so nothing leaves this machine unless --summarizer names a model, and nothing is kept.
    """
    check_files(report, out)
    size = options.size(keep, "--keep")
    clauses = options.triggers(trigger or [])
    from conspectus_lab.commands.live import Live
    from conspectus_lab.replay import replay as again
    from conspectus_lab.replay.results import broken_promises
    from conspectus_lab.report import replay_page

    settings: dict[str, Any] = {
        "window": window,
        "keep": size,
        "summarizer": options.summarizer_of(summarizer),
        "summary_tokens": summary_tokens,
        "prices": _prices(prices),
        "summarizer_seconds": summarizer_seconds,
    }
    if priced_as:
        settings["priced_as"] = list(dict.fromkeys(priced_as))
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
                found.append(
                    again(history.messages, name=name, on_event=screen.on_event, **settings)
                )
            except InputError as error:
                raise InputError(f"{name}: {error}") from error
    data = _as_json(found)
    write_files(report, lambda: replay_page(found), out, data)
    if as_json:
        output.print_json(data)
    else:
        skipped = (f"{name}: {remark}" for name, one in histories for remark in one.remarks)
        _print(found, [*skipped, *screen.notes])
        if report is not None:
            output.console().print(f"Report: {report}", style="bold", soft_wrap=True)
    wrong = dict.fromkeys(
        what
        for one in found
        for run in one.runs
        if run.policy in OURS
        for what in broken_promises(one, run)
    )
    for what in wrong:
        complain(what)
    raise typer.Exit(STUCK if wrong else DONE)


def _prices(file: Path | None) -> Mapping[str, Price] | None:
    """Read a user's prices, which go before those of the providers; None without a file."""
    if file is None:
        return None
    from conspectus.observe import Price

    read = read_data(file, advice=f"; {FORM_OF_PRICES}")
    if not isinstance(read, dict):
        raise InputError(f"{file} holds no prices by model; {FORM_OF_PRICES}")
    own: dict[str, Price] = {}
    for model, row in read.items():
        if not isinstance(row, dict) or not {"input", "output"} <= set(row) <= set(PRICED):
            raise InputError(
                f"{file}: {model!r} takes input, output and, if it has them, "
                f"{', '.join(PRICED[2:])}; {FORM_OF_PRICES}"
            )
        try:
            own[model] = Price(**row)
        except PolicyError as error:
            raise InputError(f"{file}: {model!r}: {error}") from error
    return own


def _histories(files: Sequence[str]) -> list[tuple[str, HistoryFile]]:
    """Read each file once; equal names are told apart by their paths."""
    from conspectus.transcripts import read_history

    found: dict[str, HistoryFile] = {}
    for file in dict.fromkeys(files):
        name = "standard input" if file == STDIN else Path(file).name
        with output.working(f"Reading {output.shown(file)} …"):
            found[file if name in found else name] = read_history(file)
    return list(found.items())


def _figures(runs: Sequence[PolicyRun]) -> dict[str, Any]:
    """Return the figures of one policy over several transcripts, with its bills."""
    from conspectus_lab.billing import summed
    from conspectus_lab.replay.results import totals

    return {**totals(runs), "bills": [_plain(bill) for bill in summed(run.bills for run in runs)]}


def _plain(bill: Bill) -> dict[str, Any]:
    names = ("model", "requests", "input_tokens", "cached_share", "money", "summarizer_money")
    return {name: getattr(bill, name) for name in names}


def _as_json(found: Sequence[Replay]) -> dict[str, Any]:
    from conspectus_lab.billing import summed
    from conspectus_lab.replay.results import by_policy

    return {
        "replays": [one.to_json() for one in found],
        "totals": {name: _figures(runs) for name, runs in by_policy(found).items()},
        "without": [_plain(bill) for bill in summed(one.without for one in found)],
    }


COLUMNS = {
    "compactions": "compactions",
    "peak": "peak_tokens",
    "sent": "sent_tokens",
    "calls": "summarizer_calls",
    "summariser": "summarizer_tokens",
    "read": "read_share",
    "broken": "broken",
    "over": "over",
    "missing": "missing",
}
"""Headings of the table, and the figures under them."""

NOTE = (
    "peak, sent: tokens of the largest request and of all together; calls, summariser: how often "
    "the summariser was asked, and its tokens; read: share of the text that left which it was "
    "given; broken, over: requests with a parted tool call or result, and above the window; "
    "missing: originals neither in view nor in the archive at the end; cached: share of the input "
    "that the provider's prefix cache, simulated, held; waited: seconds, on this machine unless "
    "told otherwise"
)


def _print(found: Sequence[Replay], notes: Sequence[str]) -> None:
    screen, one = output.console(), found[0]
    print_table(screen, _table(found))
    for place in range(len(one.without)):
        print_table(screen, _bills(found, place))
    screen.print(
        f"Window {one.window:,} tokens, trigger {one.trigger}, keep {one.keep}, summariser "
        f"{one.summarizer}, for all alike. {NOTE}.",
        style="dim",
    )
    stops = [f"{o.name}, {r.title}: {r.stopped}" for o in found for r in o.runs if r.stopped]
    show_notes([*(f"ended early: {stop}" for stop in stops), *_rides(found), *notes])


def _rides(found: Sequence[Replay]) -> Iterable[str]:
    """Tell how many summaries rode the cache, and what to do where not all could."""
    runs = [run for one in found for run in one.runs if run.policy == "cached"]
    rode, calls = sum(run.rode for run in runs), sum(run.summarizer_calls for run in runs)
    if calls:
        few = (
            "; the others did not fit the window with the last request, or something that left did "
            "not stand in it: see what a lower --trigger or --summary-tokens does"
        )
        yield f"{rode:,} of {calls:,} summaries rode the cache{few * (rode < calls)}"


def _table(found: Sequence[Replay]) -> Table:
    """Make the table of each transcript, and of all together."""
    from conspectus_lab.replay.results import by_policy, is_bad, totals
    from conspectus_lab.report.tables import Table

    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()

    def add(heading: str, groups: Iterable[Sequence[PolicyRun]]) -> None:
        rows.append((heading,))
        for runs in groups:
            figures = totals(runs)
            cells = [(name, figures[name]) for name in COLUMNS.values()]
            bad.update((len(rows), at) for at, cell in enumerate(cells, 1) if is_bad(*cell))
            share = figures["read_share"]
            shown = {"read_share": "-" if share is None else f"{share:.1%}"}
            texts = (shown.get(name) or f"{value:,}" for name, value in cells)
            rows.append((f"  {runs[0].title}", *texts))

    for one in found:
        size = f"{one.messages:,} messages, {one.tokens:,} tokens"
        add(f"{one.name} ({size})" if len(found) > 1 else size, [[run] for run in one.runs])
    if len(found) > 1:
        add(f"all {len(found):,} transcripts", by_policy(found).values())
    return Table("", "", ("", *COLUMNS), tuple(rows), frozenset(bad))


def _bills(found: Sequence[Replay], place: int) -> Table:
    """Make the table of one model's costs under each policy, all transcripts together."""
    from conspectus_lab.billing import summed
    from conspectus_lab.replay.results import by_policy
    from conspectus_lab.report.tables import Table

    without = summed(one.without for one in found)[place]
    bills = [
        (runs[0].title, summed(r.bills for r in runs)[place]) for runs in by_policy(found).values()
    ]
    rows = tuple(
        (
            f"  {title}",
            f"{bill.requests:,}",
            f"{bill.input_tokens:,}",
            "-" if bill.cached_share is None else f"{bill.cached_share:.1%}",
            f"${bill.summarizer_money:,.3f}",
            f"${bill.money:,.3f}",
            f"{bill.waited:,.1f} s",
        )
        for title, bill in [*bills, ("in a window without end", without)]
    )
    names = ("requests", "input", "cached", "summariser", "money", "waited")
    return Table("", "", (f"bill as {without.model}", *names), rows)
