"""Read a section of a YAML file as plain values; show mistakes by line, without secrets."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ValidationError

from conspectus.archive import without_password
from conspectus.errors import ConfigError, did_you_mean

SECTION = "summarization"
"""Our section; the others belong to other programs."""

OTHERS = ("models", "skills")
"""Sections of other programs that we read."""

LONGEST_PROBLEM = 2_000
"""The most characters of a mistake that are shown."""

LONGEST_VALUE = 60
"""The most characters of a wrong value that are shown."""

Location = tuple[str | int, ...]  # keys and list indexes, inside the section

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_NOISE = re.compile(r"^Value error, |^(Input|String) |, (got|unable to) .*| or instance .*")
"""Parts of pydantic's messages that do not help the author of a file."""


@dataclass(frozen=True)
class ConfigSource:
    """Where a configuration was read. It is empty for a configuration that is made in Python."""

    file: Path | None = None
    section: str = SECTION
    lines: Mapping[Location, int] = field(default_factory=dict, repr=False)  # with the section
    # The name of each environment variable that was read, by its value. Code that reads more
    # variables later adds them to this mapping, so that they are hidden, too.
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    missing: Mapping[Location, str] = field(default_factory=dict, repr=False)  # variables not set
    sections: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of others
    notes: tuple[str, ...] = ()  # mistakes that do not matter while summarisation is off

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The entries of `models` by name, in order; if two have one name, the first counts."""
        listed = self.sections.get("models")
        entries: dict[str, dict[str, Any]] = {}
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and "name" in entry:
                entries.setdefault(str(entry["name"]), entry)
        return entries

    @property
    def default_model(self) -> str | None:
        """The name of the first entry of `models`, which is the default, as in DeerFlow."""
        return next(iter(self.models), None)

    def unset_variables(self, value: Any) -> list[str]:
        """Say which environment variables a value names that are not set."""
        variables = Variables({})
        variables.fill(value)
        return list(variables.missing.values())

    def line(self, location: Location) -> int:
        """Return the line of a value, or of the value around it."""
        for end in range(len(location), -1, -1):
            line = self.lines.get((self.section, *location[:end]))
            if line is not None:
                return line
        return 1

    def problem(self, location: Location, text: str) -> str:
        """Describe a mistake on one line, with its file and line, without secrets."""
        prefix = "" if self.file is None else f"{self.file}, line {self.line(location)}: "
        return prefix + textwrap.shorten(self.hidden(text), LONGEST_PROBLEM, placeholder=" …")

    def error(self, location: Location, text: str) -> ConfigError:
        """Make the error of one mistake."""
        return ConfigError((self.problem(location, text),))

    def problems(self, mistakes: Mapping[Location, str]) -> tuple[str, ...]:
        """Describe mistakes by their places, in the order of the file."""
        problems: list[str] = []
        for location in sorted(mistakes, key=self.line):
            name = ".".join(map(str, (self.section, *location)))
            problems.append(self.problem(location, f"{name}: {mistakes[location]}"))
        return tuple(problems)

    def mistakes(self, error: ValidationError, *models: type[BaseModel]) -> dict[Location, str]:
        """Say for each wrong value what is wrong, and what to write.

        The first of `models` is the model of the section, the last that of mappings in it.
        """
        texts: dict[Location, str] = {}
        for mistake in error.errors(include_url=False):
            location: Location = ()
            for step in mistake["loc"]:
                # A step that is not in the file is pydantic's name of an alternative.
                if not location or (self.section, *location, step) in self.lines:
                    location = (*location, step)
            texts.setdefault(location, self._sentence(mistake, *models))
        # A mistake inside a value says more than a mistake of the whole value.
        enclosing = {location[:end] for location in texts for end in range(len(location))}
        return {location: text for location, text in texts.items() if location not in enclosing}

    def _sentence(self, mistake: Any, *models: type[BaseModel]) -> str:
        """Say what a mistake found by pydantic means, with the description of its key."""
        problem = mistake["type"]
        steps = mistake["loc"]
        is_unknown = problem == "extra_forbidden"
        keys = {name: key for model in models for name, key in model.model_fields.items()}
        named = steps[:-1] if is_unknown else steps
        key = next((keys[step] for step in reversed(named) if step in keys), None)
        about = "" if key is None else _in_brackets(key.description)
        if is_unknown:
            known = models[-1 if len(steps) > 1 else 0].model_fields
            meant = did_you_mean(steps[-1], known) or f" known are {', '.join(known)}{about}"
            return f"unknown key;{meant}"
        if problem == "missing":
            return f"'{steps[-1]}' is missing; add '{steps[-1]}: ...'{about}"
        text = _NOISE.sub("", mistake["msg"]).replace("valid dictionary", "mapping")
        text = text.replace("a valid boolean", "true or false")
        text = text.replace("a valid integer", "a whole number in digits, such as 8000")
        if problem != "value_error" and key is not None and key.repr:
            value = json.dumps(self.hidden(mistake["input"]), ensure_ascii=False, default=str)
            if len(value) > LONGEST_VALUE:
                value = value[: LONGEST_VALUE - 1] + "…"
            text += f", not {value}"
        return text + about

    def hidden(self, value: Any) -> Any:
        """Return plain values without passwords, and with variables in place of their values."""
        if isinstance(value, (list, tuple)):
            return [self.hidden(item) for item in value]
        if isinstance(value, Mapping):
            return {self.hidden(key): self.hidden(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        # The longest first, because a shorter one may be a part of it.
        for secret, name in sorted(self.secrets.items(), key=lambda item: -len(item[0])):
            if value == secret:
                value = name
            elif len(secret) > 3:  # a shorter one occurs in many words
                value = value.replace(secret, name)
        return without_password(value)


def _in_brackets(description: str | None) -> str:
    """Return the description of a key in brackets, to follow a mistake."""
    if not description:
        return ""
    return f" ({description[0].lower()}{description[1:].removesuffix('.')})"


class Variables:
    """Reads environment variables that values name as `$NAME` or `${NAME}`.

    It adds the name of each one to `names`, by its value, so that the value can be hidden.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.missing: dict[Location, str] = {}  # what to say about those that are not set

    def fill(self, value: Any, location: Location = ()) -> Any:
        """Return plain values with environment variables in the place of their names."""
        if isinstance(value, list):
            return [self.fill(item, (*location, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {str(key): self.fill(item, (*location, str(key))) for key, item in value.items()}
        match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        name = match[1] or match[2]
        setting = os.environ.get(name)
        if setting:
            self.names[setting] = value
        else:
            fix = "set it, or write the value"
            self.missing[location] = f"the environment variable {name} is not set; {fix}"
        return setting


def read_section(file: Path, name: str = SECTION) -> tuple[Any, ConfigSource]:
    """Return the values of a section, None if it is missing, and their source.

    Raises:
        ConfigError: the file cannot be read, is no YAML, or the section has an unknown form.
    """
    lines: dict[Location, int] = {}
    section: Any = None
    sections: dict[str, Any] = {}
    variables = Variables({})
    try:
        loader = yaml.SafeLoader(file.read_bytes())
        root = loader.get_single_node() or yaml.MappingNode("", [])
        if not isinstance(root, yaml.MappingNode):
            text = f"a configuration is made of sections, such as '{SECTION}:'"
            raise yaml.MarkedYAMLError(problem=text, problem_mark=root.start_mark)
        for location, mark in _marks(root, name):
            if location in lines:
                text = f"'{location[-1]}' is there twice, first in line {lines[location]}"
                fix = "delete one, or join them"
                raise yaml.MarkedYAMLError(problem=f"{text}; {fix}", problem_mark=mark)
            lines[location] = mark.line + 1
        for key, node in root.value:
            if key.value == name:
                section = loader.construct_document(node)
            elif key.value in OTHERS:
                with suppress(Exception):  # sections of other programs are not checked here
                    sections[key.value] = loader.construct_document(node)
        section = variables.fill(section)
    except OSError as error:
        why = f"{file}: cannot be read ({error.strerror}); check its path and permissions"
        raise ConfigError((why,)) from None
    except Exception as error:  # a wrong tag raises many kinds of errors
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or error)
        if type(error) is not yaml.MarkedYAMLError:  # YAML's own are subclasses
            problem = (
                f"YAML cannot read this ({' '.join(problem.split())}); check the indentation "
                "(spaces, no tabs), colons, quotes, brackets and aliases, and save it as UTF-8"
            )
        line = mark.line + 1 if mark else lines.get((name,), 1)
        raise ConfigError((f"{file}, line {line}: {problem}",)) from None
    source = ConfigSource(file, name, lines, variables.names, variables.missing, sections)
    if source.missing and name != SECTION:  # our section may be switched off
        raise ConfigError(source.problems(source.missing))
    return section, source


def _marks(node: Any, section: str, location: Location = ()) -> Iterator[tuple[Location, Any]]:
    """Yield the mark of each key and item; for other sections, only the mark of the name."""
    parts: list[tuple[str | int, Any, Any]] = []
    if isinstance(node, yaml.SequenceNode):
        parts = [(index, item.start_mark, item) for index, item in enumerate(node.value)]
    elif isinstance(node, yaml.MappingNode):
        parts = [(str(key.value), key.start_mark, value) for key, value in node.value]
    for step, mark, inner in parts:
        inner_location = (*location, step)
        yield inner_location, mark
        if inner_location[0] == section:
            yield from _marks(inner, section, inner_location)
