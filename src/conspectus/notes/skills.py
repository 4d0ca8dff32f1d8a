"""Skill files that an agent has read: a reference to each stays in the notes.

Only what a tool that the caller names read of a `SKILL.md` in the folder of skills counts.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from conspectus.notes.tools import PATHS

FOLDER = "/mnt/skills"
"""Where skills are, unless somebody says otherwise."""

FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Skills:
    """Which calls read skill files.

    Attributes:
        tools: names of the tools.
        folder: where skills are; what is read elsewhere is an ordinary file.

    Example:
        >>> skills = Skills(("read_file",))
        >>> skills.path("read_file", [("path", "/mnt/skills/public/pdf/SKILL.md")])
        '/mnt/skills/public/pdf/SKILL.md'
    """

    tools: tuple[str, ...]
    folder: str = FOLDER

    def path(self, tool: str, args: Iterable[tuple[str, str]]) -> str:
        """Return the skill file that a call reads; empty if it reads none.

        Args:
            tool: its name.
            args: its arguments, each a name and a value.
        """
        if tool not in self.tools:
            return ""
        given = dict(args)
        path = posixpath.normpath(next((given[key] for key in PATHS if given.get(key)), "."))
        inside = path.startswith(posixpath.normpath(self.folder).rstrip("/") + "/")
        return path if inside and posixpath.basename(path) == FILE else ""


def reference(path: str, text: str) -> str:
    """Return the name of a skill, as its file or its folder says, with its path."""
    name = posixpath.basename(posixpath.dirname(path))
    for line in text.split("\n")[:20] if text.lstrip().startswith("---") else ():
        key, colon, value = line.partition(":")
        if colon and key.strip() == "name" and value.strip():
            name = " ".join(value.strip().strip("\"'").split())[:80]
            break
    return f"{name} ({path})"
