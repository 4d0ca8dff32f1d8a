"""`conspectus config`: the meaning of a configuration, and its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from conspectus.cli import output
from conspectus.cli.failures import BAD_INPUT, EXIT_CODES, complain
from conspectus.cli.joined import Joined
from conspectus.cli.options import JsonOption, OutOption, WindowOption
from conspectus.errors import ConfigError

if TYPE_CHECKING:
    from conspectus.config import SummarizationConfig

app = typer.Typer(
    cls=Joined,
    help="Check a configuration file, describe its form, or try it on a transcript.",
    epilog=EXIT_CODES,
)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A YAML file with a section 'summarization'.")
]


@app.command("check", epilog=EXIT_CODES)
def check(file: FileArgument, window: WindowOption = None, as_json: JsonOption = False) -> None:
    """Show the settings that a configuration sets, or list its mistakes.

    Nothing is opened, and no model is asked; a function that redacts is imported. A password or the
    value of an environment variable is never shown.
    """
    from conspectus.config.building import redact_of

    try:
        config, limit, known = read(file, window)
        redact_of(config)
    except ConfigError as error:
        refuse(file, error, as_json)
    said, settings = list(config.source.notes), config.plain()
    if not config.source.found:
        said.insert(0, "the file has no section 'summarization', so nothing is summarised")
    if as_json:
        output.print_json(
            {
                "file": str(file),
                "valid": True,
                "enabled": config.enabled,
                "window": limit,
                "settings": settings,
                "notes": said,
            }
        )
        return
    output.say(f"{file}: valid", "bold")
    said_of = f"{limit:,} tokens, {known}" if limit is not None else known
    _table(
        [("window in force", said_of), *((key, json.dumps(one)) for key, one in settings.items())]
    )
    show_notes(said)


@app.command("schema", epilog=EXIT_CODES)
def schema(out: OutOption = None) -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    from conspectus.config import json_schema

    output.check_output(out)
    output.write_text(out, lambda encoding: json.dumps(json_schema(), indent=2) + "\n")


def read(file: Path, window: int | None) -> tuple[SummarizationConfig, int | None, str]:
    """Read a configuration, look up the names in it, and find the window."""
    from conspectus.config import load_config
    from conspectus.config.building import check_window, counter_of, pin_of
    from conspectus.config.windows import find_window

    config = load_config(file)
    for one in (config, *map(config.for_subagent, config.subagents)):
        if one.token_counter is not None:
            counter_of(one)
        pin_of(one)
    limit, known = (window, "as --window says") if window is not None else find_window(config)
    check_window(config, limit)
    return config, limit, known


def refuse(file: Path, error: ConfigError, as_json: bool) -> NoReturn:
    """Print the mistakes of a configuration, and exit."""
    if as_json:
        output.print_json({"file": str(file), "valid": False, "problems": list(error.problems)})
    for problem in error.problems:
        complain(problem)
    raise typer.Exit(BAD_INPUT)


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


def show_notes(said: list[str]) -> None:
    for note in said:
        output.say(f"Note: {note}", "yellow")
