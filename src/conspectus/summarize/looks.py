"""Whether a call only looks around: told by its verb, or by those of a shell command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from conspectus.messages.content import Call

SHELL = ("command", "cmd", "script", "bash", "code")
"""Arguments that hold a shell command."""

_LOOKS = frozenset(
    """get read list search find look lookup view fetch show describe query check open ls grep
    glob cat browse scroll think retrieve recall inspect head tail tree stat status diff log
    history help exists count pwd which wc nl less more file rg fd ag sed awk type whoami env
    echo printenv du df ps top calculate compute calculator convert compare""".split()
)
_GIT_LOOKS = frozenset(
    "status log diff show blame grep branch ls-files remote describe rev-parse".split()
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PIECES = re.compile(r"&&|\|\||;|\n|⏎")
_WRITES = re.compile(
    r"(?<![0-9&>])>{1,2}(?!&|\s*/dev/null)|\btee\b|\bxargs\s+(?:rm|mv|sed -i)|-delete\b"
    r"|-exec\s+(?:rm|mv|sed)"
)
_RUNS = re.compile(
    r"(?:\S*/)?(?:python[\d.]*|node|ruby|perl|php|java|bash|sh|uv|npx|npm|yarn|pnpm|go|cargo|make|tox"
    r"|nox|mvn|gradlew?|pytest|jest|vitest|rspec|phpunit|sphinx-build|\S+\.(?:py|sh|js|rb|pl))"
)
"""A program that runs tests, builds, or a script, by which its line is known."""

_WRITTEN = re.compile(
    r"^\$ (?:cd \S+ && |mkdir (?:-p )?\S+ && )*cat > (\S+)(?: \([^⏎]*(?: ⏎ .*)?\))?$"
    r"|^(?:write|create)_?\w*\((?:[^()]*, )?(?:file_?)?path=([^\s,()]+)"
)
_CHECKS = re.compile(r"(?:\S*/)?(?:pytest|tox|nox|jest|vitest|rspec|phpunit|sphinx-build)")
_ARGUMENT = re.compile(r"[\w:.~/-]*[./:][\w:./-]*\w|test|build|run")
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
"""A quoted string of a shell command."""

IN_PLACE = re.compile(r"\bsed\b[^|;&]*\s(?:-\w*i\w*|--in-place)\b|\bperl\b[^|;&]*\s-\w*i")


def is_look(call: Call, args: Mapping[str, Any]) -> bool:
    """Whether a call only looks around, told by its verb."""
    shell = next((k for k in SHELL if isinstance(args.get(k), str)), None)
    if shell is not None and shell != "code":
        return _shell_looks(args[shell])
    words = [word.lower() for word in _WORDS.findall(call.name)]
    return bool(words) and (
        words[0] in _LOOKS or words[-1] in ("search", "fetch", "lookup", "status")
    )


def run_of(call: str) -> tuple[str, str] | None:
    """Return the program that a line runs and what on; None where it may do anything else.

    A line that writes a whole file counts as one of a program that writes it.

    Example:
        >>> run_of("$ cd cafe && python -m pytest -q tests/menu.py")
        ('pytest', 'tests/menu.py')
    """
    text = call.removeprefix("$ ")
    if (written := _WRITTEN.search(call)) is not None:
        return "write", written[1] or written[2]
    if text == call or _WRITES.search(text) or IN_PLACE.search(text) or "…" in text:
        return None
    runs = list[tuple[str, str]]()
    for piece in _PIECES.split(text):
        words = piece.partition("|")[0].split()
        while words and "=" in words[0]:
            words.pop(0)
        if not words or words[0] in _LOOKS or words[0] in ("cd", "rm", "export", "source"):
            continue
        if words[1:2] == ["-m"] or words[:2] in (["uv", "run"], ["npx", "run"]):
            words = words[2:]
        if "-c" in words[:2] or "-" in words[:2] or not words or not _RUNS.fullmatch(words[0]):
            return None
        checks = _CHECKS.fullmatch(words[0]) is not None  # others may do another thing for a flag
        things = [word for word in words[1:] if _ARGUMENT.fullmatch(word)][:1]
        runs.append((words[0], " ".join(things if checks else words[1:])))
    return runs[0] if len(runs) == 1 else None


def _shell_looks(text: str) -> bool:
    text = text.replace("\\\n", " ")
    if _WRITES.search(text) or IN_PLACE.search(text):
        return False
    text = QUOTED.sub("''", text)
    verbs = []
    for piece in _PIECES.split(text):
        for part in piece.split("|"):
            words = [w for w in part.split() if "=" not in w.partition("/")[0] or w.startswith("-")]
            if not words or words[0] in ("cd", "export", "set", "true", "source"):
                continue
            verb = words[0].rpartition("/")[2]
            if verb == "git":
                verb = "look" if len(words) > 1 and words[1] in _GIT_LOOKS else "git"
                verb = "log" if verb == "look" else verb
            verbs.append(verb)
    return bool(verbs) and all(
        v in _LOOKS or v in ("sort", "uniq", "cut", "tr", "xargs") for v in verbs
    )
