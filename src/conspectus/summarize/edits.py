"""The change that a call makes to a text, where it is given the old text and the new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from conspectus.summarize.cutting import one_line

BECOMES = " ⇒ "
"""Stands between an old text and the new one."""

LARGEST = 300
"""Words and signs that differ, between what both texts begin and end with; of more the texts stand
as they were given, as comparing them takes the square of that."""

SHORT = 60
"""Characters of both texts together up to which they stand as they were given."""

ALIKE = 0.5
"""Share of both texts that must be the same, else the new text stands and not its parts."""

CONTEXT = 24
"""Characters in front of a change, on its line, by which it is understood."""

_OLD = re.compile(r"(?:^|(?<=_))(?:old|search|find)(?=_|$)")
_NEW = {"old": "new", "search": "replace", "find": "replace"}
_TOKENS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]+")


def with_change(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments in which an old text and a new one stand as the change alone.

    Names, paths and other short values stay as they are: all of them counts.

    Example:
        >>> old, new = "def go(n: int) -> int: # one more", "def run(n: int) -> int: # one more"
        >>> with_change({"path": "a.py", "old_string": old, "new_string": new})
        {'path': 'a.py', 'change': 'def go ⇒ run'}
    """
    for key, old in args.items():
        found = _OLD.search(key)
        name = key[: found.start()] + _NEW[found[0]] + key[found.end() :] if found else ""
        new = args.get(name)
        if not (isinstance(old, str) and isinstance(new, str) and len(old.split()) > 1):
            continue
        if len(old) + len(new) > SHORT and (change := change_of(old, new)):
            return {k: v for k, v in args.items() if k not in (key, name)} | {"change": change}
    return args


@lru_cache(maxsize=512)  # the same edit is told anew in each length that is tried
def change_of(old: str, new: str) -> str:
    """Return the words that differ, with a few in front of them; empty where most of them do.

    Example:
        >>> change_of("retries = 3\\ntimeout = 9", "retries = 5\\ntimeout = 9\\nlog = True")
        'retries = 3 ⇒ 5; + log = True'
    """
    before, after = _TOKENS.findall(old), _TOKENS.findall(new)
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(gone), len(come)) > LARGEST:
        return ""
    codes = SequenceMatcher(None, gone, come, autojunk=False).get_opcodes()
    same = len(old) - len("".join(gone))
    same += sum(len("".join(gone[a:b])) for tag, a, b, _, _ in codes if tag == "equal")
    if same < ALIKE * min(len(old), len(new)):
        return ""
    return "; ".join(_told(gone, after[:start] + come, start, codes))


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _told(
    before: Sequence[str],
    after: Sequence[str],
    start: int,
    codes: Sequence[tuple[str, int, int, int, int]],
) -> Iterator[str]:
    last = 0
    for tag, a, b, c, d in codes:
        added = "".join(after[start + c : start + d])
        gone, come = one_line("".join(before[a:b])), one_line(added)
        if tag == "equal" or gone == come:
            continue
        kept = "".join(after[last : start + c])
        line = kept.rpartition("\n")[2].lstrip() if "\n" not in added else ""
        last = start + d
        front = line if len(line) <= CONTEXT else line[-CONTEXT:].partition(" ")[2]
        if gone and come:
            yield f"{front}{gone}{BECOMES}{come}"
        elif come:
            yield f"+ {one_line(front + added)}"
        else:
            yield f"- {gone}"
