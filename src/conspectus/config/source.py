"""The source of a configuration: its lines, environment variables and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from conspectus.archive import without_password
from conspectus.errors import ConfigError

SECTION = "summarization"  # The section that is ours; the rest of a file belongs to others

SHORTEST = 4
"""Least length of a variable's value that messages hide; a shorter one is part of many words."""

T = TypeVar("T")
Path_ = tuple[str | int, ...]  # The place of a value: keys, and indexes of lists


class Secret(str):
    """A text out of an environment variable, which is never printed; `shown` is its name."""

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

    `lines` and `variables` (names) are by place in the section, `values` by name of the variable.
    `file` is None for a configuration made in Python; `found` says whether the file has the
    section.
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
        return ConfigError((self.problem(where, text),))

    def hidden(self, text: str) -> str:
        """Replace values of variables by their names, and hide passwords."""
        for name, value in self.values.items():
            text = text.replace(value, name) if len(value) >= SHORTEST else text
        return without_password(text)

    def within(self, where: Path_) -> Source:
        """Return the source of settings that override the section at a place."""

        def over(known: Mapping[Path_, T]) -> dict[Path_, T]:
            part = {at[len(where) :]: v for at, v in known.items() if at[: len(where)] == where}
            own = {at[0] for at in part if at}
            rest = {at: v for at, v in known.items() if not at or at[0] not in own}
            return {**rest, **{at: v for at, v in part.items() if at}}

        return replace(self, lines=over(self.lines), variables=over(self.variables))


@dataclass(frozen=True, slots=True)
class Read:
    """The related parts of a file.

    `models` has the declared windows in tokens, `kinds` provider and own name of each model, by its
    name in the file; `skills` is the folder of skills.
    """

    section: Any = field(repr=False)
    models: Mapping[str, int]
    kinds: Mapping[str, tuple[str, str]]
    skills: str | None
    source: Source
