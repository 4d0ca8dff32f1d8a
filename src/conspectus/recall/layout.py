"""Lay out recalled messages: one framed line each, which no text in it can imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from conspectus.archive.values import Archived
from conspectus.messages.codec import sendable
from conspectus.messages.framing import as_notes

LEAST = 40  # Least characters of a message that are shown
NEAR = 600  # Characters within which marks count as close together


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled message.

    Attributes:
        id: its id; a derived one if it had none.
        cite: its name in summaries.
        key: identity and version.
        role: of the speaker.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        text: the shown text, without its frame; a part if it was shortened.
        score: fit to the query, higher is better, comparable within one answer only; 0 without a
            query.
        neighbour: whether it only stands near a message that fits the query.
    """

    id: str
    cite: str
    key: str
    role: str
    name: str | None
    date: str | None
    text: str
    score: float
    neighbour: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A hit with its place in the history and in its message.

    `follows` holds places of the messages that it follows over others. `shortened` is the note on a
    part of a message, `offset` the characters before the part, `whole` those of the message (0 if
    shown whole).
    """

    hit: Hit
    place: int = 0
    follows: tuple[int, ...] = ()
    shortened: str = ""
    offset: int = 0
    whole: int = 0

    @property
    def text(self) -> str:
        return self.hit.text


def hit_of(one: Archived, score: float = 0.0, neighbour: bool = False) -> Hit:
    return Hit(one.id, one.cite, one.key, one.role, one.name, one.date, one.text, score, neighbour)


def arranged(pieces: Sequence[Piece]) -> list[Piece]:
    """Group messages that follow each other, in the order of the history.

    The groups keep the order of the best message of each.
    """
    groups: dict[int, list[Piece]] = {}
    at = attrgetter("place")
    for piece in sorted(pieces, key=at):
        group = [piece]
        near = [groups[one] for one in {piece.place - 1, *piece.follows} if one in groups]
        for other in sorted(near, key=lambda other: other[0].place):
            if other[0] is not group[0]:
                group = sorted({one.place: one for one in [*other, *group]}.values(), key=at)
        groups.update(dict.fromkeys((one.place for one in group), group))
    placed = {one.place: one for piece in pieces for one in groups[piece.place]}
    return list(placed.values())


def render(pieces: Sequence[Piece], left_out: int, *, cited: bool = True) -> str:
    """Return all messages as one text, with the number left out.

    Without `cited`, only shortened messages are named, as more of them can be read.
    """
    lines = [_line(piece, cited or bool(piece.shortened)) for piece in pieces]
    if left_out:
        lines.append(f"({left_out:,} more left out for lack of room)")
    return "\n".join(lines)


def smallest(piece: Piece) -> int:
    """Return the least characters to which a message may be shortened."""
    return min(LEAST, len(piece.text))


def excerpt(piece: Piece, size: int, start: int) -> Piece:
    """Return the message with `size` characters of its text, from `start` on."""
    there = len(piece.text)
    if size >= there:
        return piece
    start = max(0, min(start, there - size))
    text, offset = piece.text[start : start + size], piece.offset + start
    whole = piece.whole or there
    note = f"(shortened: characters {offset + 1:,} to {offset + size:,} of {whole:,})"
    hit = replace(piece.hit, text=text)
    return replace(piece, hit=hit, shortened=note, offset=offset, whole=whole)


def onwards(piece: Piece, start: int) -> Piece:
    """Return the message from a character on, counted from 0."""
    whole = len(piece.text)
    if start < whole:
        return excerpt(piece, whole - start, start)
    note = f"(the message ends at character {whole:,})"
    hit = replace(piece.hit, text="")
    return replace(piece, hit=hit, shortened=note, offset=whole, whole=whole)


def best_place(text: str, marks: Sequence[str]) -> int:
    """Return where the most different marks stand close together; 0 without any."""
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
    hit = piece.hit
    who = hit.role + (f"/{label(hit.name)}" if hit.name else "")
    date = f" · {label(hit.date)}" if hit.date else ""
    name = f"{label(hit.cite)} " if cited else ""
    head = f"[{name}{who}{date}]"
    note = f" {piece.shortened}" if piece.shortened else ""
    # Lines after the first are indented, so that none can pass for the line of another message.
    text = "\n  ".join(as_notes(sendable(piece.text)).splitlines())
    return f"{head}{note} {text}".rstrip()


def label(text: str) -> str:
    """Return a name or date on one line of 64 characters that cannot close its bracket."""
    bare = " ".join(sendable(text).split())[:64]
    return as_notes(bare).translate(str.maketrans("[]·", "()-"))
