"""A section of a YAML file as plain values, the line of each, and what must not be shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from conspectus.archive import without_password
from conspectus.errors import ConfigError

SECTION = "summarization"  # the section that is ours; the rest of a file belongs to others
MOST = 20_000  # values of a section; aliases could make more of a small file than memory has
QUOTED, LONG = 60, 2_000  # characters of a wrong value that are shown; above, its length alone
OTHERS = ("models", "skills", "trigger", "keep")  # of which we make use, or which are misplaced

Location = tuple[str | int, ...]  # keys, and indexes of lists, from the section on

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True)
class Source:
    """Where a configuration was read; empty for one that is made in Python."""

    file: Path | None = None
    lines: Mapping[Location, int] = field(default_factory=dict, repr=False)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)  # `$NAME` by its value
    missing: dict[Location, str] = field(default_factory=dict, repr=False)  # variables not set
    sections: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of others
    names: Mapping[str, int] = field(default_factory=dict, repr=False)  # lines of all sections
    notes: tuple[str, ...] = ()  # mistakes that do not matter while summarisation is off
    at: Location = ()  # of the settings of a subagent

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The entries of `models` by name; of two with one name the first counts."""
        listed = self.sections.get("models")
        named = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return {str(one["name"]): one for one in reversed(named) if "name" in one}

    def line(self, where: Location) -> int:
        """Return the line of a value, or of what holds it."""
        own = [(*self.at, *where[:end]) for end in range(len(where), 0, -1)] if self.at else []
        around = [*own, *(where[:end] for end in range(len(where), -1, -1))]
        return next((self.lines[at] for at in around if at in self.lines), 1)

    def problem(self, where: Location, text: str) -> str:
        """Describe a mistake with its file and line, without secrets."""
        prefix = "" if self.file is None else f"{self.file}, line {self.line(where)}: "
        text = " ".join(text.split())  # errors of libraries have lines, and a log line has one
        if len(text) > LONG:  # cut between words, so that no half of a secret is left
            text = text[: LONG // 4].rpartition(" ")[0] + " …"
        return prefix + str(self.hidden(text))

    def error(self, where: Location, text: str) -> ConfigError:
        return ConfigError((self.problem(where, text),))

    def hidden(self, value: Any) -> Any:
        """Return plain values without passwords, and with variables in place of their values."""
        if isinstance(value, (list, tuple)):
            return [self.hidden(item) for item in value]
        if isinstance(value, Mapping):
            return {self.hidden(key): self.hidden(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        for secret, name in self.secrets.items():
            value = name if value == secret else value
            value = value.replace(secret, name) if len(secret) > 3 else value
        return without_password(value) if len(value) <= LONG else f"({len(value):,} characters)"

    def quoted(self, value: Any) -> str:
        """Return a wrong value for a message: short, and without secrets."""
        if isinstance(value, (dict, list)):
            return "a mapping" if isinstance(value, dict) else "a list"
        try:
            text = json.dumps(self.hidden(value), ensure_ascii=False)
        except ValueError:  # Python writes no number of so many digits
            return "a number of too many digits"
        return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"

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
            self.missing[where] = f"the environment variable {name} is not set; set it, or write "
            self.missing[where] += "the value"
        return setting


def read_section(file: Path, name: str = SECTION) -> tuple[Any, Source]:
    """Return the values of a section, None if it is missing, and their source.

    Raises:
        ConfigError: the file cannot be read, is no YAML, or nothing can be made of the section.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError((f"{file}: there is no such file; check the path",)) from None
    except OSError as error:
        why = error.strerror or str(error)
        fix = "name the file in it" if file.is_dir() else "check its permissions"
        raise ConfigError((f"{file}: cannot be read ({why}); {fix}",)) from None
    nodes: dict[str, Any] = {}
    names: dict[str, int] = {}
    values: dict[str, Any] = {}
    try:
        loader = yaml.SafeLoader(data.decode("utf-8-sig"))
        root = loader.get_single_node() or yaml.MappingNode("", [])
        if not isinstance(root, yaml.MappingNode):
            raise _Refused(root, f"a configuration is made of sections, such as '{SECTION}:'")
        for key, node in root.value:
            if key.value == name and name in nodes:
                raise _Refused(key, f"the section '{name}' is there twice; join the two")
            nodes[str(key.value)], names[str(key.value)] = node, key.start_mark.line + 1
        lines = list(islice(_lines(nodes[name], ()), MOST)) if name in nodes else []
        if len(lines) == MOST:
            raise RecursionError
        section = loader.construct_document(nodes[name]) if name in nodes else None
        for other in set(OTHERS) & set(nodes):
            with suppress(Exception):  # what others write is theirs to check
                if sum(1 for _ in islice(_parts(nodes[other]), MOST)) < MOST:
                    values[other] = loader.construct_document(nodes[other])
        source = Source(file, {**dict(lines), (): names.get(name, 1)}, sections=values, names=names)
        section = source.filled(section)
    except UnicodeDecodeError as error:
        line, what = data[: error.start].count(b"\n") + 1, "is not UTF-8; save the file as UTF-8"
        raise ConfigError((f"{file}, line {line}: {what}",)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = f"malformed YAML ({error.problem}); check the indentation (spaces, no tabs; the "
        what += "keys of a section begin in one column), colons, quotes and brackets"
        what = error.problem if isinstance(error, _Refused) else what
        raise ConfigError((f"{file}, line {mark.line + 1 if mark else 1}: {what}",)) from None
    except Exception as error:  # a tag may not suit its value, and fails in many ways
        what = f"YAML cannot read a value of this section ({error}); write it in quotes, or plainly"
        if isinstance(error, RecursionError):
            what = "is nested without end, or huge; check brackets and aliases"
        raise ConfigError((f"{file}, line {names.get(name, 1)}: {what}",)) from None
    if source.missing and name != SECTION:  # ours may be switched off
        raise ConfigError(tuple(source.problem(*one) for one in source.missing.items()))
    return section, source


class _Refused(yaml.MarkedYAMLError):  # type: ignore[misc]
    def __init__(self, node: Any, problem: str) -> None:
        super().__init__(None, None, problem, node.start_mark)


def _parts(node: Any) -> Iterator[Any]:
    """Yield all parts of a node, those of an alias or a merged mapping as often as it is used."""
    yield node
    for part in () if isinstance(node, yaml.ScalarNode) else node.value:
        for inner in part if isinstance(part, tuple) else (part,):
            yield from _parts(inner)


def _lines(node: Any, where: Location) -> Iterator[tuple[Location, int]]:
    """Yield the line of each value; a key that is there twice is an error."""
    yield where, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            yield from _lines(item, (*where, i))
    elif isinstance(node, yaml.MappingNode):
        known: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in known:
                text = f"is there twice, first in line {known[name]}; delete one"
                raise _Refused(key, f"'{name}' {text}")
            known[name] = line
            yield from _lines(value, (*where, name))
            yield (*where, name), line
