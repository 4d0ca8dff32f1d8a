"""Whether a call only looks around: told by its verb, or by those of a shell command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
_CHANGES_BRANCH = re.compile(r"-\w*[dDmMcCfu]|--(?:delete|move|copy|set|unset|edit)")
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

CHECKS = re.compile(r"(?:\S*/)?(?:pytest|tox|nox|jest|vitest|rspec|phpunit|sphinx-build)|\S+ test")
"""A program that changes nothing: of its runs the newest alone says how things are."""

WRITE = "write"
"""Stands for the program of a line that writes a whole file."""

_FOLDER = re.compile(r"^\$ cd (\S+) && ")
_WRITTEN = re.compile(
    r"^\$ (?:cd \S+ && |mkdir (?:-p )?\S+ && )*cat > (\S+)(?: \([^⏎]*(?: ⏎ .*)?\))?$"
    r"|^(?:write|create)(?:_?(?:to_?)?(?:text_?)?file)?\((?:[^()]*, )?(?:file_?)?path=([^\s,()]+)",
    re.IGNORECASE,
)
_AND_MORE = re.compile(r"\) (?:&&|\|\|?|;) |\bappend", re.IGNORECASE)
"""Tells that a line which writes a file may do another thing too."""

_ARGUMENT = re.compile(r"[\w:.~/-]*[./:][\w:./-]*\w|test")
_BODY = re.compile(r" \(.*\)", re.DOTALL)
"""What a line tells of the text that a command writes."""

_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\[\s\S])*+(?:\"|(\\?\Z))")
_EDITORS = (
    (re.compile(r"\bsed\b"), re.compile(r"\s(?:-\w*i\w*|--in-place)\b")),
    (re.compile(r"\bperl\b"), re.compile(r"\s-\w*i")),
)
_PARTS = re.compile(r"[|;&]")


def in_place(text: str) -> bool:
    """Whether a shell command edits a file in place."""
    parts = _PARTS.split(text)
    return any(
        (found := editor.search(part)) and option.search(part, found.end())
        for part in parts
        for editor, option in _EDITORS
    )


def unquoted(text: str) -> str:
    """Return a shell command with its quoted strings blotted out; one left open stays.

    Example:
        >>> unquoted("grep 'a > b' menu.py")
        'grep _______ menu.py'
    """
    return _QUOTED.sub(lambda m: "_" * len(m[0]) if m[1] is None else m[0], text)


def is_look(call: Call, args: Mapping[str, Any]) -> bool:
    """Whether a call only looks around, told by its verb."""
    shell = next((k for k in SHELL if isinstance(args.get(k), str)), None)
    if shell is not None and shell != "code":
        return _shell_looks(args[shell])
    words = [word.lower() for word in _WORDS.findall(call.name)]
    return bool(words) and (
        words[0] in _LOOKS or words[-1] in ("search", "fetch", "lookup", "status")
    )


def is_trial(call: str) -> bool:
    """Whether a line only runs programs, writes whole files and looks: it can be done again.

    Whatever else a shell does, such as a commit or an edit in place, may have changed something.

    Example:
        >>> is_trial("$ cd cafe && cat > try.py (3 lines: def go():) ⏎ python try.py")
        True
        >>> is_trial("$ python try.py && git push")
        False
    """
    if not call.startswith("$ ") or in_place(call) or call.count("cat >") > 1:
        return False  # what stands between two texts that are written is not read
    pieces = [piece.split() for piece in _PIECES.split(_BODY.sub("", unquoted(call[2:])))]
    return all(
        words[0] in ("cat", "cd") or _RUNS.fullmatch(words[0]) or _shell_looks(" ".join(words))
        for words in pieces
        if words
    )


def run_of(call: str) -> tuple[str, str] | None:
    """Return the program that a line runs and what on; None where it may do anything else.

    What checks may be asked for more or less; of any other program each word tells what it does.
    A line that writes a whole file counts as one of a program that writes it.

    Example:
        >>> run_of("$ cd cafe && python -m pytest -q tests/menu.py")
        ('pytest', 'cafe: tests/menu.py')
    """
    text = call.removeprefix("$ ")
    folder = f"{found[1]}: " if (found := _FOLDER.match(call)) else ""
    if (written := _WRITTEN.search(call)) is not None:
        path = written[1] or written[2]
        unclear = "…" in path or _AND_MORE.search(call)
        return None if unclear else (WRITE, path if path.startswith("/") else folder + path)
    if text == call or _WRITES.search(text) or in_place(text) or "…" in text:
        return None
    runs, beside = list[tuple[str, str]](), list[str]()
    for piece in _PIECES.split(text):
        first, _, rest = piece.partition("|")
        words = first.split()
        around = list[str]()
        while words and "=" in words[0]:
            around.append(words.pop(0))
        if not words or words[0] in ("cd", "rm", "export", "source"):
            beside += around + words * (words[:1] != ["cd"])
            continue
        if _shell_looks(piece):
            continue
        if words[1:2] == ["-m"] or words[:2] in (["uv", "run"], ["npx", "run"]):
            words = words[2:]
        if "-c" in words[:2] or "-" in words[:2] or not words or not _RUNS.fullmatch(words[0]):
            return None
        if rest and not _shell_looks(rest):
            return None
        things = [word for word in words[1:] if _ARGUMENT.fullmatch(word)]
        program = " ".join([words[0], *things[:1]]) if things[:1] == ["test"] else words[0]
        if CHECKS.fullmatch(program):
            runs.append((program, " ".join(things)))
        else:
            runs.append((program, " ".join(around + words[1:])))
    if len(runs) != 1:
        return None
    [(program, thing)] = runs
    return program, " ".join([*beside, folder + thing])


def _shell_looks(text: str) -> bool:
    text = text.replace("\\\n", " ")
    if _WRITES.search(text) or in_place(text):
        return False
    text = unquoted(text)
    verbs = []
    for piece in _PIECES.split(text):
        for part in piece.split("|"):
            words = [w for w in part.split() if "=" not in w.partition("/")[0] or w.startswith("-")]
            if words[:1] == ["env"] and len(words) > 1:
                words = words[1:]
            if not words or words[0] in ("cd", "export", "set", "true", "source"):
                continue
            verb = words[0].rpartition("/")[2]
            if verb == "git":
                verb = "log" if _git_looks(words[1:]) else "git"
            elif verb in ("xargs", "find"):
                at = 0 if verb == "xargs" else words.index("-exec") if "-exec" in words else -1
                runs = [w for w in words[at + 1 :] if w[:1] not in "-{" and not w.isdigit()]
                verb = runs[0].rpartition("/")[2] if at >= 0 and runs else "find"
            verbs.append(verb)
    return bool(verbs) and all(
        v in _LOOKS or v in ("sort", "uniq", "cut", "tr", "xargs") for v in verbs
    )


def _git_looks(words: Sequence[str]) -> bool:
    """Whether a command of git only looks: to name a branch makes it, to name a remote may too."""
    if words[:1] == ["branch"]:
        listed = {"--list", "--contains", "--merged", "--no-merged", "-l"} & set(words)
        changes = any(map(_CHANGES_BRANCH.match, words))
        return not changes and (bool(listed) or all(w.startswith("-") for w in words[1:]))
    if words[:1] == ["remote"]:
        return words[1:2] in ([], ["-v"], ["show"], ["get-url"])
    return words[:1] != [] and words[0] in _GIT_LOOKS
