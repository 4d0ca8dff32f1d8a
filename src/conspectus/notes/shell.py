"""Whether a command of a shell changes anything, by the programs that it runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conspectus.notes.cutting import BREAK, one_line

SHELLS = frozenset(
    "bash sh shell zsh terminal execute_bash execute_command run_command run_shell_command "
    "run_terminal_cmd run_in_terminal local_shell shell_command".split()
)
"""Names of tools that run a command of a shell, in small letters."""

COMMAND_ARGUMENTS = ("command", "cmd", "script", "code", "")
"""Names of the argument with the command."""

READING_PROGRAMS = frozenset(
    "cat head tail less more nl wc ls ll tree find fd grep egrep fgrep rg ag ack sort uniq cut tr "
    "column diff cmp comm stat file du df pwd which whereis type echo printf env printenv date "
    "whoami id hostname uname ps top free uptime jq yq xxd od strings md5sum sha256sum basename "
    "dirname realpath readlink awk cd true test [ export set".split()
)
"""Programs that only read or print."""

READING_GIT_COMMANDS = frozenset("status diff log show blame grep ls-files rev-parse".split())
"""Commands of git that only read."""

_CHANGING = re.compile(
    r"(?:^|[\s;&|(])(?:sudo\s+)?(?:rm|mv|cp|mkdir|rmdir|touch|ln|chmod|chown|tee|patch|dd|install|kill|"
    r"git\s+(?:add|commit|push|pull|merge|rebase|checkout|switch|restore|reset|stash|apply|clone|rm|mv|tag|cherry-pick)|"
    r"(?:pip3?|npm|yarn|pnpm|apt|apt-get|brew|cargo|gem|conda|uv)\s+(?:install|add|remove|uninstall|update|upgrade))\s"
)
"""A program that changes something, at the beginning of a command."""

_WRITES_FILE = re.compile(r"(?<![\d&=<>-])[12]?>{1,2}(?!&|\s*/dev/null|=|\()\s*[\w./~$\"'{-]")
_TARGET = re.compile(r"(?<![\d&=<>-])[12]?>{1,2}(?!&|\s*/dev/null|=|\()\s*([^\s;&|<>]{1,200})")
_QUOTATION_PLACE = re.compile("\0(\\d{1,9})\0")
_IN_PLACE = re.compile(r"(?:^|[\s;&|(])(?:sed|perl)\s+(?:-\w+\s+)*-\w*i\b")
_PARTS = re.compile(r"&&|\|\|?|;|\n")
_QUOTED = re.compile(r"'[^']*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z)")
_HERE_TEXT = re.compile(
    r"<<-?[ \t]*(['\"]?)(\w{1,40})\1([^\n]*)\n(?:(?!\2\b)[^\n]*\n)*+(?:\2\b)?", re.MULTILINE
)
"""A text inside a command (`<<END`), with the rest of the line on which it is announced."""

_SETTING = re.compile(r"^\w+=\S*\s+")

LONGEST_COMMAND = 20_000
"""Characters of a command that are read."""


def command_in(args: Sequence[tuple[str, str]]) -> str:
    """Return the command among the arguments of a call of a shell."""
    last = args[-1][1] if args else ""
    return next((value for name, value in args if name in COMMAND_ARGUMENTS), last)


def what_changes(command: str) -> str:
    """Return the parts of a command that change something, a written file as `> file`.

    Without such parts it is the command, without the folder in which it runs.

    Example:
        >>> what_changes("cd /app && echo 1 > a.py && rm -r build && ls")
        '> a.py, rm -r build'
    """
    command = command[:LONGEST_COMMAND].replace(BREAK, "\n").replace("\\\n", " ") + "\n"
    command = _HERE_TEXT.sub(r" \3 \n", command)
    quotations: list[str] = []

    def without_quotation(match: re.Match[str]) -> str:
        quotations.append(match[0])
        return f"\0{len(quotations) - 1}\0"

    parts = [part.strip() for part in _PARTS.split(_QUOTED.sub(without_quotation, command))]
    parts = [part for part in parts if part and part.split()[0] != "cd"]
    changing = [name for part in parts if (name := _what_part_changes(part))]
    text = ", ".join(dict.fromkeys(changing)) if changing else one_line("; ".join(parts))
    return _QUOTATION_PLACE.sub(lambda place: quotations[int(place[1])], text)


def _what_part_changes(part: str) -> str:
    target = _TARGET.search(part)
    if target:
        return f"> {target[1]}"
    if _IN_PLACE.search(part):
        return f"{part.split()[0]} {part.split()[-1]}"
    return part if _CHANGING.search(f"{part} ") else ""


def effect_of_command(command: str) -> bool | None:
    """Tell whether a command changes anything; None if its programs do not tell.

    Example:
        >>> effect_of_command("cd /app && grep -n total *.py | head")
        False
        >>> effect_of_command("sed -i s/1/2/ a.py")
        True
        >>> effect_of_command("make") is None
        True
    """
    command = command[:LONGEST_COMMAND].replace(BREAK, "\n") + "\n"
    command = _QUOTED.sub("''", _HERE_TEXT.sub(r" \3 ", command))
    if _IN_PLACE.search(command) or _WRITES_FILE.search(command) or _CHANGING.search(f"{command} "):
        return True
    parts = [part.strip() for part in _PARTS.split(command) if part.strip()]
    return False if parts and all(map(_only_reads, parts)) else None


def _only_reads(part: str) -> bool:
    words = _SETTING.sub("", part).split()
    if not words:
        return True
    program = words[0].rpartition("/")[2]
    if program == "git":
        return len(words) > 1 and words[1] in READING_GIT_COMMANDS
    if program == "sed":
        return "-n" in words
    return program in READING_PROGRAMS
