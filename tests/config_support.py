"""Configuration files for tests, agents made of them, and JSON Schemas."""

import textwrap
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from conspectus.config import SummarizationConfig, create_middleware, json_schema, load_config
from graph_support import Bench
from scripted_models import ScriptedChatModel

SUMMARY = "## Goal\n- The user has the modules looked at, one after the other."


def write_file(folder: Path, text: str, name: str = "config.yaml") -> Path:
    """A file with this in it."""
    file = folder / name
    file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return file


def load_section(folder: Path, section: str) -> SummarizationConfig:
    """The configuration whose section holds these lines."""
    body = textwrap.indent(textwrap.dedent(section).strip("\n"), "  ")
    return load_config(write_file(folder, f"summarization:\n{body}\n"))


def answering_model(text: str = "Fine.", **options: Any) -> ScriptedChatModel:
    """A model that says the same each time."""
    return ScriptedChatModel(answers=lambda messages: text, **options)


def summarising_model(**options: Any) -> ScriptedChatModel:
    """A model that writes a sound summary each time."""
    return answering_model(SUMMARY, **options)


def build_bench(config: SummarizationConfig, *middlewares: Any, **settings: Any) -> Bench:
    """An agent out of a configuration."""
    model = settings.setdefault("model", answering_model())
    return Bench(model, *create_middleware(config, *middlewares, **settings), tools=[])


def fits(value: Any, schema: Any = None) -> bool:
    """Tell whether a value is valid by a JSON Schema, by default by that of our section."""
    return Draft202012Validator(schema or json_schema()).is_valid(value)
