"""The files that an agent has written or changed and not removed, for part 4 of the notes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from conspectus.messages.framing import as_notes
from conspectus.summarize.cutting import cut
from conspectus.summarize.looks import SHELL, unquoted
from conspectus.summarize.notes import apart
from conspectus.summarize.scripts import opened
from conspectus.summarize.steps import Step

FILES = "files written or changed: "
"""Begins the line, by which the next compaction knows it."""

MOST = 12
"""Files that are named, the newest ones."""

_KEYS = ("path", "file_path", "filename", "file", "target_file")
_MAKES = re.compile(
    r"(?:^|_)(?:write|create|edit|replace|insert|append|save|patch|update|str)", re.I
)
_REMOVES = re.compile(r"(?:^|_)(?:delete|remove|rm|unlink)", re.I)
_PATH = r"([\w.~/-]*\w\.\w+|[\w.-]+/[\w./-]+)"
_WRITTEN = re.compile(rf"(?<![<&\d=-])>{{1,2}}\s*{_PATH}|\btee (?:-a )?{_PATH}")
_CHANGED = re.compile(rf"\bsed -i\S*\s(?:'[^']*'|\"[^\"]*\"|\S+)\s+{_PATH}")
_BEGINS, _ENDS = r"(?:^|&&|[;\n])[^\S\n]*", r"[^\S\n]*(?=$|&&|[;\n])"
_MOVED = re.compile(rf"{_BEGINS}(?:git )?mv (?:-f )?([\w./~-]+) ([\w./~-]*[\w-]/?){_ENDS}")
_COPIED = re.compile(rf"{_BEGINS}cp (?:-\w+ )?[\w./~-]+ {_PATH}{_ENDS}")
_TOUCHED = re.compile(rf"{_BEGINS}touch ((?:[\w./~-]++[^\S\n]++)*+[\w./~-]*+){_ENDS}")
_GONE = re.compile(r"\brm (?:-\w+ )*([^&|;\n]+)|\bgit (?:checkout|restore)(?: --)? ([^&|;\n]+)")
_RUN = re.compile(r"\bpython[\d.]*\s+(?:-\w+\s+)*([\w./~-]+\.py)\b")
_PARTS = re.compile(r"&&|[;\n]\s*")
_PYTHON = re.compile(r"\bpython[\d.]*\s")
_HEREDOC = re.compile(r"<<-?\s*+\\?['\"]?(\w++)['\"]?[^\n]*\n")
_LINE = re.compile(r"^[^\S\n]*(\w+)(?=\s|$)", re.MULTILINE)


def files_line(steps: Sequence[Step], standing: Sequence[str]) -> str:
    """Return the line that names the files that stand, or nothing.

    Args:
        steps: the steps that leave, in order.
        standing: the lines of part 4 so far.
    """
    known: dict[str, None] = {}
    for line in standing:
        if line.startswith(FILES):
            text = apart(line)[0].removeprefix(FILES)
            known.update(dict.fromkeys(text.partition(" (")[0].split(", ")))
    scripts: dict[str, list[str]] = {}
    for step in steps:
        if step.result is None:
            continue
        touched = list(_touched(step))
        opens = opened("\n".join(str(value) for value in step.args.values()))
        written = {path: opens for path, stands in touched if stands and path.endswith(".py")}
        scripts |= written
        text = _shell(step)
        made = [opens] if _PYTHON.search(text) and not written else []
        made += [scripts.get(path, []) for path in _RUN.findall(text)]
        for path, stands in [*touched, *((path, True) for found in made for path in found)]:
            if step.failed and not (stands and _wrote_first(step, path)):
                continue
            if isinstance(stands, str):
                known = dict.fromkeys(_moved(one, path, stands) for one in known)
                continue
            known.pop(path, None)
            if stands:
                known[path] = None
    names = list(known)
    more = f" (and {len(names) - MOST} before them)" if len(names) > MOST else ""
    return as_notes(FILES + ", ".join(names[-MOST:]) + more) if names else ""


def _moved(path: str, old: str, new: str) -> str:
    """Return a path after a file or a folder was given another name, or put in another folder.

    Example:
        >>> _moved("src/a/menu.py", "src/a", "src/b"), _moved("menu.py", "menu.py", "old/")
        ('src/b/menu.py', 'old/menu.py')
    """
    old = old.rstrip("/")
    if path != old and not path.startswith(f"{old}/"):
        return path
    # Into a folder, as far as the name tells: it has no ending, and the file has one.
    last, own = new.rpartition("/")[2], old.rpartition("/")[2]
    into = new.endswith("/") or ("." in own and "." not in last and not last[:1].isupper())
    return f"{new.rstrip('/')}/{own}" * into + new * (not into) + path.removeprefix(old)


def _shell(step: Step) -> str:
    return next((step.args[key] for key in SHELL if isinstance(step.args.get(key), str)), "")


def _heredocs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the text of each here-document of a shell command starts and ends.

    Example:
        >>> [text[a:b] for text in ["cat > a <<EOF\\nham\\nEOF\\nls"] for a, b in _heredocs(text)]
        ['ham\\nEOF']
    """
    ends: dict[str, list[int]] | None = None
    at = 0
    while (found := _HEREDOC.search(text, at)) is not None:
        if ends is None:
            ends = {}
            for line in _LINE.finditer(text):
                ends.setdefault(line[1], []).append(line.end())
        closing = ends.get(found[1], [])
        place = bisect_right(closing, found.end())
        at = closing[place] if place < len(closing) else found.end()
        if place < len(closing):
            yield found.end(), at


def _without_heredocs(text: str) -> str:
    parts, at = list[str](), 0
    for start, end in _heredocs(text):
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])


def _wrote_first(step: Step, path: str) -> bool:
    """Return whether a shell wrote a file before another command failed, as its output says."""
    text = _shell(step)
    _, end = next(_heredocs(text), (0, len(text)))
    parts = _PARTS.split(_without_heredocs(text).strip())
    written = bool(text[end:].strip()) or any(path in part for part in parts[:-1])
    return written and re.search(rf"{re.escape(path)}: ", step.result or "") is None


def _touched(step: Step) -> Iterator[tuple[str, bool | str]]:
    """Each file that a step wrote or changed, has taken away or put back, or its new name."""
    args = step.args
    shell = next((args[key] for key in SHELL if isinstance(args.get(key), str)), None)
    if shell is not None:
        text = _without_heredocs(shell)
        bare = unquoted(text)
        for found in sorted(
            [
                *_WRITTEN.finditer(bare),
                *_CHANGED.finditer(text),
                *_GONE.finditer(text),
                *(found for one in (_MOVED, _COPIED, _TOUCHED) for found in one.finditer(bare)),
            ],
            key=lambda match: match.start(),
        ):
            if found.re is _MOVED:
                yield found[1], found[2]
                continue
            if found.re is _TOUCHED:
                yield from ((path, True) for path in found[1].split())
                continue
            path = next((group for group in found.groups() if group), "")
            if found.re is not _GONE:
                if not path.startswith("/dev/"):
                    yield path, True
                continue
            for word in path.split():
                yield word.strip("'\""), False
        return
    path = next((args[key] for key in _KEYS if isinstance(args.get(key), str)), "")
    if path and not step.looks:
        if _REMOVES.search(step.call.name):
            yield cut(path, 120), False
        elif _MAKES.search(step.call.name):
            yield cut(path, 120), True
