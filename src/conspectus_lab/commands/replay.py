"""Run transcripts through a real agent under each policy: `conspectus replay`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.failures import DONE, STUCK, complain
from conspectus.cli.options import JsonOption
from conspectus.errors import InputError, PolicyError
from conspectus_lab.commands import running
from conspectus_lab.commands.running import (
    ConfigOption,
    KeepOption,
    OutputOption,
    PathsArgument,
    ReportOption,
    SummarizerOption,
    SummaryOption,
    TriggerOption,
    WindowOption,
)

if TYPE_CHECKING:
    from conspectus.observe import Price
    from conspectus_lab.replay import Compaction

FORM_OF_PRICES = 'write {"my-model": {"input": 0.25, "output": 2.0}}'


def replay(
    paths: PathsArgument,
    window: WindowOption = 8_000,
    trigger: TriggerOption = None,
    keep: KeepOption = "messages:20",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="What is compared: none, langchain (its own middleware), conspectus. Repeat it.",
            show_default="all three",
        ),
    ] = None,
    config: ConfigOption = None,
    summarizer: SummarizerOption = "embedded",
    summary_tokens: SummaryOption = None,
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

    PATH is a transcript in any form that compact reads. Its model and its tools answer as was
    recorded, so nothing leaves this machine unless --summarizer names a model, and nothing is kept.
    """
    running.check_files(report, out)
    from conspectus_lab.policies import POLICIES
    from conspectus_lab.replay import TRIGGER
    from conspectus_lab.report import replay_tables
    from conspectus_lab.results import all_as_json, broken_promises

    named = policy or ([] if config else list(POLICIES))
    replays, notes = running.run(
        paths,
        window=window,
        trigger=options.triggers(trigger or []) or TRIGGER,
        keep=options.size(keep, "--keep"),
        policies=[*named, *running.policies_of(config or (), window)],
        summarizer=options.summarizer_of(summarizer),
        summary_tokens=summary_tokens,
        priced_as=list(dict.fromkeys(priced_as)) if priced_as else None,
        prices=_prices(prices),
        on_event=_live(live),
    )
    data = all_as_json(replays)
    running.finish(replays, replay_tables(replays), notes, data, report, out, as_json)
    runs = [(one, run) for one in replays for run in one.runs if run.ours]
    wrong = dict.fromkeys(what for one, run in runs for what in broken_promises(one, run))
    for what in wrong:
        complain(what)
    raise typer.Exit(STUCK if wrong else DONE)


def _live(wanted: bool | None) -> Any:
    """Return a listener that prints each compaction as it happens; by default on a terminal."""
    screen = output.console(stderr=True)
    if not (screen.is_terminal if wanted is None else wanted):
        return None

    def listen(event: str, data: Mapping[str, Any]) -> None:
        if event == "start":
            output.say(f"{data['title']}: {data['requests']:,} requests", "bold cyan", screen)
        elif event == "compaction":
            output.say(in_words(data["compaction"]), "", screen)

    return listen


def in_words(done: Compaction) -> str:
    """Describe one compaction in one line."""
    text = f"  request {done.step:,}: {done.before:,} → {done.after:,} tokens ({done.cause})"
    if done.left:
        text += f"; {output.many(len(done.left), 'message')} left"
    return f"{text}; {done.shortened:,} shown short" if done.shortened else text


def _prices(file: Path | None) -> Mapping[str, Price] | None:
    """Read a user's prices, which go before those of the providers; None without a file."""
    if file is None:
        return None
    from conspectus.observe import Price
    from conspectus_lab.questions import read_data

    rows = read_data(file, advice=f"; {FORM_OF_PRICES}")
    if not isinstance(rows, dict):
        raise InputError(f"{file} holds no prices by model; {FORM_OF_PRICES}")
    names = [one.name for one in fields(Price)]
    own: dict[str, Price] = {}
    for model, row in rows.items():
        if not isinstance(row, dict) or not {"input", "output"} <= set(row) <= set(names):
            raise InputError(
                f"{file}: {model!r} takes input, output and, if it has them, "
                f"{', '.join(names[2:])}; {FORM_OF_PRICES}"
            )
        try:
            own[model] = Price(**row)
        except PolicyError as error:
            raise InputError(f"{file}: {model!r}: {error}") from error
    return own
