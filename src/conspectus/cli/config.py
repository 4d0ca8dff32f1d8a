"""`conspectus config`: the settings that a file makes, or its mistakes; its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli import output
from conspectus.cli.failures import BAD_INPUT, EXIT_CODES, complain
from conspectus.cli.options import JsonOption, OutOption, WindowOption
from conspectus.core.policy import EMBEDDED
from conspectus.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from conspectus.config import SummarizationConfig

app = typer.Typer(help="Check a configuration file, or describe its form.", epilog=EXIT_CODES)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A YAML file with a section 'summarization'.")
]


@app.command("check", epilog=EXIT_CODES)
def check(file: FileArgument, window: WindowOption = None, as_json: JsonOption = False) -> None:
    """Show the settings that a configuration sets, or list its mistakes.

    No archive is opened, and no model is asked; functions and vocabularies that it names are
    loaded. A password or the value of an environment variable is never shown.
    """
    try:
        config, limit = read(file, window)
    except ConfigError as error:
        if as_json:
            problems = list(error.problems)
            output.print_json({"file": str(file), "valid": False, "problems": problems})
        for problem in error.problems:
            complain(problem)
        raise typer.Exit(BAD_INPUT) from None
    notes, settings = list(config.source.notes), config.plain()
    name, known = config.model_name or EMBEDDED, (EMBEDDED, *config.source.models)
    if name not in known and (meant := did_you_mean(name, known)):
        notes.append(config.source.hidden(f"model_name '{name}' is not under 'models';{meant}"))
    notes += caveats(config, limit)
    if "summarization" not in config.source.names:
        notes.insert(0, "the file has no section 'summarization'; add one with 'enabled: true'")
    elif not config.enabled:
        notes.insert(0, "to switch summarisation on, write 'enabled: true', and a trigger")
    if as_json:
        about = {"file": str(file), "valid": True, "enabled": config.enabled, "window": limit}
        output.print_json({**about, "settings": settings, "notes": notes})
        return
    state = "valid" if config.enabled else "valid, but summarisation is switched off"
    output.say(f"{file}: {state}", "bold")
    size = "unknown: the profile of the agent's own model counts; else set 'window'"
    size = size if limit is None else f"{limit:,} tokens"
    rows = [("window in force", size), *((key, json.dumps(one)) for key, one in settings.items())]
    width = max(len(key) for key, _ in rows) + 2
    for key, text in rows:
        output.say(f"{key:{width}}{text}")
    for note in notes:
        output.say(f"Note: {note}", "yellow")


@app.command("schema", epilog=EXIT_CODES)
def schema(out: OutOption = None) -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    from conspectus.config import json_schema

    output.check_output(out)
    output.write_text(out, json.dumps(json_schema(), indent=2) + "\n")


def caveats(config: SummarizationConfig, window: int | None) -> list[str]:
    """Return warnings about sizes that cannot have their effect in a window."""
    from conspectus.config.building import sizes_of
    from conspectus.engine.settings import Settings

    return [*Settings(**sizes_of(config, window)).policy().caveats(window)]


def read(file: Path, window: int | None) -> tuple[SummarizationConfig, int | None]:
    """Read a configuration, and find the window of the model that answers, in tokens.

    Where no such model is named, it is that of the model that writes.
    """
    from conspectus.config import load_config
    from conspectus.config.building import check_window, named_window

    config = load_config(file)
    if window is None:
        name = config.model_name or next(iter(reversed(config.source.models)), "")
        window = named_window(config, name)
    check_window(config, window)
    return config, window
