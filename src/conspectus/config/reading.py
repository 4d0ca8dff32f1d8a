"""A section of a YAML file as plain values; each mistake with its line, and without secrets."""

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

SECTION = "summarization"  # the section that is ours; the rest of a file belongs to others
OTHERS = ("models", "skills")  # sections of others that are made use of
LONG, QUOTED = 2_000, 60  # characters that are shown of a mistake, and of a wrong value in it

Location = tuple[str | int, ...]  # keys, and indexes of lists, from the section on

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True)
class Source:
    """Where a configuration was read; empty for one that is made in Python."""

    file: Path | None = None
    section: str = SECTION
    lines: Mapping[Location, int] = field(default_factory=dict, repr=False)  # from the root on
    secrets: dict[str, str] = field(default_factory=dict, repr=False)  # `$NAME` by its value
    missing: dict[Location, str] = field(default_factory=dict, repr=False)  # variables not set
    sections: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of others
    notes: tuple[str, ...] = ()  # mistakes that do not matter while summarisation is off

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The entries of `models` by name, in order; of two with one name the first counts."""
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
        """Say which environment variables a value asks for that are not set."""
        source = Source()
        source.filled(value)
        return list(source.missing.values())

    def line(self, where: Location) -> int:
        """Return the line of a value, or of what holds it."""
        around = ((self.section, *where[:end]) for end in range(len(where), -1, -1))
        return next((self.lines[at] for at in around if at in self.lines), 1)

    def problem(self, where: Location, text: str) -> str:
        """Describe a mistake on one line, with its file and line, without secrets."""
        prefix = "" if self.file is None else f"{self.file}, line {self.line(where)}: "
        return prefix + textwrap.shorten(self.hidden(text), LONG, placeholder=" …")

    def error(self, where: Location, text: str) -> ConfigError:
        """Make the error of one mistake."""
        return ConfigError((self.problem(where, text),))

    def problems(self, found: Mapping[Location, str]) -> tuple[str, ...]:
        """Describe mistakes by their places, in the order of the file."""
        names = {at: ".".join(map(str, (self.section, *at))) for at in sorted(found, key=self.line)}
        return tuple(self.problem(at, f"{name}: {found[at]}") for at, name in names.items())

    def mistakes(self, error: ValidationError, *models: type[BaseModel]) -> dict[Location, str]:
        """Say for each wrong place what is wrong, and what to write.

        The first of `models` is that of the section, the last that of mappings in it.
        """
        found: dict[Location, str] = {}
        for mistake in error.errors(include_url=False):
            at: Location = ()
            for step in mistake["loc"]:
                # What is in no file is pydantic's name of an alternative.
                if not at or (self.section, *at, step) in self.lines:
                    at = (*at, step)
            found.setdefault(at, self._sentence(mistake, *models))
        around = {at[:end] for at in found for end in range(len(at))}
        return {at: text for at, text in found.items() if at not in around}

    def _sentence(self, mistake: Any, *models: type[BaseModel]) -> str:
        """Say what a mistake of pydantic means, with the description of its key."""
        kind, place = mistake["type"], mistake["loc"]
        fields = {name: one for model in models for name, one in model.model_fields.items()}
        named = place[:-1] if kind == "extra_forbidden" else place
        key = next((fields[step] for step in reversed(named) if step in fields), None)
        about = ""
        if key is not None and key.description:
            about = f" ({key.description[0].lower()}{key.description[1:].removesuffix('.')})"
        if kind == "extra_forbidden":
            known = models[-1 if len(place) > 1 else 0].model_fields
            meant = did_you_mean(place[-1], known) or f" known are {', '.join(known)}{about}"
            return f"unknown key;{meant}"
        if kind == "missing":
            return f"'{place[-1]}' is missing; add '{place[-1]}: ...'{about}"
        noise = "^Value error, |^(Input|String) |, (got|unable to) .*| or instance .*"
        text = re.sub(noise, "", mistake["msg"]).replace("valid dictionary", "mapping")
        text = text.replace("a valid boolean", "true or false")
        text = text.replace("a valid integer", "a whole number in digits, such as 8000")
        if kind != "value_error" and key is not None and key.repr:
            value = json.dumps(self.hidden(mistake["input"]), ensure_ascii=False, default=str)
            text += f", not {value if len(value) <= QUOTED else value[: QUOTED - 1] + '…'}"
        return text + about

    def hidden(self, value: Any) -> Any:
        """Return plain values without passwords, and with variables in place of their values."""
        if isinstance(value, (list, tuple)):
            return [self.hidden(item) for item in value]
        if isinstance(value, Mapping):
            return {self.hidden(key): self.hidden(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        # The longest first, as a shorter one may be a part of it.
        for secret, name in sorted(self.secrets.items(), key=lambda one: -len(one[0])):
            value = name if value == secret else value
            value = value.replace(secret, name) if len(secret) > 3 else value
        return without_password(value)

    def filled(self, value: Any, where: Location = ()) -> Any:
        """Return plain values with environment variables in place of `$NAME` and `${NAME}`."""
        if isinstance(value, list):
            return [self.filled(item, (*where, i)) for i, item in enumerate(value)]
        if isinstance(value, dict):
            return {str(key): self.filled(item, (*where, str(key))) for key, item in value.items()}
        match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        name = match[1] or match[2]
        if setting := os.environ.get(name):
            self.secrets[setting] = value
        else:
            fix = "set it, or write the value"
            self.missing[where] = f"the environment variable {name} is not set; {fix}"
        return setting


def read_section(file: Path, name: str = SECTION) -> tuple[Any, Source]:
    """Return the values of a section, None if it is missing, and their source.

    Raises:
        ConfigError: the file cannot be read, is no YAML, or nothing can be made of the section.
    """
    lines, section, sections = dict[Location, int](), None, dict[str, Any]()
    try:
        loader = yaml.SafeLoader(file.read_bytes())
        root = loader.get_single_node() or yaml.MappingNode("", [])
        if not isinstance(root, yaml.MappingNode):
            text = f"a configuration is made of sections, such as '{SECTION}:'"
            raise yaml.MarkedYAMLError(problem=text, problem_mark=root.start_mark)
        for at, mark in _marks(root, name):
            if at in lines:
                text = f"'{at[-1]}' is there twice, first in line {lines[at]}; delete one, or join"
                raise yaml.MarkedYAMLError(problem=f"{text} them", problem_mark=mark)
            lines[at] = mark.line + 1
        for key, node in root.value:
            if key.value == name:
                section = loader.construct_document(node)
            elif key.value in OTHERS:
                with suppress(Exception):  # what others write is theirs to check
                    sections[key.value] = loader.construct_document(node)
        source = Source(file, name, lines, sections=sections)
        section = source.filled(section)
    except OSError as error:
        why = f"{file}: cannot be read ({error.strerror}); check its path and permissions"
        raise ConfigError((why,)) from None
    except Exception as error:  # a tag may not suit its value, and fails in many ways
        mark = getattr(error, "problem_mark", None)
        what = str(getattr(error, "problem", None) or error)
        if type(error) is not yaml.MarkedYAMLError:  # but of YAML's own, which are below it
            what = f"YAML cannot read this ({' '.join(what.split())}); check the indentation "
            what += "(spaces, no tabs), colons, quotes, brackets and aliases, and save it as UTF-8"
        line = mark.line + 1 if mark else lines.get((name,), 1)
        raise ConfigError((f"{file}, line {line}: {what}",)) from None
    if source.missing and name != SECTION:  # ours may be switched off
        raise ConfigError(source.problems(source.missing))
    return section, source


def _marks(node: Any, section: str, where: Location = ()) -> Iterator[tuple[Location, Any]]:
    """Yield the mark of each key and item; of other sections only that of their names."""
    pairs: list[tuple[str | int, Any, Any]] = []
    if isinstance(node, yaml.SequenceNode):
        pairs = [(i, item.start_mark, item) for i, item in enumerate(node.value)]
    elif isinstance(node, yaml.MappingNode):
        pairs = [(str(key.value), key.start_mark, value) for key, value in node.value]
    for step, mark, below in pairs:
        at = (*where, step)
        yield at, mark
        if at[0] == section:
            yield from _marks(below, section, at)
