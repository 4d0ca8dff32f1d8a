"""`conspectus config`: the settings that a file makes, or its mistakes; its schema."""

from __future__ import annotations

import json
import re
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
        config, limit, source = read(file, window)
    except ConfigError as error:
        if as_json:
            problems = list(error.problems)
            output.print_json({"file": str(file), "valid": False, "problems": problems})
        for problem in error.problems:
            complain(problem)
        raise typer.Exit(BAD_INPUT) from None
    notes, settings = list(config.source.notes), config.plain()
    on = config.enabled or any(agent.enabled for agent in config.subagents.values())
    name, models = config.model_name or EMBEDDED, config.source.models
    if name not in (EMBEDDED, *models) and (meant := did_you_mean(name, models)):
        notes.append(config.source.hidden(f"model_name '{name}' is not under 'models';{meant}"))
    if "summarization" not in config.source.names:
        notes.insert(0, "the file has no section 'summarization'; add one with 'enabled: true'")
    elif not on:
        notes.insert(0, "to switch summarisation on, write 'enabled: true', and a trigger")
    if as_json:
        about = {"file": str(file), "valid": True, "enabled": config.enabled, "window": limit}
        output.print_json({**about, "settings": settings, "notes": notes})
        return
    state = "valid" if on else "valid, but nothing is switched on: no agent is summarised"
    output.say(f"{file}: {state}", "bold")
    size = f"{limit:,} tokens, {source}" if limit is not None else source
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


def read(file: Path, window: int | None) -> tuple[SummarizationConfig, int | None, str]:
    """Read a configuration, and find the window in tokens and who says so."""
    from conspectus.config import load_config
    from conspectus.config.building import check_window

    config = load_config(file)
    limit, source = (window, "as --window says") if window is not None else _window(config)
    check_window(config, limit)
    return config, limit, source


def _window(config: SummarizationConfig) -> tuple[int | None, str]:
    """Find the window of the model that answers; where none is named, of the one that writes."""
    from conspectus.config.building import declared_window
    from conspectus.model.windows import profile_of

    models = config.source.models
    name = config.model_name or next(iter(reversed(models)), "")
    label, entry = config.source.hidden(name), models.get(name, {})
    if config.window is not None:
        return config.window, "as 'window' says"
    if (declared := declared_window(entry)) is not None:
        return declared, f"as 'models' says of {label}"
    provider = re.split("[:.]", str(entry.get("use", "")))[0].removeprefix("langchain_")
    limit = profile_of(str(entry.get("model", name)), provider) if name else None
    if limit is None:
        return None, "unknown here: the profile of the agent's own model counts; else set 'window'"
    return limit, f"by the profile of {label}; another model that answers has its own"
