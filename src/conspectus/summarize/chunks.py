"""A span divided into pieces that fit one reading: nothing left out, nothing twice, in order.

Pure: sizes, roles and legal cuts in, pieces out, in time that grows with the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from conspectus._core.boundaries import exchanges, legal_cuts
from conspectus._core.items import Item
from conspectus.messages import Entry

Count = Callable[[str], int]

FILL = 1 / 3
"""A turn ends a piece early only if the piece is at least so full; else a long turn that follows a
short one would cost a reading of its own for a few words."""

_SENTENCE = re.compile(r"[.!?;][\"')\]]*\s+|[。！？；]")


@dataclass(frozen=True, slots=True)
class Text:
    """One message, or one text among several, to be divided.

    Attributes:
        text: what is read.
        size: its tokens, frame included.
        frame: tokens of the frame alone, with room for the label of a part.
        turn: a turn of the conversation begins here.
        legal: a piece may begin here without tearing a tool result from its call.
    """

    text: str
    size: int
    frame: int
    turn: bool = False
    legal: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """Characters `start` up to, not including, `stop` of text `index`.

    Attributes:
        label: `2 of 3` where the text is divided; empty where it is whole.
    """

    index: int
    start: int
    stop: int
    label: str = ""


Piece = tuple[Part, ...]
"""What goes into one reading, in order."""


def texts_of(entries: Sequence[Entry], size: Callable[[Entry], tuple[int, int]]) -> list[Text]:
    """Messages as texts to be divided.

    Args:
        entries: the messages.
        size: tokens of one, frame included, and of its frame alone, with the label of a part.
    """
    items = [
        Item(e.key, e.role, 0, calls=tuple(c.id for c in e.calls if c.id), answers=e.answers)
        for e in entries
    ]
    legal = legal_cuts(items, exchanges(items))
    return [
        Text(e.reading, *size(e), turn=e.role == "user", legal=fine)
        for e, fine in zip(entries, legal, strict=False)
    ]


def whole(texts: Sequence[Text]) -> Piece:
    """All texts, undivided, as one piece."""
    return tuple(Part(index, 0, len(text.text)) for index, text in enumerate(texts))


def part_size(texts: Sequence[Text], part: Part, count: Count) -> int:
    """Tokens of a part in its frame."""
    text = texts[part.index]
    if not part.label:
        return text.size
    return text.frame + count(text.text[part.start : part.stop])


def divide(
    texts: Sequence[Text], room: int, count: Count, within: Sequence[Part] | None = None
) -> list[Piece]:
    """Pieces of at most `room` tokens that together are all of the texts.

    A piece ends before a new turn if it can, else between whole exchanges of calls and results,
    else between messages. A text larger than a reading is divided at line or sentence ends. Only
    what cannot be divided any more, a single character in its frame, may exceed the room.

    Args:
        texts: what is to be read.
        room: tokens of one reading.
        count: tokens of a text.
        within: the parts to divide; default: all texts.

    Example:
        >>> texts = [Text("a b", 2, 0), Text("c d", 2, 0), Text("e", 1, 0)]
        >>> [[part.index for part in piece] for piece in divide(texts, 4, len)]
        [[0, 1], [2]]
    """
    units: list[Part] = []
    sizes: list[int] = []
    for part in whole(texts) if within is None else within:
        size = part_size(texts, part, count)
        if size <= room:
            units.append(part)
            sizes.append(size)
            continue
        for smaller in _parts(texts[part.index], part, room, count):
            units.append(smaller)
            sizes.append(part_size(texts, smaller, count))
    legal = [unit.start == 0 and texts[unit.index].legal for unit in units]
    turns = [fine and texts[unit.index].turn for fine, unit in zip(legal, units, strict=True)]
    return [tuple(units[a:b]) for a, b in _pack(sizes, turns, legal, room)]


def _parts(text: Text, part: Part, room: int, count: Count) -> Iterator[Part]:
    body = text.text[part.start : part.stop]
    spans = split_text(body, max(1, room - text.frame), count)
    inside = f" of part {part.label}" if part.label else ""
    for number, (start, stop) in enumerate(spans, 1):
        label = f"{number} of {len(spans)}{inside}" if len(spans) > 1 else part.label
        yield Part(part.index, part.start + start, part.start + stop, label)


def _pack(
    sizes: Sequence[int], turns: Sequence[bool], legal: Sequence[bool], room: int
) -> Iterator[tuple[int, int]]:
    """Where pieces begin and end; both ends only move forwards, so the time is linear."""
    total = [0, *accumulate(sizes)]
    turn_at, legal_at = _latest(turns), _latest(legal)
    start = stop = 0
    while start < len(sizes):
        stop = max(stop, start + 1)
        while stop < len(sizes) and total[stop + 1] - total[start] <= room:
            stop += 1
        cut = stop
        if stop < len(sizes):
            turn = turn_at[stop]
            if turn > start and total[turn] - total[start] >= room * FILL:
                cut = turn
            elif legal_at[stop] > start:
                cut = legal_at[stop]
        yield start, cut
        start = cut


def _latest(marks: Sequence[bool]) -> list[int]:
    """For each place, the nearest mark at it or before it; 0 where there is none."""
    return list(accumulate((i if mark else 0 for i, mark in enumerate(marks)), max))


def split_text(text: str, room: int, count: Count) -> list[tuple[int, int]]:
    """Return a text as spans of at most `room` tokens, cut at line or sentence ends.

    Args:
        text: the text.
        room: tokens of one span; a single character may exceed it.
        count: tokens of a text.

    Example:
        >>> split_text("one two. three four.", 12, len)
        [(0, 9), (9, 20)]
    """
    size = count(text)
    if size <= room:
        return [(0, len(text))]
    spans = []
    start, step = 0, max(1, len(text) * room // size)
    while start < len(text):
        stop = _end(text, start, start + step)
        while (size := count(text[start:stop])) > room and stop - start > 1:
            length = stop - start
            stop = _end(text, start, start + max(1, min(length * room // size, length * 3 // 4)))
        spans.append((start, stop))
        # Denser or thinner text further on: the next step follows what this one weighed.
        step = max(1, min(2 * (stop - start), (stop - start) * room // max(1, size)))
        start = stop
    return spans


def _end(text: str, start: int, stop: int) -> int:
    """Return the best place to end a span.

    It lies after a line, a sentence or a word in its second half.
    """
    if stop >= len(text):
        return len(text)
    middle = start + (stop - start) // 2
    if (at := text.rfind("\n", middle, stop)) >= 0:
        return at + 1
    ends = [match.end() for match in _SENTENCE.finditer(text, middle, stop)]
    if ends:
        return ends[-1]
    if (at := text.rfind(" ", middle, stop)) >= 0:
        return at + 1
    return stop
