"""The section `lead_agent:` of `config.yaml`, checked whole before anything is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from conspectus.config import load_config
from conspectus.errors import ConfigError, did_you_mean
from lead_agent.errors import SettingsError

SECTION = "lead_agent"
SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")

_Where = tuple[str | int, ...]
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

    @field_validator("checkpointer")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value != "memory:" and not value.startswith((SQLITE, *POSTGRES)):
            text = "must be sqlite:///FILE, postgresql://... or memory:"
            raise PydanticCustomError("address", "{text}", {"text": text})
        return value


def load_settings(file: Path) -> Settings:
    """Read them; relative paths are made absolute, from the folder of the file.

    Raises:
        SettingsError: they cannot be read, or mean nothing; each mistake with its line and key,
            those of `summarization:` among them.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        read, root = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read ({error.strerror}); check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file}: is no YAML: {error}") from None
    section = (read.get(SECTION) if isinstance(read, dict) else None) or {}
    missing: list[tuple[_Where, str]] = []
    given = _with_variables(section, (), missing)
    told = list(missing)
    found = Settings()
    try:
        found = Settings.model_validate(given)
    except ValidationError as error:
        unset = {where for where, _ in missing}
        told += [one for one in _told(error) if one[0] not in unset]
    if told:
        lines = sorted((_line(root, (SECTION, *where)), text) for where, text in told)
        problems = [f"{file}, line {line}: {text}" for line, text in lines]
        try:
            load_config(file)
        except ConfigError as error:
            problems += error.problems
        raise SettingsError("; ".join(problems))
    folder = file.absolute().parent
    changed: dict[str, Any] = {"data": folder / found.data.expanduser()}
    if found.checkpointer.startswith(SQLITE):
        path = folder / Path(found.checkpointer.removeprefix(SQLITE)).expanduser()
        changed["checkpointer"] = f"{SQLITE}{path}"
    return found.model_copy(update=changed)


def _told(error: ValidationError) -> Iterator[tuple[_Where, str]]:
    """Each mistake: where it stands in the section, and what to do."""
    for one in error.errors(include_url=False, include_input=False):
        where = one["loc"]
        if one["type"] != "extra_forbidden":
            yield where, f"{'.'.join(map(str, (SECTION, *where)))}: {one['msg']}"
            continue
        part: Any = Settings
        for step in where[:-1]:
            part = part.model_fields[step].annotation
        within, key = ".".join(map(str, (SECTION, *where[:-1]))), str(where[-1])
        yield where, f"unknown key '{key}' in '{within}';{did_you_mean(key, part.model_fields)}"


def _line(node: Any, where: _Where) -> int:
    """The line of a key, or of what holds it."""
    line = 1
    for step in where:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next((pair for pair in pairs if pair[0].value == str(step)), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def _with_variables(value: Any, where: _Where, missing: list[tuple[_Where, str]]) -> Any:
    """`$NAME` and `${NAME}` as the environment has them; those that it lacks are taken down."""
    if isinstance(value, dict):
        return {key: _with_variables(one, (*where, key), missing) for key, one in value.items()}
    match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    name = match[1] or match[2]
    if not os.environ.get(name):
        missing.append((where, f"the environment variable {name} is not set; set it"))
    return os.environ.get(name)
