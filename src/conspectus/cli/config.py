"""`conspectus config`: what a configuration means, its schema, and what it would have done."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli import options, output
from conspectus.cli.failures import BAD_INPUT, DONE, EXIT_CODES, STUCK, one_line
from conspectus.cli.options import JsonOption
from conspectus.errors import ConfigError, InputError

if TYPE_CHECKING:
    from conspectus.cli.config_replay import Explained
    from conspectus.config import SummarizationConfig

app = typer.Typer(
    help="Check a configuration file, describe its form, or try it on a transcript.",
    epilog=EXIT_CODES,
)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A YAML file with a section 'summarization'.")
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Input limit of the model that answers, in tokens.",
        show_default="as the file says, or the profile of a model that it names",
    ),
]


@app.command("check", epilog=EXIT_CODES)
def check(file: FileArgument, window: WindowOption = None, as_json: JsonOption = False) -> None:
    """Say what a configuration means, in words and numbers, or every mistake with its line.

    Nothing is opened, and no model is asked; a function that redacts is imported. A password or the
    value of an environment variable is never shown.
    """
    from conspectus.config.building import redact_of
    from conspectus.config.meaning import meaning, notes

    try:
        config, limit, known = _read(file, window)
        redact_of(config)
    except ConfigError as error:
        _refuse(file, error, as_json)
        raise typer.Exit(BAD_INPUT) from None
    rows, said = meaning(config, limit, known), notes(config, limit)
    if not config.source.found:
        said.insert(0, "the file has no section 'summarization', so nothing is summarised")
    if as_json:
        output.print_json(
            {
                "file": str(file),
                "valid": True,
                "enabled": config.enabled,
                "window": limit,
                "meaning": dict(rows),
                "notes": said,
            }
        )
        return
    screen = output.console()
    screen.print(output.shown(f"{file}: valid"), style="bold", soft_wrap=True)
    _table(rows)
    _notes(said)


@app.command("schema", epilog=EXIT_CODES)
def schema(
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write here. Default: standard output."
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a configuration file, for editors that complete and check."""
    from conspectus.config.json_schema import json_schema

    found = json_schema()
    if out is None:
        output.print_json(found)
        return
    output.check_output(out)
    output.write_file(out, json.dumps(found, indent=2) + "\n")


@app.command("explain", epilog=EXIT_CODES)
def explain(
    file: FileArgument,
    transcript: Annotated[
        list[str],
        typer.Option(
            "--transcript",
            metavar="FILE",
            help="A recorded conversation; - for standard input. Repeat it for several.",
        ),
    ],
    window: WindowOption = None,
    summarizer: Annotated[
        str,
        typer.Option(help="embedded (needs no model), or provider:model such as openai:gpt-5."),
    ] = "embedded",
    full: Annotated[bool, typer.Option("--full", help="Show each summary whole.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say when a configuration would have summarised a transcript, and what it would have kept.

    The transcript runs again through a real agent with the middleware that the file asks for. Its
    model and its tools answer as was recorded, the embedded summariser writes, and nothing is kept.
    """
    from conspectus.cli.config_replay import explained
    from conspectus.cli.readers import read_history

    try:
        config, limit, known = _read(file, window)
    except ConfigError as error:
        _refuse(file, error, as_json)
        raise typer.Exit(BAD_INPUT) from None
    if not config.enabled:
        raise InputError(f"{file}: summarisation is off; write 'enabled: true' to see what it does")
    writes = options.summarizer_of(summarizer)
    found = []
    for name in dict.fromkeys(transcript):
        history = read_history(name)
        with output.working(f"Replaying {output.shown(name)} …"):
            found.append(explained(config, name, history.messages, limit, writes))
    if as_json:
        output.print_json(
            {"file": str(file), "window": limit, "transcripts": [one.to_json() for one in found]}
        )
    else:
        for one in found:
            _explain(one, limit, known, full)
    wrong = any(one.stopped or one.over for one in found)
    raise typer.Exit(STUCK if wrong else DONE)


def _read(file: Path, window: int | None) -> tuple[SummarizationConfig, int | None, str]:
    """The configuration with everything that it names looked up, and the window.

    Raises:
        ConfigError: with every mistake.
    """
    from conspectus.config import load_config
    from conspectus.config.building import counter_of, pin_of
    from conspectus.config.windows import find_window

    config = load_config(file)
    counter_of(config)
    pin_of(config)
    for name in config.subagents:
        counter_of(config.for_subagent(name))
        pin_of(config.for_subagent(name))
    if window is not None:
        return config, window, "as --window says"
    return config, *find_window(config)


def _refuse(file: Path, error: ConfigError, as_json: bool) -> None:
    if as_json:
        output.print_json({"file": str(file), "valid": False, "problems": list(error.problems)})
    for problem in error.problems:
        print(f"conspectus: error: {one_line(problem)}", file=sys.stderr)


def _table(rows: list[tuple[str, str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")
    for heading, text in rows:
        drawn.add_row(Text(output.shown(heading), "bold"), Text(output.shown(text)))
    output.console().print(drawn)


def _notes(said: list[str]) -> None:
    from rich.text import Text

    for note in said:
        output.console().print(Text(f"Note: {output.shown(note)}", "yellow"), soft_wrap=True)


def _share(part: float) -> str:
    return "all" if part >= 1 else f"{int(part * 1000) / 10:g}%"  # never rounded up to all


def _explain(one: Explained, window: int | None, known: str, full: bool) -> None:
    from rich.text import Text

    screen = output.console()

    def say(text: str, style: str = "") -> None:
        screen.print(Text(output.shown(text), style), soft_wrap=True)

    size = f"{one.messages:,} messages, {one.counted:,} tokens as the trigger counts"
    say(f"{one.name}: {size}", "bold")
    say(f"Window {window:,} tokens, {known}." if window is not None else f"Window {known}.", "dim")
    for event in one.compactions:
        say(
            f"  request {event.request} of {one.requests}: {event.cause}; {event.left} messages "
            f"leave, {event.kept} stay in the request; {event.before:,} -> {event.after:,} tokens; "
            f"{_share(event.read)} read, {len(event.carried)} facts word for word"
        )
        say(f"    leaves up to {event.up_to}", "dim")
        for line in event.summary.splitlines() if full else ():
            say(f"    | {line}", "dim")
    say(one.verdict, "bold")
    _notes(list(one.advice))
