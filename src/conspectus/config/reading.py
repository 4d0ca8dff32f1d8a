"""Read a YAML file as plain data with lines and environment variables.

It reads the nodes that PyYAML composes, not a loader's objects: messages need a value's own text
and repeated keys, and sections of others must not be built.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from conspectus.archive import without_password
from conspectus.config.source import SECTION, Path_, Read, Secret, Source
from conspectus.config.words import lookalikes, nearest
from conspectus.errors import ConfigError

LARGEST = 1_000_000  # Most bytes of a configuration
DEEPEST = 100  # Most levels of nesting; DeerFlow's own files have six
MOST = 10_000  # Most values of a section; aliases could make more of a small file than memory has
MERGE = "tag:yaml.org,2002:merge"  # The tag of `<<`

OURS = frozenset(
    "trim_tokens_to_summarize summary_prompt skill_file_read_tool_names max_summary_tokens notes "
    "summarizer_timeout recall_tokens".split()
)
"""Keys that no other section name equals."""

SHARED = frozenset(("enabled", "window", "archive"))  # Keys that may be names of other sections

ENDLESS = "aliases make this endless, or huge; write it out"

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ODD = re.compile(r"[-+]?(?:0[\d_]+|[\d_]+(?::\d+)+)")


def read_text(file: Path) -> bytes:
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
    """Read the related sections of a file."""
    root, reader = _composed(file, text), _Reader(file)
    sections = reader.sections(root)
    section, source = reader.finished(sections.get(SECTION), text)
    models, kinds = models_in(_leniently(file, sections.get("models")))
    skills = skills_in(_leniently(file, sections.get("skills")))
    return Read(section, models, kinds, skills, source)


def read_section(file: Path, text: bytes, name: str) -> tuple[Any, Source]:
    """Read another section of a file, with its lines; None if it is missing."""
    root, reader = _composed(file, text), _Reader(file)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    for key, node in pairs:
        if key.value == name:
            reader.lines[()] = key.start_mark.line + 1
            return reader.finished(node, text)
    return reader.finished(None, text)


def _leniently(file: Path, node: Any) -> Any:
    """Read another owner's section as far as possible, without errors."""
    try:
        return _Reader(file, variables=False).value(node, ())
    except (ConfigError, RecursionError):
        return None


def _composed(file: Path, text: bytes) -> Any:
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise ConfigError((f"{file}, line {line}: is not UTF-8; save the file as UTF-8",)) from None
    try:
        return yaml.compose(decoded, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError((_malformed(file, error, decoded),)) from None
    except _TooDeepError as error:
        raise ConfigError((_too_deep(file, error.line),)) from None
    except RecursionError:  # the caller has left little room
        raise ConfigError((_too_deep(file, 1),)) from None


class _TooDeepError(Exception):
    """A file is nested too deep."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """A loader that stops at brackets or indents nested deeper than `DEEPEST`.

    The scanner takes quadratic time for them, and it looks ahead, so it has to stop itself.
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
    """Describe an error of the YAML library, with the line and a remedy."""
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
    """Turns nodes into data with the line of each."""

    def __init__(self, file: Path, variables: bool = True) -> None:
        self.lines: dict[Path_, int] = {}
        self._variables: dict[Path_, str] = {}
        self._values: dict[str, str] = {}
        self._problems: list[str] = []
        self._file, self._looks_up, self._left = file, variables, MOST
        self._within: set[int] = set()
        self._loader = yaml.SafeLoader("")

    def _wrong(self, node: Any, text: str, line: int | None = None) -> None:
        place = f"{self._file}, line {line or node.start_mark.line + 1}: "
        self._problems.append(place + without_password(text))

    def finished(self, node: Any, text: bytes) -> tuple[Any, Source]:
        """Read a section and its source; None for the node of a missing one."""
        try:
            section = self.value(node, ())
        except RecursionError:  # an alias of what holds it
            raise ConfigError((_too_deep(self._file, 1),)) from None
        if self._problems:
            raise ConfigError(tuple(self._problems))
        found, values = node is not None, self._values
        return section, Source(self._file, self.lines, self._variables, text, found, values)

    def sections(self, root: Any) -> dict[str, Any]:
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
        """Report a misspelt section, and keys that belong under it."""
        from conspectus.config.schema import KEYS

        empty = section is None or section.value == ""
        for key, node in root.value:
            # A no-break space looks like indentation, and is a part of the key.
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
        """Put the mappings that `<<` names into a mapping; return whether that worked."""
        if not any(key.tag == MERGE for key, _ in node.value):
            return True
        if _pairs(node, {}) > MOST:
            self._wrong(node, ENDLESS)
            return False
        try:
            self._loader.flatten_mapping(node)
        except yaml.YAMLError as error:
            self._wrong(node, f"{getattr(error, 'problem', error)}; '<<' takes a mapping")
            return False
        except RecursionError:  # an alias of what holds it
            raise ConfigError((_too_deep(self._file, 1),)) from None
        return True

    def value(self, node: Any, where: Path_) -> Any:
        """Return the plain data of a node."""
        if node is None:
            return None
        self._left -= 1
        if self._left == 0 or id(node) in self._within:
            line = self.lines.get(where, node.start_mark.line + 1)
            self._wrong(node, ENDLESS, line)
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
        text = self._looks_up and node.tag == "tag:yaml.org,2002:str"
        if text and (variable := _VARIABLE.fullmatch(node.value)):
            name = variable[1] or variable[2]
            given = os.environ.get(name)
            self._variables[where] = node.value
            self._values[node.value] = given or ""
            if not given:
                self._wrong(
                    node, f"the environment variable {name} is not set; set it, or write the value"
                )
                return None
            return Secret(given, node.value)
        try:
            value = self._loader.construct_object(node, deep=True)
        except Exception:  # a tag may not suit its text, and fails in many ways
            self._wrong(node, "YAML does not know this value; write a text, a number, true or null")
            return None
        if node.tag == "tag:yaml.org,2002:int" and _ODD.fullmatch(node.value):
            self._wrong(node, f"YAML reads {node.value} as {value}; write it as a plain number")
        return value


def _pairs(node: Any, known: dict[int, int]) -> int:
    """Count the keys of a mapping with all its merges written out."""
    if id(node) not in known:
        known[id(node)] = 0  # one that merges itself
        total = 0
        for key, value in node.value:
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for one in merged if key.tag == MERGE else ():
                total += _pairs(one, known) if isinstance(one, yaml.MappingNode) else 0
            total += key.tag != MERGE
        known[id(node)] = total
    return known[id(node)]


def models_in(listed: Any) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """Read the `models:` section: windows in tokens, providers and names."""
    windows: dict[str, int] = {}
    kinds: dict[str, tuple[str, str]] = {}
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


def skills_in(data: Any) -> str | None:
    """Read the folder that the `skills:` section names; None without one."""
    found = data.get("container_path") if isinstance(data, dict) else None
    return found if isinstance(found, str) and found else None
