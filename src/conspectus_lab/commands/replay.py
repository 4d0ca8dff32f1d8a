"""Run transcripts through a real agent under each policy: `conspectus replay`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.failures import DONE, STUCK, WORSE, complain
from conspectus.cli.options import JsonOption
from conspectus_lab.commands import running

if TYPE_CHECKING:
    from conspectus_lab.replay import Compaction


def replay(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Transcripts, or folders; - for standard input."),
    ],
    window: Annotated[int, options.tokens("Input limit of the model that answers.")] = 8_000,
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
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A YAML file with a section 'summarization' to compare. Repeat it for several.",
        ),
    ] = None,
    summarizer: Annotated[
        str, typer.Option(help="embedded (needs no model), or provider:model such as openai:gpt-5.")
    ] = "embedded",
    summary_tokens: Annotated[
        int | None,
        typer.Option(
            help="What a summary may take, in tokens.", show_default="an eighth of the window"
        ),
    ] = None,
    recall_tokens: Annotated[
        int, typer.Option(help="What a question may recall, in tokens.")
    ] = 512,
    priced_as: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Model whose prices and prefix cache count.",
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
    retention: Annotated[
        bool, typer.Option("--retention", help="Show what survives, in place of the bill.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Fail where it got worse than this measurement (-o)."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much a share may fall before it counts as worse.")
    ] = 0.01,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show each compaction as it happens.",
            show_default="on a terminal",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts here, as HTML.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the JSON here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run transcripts again through a real agent, and compare what each policy does to them.

    PATH is a transcript in any form that compact reads; NAME.exam.json beside NAME.json holds
    questions about its end. Its model and its tools answer as was recorded, so nothing leaves this
    machine unless --summarizer names a model, and nothing is kept.
    """
    running.check_files(report, out)
    from conspectus.core.policy import names_embedded
    from conspectus_lab.policies import POLICIES
    from conspectus_lab.replay import TRIGGER
    from conspectus_lab.report import replay_tables, retention_tables
    from conspectus_lab.results import all_as_json, broken_promises, worse

    before = None if against is None else running.read_measurement(against)
    replays, notes = running.run(
        paths,
        window=window,
        trigger=options.triggers(trigger or []) or TRIGGER,
        keep=options.size(keep, "--keep"),
        policies=[
            *(policy or ([] if config else list(POLICIES))),
            *running.policies_of(config or (), window),
        ],
        summarizer=None if names_embedded(summarizer) else summarizer,
        summary_tokens=summary_tokens,
        recall_tokens=recall_tokens,
        priced_as=priced_as,
        prices=None if prices is None else running.read_prices(prices),
        on_event=_live(live),
    )
    if retention and before is None:
        notes += running.lacking(replays)
    data = all_as_json(replays)
    fallen = [] if before is None else worse(before, data, tolerance)
    data["worse"] = fallen
    if before is not None and not fallen:
        notes.append(f"Nothing got worse by more than {tolerance:g}.")
    tables = retention_tables if retention else replay_tables
    running.finish(replays, tables(replays), notes, data, report, out, as_json)
    runs = [(one, run) for one in replays for run in one.runs if run.ours]
    wrong = {} if retention else {what: 1 for pair in runs for what in broken_promises(*pair)}
    for what in (*wrong, *(f"worse than {against}: {what}" for what in fallen)):
        complain(what)
    raise typer.Exit(WORSE if fallen else STUCK if wrong else DONE)


def _live(wanted: bool | None) -> Any:
    """Return a listener that prints each compaction as it happens; by default on a terminal."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        return None

    def listen(event: str, data: Mapping[str, Any]) -> None:
        if event == "start":
            output.say(
                f"{data['title']}: {data['requests']:,} requests", fg="cyan", bold=True, err=True
            )
        elif event == "compaction":
            output.say(in_words(data["compaction"]), err=True)

    return listen


def in_words(done: Compaction) -> str:
    """Describe one compaction in one line."""
    text = f"  request {done.step:,}: {done.before:,} → {done.after:,} tokens ({done.cause})"
    if done.left:
        text += f"; {output.many(len(done.left), 'message')} evicted"
    return f"{text}; {done.shortened:,} truncated" if done.shortened else text
