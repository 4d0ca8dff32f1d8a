"""Shell command lines in a text: in fences, after a prompt, in backquotes; and in tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal

from conspectus.ledger.wording.marks import PROGRAMS
from conspectus.messages.content import Call

LONGEST = 300
"""Characters up to which a line is carried as a command."""

_TOOLS = re.compile(
    r"bash|shell|terminal|command|^sh$|^execute$|^exec$|^run$|console|powershell", re.I
)
_KEYS = ("command", "cmd", "commands", "script", "bash_command", "shell_command", "code")
_PROMPT = re.compile(r"^\s*(?:[\w.@~:/-]*[$❯]|>{3}|PS>)\s+(?=\S)")
_QUOTED = re.compile(r"`([^`\n]{3,300})`")
_FIRST = re.compile(r"\s*(?:[A-Z_][A-Z0-9_]*=\S+\s+)*(?:sudo\s+)?((?:\./|\.venv/bin/)?[\w.-]+)")


def is_command(text: str, shell: bool = False) -> bool:
    """Whether a line is a command as one would type it: a known program, and more.

    Args:
        text: the line.
        shell: it stands where commands do, so that any program with an option will do.

    Example:
        >>> is_command("git push origin main"), is_command("make it so")
        (True, False)
    """
    first = _FIRST.match(text)
    if first is None or len(text) > LONGEST:
        return False
    program = first[1].removeprefix(".venv/bin/")
    if first[1].startswith("./"):
        return True
    if shell and re.match(r"[a-z][\w.-]*(?:\s+\S+){0,6}?\s+--?[a-zA-Z]", text):
        return True
    if program not in PROGRAMS:
        return False
    rest = text[first.end() :].strip()
    if not rest:
        return False
    if program in (
        "make",
        "find",
        "go",
        "watch",
        "source",
        "service",
        "kill",
        "head",
        "less",
        "top",
        "convert",
        "export",
        "cat",
        "screen",
        "fly",
    ):
        # Words of English too.
        return not re.search(r"\s(?:it|the|a|an|sure|this|that|my|me|them|out|to)\b", f" {rest}")
    return True


def commands(line: str) -> Iterator[tuple[Literal["command"], str, int]]:
    """Commands in one line of talk: after a prompt, or in backquotes."""
    if "`" in line:
        for quoted in _QUOTED.finditer(line):
            if " " in quoted[1].strip() and is_command(quoted[1].strip()):
                inner = quoted[1].strip()
                yield "command", inner, line.index(inner, quoted.start())
    if ("$" in line or "❯" in line) and (prompt := _PROMPT.match(line)):
        rest = line[prompt.end() :].strip()
        if is_command(rest):
            yield "command", rest, prompt.end()


def called(call: Call) -> Iterator[str]:
    """The commands that a tool call carries out."""
    if not _TOOLS.search(call.name):
        return
    try:
        args = json.loads(call.args)
    except (ValueError, RecursionError):
        return
    if not isinstance(args, dict):
        return
    texts = [args[key] for key in _KEYS if isinstance(args.get(key), str)]
    for text in texts[:1]:
        for row in text.split("\n")[:20]:
            row = row.strip()
            known = "\n" not in text.strip() or is_command(row)
            if row and known and len(row) <= LONGEST and not row.startswith("#"):
                yield row
