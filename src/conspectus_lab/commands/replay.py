"""Run a transcript through a real agent under each policy: `conspectus replay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    kept_warnings,
    print_tables,
    write_files,
)

if TYPE_CHECKING:
    from conspectus.observe import Price
    from conspectus.transcripts import HistoryFile
    from conspectus_lab.replay import Compaction, Replay

STDIN = "-"
PRICED = ("input", "output", "cached", "written", "written_hour")
FORM_OF_PRICES = 'write {"my-model": {"input": 0.25, "output": 2.0}}'


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
            help="What is compared: none, langchain (its own middleware), conspectus. Repeat it.",
            show_default="all three",
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
    from conspectus_lab.replay import replay as again
    from conspectus_lab.replay.policies import POLICIES
    from conspectus_lab.replay.results import broken_promises
    from conspectus_lab.report import replay_page
    from conspectus_lab.report.tables import replay_tables

    settings: dict[str, Any] = {
        "window": window,
        "keep": size,
        "summarizer": options.summarizer_of(summarizer),
        "summary_tokens": summary_tokens,
        "prices": _prices(prices),
        "on_event": _Live(live),
    }
    if priced_as:
        settings["priced_as"] = list(dict.fromkeys(priced_as))
    if clauses is not None:
        settings["trigger"] = clauses
    if policy:
        settings["policies"] = policy
    histories = _histories(files)
    found: list[Replay] = []
    with kept_warnings() as warnings:
        for name, history in histories:
            try:
                found.append(again(history.messages, name=name, **settings))
            except InputError as error:
                raise InputError(f"{name}: {error}") from error
    data = _as_json(found)
    write_files(report, lambda: replay_page(found), out, data)
    if as_json:
        output.print_json(data)
    else:
        print_tables(replay_tables(found))
        first = found[0]
        output.console().print(
            f"Window {first.window:,} tokens, trigger {first.trigger}, keep {first.keep}, "
            f"summariser {first.summarizer}, for all alike.",
            style="dim",
        )
        stops = [f"{o.name}, {r.title}: {r.stopped}" for o in found for r in o.runs if r.stopped]
        skipped = (f"{name}: {remark}" for name, one in histories for remark in one.remarks)
        show_notes([*(f"ended early: {stop}" for stop in stops), *skipped, *warnings])
        if report is not None:
            output.console().print(f"Report: {report}", style="bold", soft_wrap=True)
    wrong = dict.fromkeys(
        what
        for one in found
        for run in one.runs
        if POLICIES[run.policy].ours
        for what in broken_promises(one, run)
    )
    for what in wrong:
        complain(what)
    raise typer.Exit(STUCK if wrong else DONE)


class _Live:
    """Print each compaction as it happens, on standard error.

    Args:
        wanted: Default: only on a terminal.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._screen = output.console(stderr=True)
        self._wanted = self._screen.is_terminal if wanted is None else wanted

    def __call__(self, event: str, data: Mapping[str, Any]) -> None:
        if not self._wanted:
            return
        if event == "start":
            said = f"{data['title']}: {data['requests']:,} requests"
            output.say(said, "bold cyan", self._screen)
        elif event == "compaction":
            output.say(in_words(data["compaction"]), "", self._screen)


def in_words(done: Compaction) -> str:
    """Describe one compaction in one line."""
    said = f"  request {done.step:,}: {done.before:,} → {done.after:,} tokens ({done.cause})"
    if done.left:
        said += f"; {output.many(len(done.left), 'message')} left"
    if done.shortened:
        said += f"; {done.shortened:,} shown short"
    return said


def _prices(file: Path | None) -> Mapping[str, Price] | None:
    """Read a user's prices, which go before those of the providers; None without a file."""
    if file is None:
        return None
    from conspectus.observe import Price
    from conspectus_lab.evaluate.inputs import read_data

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


def _as_json(found: Sequence[Replay]) -> dict[str, Any]:
    from conspectus_lab.billing import summed
    from conspectus_lab.replay.results import by_policy, totals

    sums = {
        name: {
            **totals(runs),
            "bills": [bill.to_json() for bill in summed(run.bills for run in runs)],
        }
        for name, runs in by_policy(found).items()
    }
    return {
        "replays": [one.to_json() for one in found],
        "totals": sums,
        "without": [bill.to_json() for bill in summed(one.without for one in found)],
    }
