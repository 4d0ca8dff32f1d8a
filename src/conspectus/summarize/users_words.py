"""Part 1 of the notes: what the user said, word for word and in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from conspectus.ledger import Ledger, Said, choose, statements
from conspectus.ledger.pieces import left_open
from conspectus.messages import Entry, is_summary_message
from conspectus.messages.framing import as_notes
from conspectus.summarize.compacting import cut, one_line
from conspectus.summarize.notes import apart, cited

PASTE = 600
"""Characters of what a user pasted from which it is shown short: its first lines."""

SHOWN = 160
"""Characters of a long paste that stand."""

REPEATED = 60
"""Characters from which a message that says nearly the same as one before stands once."""

LINE = 8
"""Tokens that a line takes beside its words: its dash and its citation."""

TOLD = 240
"""Characters of what was other each time."""

OFTEN = 3
"""Times that such a message comes before it is told short: a changed figure may be news."""

LEFT_OUT = "(not all of it fits: the rest, at each …, is "
"""Begins the line that says so, behind which the rest of it says where that is."""

_GAPS = re.compile(r"…(?:\s*…)+")
_AGAIN = re.compile(r"\(the same as ([^\s,)]+), (once|\d+ times) more\)")
_VARYING = re.compile(r"\d+")
_SMALL = re.compile(r"(?<![\w.,#-])\d{1,2}(?![\w,-])")


def said(entries: Sequence[Entry], before: Sequence[str] = ()) -> list[str]:
    """Return a line for each message of the user; one that repeats another stands once.

    Args:
        entries: the messages that leave.
        before: lines of segments that stand.
    """
    first: dict[str, str] = {}
    stood: dict[str, str] = {}
    for line in before:
        text, cites = apart(line)
        first.setdefault(_shape(text), cites[0] if cites else "")
        stood.setdefault(one_line(text), cites[0] if cites else "")
    said_by = [(_words(entry), entry.cite) for entry in entries if _users(entry)]
    often = Counter(_shape(text) for text, _ in said_by)
    lines: list[str] = []
    again: dict[str, tuple[list[str], list[str]]] = {}
    texts: dict[str, str] = {}
    for text, cite in said_by:
        shape = _shape(text)
        if len(text) >= REPEATED and (name := stood.get(one_line(text))):
            first[shape] = name
            texts.setdefault(shape, text)
        # What was other than in an earlier segment cannot be told: there it stands whole once more.
        elif len(text) < REPEATED or often[shape] < OFTEN or shape not in texts:
            first.setdefault(shape, cite)
            texts.setdefault(shape, text)
            lines.append(cited(text, [cite]))
            stood.setdefault(one_line(text), cite)
            continue
        differs, cites = again.setdefault(shape, ([], []))
        cites.append(cite)
        if (news := _differing(text, texts.get(shape, ""))) not in differs:
            differs.append(news)
    for shape, (differs, cites) in again.items():
        told = "; ".join(one for one in differs if one)
        name = f" as {first[shape]}" if first[shape] else ""
        count = _times(len(cites))
        ends = [cites[0], cites[-1]]
        told = cut(told, TOLD)
        lines.append(cited(f"(the same{name}, {count} more{': ' + told if told else ''})", ends))
    return lines


def counted(lines: Sequence[str]) -> list[str]:
    """Return lines in which those that name the same repeated message are one, at the first."""
    found: dict[str, tuple[int, int, list[str]]] = {}
    kept: list[str] = []
    for line in lines:
        text, cites = apart(line)
        if (again := _AGAIN.fullmatch(text)) is None:
            kept.append(line)
            continue
        times = 1 if again[2] == "once" else int(again[2].split()[0])
        place, before, named = found.get(again[1], (len(kept), 0, []))
        if not before:
            kept.append(line)
        named = [*named, *cites]
        found[again[1]] = place, before + times, named
        ends = [*named[:1], *named[-1:]]  # a message that is cited by nothing has no name
        kept[place] = cited(f"(the same as {again[1]}, {_times(before + times)} more)", ends)
    return kept


def _times(count: int) -> str:
    return f"{count} times" if count > 1 else "once"


def _words(entry: Entry) -> str:
    text = as_notes(without_pastes(entry.text.strip()))
    return f"(system) {text}" if entry.role == "system" else text


def _users(entry: Entry) -> bool:
    """Whether it is a message of the user, or of the system in the middle of a talk."""
    said = entry.role in ("user", "system") and bool(entry.text.strip())
    return said and not is_summary_message(entry.source)


def repeated(entries: Sequence[Entry], before: Sequence[str] = ()) -> dict[str, str]:
    """Return messages of the user that answer some replies with the same words, as refusals do.

    Where most replies are answered so, it is work that comes in one form.

    Args:
        entries: the messages that leave.
        before: lines of the user's words that stand.

    Returns:
        By their keys, how the first of them is named.
    """
    names: dict[str, str] = {}
    keys: dict[str, list[str]] = {}
    for line in before:
        text, cites = apart(line)
        names.setdefault(_SMALL.sub("0", one_line(text)), cites[0] if cites else "")
    for entry in entries:
        if entry.role == "user" and len(entry.text) >= REPEATED:
            shape = _SMALL.sub("0", one_line(as_notes(entry.text.strip())))
            keys.setdefault(shape, [""] if shape in names else []).append(entry.key)
            names.setdefault(shape, entry.cite)
    replies = sum(entry.role == "assistant" for entry in entries)
    return {
        key: names[shape]
        for shape, group in keys.items()
        if 1 < len(group) <= replies / 2
        for key in group
        if key
    }


def _shape(text: str) -> str:
    return _VARYING.sub("0", one_line(text))


def _differing(text: str, first: str) -> str:
    """The words around the numbers that are other ones than the first time."""
    if not first:
        return ""
    old, new = first.split(), text.split()
    places = [i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b]
    return cut(" ".join(new[max(0, places[0] - 1) : places[-1] + 2]), 60) if places else ""


def without_pastes(text: str) -> str:
    """Return a message with long pastes shown short; the user's own sentences stay as they are."""
    if len(text) <= PASTE:
        return text
    parts: list[str] = []
    at = start = stop = 0
    for one in (*statements(text), None):
        if one is not None and not one.own:
            start, stop = (start, one.end) if stop else (one.start, one.end)
            continue
        if stop - start > PASTE:
            head = cut(text[start:stop], SHOWN)
            more = f"{head} ({stop - start - len(head):,} characters more)"
            parts += [text[at:start], more, f"\n{sign}" if (sign := left_open(head)) else ""]
            at = stop
        start = stop = 0
    return "".join([*parts, text[at:]])


def left_out(archived: bool) -> str:
    """Return the line that says where those of the user's words are that do not stand."""
    return LEFT_OUT + ("one recall away)" if archived else "gone)")


def chosen(
    lines: Sequence[str], room: int, count: Callable[[str], int], known: Ledger
) -> list[str | None]:
    """Choose what stands where the user's words outgrow their room; see `ledger.choose`.

    Returns:
        For each line what stands of it, None for nothing.
    """
    pairs = [apart(line) for line in lines]
    kept = choose([Said(text) for text, _ in pairs], room, count, line=LINE, known=known)
    stands: list[str | None] = [None] * len(lines)
    for one in kept:
        text = _GAPS.sub("…", one.text)  # words were left out beside those before
        if any(map(str.isalnum, text)):
            stands[one.place] = cited(text, pairs[one.place][1])
    return stands
