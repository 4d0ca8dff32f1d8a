"""Skill files that an agent has read. A reference to each stays in the notes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from conspectus.notes.tools import PATHS

FOLDER = "/mnt/skills"
"""The default folder of skills."""


@dataclass(frozen=True, slots=True)
class Skills:
    """Which calls read skill files: a reference to each file stays in the notes.

    Attributes:
        tools: names of the tools.
        folder: where skills are; what is read elsewhere is an ordinary file.

    Example:
        >>> skills = Skills(("read_file",))
        >>> skills.read("read_file", [("path", "/mnt/skills/public/pdf/SKILL.md")])
        {'/mnt/skills/public/pdf/SKILL.md': 'pdf (/mnt/skills/public/pdf/SKILL.md)'}
    """

    tools: tuple[str, ...]
    folder: str = FOLDER

    def read(self, tool: str, args: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the skill file that a call has read, with its reference; empty if there is none.

        The reference has the name of its folder, which is the skill's name.

        Args:
            tool: its name.
            args: its arguments, each a name and a value.
        """
        values = dict(args)
        path = posixpath.normpath(next((values[key] for key in PATHS if values.get(key)), "."))
        folder, file = posixpath.split(path)
        inside = path.startswith(posixpath.normpath(self.folder).rstrip("/") + "/")
        if tool not in self.tools or not inside or file != "SKILL.md":
            return {}
        return {path: f"{posixpath.basename(folder)} ({path})"}
