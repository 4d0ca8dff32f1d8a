"""`conspectus config`: the settings that a file makes, or its mistakes; its schema."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus import _imports
from conspectus.cli import output
from conspectus.cli.failures import BAD_INPUT, EXIT_CODES, complain
from conspectus.cli.options import JsonOption, OutOption, WindowOption
from conspectus.core.policy import names_embedded
from conspectus.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from conspectus.config import SummarizationConfig
    from conspectus.config.reading import Location

KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "xai": "XAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "together": "TOGETHER_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
"""The environment variable in which LangChain looks for a provider's key."""

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
    from conspectus.config.building import window_for
    from conspectus.config.reading import SECTION

    notes_on_sections: list[str] = []
    limit = window
    try:
        config = load_config(file)
        sections = {str(location[0]) for location in config.source.lines}
        has_settings = SECTION in sections
        for section in sorted(sections):
            check_section = _imports.plugged("conspectus.sections", section)
            if check_section is not None:
                has_settings = True
                config, windows = check_section(file)
                notes_on_sections.append(f"{section}: windows in tokens: {windows}")
        if not has_settings:
            fix = f"write '{SECTION}:' on a line of its own, and its keys below"
            raise ConfigError((f"{file}: there is no section '{SECTION}'; {fix}",))
        # The program of another section learns the windows of its models. Otherwise the window is
        # that of the model that answers; if none is named, that of the model that writes.
        name = config.model_name or config.source.default_model or ""
        limit = window or (config.window if notes_on_sections else window_for(config, name))
        on_models = _notes_on_models(config)
    except ConfigError as error:
        if as_json:
            problems = list(error.problems)
            output.print_json({"file": str(file), "valid": False, "problems": problems})
        for problem in error.problems:
            complain(problem)
        raise typer.Exit(BAD_INPUT) from None
    caveats = config.policy().caveats(limit)
    notes = [*config.source.notes, *caveats, *notes_on_sections, *on_models]
    if not config.enabled:
        fix = "write 'enabled: true'" if config.trigger else "write 'enabled: true' and a trigger"
        notes.insert(0, f"summarisation is switched off; {fix} into the section 'summarization'")
    settings = config.plain()
    if as_json:
        about = {"file": str(file), "valid": True, "enabled": config.enabled, "window": limit}
        output.print_json({**about, "settings": settings, "notes": notes})
        return
    output.say(f"{file}: valid", bold=True)
    in_force = "unknown: the profile of the agent's own model counts; else set 'window'"
    if limit is not None:
        in_force = f"{limit:,} tokens"
    values = [(key, json.dumps(value)) for key, value in settings.items()]
    output.print_table([("window in force", in_force), *values])
    for note in notes:
        output.say(f"Note: {note}", fg="yellow")


def _notes_on_models(config: SummarizationConfig) -> list[str]:
    """Say why models of a configuration may fail to write.

    Without `models`, a name belongs to a registry in Python, which this command does not see.

    Raises:
        ConfigError: a name has no entry in `models`, or an entry names a variable that is not set.
    """
    source = config.source
    notes: list[str] = []
    mistakes: list[str] = []
    writer = config.model_name or source.default_model
    for index, name in enumerate((writer, *config.fallback_models)):
        if name is None or names_embedded(name):
            continue
        location: Location = ("fallback_models", index - 1) if index else ("model_name",)
        provider, colon, _ = name.partition(":")
        entry = source.models.get(name)
        if entry is not None:
            for missing in source.unset_variables(entry):
                text = f"the model '{name}' needs a key: {missing}"
                mistakes.append(source.problem(location, text))
        elif not colon and source.models:
            hint = did_you_mean(name, source.models) or f" known are {', '.join(source.models)}"
            text = f"the model '{name}' is not under 'models';{hint}"
            mistakes.append(source.problem(location, text))
        elif not colon:
            fix = "pass it in model_registry=, or write provider:model"
            notes.append(source.hidden(f"the model '{name}' is not under 'models'; {fix}"))
        elif (key := KEYS.get(provider)) and not os.environ.get(key):
            fix = "set it where the agent runs"
            notes.append(f"the model '{name}' needs a key, and {key} is not set here; {fix}")
    if mistakes and config.enabled:
        raise ConfigError(tuple(mistakes))
    return [*notes, *mistakes]


@app.command("schema", epilog=EXIT_CODES)
def schema(out: OutOption = None) -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    from conspectus.config import json_schema

    output.check_output(out)
    output.write_text(out, json.dumps(json_schema(), indent=2) + "\n")
