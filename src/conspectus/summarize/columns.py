"""The columns under which rows stand: named once, then by the message that a line cites."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from conspectus.summarize.notes import apart

HEADS = re.compile(r"\[([^\[\]→]{20,})\](?=:| \(all )")
"""Names of columns, before their rows; shorter ones are told each time."""

_STARTS = re.compile(rf"((?:\w[\w.]*)?){HEADS.pattern}")
_AS = re.compile(r"\[as ([^\[\]\n]{1,80})\](?=:| \(all )")


def told_once(parts: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Return the parts of an outcome; a table whose columns another line tells cites that.

    One with the columns of the table before it says so.

    Example:
        >>> told_once(["legs[from to leaves price]:", "A B 9 90;"], {"from to leaves price": "m4"})
        ['legs[as m4]:', 'A B 9 90;']
        >>> told_once(["[from to leaves price]:", "A B 9;", "[from to leaves price]:"], {})
        ['[from to leaves price]:', 'A B 9;', '[as above]:']
    """
    told, latest = list[str](), ""
    for part in parts:
        found = _STARTS.match(part)
        if found is not None and (found[2] == latest or found[2] in known):
            at = "above" if found[2] == latest else known[found[2]]
            part = f"{found[1]}[as {at}]{part[found.end() :]}"
        latest = found[2] if found is not None else latest
        told.append(part)
    return told


def head_of(line: str) -> str:
    """Return the names of columns in the outcome that a line tells, or nothing; of one table alone.

    Example:
        >>> head_of("find(to=Bern) → [train leaves seats price]: T1 09:00 3 12 [m2]")
        'train leaves seats price'
    """
    came = line.partition(" → ")[2]
    found = HEADS.findall(came)
    return found[0] if len(found) == 1 and not _AS.search(came) else ""


def heads_of(lines: Sequence[str]) -> dict[str, str]:
    """Return the names of columns that each line tells, or points at, by its first citation."""
    heads: dict[str, str] = {}
    for line in lines:
        came = line.partition(" → ")[2]
        pointed = _AS.findall(came) if not HEADS.search(came) else []
        head = head_of(line) or (heads.get(pointed[0], "") if len(pointed) == 1 else "")
        if head and (cites := apart(line)[1]):
            heads[cites[0]] = head
    return heads


def named(lines: Sequence[str], heads: Mapping[str, str]) -> list[str]:
    """Return lines of which the first one with rows of a kind tells their columns, as others went.

    Args:
        lines: the lines that stand.
        heads: see `heads_of`, of all lines that stood.

    Example:
        >>> named(["find() → [as m2]: T1 3 [m4]"], {"m2": "train seats leaves price"})
        ['find() → [train seats leaves price]: T1 3 [m4]']
    """
    stands: dict[str, str] = {}
    told = list[str]()
    for line in lines:
        own = next(iter(apart(line)[1]), "")

        def pointed(match: re.Match[str], own: str = own) -> str:
            head = heads.get(match[1], "")
            if not head or stands.get(head) == match[1]:
                return match[0]
            if own in heads:  # it stands at one table alone, to which others can point
                stands.setdefault(head, own)
            at = stands.get(head, own)
            return f"[{head}]" if at == own else f"[as {at}]"

        call, arrow, came = line.partition(" → ")
        came = _AS.sub(pointed, came)
        if (head := head_of(arrow + came)) and (at := stands.setdefault(head, own)) != own:
            came = came.replace(f"[{head}]", f"[as {at}]", 1)
        told.append(call + arrow + came)
    return told
