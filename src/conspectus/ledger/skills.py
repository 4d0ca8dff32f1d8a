"""Skill files that an agent has read: a reference to each, and the rules that they set.

What tools print sets no rules. A skill file is another matter: whoever runs the agent has put it
there and has named the tools that read it. So only what such a tool gave for a `SKILL.md` in the
folder of skills counts, and only what the call asked for decides that.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.ledger.fact import Fact
from conspectus.ledger.reading import statements
from conspectus.messages import Entry

FOLDER = "/mnt/skills"
"""Where skills are, unless somebody says otherwise."""

FILE = "SKILL.md"

PATHS = ("path", "file_path", "filename", "file", "target_file", "filepath")
"""Names of the arguments that tell which file a tool reads."""

RULES = 40
"""Rules of one file that are carried at most."""


@dataclass(frozen=True, slots=True)
class Skills:
    """Which calls read skill files.

    Attributes:
        tools: names of the tools.
        folder: where skills are; what is read elsewhere is an ordinary file.

    Example:
        >>> Skills(("read_file",)).path("read_file", '{"path": "/mnt/skills/public/pdf/SKILL.md"}')
        '/mnt/skills/public/pdf/SKILL.md'
    """

    tools: tuple[str, ...]
    folder: str = FOLDER

    def path(self, tool: str, args: str) -> str:
        """Return the skill file that a call reads; empty if it reads none.

        Args:
            tool: its name.
            args: its arguments, as JSON.
        """
        if tool not in self.tools:
            return ""
        try:
            given: Any = json.loads(args)
        except (ValueError, RecursionError):
            return ""
        named = given if isinstance(given, dict) else {}
        found = next((named[key] for key in PATHS if isinstance(named.get(key), str)), "")
        path = posixpath.normpath(found) if found else ""
        inside = path.startswith(posixpath.normpath(self.folder).rstrip("/") + "/")
        return path if inside and posixpath.basename(path) == FILE else ""

    def facts(self, entries: Sequence[Entry], start: int = 0) -> Iterator[tuple[int, Fact]]:
        """For each skill file that was read: the reference, and the rules in it.

        Args:
            entries: messages, calls together with their results.
            start: the place of the first one, in messages.

        Returns:
            Facts, each with the place of its message in `entries`.
        """
        asked: dict[str, str] = {}
        for place, entry in enumerate(entries):
            for call in entry.calls:
                asked[call.id] = self.path(call.name, call.args)
            path = next((asked[one] for one in entry.answers if asked.get(one)), "")
            if not path or getattr(entry.source, "status", None) == "error":
                continue
            order = start + place
            value = f"{_name(path, entry.text)} ({path})"
            yield place, Fact("skill", value, value, entry.cite, entry.role, order=order, told=1)
            for text in _rules(entry.text):
                yield place, Fact("rule", text, text, entry.cite, entry.role, order=order, told=1)


def _name(path: str, text: str) -> str:
    """Return the name of a skill in its file, or the name of its folder."""
    for line in text.split("\n")[:20] if text.lstrip().startswith("---") else ():
        key, colon, value = line.partition(":")
        if colon and key.strip() == "name" and value.strip():
            return " ".join(value.strip().strip("\"'").split())[:80]
    return posixpath.basename(posixpath.dirname(path))


def _rules(text: str) -> list[str]:
    # What the file says is said to the agent, as a user's own words are.
    stated = (one.text for one in statements(text) if one.kind in ("rule", "preference"))
    return list(dict.fromkeys(stated))[:RULES]
