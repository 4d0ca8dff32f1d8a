"""The change that a call makes to a text, where it is given the old text and the new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from conspectus.summarize.compacting import one_line

BECOMES = " ⇒ "
"""Stands between an old text and the new one."""

LARGEST = 4_000
"""Characters of an old or new text that are compared; of larger ones the new text stands."""

ALIKE = 0.5
"""Share of both texts that must be the same, else the new text stands and not its parts."""

CONTEXT = 24
"""Characters in front of a change, on its line, by which it is understood."""

_OLD = re.compile(r"(?:^|(?<=_))(?:old|search|find|from)(?=_|$)")
_NEW = {"old": "new", "search": "replace", "find": "replace", "from": "to"}
_TOKENS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]+")


def with_change(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments in which an old text and a new one stand as the change alone.

    Example:
        >>> with_change({"path": "a.py", "old_string": "def go(n):", "new_string": "def run(n):"})
        {'path': 'a.py', 'change': 'def go ⇒ run'}
    """
    for key, old in args.items():
        found = _OLD.search(key)
        name = key[: found.start()] + _NEW[found[0]] + key[found.end() :] if found else ""
        new = args.get(name)
        if not (isinstance(old, str) and isinstance(new, str) and old.strip() and old != new):
            continue
        if max(len(old), len(new)) > LARGEST or not (change := change_of(old, new)):
            continue
        return {k: v for k, v in args.items() if k not in (key, name)} | {"change": change}
    return args


def change_of(old: str, new: str) -> str:
    """Return the words that differ, with a few in front of them; empty where most of them do.

    Example:
        >>> change_of("retries = 3\\ntimeout = 9", "retries = 5\\ntimeout = 9\\nlog = True")
        'retries = 3 ⇒ 5; + log = True'
    """
    before, after = _TOKENS.findall(old), _TOKENS.findall(new)
    matched = SequenceMatcher(None, before, after, autojunk=False)
    codes = matched.get_opcodes()
    same = sum(len("".join(before[a:b])) for tag, a, b, _, _ in codes if tag == "equal")
    if same < ALIKE * min(len(old), len(new)):
        return ""
    return "; ".join(_told(before, after, codes))


def _told(
    before: list[str], after: list[str], codes: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[str]:
    last = 0
    for tag, a, b, c, d in codes:
        added = "".join(after[c:d])
        gone, come = one_line("".join(before[a:b])), one_line(added)
        if tag == "equal" or gone == come:
            continue
        line = "".join(after[last:c]).rpartition("\n")[2].lstrip() if "\n" not in added else ""
        last = d
        front = line if len(line) <= CONTEXT else line[-CONTEXT:].partition(" ")[2]
        if gone and come:
            yield f"{front}{gone}{BECOMES}{come}"
        elif come:
            yield f"+ {one_line(front + added)}"
        else:
            yield f"- {gone}"
