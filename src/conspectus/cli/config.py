"""`conspectus config`: the settings that a file makes, or its mistakes; its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from conspectus import _imports
from conspectus.cli import output
from conspectus.cli.failures import BAD_INPUT, EXIT_CODES, complain
from conspectus.cli.options import JsonOption, OutOption, WindowOption
from conspectus.core.policy import names_embedded
from conspectus.errors import ConfigError

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
    from conspectus.config import load_config
    from conspectus.config.building import window_of

    served, limit = list[str](), window
    try:
        config = load_config(file)
        for name in dict.fromkeys(at[0] for at in config.source.lines):
            if check_section := _imports.plugged("conspectus.sections", str(name)):
                config, windows = check_section(file)
                served.append(f"{name}: windows in tokens: {windows}")
        # Another section's program learns the windows of its models; else that of the model that
        # answers counts, and where none is named, of the one that writes.
        name = config.model_name or next(iter(reversed(config.source.models)), "")
        limit = window or (config.window if served else window_of(config, name))
    except ConfigError as error:
        if as_json:
            problems = list(error.problems)
            output.print_json({"file": str(file), "valid": False, "problems": problems})
        for problem in error.problems:
            complain(problem)
        raise typer.Exit(BAD_INPUT) from None
    notes = [*config.source.notes, *config.policy.caveats(limit), *served]
    for name in filter(None, (config.model_name, *config.fallback_models)):
        if ":" not in name and name not in config.source.models and not names_embedded(name):
            fix = "pass it in model_registry=, or write provider:model"
            notes.append(config.source.hidden(f"the model '{name}' is not under 'models'; {fix}"))
    if not config.enabled:
        fix = "write 'enabled: true'" + " and a trigger" * (not config.trigger)
        notes.insert(0, f"summarisation is switched off; {fix} into the section 'summarization'")
    settings = config.plain()
    if as_json:
        about = {"file": str(file), "valid": True, "enabled": config.enabled, "window": limit}
        output.print_json({**about, "settings": settings, "notes": notes})
        return
    output.say(f"{file}: valid", bold=True)
    size = "unknown: the profile of the agent's own model counts; else set 'window'"
    size = size if limit is None else f"{limit:,} tokens"
    rows = [("window in force", size), *((key, json.dumps(one)) for key, one in settings.items())]
    output.print_table(rows)
    for note in notes:
        output.say(f"Note: {note}", fg="yellow")


@app.command("schema", epilog=EXIT_CODES)
def schema(out: OutOption = None) -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    from conspectus.config import json_schema

    output.check_output(out)
    output.write_text(out, json.dumps(json_schema(), indent=2) + "\n")
