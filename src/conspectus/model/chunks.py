"""A span divided into pieces that fit one reading: nothing left out, nothing twice, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from conspectus._core.boundaries import exchanges, legal_cuts
from conspectus._core.items import Item
from conspectus.messages import Entry

Count = Callable[[str], int]

# A turn ends a piece early only if the piece is at least so full; else a long turn that follows a
# short one would cost a reading of its own for a few words.
FILL = 1 / 3

ENDS = (("\n",), (". ", "! ", "? ", "; ", "。", "！", "？", "；"), (" ",))
"""Ends of lines, sentences and words, the best first."""


@dataclass(frozen=True, slots=True)
class Part:
    """A message to be read, or a part of a long one."""

    index: int  # place of the message among all
    text: str
    size: int  # in tokens, frame included
    frame: int  # tokens of the frame alone, with room for the label of a part
    turn: bool = False  # a turn of the conversation begins here
    legal: bool = True  # a piece may begin here without tearing a tool result from its call
    label: str = ""  # `2 of 3` where the message is divided


def parts_of(entries: Sequence[Entry], size: Callable[[Entry], tuple[int, int]]) -> list[Part]:
    """Return whole messages; `size` tells the tokens of one, frame included, and of its frame."""
    items = [
        Item(e.key, e.role, 0, calls=tuple(c.id for c in e.calls if c.id), answers=e.answers)
        for e in entries
    ]
    legal = legal_cuts(items, exchanges(items))
    return [
        Part(index, e.reading, *size(e), turn=e.role == "user", legal=fine)
        for index, (e, fine) in enumerate(zip(entries, legal, strict=False))
    ]


def divide(parts: Sequence[Part], room: int, count: Count) -> list[list[Part]]:
    """Return pieces of at most `room` tokens that together are all of the parts.

    A piece ends before a new turn if it can, else between whole exchanges of calls and results,
    else between messages. A text larger than a reading is divided at line or sentence ends. Only
    what cannot be divided any more, a single character in its frame, may exceed the room.
    """
    units = [unit for part in parts for unit in _fitting(part, room, count)]
    total = [0, *accumulate(unit.size for unit in units)]
    legal_at = _latest([unit.legal for unit in units])
    turn_at = _latest([unit.legal and unit.turn for unit in units])
    pieces, start, stop = list[list[Part]](), 0, 0
    while start < len(units):  # both ends only move forwards, so the time is linear
        stop = max(stop, start + 1)
        while stop < len(units) and total[stop + 1] - total[start] <= room:
            stop += 1
        end = stop
        if stop < len(units):
            turn = turn_at[stop]
            if turn > start and total[turn] - total[start] >= room * FILL:
                end = turn
            elif legal_at[stop] > start:
                end = legal_at[stop]
        pieces.append(units[start:end])
        start = end
    return pieces


def _latest(marks: Sequence[bool]) -> list[int]:
    """For each place, the nearest mark at it or before it; 0 where there is none."""
    return list(accumulate((i if mark else 0 for i, mark in enumerate(marks)), max))


def _fitting(part: Part, room: int, count: Count) -> Iterator[Part]:
    if part.size <= room:
        yield part
        return
    texts = split_text(part.text, max(1, room - part.frame), count)
    inside = f" of part {part.label}" if part.label else ""
    for n, text in enumerate(texts):
        label = f"{n + 1} of {len(texts)}{inside}" if len(texts) > 1 else part.label
        size, turn, legal = part.frame + count(text), part.turn and not n, part.legal and not n
        yield replace(part, text=text, size=size, turn=turn, legal=legal, label=label)


def split_text(text: str, room: int, count: Count) -> list[str]:
    """Return a text in parts of at most `room` tokens; a single character may exceed it."""
    size = count(text)
    if size <= room:
        return [text]
    parts, start, step = list[str](), 0, max(1, len(text) * room // size)
    while start < len(text):
        stop = _end(text, start, start + step)
        while (size := count(text[start:stop])) > room and stop - start > 1:
            length = stop - start
            stop = _end(text, start, start + max(1, min(length * room // size, length * 3 // 4)))
        parts.append(text[start:stop])
        # Denser or thinner text further on: the next step follows what this one weighed.
        step = max(1, min(2 * (stop - start), (stop - start) * room // max(1, size)))
        start = stop
    return parts


def _end(text: str, start: int, stop: int) -> int:
    """Return the best place to end a part, in its second half."""
    if stop >= len(text):
        return len(text)
    middle = start + (stop - start) // 2
    for marks in ENDS:
        ends = [at + len(m) for m in marks if (at := text.rfind(m, middle, stop)) >= 0]
        if ends:
            return max(ends)
    return stop
