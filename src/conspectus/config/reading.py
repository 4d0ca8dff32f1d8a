"""A YAML file as plain data that knows its lines, with the values of environment variables.

It is made of the nodes that PyYAML composes, not of what a loader builds: a mistake needs a value's
own text and every key that is there twice, and sections of others must not be built to be left
alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]

from conspectus.archive import without_password
from conspectus.config.beside import MERGE, MOST, models_in, pairs, skills_in
from conspectus.config.words import lookalikes, nearest
from conspectus.errors import ConfigError

SECTION = "summarization"
"""The section that is ours; what else the file holds is others' business."""

LARGEST = 1_000_000
"""Bytes of a configuration at most."""

DEEPEST = 100
"""Levels of nesting that a file may have; DeerFlow's own have six."""

OURS = frozenset(
    "trim_tokens_to_summarize summary_prompt skill_file_read_tool_names max_summary_tokens notes "
    "max_summarizer_tokens summarizer_timeout recall_tokens".split()
)
"""Keys that nobody else has a section for."""

SHARED = frozenset(("enabled", "window", "archive"))
"""Keys that others may have sections for."""

SHORTEST = 4
"""Characters of a variable's value that no message shows; a shorter one hides nothing."""

T = TypeVar("T")
Path_ = tuple[str | int, ...]
"""Where a value stands: keys, and places in lists."""

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+)")
_ODD = re.compile(r"[-+]?(?:0[\d_]+|[\d_]+(?::\d+)+)")


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

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.shown

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
        values: what the variables held when the file was read, by their names.
    """

    file: Path | None = None
    lines: Mapping[Path_, int] = field(default_factory=dict)
    variables: Mapping[Path_, str] = field(default_factory=dict)
    text: bytes = field(default=b"", repr=False)
    found: bool = True
    values: Mapping[str, str] = field(default_factory=dict, repr=False)

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
        """A text with the names of variables in place of what they hold, and without passwords."""
        for name, value in self.values.items():
            text = text.replace(value, name) if len(value) >= SHORTEST else text
        return without_password(text)

    def within(self, where: Path_) -> Source:
        """The same for settings laid over the section: what stands in a part counts as the whole's.

        Args:
            where: of the part, such as that of a subagent.
        """

        def over(known: Mapping[Path_, T]) -> dict[Path_, T]:
            part = {at[len(where) :]: v for at, v in known.items() if at[: len(where)] == where}
            own = {at[0] for at in part if at}
            rest = {at: v for at, v in known.items() if not at or at[0] not in own}
            return {**rest, **{at: v for at, v in part.items() if at}}

        return replace(self, lines=over(self.lines), variables=over(self.variables))


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

    section: Any = field(repr=False)
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
        root = yaml.compose(decoded, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError((_malformed(file, error, decoded),)) from None
    except _TooDeepError as error:
        raise ConfigError((_too_deep(file, error.line),)) from None
    except RecursionError:  # the caller has left little room
        raise ConfigError((_too_deep(file, 1),)) from None
    reader = _Reader(file)
    try:
        sections = reader.top(root)
        node = sections.get(SECTION)
        section = reader.value(node, ()) if node is not None else None
    except RecursionError:  # an alias of what holds it
        raise ConfigError((_too_deep(file, 1),)) from None
    if reader.problems:
        raise ConfigError(tuple(reader.problems))
    models, kinds = models_in(sections.get("models"))
    source = Source(file, reader.lines, reader.variables, text, node is not None, reader.values)
    return Read(section, models, kinds, skills_in(sections.get("skills")), source)


class _TooDeepError(Exception):
    """A file is nested deeper than any configuration."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Stops where brackets or indents are nested deeper than `DEEPEST`.

    The scanner takes square time of them, and it looks ahead, so the scanner is what has to stop.
    """

    def fetch_flow_collection_start(self, token: Any) -> None:
        self._check(self.flow_level)
        super().fetch_flow_collection_start(token)

    def add_indent(self, column: int) -> bool:
        self._check(len(self.indents))
        return bool(super().add_indent(column))

    def _check(self, depth: int) -> None:
        if depth >= DEEPEST:
            raise _TooDeepError(self.line + 1)


def _too_deep(file: Path, line: int) -> str:
    return (
        f"{file}, line {line}: is nested deeper than {DEEPEST} levels, which no configuration is; "
        "check the brackets"
    )


def _malformed(file: Path, error: Any, text: str) -> str:
    """An error of the YAML library, with the line and what to do."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        what = f"U+{ord(text[error.position]):04X}"
        return f"{file}, line {line}: YAML takes no character {what}; delete it"
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f"{file}, line {mark.line + 1}" if mark is not None else f"{file}"
    what = getattr(error, "problem", None) or "it cannot be read"
    if "cannot start any token" in what and "\\t" in what:
        return f"{place}: a tab cannot indent YAML; use spaces"
    if "another document" in what:
        return f"{place}: a configuration is one document; take out this '---' or what follows it"
    return (
        f"{place}: malformed YAML ({what}); check the indentation (the keys of one section begin "
        "in one column, two spaces further in than the section), colons, quotes and brackets"
    )


class _Reader:
    """Turns nodes into data, and takes down where each stands."""

    def __init__(self, file: Path) -> None:
        self.lines: dict[Path_, int] = {}
        self.variables: dict[Path_, str] = {}
        self.values: dict[str, str] = {}
        self.problems: list[str] = []
        self._file, self._left = file, MOST
        self._within: set[int] = set()
        self._loader = yaml.SafeLoader("")

    def _wrong(self, node: Any, text: str, line: int | None = None) -> None:
        place = f"{self._file}, line {line or node.start_mark.line + 1}: "
        self.problems.append(place + without_password(text))

    def top(self, root: Any) -> dict[str, Any]:
        """The sections of a file, as nodes."""
        if root is None:
            return {}
        if not isinstance(root, yaml.MappingNode):
            self._wrong(root, f"a configuration is made of sections, such as '{SECTION}:'")
            return {}
        ours = [key for key, _ in root.value if key.value == SECTION]
        for key in ours[1:]:
            self._wrong(key, f"the section '{SECTION}' is there twice; join the two")
        self._merged(root)
        found: dict[str, Any] = {}
        for key, node in root.value:
            found[str(key.value)] = node
            if key.value == SECTION:
                self.lines[()] = key.start_mark.line + 1
        self._astray(root, found.get(SECTION))
        return found

    def _astray(self, root: Any, section: Any) -> None:
        """Somebody may have meant to write the section, or to put something under it."""
        from conspectus.config.schema import KEYS

        empty = section is None or section.value == ""
        for key, node in root.value:
            # A space that does not break looks like one that indents, and is a part of the key.
            name = str(key.value).strip()
            if section is None and nearest(name, [SECTION]):
                text = f"unknown section '{name}'; did you mean '{SECTION}'?{lookalikes(name)}"
                self._wrong(key, text)
            elif name in KEYS and name != "subagents":
                sized = isinstance(node, yaml.MappingNode) and {"type", "value"} <= {
                    str(one.value) for one, _ in node.value
                }
                nobody_elses = empty and (section is not None or name not in SHARED)
                if nobody_elses or name in OURS or (sized and name in ("trigger", "keep")):
                    self._wrong(
                        key,
                        f"'{name}' stands at the top of the file; put it under '{SECTION}:', two "
                        "spaces further in",
                    )
                    return

    def _merged(self, node: Any) -> bool:
        """Put what `<<` names into a mapping; whether that can be done."""
        if not any(key.tag == MERGE for key, _ in node.value):
            return True
        if pairs(node, {}) > MOST:
            self._wrong(node, "aliases make this endless, or huge; write it out")
            return False
        try:
            self._loader.flatten_mapping(node)
        except yaml.YAMLError as error:
            self._wrong(node, f"{getattr(error, 'problem', error)}; '<<' takes a mapping")
            return False
        return True

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
            name, line = str(key.value), key.start_mark.line + 1
            if name in own and key.tag != MERGE and isinstance(key, yaml.ScalarNode):
                self._wrong(key, f"'{name}' is there twice, first in line {own[name]}")
            own.setdefault(name, line)
        if not self._merged(node):
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
            self.values[node.value] = given or ""
            if not given:
                self._wrong(
                    node, f"the environment variable {name} is not set; set it, or write the value"
                )
                return None
            return Secret(given, node.value)
        try:
            value = self._loader.construct_object(node, deep=True)
        except Exception:  # a tag may ask for what the text is not, and fails in many ways
            self._wrong(node, "YAML does not know this value; write a text, a number, true or null")
            return None
        if node.tag == "tag:yaml.org,2002:int" and _ODD.fullmatch(node.value):
            self._wrong(node, f"YAML reads {node.value} as {value}; write it as a plain number")
        return value


def number(text: str) -> int | float | None:
    """A number out of an environment variable; None if it is none."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    return float(text) if "." in text else int(text)
