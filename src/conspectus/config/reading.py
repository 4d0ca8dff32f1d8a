"""A YAML file as plain data that knows its lines, with the values of environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from conspectus.config.words import nearest
from conspectus.errors import ConfigError

SECTION = "summarization"
"""The section that is ours; what else the file holds is others' business."""

LARGEST = 1_000_000
"""Bytes of a configuration at most."""

MOST = 10_000
"""Values in the sections that are read; aliases could make more of a small file than memory has."""

SHORTEST = 4
"""Characters of a variable's value that no message shows; a shorter one hides nothing."""

Path_ = tuple[str | int, ...]
"""Where a value stands: keys, and places in lists."""

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+)")


class Secret(str):
    """A text out of an environment variable, which is never printed.

    Attributes:
        shown: the name of the variable, as it stands in the file.
    """

    shown: str

    def __new__(cls, value: str, shown: str) -> Secret:
        made = super().__new__(cls, value)
        made.shown = shown
        return made

    def __repr__(self) -> str:
        return repr(self.shown)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a configuration was read, so that whatever is wrong with it has a line.

    Attributes:
        file: as it was given; None for one that was made in Python.
        lines: of keys and items of lists, from 1, by where they stand in the section.
        variables: names of environment variables, by where their values stand.
        text: what was in the file.
        found: whether the file has the section at all.
    """

    file: Path | None = None
    lines: Mapping[Path_, int] = field(default_factory=dict)
    variables: Mapping[Path_, str] = field(default_factory=dict)
    text: bytes = b""
    found: bool = True

    def line(self, where: Path_) -> int | None:
        """The line of a value, or of what holds it."""
        for end in range(len(where), -1, -1):
            if (line := self.lines.get(where[:end])) is not None:
                return line
        return None

    def problem(self, where: Path_, text: str) -> str:
        """What is wrong, with file and line."""
        line = self.line(where)
        place = "" if self.file is None else f"{self.file}, line {line or 1}: "
        return place + self.hidden(text)

    def hidden(self, text: str) -> str:
        """A text with the names of variables in place of what they hold."""
        for name in set(self.variables.values()):
            value = os.environ.get(name.strip("${}"), "")
            text = text.replace(value, name) if len(value) >= SHORTEST else text
        return text


@dataclass(frozen=True, slots=True)
class Read:
    """What a file holds for us.

    Attributes:
        section: the section as plain data.
        models: windows that the file declares for its models, by name, in tokens.
        kinds: how its models are made, by name: the provider, and the model's own name.
        skills: the folder of skills that it names.
        source: where it was read.
    """

    section: Any
    models: Mapping[str, int]
    kinds: Mapping[str, tuple[str, str]]
    skills: str | None
    source: Source


def read_text(file: Path) -> bytes:
    """What is in a configuration file.

    Raises:
        ConfigError: it cannot be read, or is no configuration by its size.
    """
    try:
        with file.open("rb") as stream:
            text = stream.read(LARGEST + 1)
    except FileNotFoundError:
        raise ConfigError((f"{file}: there is no such file; check the path",)) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError((f"{file}: cannot be read ({why}); check its permissions",)) from None
    if len(text) > LARGEST:
        raise ConfigError((f"{file}: is larger than {LARGEST:,} bytes, which no configuration is",))
    return text


def read_yaml(file: Path, text: bytes) -> Read:
    """The sections of a file that matter here.

    Args:
        file: for messages.
        text: what is in it.

    Raises:
        ConfigError: with the line of each mistake.
    """
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise ConfigError((f"{file}, line {line}: is not UTF-8; save the file as UTF-8",)) from None
    try:
        root = yaml.compose(decoded, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError((_malformed(file, error),)) from None
    except RecursionError:
        raise ConfigError((f"{file}: is nested too deeply; no configuration is",)) from None
    reader = _Reader(file)
    sections = reader.top(root)
    node = sections.get(SECTION)
    section = reader.value(node, ()) if node is not None else None
    if reader.problems:
        raise ConfigError(tuple(reader.problems))
    models, kinds = _models(sections.get("models"))
    source = Source(file, reader.lines, reader.variables, text, node is not None)
    return Read(section, models, kinds, _skills(sections.get("skills")), source)


def _malformed(file: Path, error: Any) -> str:
    """An error of the YAML library, with the line and what to do."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f"{file}, line {mark.line + 1}" if mark is not None else f"{file}"
    what = getattr(error, "problem", None) or "it cannot be read"
    if "cannot start any token" in what and "\\t" in what:
        return f"{place}: a tab cannot indent YAML; use spaces"
    return (
        f"{place}: malformed YAML ({what}); check the indentation (the keys of one section begin "
        "in one column, two spaces further in than the section), colons, quotes and brackets"
    )


class _Reader:
    """Turns nodes into data, and takes down where each stands."""

    def __init__(self, file: Path) -> None:
        self.lines: dict[Path_, int] = {}
        self.variables: dict[Path_, str] = {}
        self.problems: list[str] = []
        self._file, self._left = file, MOST
        self._within: set[int] = set()
        self._loader = yaml.SafeLoader("")

    def _wrong(self, node: Any, text: str, line: int | None = None) -> None:
        self.problems.append(f"{self._file}, line {line or node.start_mark.line + 1}: {text}")

    def top(self, root: Any) -> dict[str, Any]:
        """The sections of a file, as nodes."""
        if root is None:
            return {}
        if not isinstance(root, yaml.MappingNode):
            self._wrong(root, f"a configuration is made of sections, such as '{SECTION}:'")
            return {}
        found: dict[str, Any] = {}
        for key, node in root.value:
            if key.value == SECTION and SECTION in found:
                self._wrong(key, f"the section '{SECTION}' is there twice; join the two")
            found[str(key.value)] = node
            if key.value == SECTION:
                self.lines[()] = key.start_mark.line + 1
        if SECTION not in found:
            self._missing(root)
        return found

    def _missing(self, root: Any) -> None:
        """Somebody may have meant to write the section."""
        from conspectus.config.schema import KEYS

        for key, _ in root.value:
            name = str(key.value)
            if nearest(name, [SECTION]):
                self._wrong(key, f"unknown section '{name}'; did you mean '{SECTION}'?")
            elif name in KEYS and name not in ("enabled", "subagents", "window", "archive"):
                self._wrong(
                    key,
                    f"'{name}' stands at the top of the file; put it under '{SECTION}:', two "
                    "spaces further in",
                )
                return

    def value(self, node: Any, where: Path_) -> Any:
        """A node as plain data."""
        self._left -= 1
        if self._left == 0 or id(node) in self._within:
            line = self.lines.get(where, node.start_mark.line + 1)
            self._wrong(node, "aliases make this endless, or huge; write it out", line)
        if self._left <= 0 or id(node) in self._within:
            return None
        self.lines.setdefault(where, node.start_mark.line + 1)
        self._within.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, where)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(one, (*where, i)) for i, one in enumerate(node.value)]
            return self._scalar(node, where)
        finally:
            self._within.discard(id(node))

    def _mapping(self, node: Any, where: Path_) -> dict[str, Any]:
        own: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.value in own and key.tag != "tag:yaml.org,2002:merge":
                self._wrong(key, f"'{key.value}' is there twice, first in line {own[key.value]}")
            own.setdefault(str(key.value), line)
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            try:
                self._loader.flatten_mapping(node)
            except yaml.YAMLError as error:
                self._wrong(node, f"{getattr(error, 'problem', error)}; '<<' takes a mapping")
                return {}
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._wrong(key, "a key must be a plain word")
                continue
            name = str(key.value)
            self.lines[(*where, name)] = key.start_mark.line + 1
            found[name] = self.value(value, (*where, name))
        return found

    def _scalar(self, node: Any, where: Path_) -> Any:
        variable = _VARIABLE.fullmatch(node.value) if node.tag == "tag:yaml.org,2002:str" else None
        if variable is not None:
            name = variable[1] or variable[2]
            given = os.environ.get(name)
            self.variables[where] = node.value
            if not given:
                self._wrong(
                    node, f"the environment variable {name} is not set; set it, or write the value"
                )
                return None
            return Secret(given, node.value)
        try:
            return self._loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError):
            self._wrong(node, "YAML does not know this value; write a text, a number, true or null")
            return None


def _plain(node: Any) -> Any:
    """A section of somebody else's, read as far as it can be."""
    try:
        loader = yaml.SafeLoader("")
        return loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _models(node: Any) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """What a file says of its models: windows in tokens, and how they are made."""
    windows: dict[str, int] = {}
    kinds: dict[str, tuple[str, str]] = {}
    listed = _plain(node)
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        name = one["name"]
        for key in ("context_window", "max_input_tokens"):
            limit = one.get(key)
            if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
                windows.setdefault(name, limit)
        use, model = one.get("use"), one.get("model")
        if isinstance(use, str) and isinstance(model, str) and use.startswith("langchain_"):
            provider = re.split(r"[:.]", use)[0].removeprefix("langchain_")
            kinds[name] = (provider, model)
    return windows, kinds


def _skills(node: Any) -> str | None:
    data = _plain(node)
    found = data.get("container_path") if isinstance(data, dict) else None
    return found if isinstance(found, str) and found else None


def number(text: str) -> int | float | None:
    """A number out of an environment variable; None if it is none."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    return float(text) if "." in text else int(text)
