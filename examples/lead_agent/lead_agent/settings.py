"""The section `lead_agent:` of `config.yaml`, checked whole before anything is opened."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lead_agent.errors import SettingsError

SECTION = "lead_agent"
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")

Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    # A value may be a password out of the environment: no error shows it.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SandboxSettings(_Part):
    """What tools may do: a shell or none, its seconds, and characters of one tool's output."""

    shell: bool = False
    seconds: float = Field(default=20.0, gt=0, le=600)
    output: int = Field(default=8_000, ge=200, le=200_000)


class TitleSettings(_Part):
    """Who writes the title, and how many words it has at most."""

    by: Literal["model", "first_message"] = "model"
    words: int = Field(default=8, ge=1, le=20)


class ServerSettings(_Part):
    """Where HTTP is served."""

    host: Text = "127.0.0.1"
    port: int = Field(default=8123, ge=0, le=65_535)


class Settings(_Part):
    """Everything but the section `summarization:`, which `conspectus.config` reads.

    Attributes:
        model: `scripted`, or `provider:model` as LangChain's `init_chat_model` takes it.
        instructions: the system prompt.
        data: the folder of all threads; relative to the file.
        checkpointer: `sqlite:///FILE` (relative to the file), `postgresql://...` or `memory:`.
        steps: of the graph that one run may take; default 200.
    """

    model: Text = "scripted"
    instructions: Text = (
        "You are a lead agent. Files are under workspace/, uploads/ (read only) and outputs/. Ask "
        "with ask_clarification when what the user wants can be read in more than one way."
    )
    data: Path = Path("data")
    checkpointer: Text = "sqlite:///data/checkpoints.sqlite"
    sandbox: SandboxSettings = SandboxSettings()
    title: TitleSettings = TitleSettings()
    server: ServerSettings = ServerSettings()
    steps: int = Field(default=200, ge=10, le=10_000)


def load_settings(file: Path) -> Settings:
    """Read them; relative paths are made absolute, from the folder of the file.

    Raises:
        SettingsError: they cannot be read, or mean nothing; each mistake with its key.
    """
    try:
        read = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read ({error.strerror}); check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file}: is no YAML: {error}") from None
    section = (read.get(SECTION) if isinstance(read, dict) else None) or {}
    try:
        found = Settings.model_validate(_with_variables(section, file))
    except ValidationError as error:
        told = (
            f"{'.'.join(map(str, (SECTION, *one['loc'])))}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        )
        raise SettingsError(f"{file}: {'; '.join(told)}") from None
    folder = file.absolute().parent
    changed: dict[str, Any] = {"data": folder / found.data.expanduser()}
    prefix = "sqlite:///"
    if found.checkpointer.startswith(prefix):
        path = folder / Path(found.checkpointer.removeprefix(prefix)).expanduser()
        changed["checkpointer"] = f"{prefix}{path}"
    return found.model_copy(update=changed)


def _with_variables(value: Any, file: Path) -> Any:
    """`$NAME` and `${NAME}` as the environment has them."""
    if isinstance(value, dict):
        return {key: _with_variables(one, file) for key, one in value.items()}
    match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    name = match[1] or match[2]
    if not os.environ.get(name):
        raise SettingsError(f"{file}: the environment variable {name} is not set; set it")
    return os.environ[name]
