"""How recalled messages look: one framed line each, which no text in it can imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from conspectus.messages.framing import as_notes

LEAST = 40
"""Characters of a message that are worth showing."""

NEAR = 600
"""Characters around which the best place in a long message is looked for."""

_UNSENDABLE = re.compile("[\ud800-\udfff\x00]")


@dataclass(frozen=True, slots=True)
class Piece:
    """One message to show.

    Attributes:
        shortened: what to say about it if `text` is only a part; empty if it is whole.
        offset: characters of the message before `text`.
        whole: characters of the message; 0 where `text` is all of it.
        neighbour: it was not found itself.
        place: where it stands in the history, counted from 0.
        follows: places of those that it follows, if others stand between.
    """

    id: str
    cite: str
    key: str
    role: str
    name: str | None
    date: str | None
    text: str
    score: float
    neighbour: bool = False
    place: int = 0
    follows: tuple[int, ...] = ()
    shortened: str = ""
    offset: int = 0
    whole: int = 0


def arranged(pieces: Sequence[Piece]) -> list[Piece]:
    """Messages that follow each other side by side, in the order of the history; the groups in the
    order of the best of each, which is the order in which they are given."""
    groups: dict[int, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda piece: piece.place):
        group = [piece]
        near = [groups[at] for at in {piece.place - 1, *piece.follows} if at in groups]
        for other in sorted(near, key=lambda other: other[0].place):
            if other[0] is not group[0]:
                group = sorted({one.place: one for one in [*other, *group]}.values(), key=_place)
        groups.update(dict.fromkeys((one.place for one in group), group))
    placed = {one.place: one for piece in pieces for one in groups[piece.place]}
    return list(placed.values())


def _place(piece: Piece) -> int:
    return piece.place


def render(pieces: Sequence[Piece], left_out: int, *, cited: bool = True) -> str:
    """All messages as one text, and how many there was no room for; without `cited` only those
    that are shortened are named, as there is more of them to be read."""
    lines = [_line(piece, cited or bool(piece.shortened)) for piece in pieces]
    if left_out:
        lines.append(f"({left_out:,} more left out for lack of room)")
    return "\n".join(lines)


def smallest(piece: Piece) -> int:
    """Characters to which a message may be shortened at most."""
    return min(LEAST, len(piece.text))


def excerpt(piece: Piece, size: int, start: int) -> Piece:
    """The message with `size` characters of its text, from a character of it on."""
    there = len(piece.text)
    if size >= there:
        return piece
    start = max(0, min(start, there - size))
    text, offset, whole = piece.text[start : start + size], piece.offset + start, _whole(piece)
    note = f"(shortened: characters {offset + 1:,} to {offset + size:,} of {whole:,})"
    return replace(piece, text=text, shortened=note, offset=offset, whole=whole)


def onwards(piece: Piece, start: int) -> Piece:
    """The message from a character on, counted from 0."""
    whole = len(piece.text)
    if start < whole:
        return excerpt(piece, whole - start, start)
    note = f"(the message ends at character {whole:,})"
    return replace(piece, text="", shortened=note, offset=whole, whole=whole)


def _whole(piece: Piece) -> int:
    return piece.whole or len(piece.text)


def best_place(text: str, marks: Sequence[str]) -> int:
    """Where most different marks stand close together; 0 where none does."""
    if not marks:
        return 0
    longest_first = sorted(marks, key=len, reverse=True)
    pattern = re.compile("|".join(re.escape(mark) for mark in longest_first), re.IGNORECASE)
    found = [(match.start(), match.group().lower()) for match in pattern.finditer(text)]
    best, place, first = 0, 0, 0
    inside: dict[str, int] = {}
    weight = 0
    for last, (at, mark) in enumerate(found):
        inside[mark] = inside.get(mark, 0) + 1
        weight += len(mark) if inside[mark] == 1 else 0
        while at - found[first][0] > NEAR:
            gone = found[first][1]
            inside[gone] -= 1
            weight -= 0 if inside[gone] else len(gone)
            first += 1
        if weight > best:
            best, place = weight, (found[first][0] + found[last][0]) // 2
    return place


def _line(piece: Piece, cited: bool) -> str:
    # The frame is short, as it is paid for with each message.
    who = piece.role + (f"/{label(piece.name)}" if piece.name else "")
    date = f" · {label(piece.date)}" if piece.date else ""
    name = f"{label(piece.cite)} " if cited else ""
    head = f"[{name}{who}{date}]"
    note = f" {piece.shortened}" if piece.shortened else ""
    # Lines after the first are indented, so that none can pass for the line of another message.
    text = "\n  ".join(as_notes(_UNSENDABLE.sub("\ufffd", piece.text)).splitlines())
    return f"{head}{note} {text}".rstrip()


def label(text: str) -> str:
    """A name or a date on one line of 64 characters, unable to close the bracket around it."""
    bare = " ".join(_UNSENDABLE.sub("\ufffd", text).split())[:64]
    return as_notes(bare).translate(str.maketrans("[]·", "()-"))
