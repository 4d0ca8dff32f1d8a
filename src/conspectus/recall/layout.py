"""How recalled messages look: one framed line each, which no text in it can imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from conspectus.archive.values import Archived
from conspectus.messages.framing import as_notes

LEAST = 40
"""Characters of a message that are worth showing."""

NEAR = 600
"""Characters around which the best place in a long message is looked for."""

_UNSENDABLE = re.compile("[\ud800-\udfff\x00]")


@dataclass(frozen=True, slots=True)
class Hit:
    """One message recalled.

    Attributes:
        id: its id; a derived one where it had none.
        cite: how summaries name it.
        key: identity and version.
        role: who speaks.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        text: what is shown of it, without its frame; a part where it was shortened.
        score: how well it fits the query, higher is better, comparable within one answer only; 0
            where there was no query.
        neighbour: it holds hardly anything asked for itself, and stands near one that does.
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

    Attributes:
        hit: the hit; its `text` is the part that is shown.
        place: of the message in the history, counted from 0.
        follows: places of the messages that it follows, where others stand between.
        shortened: the note on a part of a message; empty for a whole one.
        offset: characters of the message before the part.
        whole: characters of the message; 0 where all of it is shown.
    """

    hit: Hit
    place: int = 0
    follows: tuple[int, ...] = ()
    shortened: str = ""
    offset: int = 0
    whole: int = 0

    @property
    def text(self) -> str:
        """The part of the message that is shown."""
        return self.hit.text


def hit_of(one: Archived, score: float = 0.0, neighbour: bool = False) -> Hit:
    """Make a hit of a whole original."""
    return Hit(one.id, one.cite, one.key, one.role, one.name, one.date, one.text, score, neighbour)


def arranged(pieces: Sequence[Piece]) -> list[Piece]:
    """Messages that follow each other side by side, in the order of the history; the groups in the
    order of the best of each, which is the order in which they are given."""
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
    text, offset = piece.text[start : start + size], piece.offset + start
    whole = piece.whole or there
    note = f"(shortened: characters {offset + 1:,} to {offset + size:,} of {whole:,})"
    hit = replace(piece.hit, text=text)
    return replace(piece, hit=hit, shortened=note, offset=offset, whole=whole)


def onwards(piece: Piece, start: int) -> Piece:
    """The message from a character on, counted from 0."""
    whole = len(piece.text)
    if start < whole:
        return excerpt(piece, whole - start, start)
    note = f"(the message ends at character {whole:,})"
    hit = replace(piece.hit, text="")
    return replace(piece, hit=hit, shortened=note, offset=whole, whole=whole)


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
    hit = piece.hit
    who = hit.role + (f"/{label(hit.name)}" if hit.name else "")
    date = f" · {label(hit.date)}" if hit.date else ""
    name = f"{label(hit.cite)} " if cited else ""
    head = f"[{name}{who}{date}]"
    note = f" {piece.shortened}" if piece.shortened else ""
    # Lines after the first are indented, so that none can pass for the line of another message.
    text = "\n  ".join(as_notes(_UNSENDABLE.sub("\ufffd", piece.text)).splitlines())
    return f"{head}{note} {text}".rstrip()


def label(text: str) -> str:
    """A name or a date on one line of 64 characters, unable to close the bracket around it."""
    bare = " ".join(_UNSENDABLE.sub("\ufffd", text).split())[:64]
    return as_notes(bare).translate(str.maketrans("[]·", "()-"))
