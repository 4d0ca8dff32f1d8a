"""Deeds that later ones supersede: undone edits, and what one call, run or record left before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from conspectus.summarize import journal
from conspectus.summarize.looks import CHECKS, WRITE, is_trial, run_of, unquoted
from conspectus.summarize.notes import apart, cited
from conspectus.summarize.scripts import EDITS

_IN_VAIN = "exit|error|fail|no answer"
"""Begins an outcome by which nothing was done."""

_UNDO = re.compile(
    r"\$ (?P<folder>cd \S+ && )?git (?:checkout|restore)(?: --)? (?P<path>[\w./-]+)"
    r" → (?:\d+ edits? above undone: )?(?:updated [1-9]|ok\b|\(no output\)|done\b)",
    re.I,
)
"""Begins a line by which a file was put back as it was, and that says so."""

_UNDONE = re.compile(r"(\d+) edits? above undone: ")

_STAGED = re.compile(
    r"\bgit\b[^&|;\n]*(?:\b(?:add|commit|stash)\b|…)|\bgit_?(?:add|commit|stash)", re.I
)
"""What stands in a line behind which a file is put back no further, or may where it is cut."""

_EDIT = re.compile(
    r"\$ (?P<folder>cd \S+ && )?(?P<shell>sed -i.*)|edit|str_replace|apply_|insert|replace"
)
"""Begins a line of an edit in place."""

_EDITED = re.compile(r"\w+\((?:command=\w+, )?(?:(?:file_?)?(?:path|name)=|file=)?([^,()\s]+)[,)]")
"""Begins such a line by a tool: the file that it names first."""

_AGAIN = re.compile(r" \(as (\w+)\)$")
TIMES = re.compile(r" \((?:newest of )?(\d+)(?: times)?\)$")
"""Ends a line: how many steps it stands for."""

_NAMED = re.compile(r"\b(?=\w*\d)(?=\w*[^\W\d])\w{4,}\b|\b\d{5,}\b")


def without_undone(
    lines: Sequence[str], before: Sequence[str] = (), later: Sequence[str] = ()
) -> list[str]:
    """Lines without the edits of a file that was put back later; that line says how many they were.

    Args:
        lines: the lines.
        before: those that stand above, whose edits count.
        later: those that stand below, which may put back, too.

    Example:
        >>> without_undone(["$ sed -i 1d a.py → ok [m2]", "$ git checkout a.py → ok [m4]"])
        ['$ git checkout a.py → 1 edit above undone: ok [m4]']
    """
    every = [*before, *lines, *later]
    kept = list(every)
    for at, line in enumerate(every):
        if (undo := _UNDO.match(line)) is None:
            continue
        since = max((n + 1 for n in range(at) if _STAGED.search(every[n])), default=0)
        gone = [n for n in range(since, at) if kept[n] and _edits(kept[n], undo)]
        for n in gone:
            kept[n] = ""
        if gone:
            text, cites = apart(line)
            call, _, came = text.partition(" → ")
            earlier = _UNDONE.match(came)
            many = max(len(gone), int(earlier[1]) if earlier else 0)
            came = came[earlier.end() :] if earlier else came
            count = f"{many} edit{'s' if many > 1 else ''}"
            kept[at] = cited(f"{call} → {count} above undone: {came}", cites)
    return [line for line in kept[len(before) : len(before) + len(lines)] if line]


def newest_of_each_call(lines: Sequence[str]) -> list[str]:
    """Lines of which those of one call stand once, as the newest, with how often it was made.

    An earlier one stays where its outcome names a thing that the newest does not: it may have been
    made then. So does one that was done, where the newest was not.

    Example:
        >>> newest_of_each_call(["$ make → exit 2 [m2]", "edit(a) → ok [m4]", "$ make → ok [m6]"])
        ['edit(a) → ok [m4]', '$ make → ok (newest of 2) [m6]']
    """
    calls: dict[str, str] = {}
    newest: dict[str, int] = {}
    kept = list(lines)
    for at, line in enumerate(lines):
        text, cites = apart(line)
        call, arrow, came = text.partition(" → ")
        if not arrow or not cites or line.startswith(journal.LOOKED):
            continue
        if again := _AGAIN.search(call):
            call = calls.get(again[1], call[: again.start()])
        calls[cites[0]] = call
        if (before := newest.get(call)) is not None:
            came, times = counted(came)
            earlier, more = counted(apart(kept[before])[0])
            earlier = earlier.partition(" → ")[2]
            if _stands_for(came, earlier):
                many = times + more
                count = f"{many} times" if earlier == came else f"newest of {many}"
                kept[before], kept[at] = "", cited(f"{call} → {came} ({count})", cites)
        newest[call] = at
    return [line for line in kept if line]


def newest_of_each_run(lines: Sequence[str]) -> list[str]:
    """Lines of which those that run one program on one thing stand once, as the newest.

    An earlier one stays as in `newest_of_each_call`, but for what only checks or is written anew.

    Example:
        >>> newest_of_each_run(["$ pytest -x a.py → exit 1: 2 failed [m2]", "$ make → ok [m4]",
        ...                      "$ pytest a.py → 3 passed [m6]"])
        ['$ make → ok [m4]', '$ pytest a.py → 3 passed (newest of 2) [m6]']
    """
    newest: dict[tuple[str, str], int] = {}
    kept = list(lines)
    for at, line in enumerate(lines):
        text, cites = apart(line)
        key = run_of(text.partition(" → ")[0])
        if key is None or not cites:
            continue
        before = newest.get(key)
        if before is not None and (CHECKS.fullmatch(key[0]) or _as_much(kept[before], line, key)):
            text, times = counted(text)
            kept[at] = cited(
                f"{text} (newest of {times + counted(apart(kept[before])[0])[1]})", cites
            )
            kept[before] = ""
        newest[key] = at
    return [line for line in kept if line]


def named_nowhere(deeds: Sequence[str], others: Sequence[str]) -> list[int]:
    """Return the places of records whose names no later call and no word has.

    Of a tool that was asked for one record alone, that is the one that the work is about.

    Example:
        >>> named_nowhere(["get(id=A100) → n=1 [m2]", "get(id=B200) → n=2 [m4]"],
        ...                ["thought: B200 it is. [m5]"])
        [0]
    """
    later = {name for line in others for name in _NAMED.findall(line)}
    looks = [at for at, line in enumerate(deeds) if journal.looked(line)]
    tools = [line.removeprefix("$ ").partition("(")[0].partition(" ")[0] for line in deeds]
    asked = Counter(tools[at] for at in looks)
    found: list[int] = []
    for at in reversed(range(len(deeds))):
        names = set(_NAMED.findall(deeds[at].partition(" → ")[0]))
        more = at in looks and asked[tools[at]] > 1
        if names and more and not names & later:
            found.append(at)
        later |= names
    return found[::-1]


def named_by_changes(deeds: Sequence[str]) -> set[str]:
    """Return the records that later changes name: those that the work is about, by their lines.

    Example:
        >>> named_by_changes(["get(id=A100) → n=1 [m2]", "get(id=B200) → n=2 [m4]",
        ...                   "cancel(id=A100) → ok [m6]"])
        {'get(id=A100) → n=1 [m2]'}
    """
    later, found = set[str](), set[str]()
    for line in reversed(deeds):
        names = set(_NAMED.findall(line.partition(" → ")[0]))
        if not journal.looked(line):
            later |= names if changes(line) else set()
        elif names & later:
            found.add(line)
    return found


def _stands_for(came: str, earlier: str) -> bool:
    """Whether an outcome may stand for an earlier one: it was done too, and names as much."""
    in_vain = re.match(_IN_VAIN, came, re.I) and not re.match(_IN_VAIN, earlier, re.I)
    return not in_vain and set(_NAMED.findall(earlier)) <= set(_NAMED.findall(came))


def _as_much(before: str, line: str, key: tuple[str, str]) -> bool:
    """Whether a run may stand for an earlier one; a file is named by its path alone."""
    came, earlier = (apart(one)[0].partition(" → ")[2] for one in (line, before))
    if key[0] == WRITE:
        return not re.match(_IN_VAIN, came, re.I) or bool(re.match(_IN_VAIN, earlier, re.I))
    return _stands_for(came, earlier)


def changes(line: str) -> bool:
    """Return whether a line tells a change, and not what was tried out: see `is_trial`.

    Example:
        >>> changes("$ sed -i 1d a.py → ok [m2]"), changes("$ python check.py → 2 [m4]")
        (True, False)
    """
    call = line.partition(" → ")[0]
    return EDITS in call or not is_trial(call)


def counted(text: str) -> tuple[str, int]:
    """Return a text without the number of times at its end, and that number."""
    found = TIMES.search(text)
    return (text[: found.start()], int(found[1])) if found else (text, 1)


def _edits(line: str, undo: re.Match[str]) -> bool:
    """Whether a line tells edits of the file that was put back, and of no other thing."""
    path = undo["path"]
    call, arrow, came = line.partition(" → ")
    if not arrow or re.match(_IN_VAIN, came, re.I) or (edit := _EDIT.match(call)) is None:
        return False
    if edit["shell"] is None:
        edited = _EDITED.match(call)
        return not undo["folder"] and edited is not None and edited[1].strip("'\"") == path
    parts = re.split(r" && | ⏎ ", unquoted(call[edit.start("shell") :]))
    return edit["folder"] == undo["folder"] and all(_edits_only(part, path) for part in parts)


def _edits_only(command: str, path: str) -> bool:
    """Whether a command edits this file in place and does no other thing, as far as it stands."""
    words = [word for word in command.split() if word[:1] != "-"]
    return words[:1] == ["sed"] and words[2:] == [path] and not {*";…"} & {*command}
