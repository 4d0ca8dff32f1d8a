"""The source of a configuration: its lines, environment variables and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from conspectus.archive import without_password
from conspectus.errors import ConfigError

SECTION = "summarization"
"""The section that is ours; the rest of a file is others' business."""

SHORTEST = 4
"""Least length of a variable's value that messages hide; a shorter one stands in many words."""

T = TypeVar("T")
Path_ = tuple[str | int, ...]
"""The place of a value: keys, and indexes of lists."""


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
    """The place where a configuration was read, so that each mistake has a line.

    Attributes:
        file: as it was given; None for one that was made in Python.
        lines: of keys and items of lists, from 1, by where they stand in the section.
        variables: names of environment variables, by where their values stand.
        text: the bytes of the file.
        found: whether the file has the section at all.
        values: values of the variables when the file was read, by their names.
    """

    file: Path | None = None
    lines: Mapping[Path_, int] = field(default_factory=dict)
    variables: Mapping[Path_, str] = field(default_factory=dict)
    text: bytes = field(default=b"", repr=False)
    found: bool = True
    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def line(self, where: Path_) -> int | None:
        """Return the line of a value, or of its holder."""
        for end in range(len(where), -1, -1):
            if (line := self.lines.get(where[:end])) is not None:
                return line
        return None

    def problem(self, where: Path_, text: str) -> str:
        """Describe a mistake with file and line."""
        line = self.line(where)
        place = "" if self.file is None else f"{self.file}, line {line or 1}: "
        return place + self.hidden(text)

    def error(self, where: Path_, text: str) -> ConfigError:
        """Return the error for one mistake."""
        return ConfigError((self.problem(where, text),))

    def hidden(self, text: str) -> str:
        """Put names of variables in place of their values, and take passwords out."""
        for name, value in self.values.items():
            text = text.replace(value, name) if len(value) >= SHORTEST else text
        return without_password(text)

    def within(self, where: Path_) -> Source:
        """Return the source of settings that are laid over the section.

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
    """The parts of a file that matter here.

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
