"""Messages divided into pieces that fit one reading: each once, and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from conspectus.messages import Message

SAFE_STEP = 0.9
"""The share of an average part that is cut off at once, because text is not equally dense."""

# Ends of lines, sentences and words; the best come first
ENDS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", "；", " ")


@dataclass(frozen=True, slots=True)
class Part:
    """A message to be read, or a part of a long one."""

    entry: Message
    text: str
    size: int  # in tokens, frame included
    label: str = ""  # `2 of 3` if the message is divided


def divide(
    parts: Sequence[Part], room: int, count: Callable[[str], int], frame: Callable[[Message], int]
) -> list[list[Part]]:
    """Return pieces of at most `room` tokens that together are all of the parts.

    They are as few as possible, and of similar size. A message stays in one piece if it fits one,
    and so does a call with the results directly after it. A longer one is divided at the ends of
    lines or sentences. Only a single character in its frame may exceed the room. `frame` returns
    the tokens of a message without its text.
    """
    groups = list[list[Part]]()
    for part in parts:
        if part.entry.role != "tool" or not groups:
            groups.append([])
        groups[-1].append(part)
    units = list[list[Part]]()
    for group in groups:
        if sum(part.size for part in group) <= room:
            units.append(group)
        else:
            for part in group:
                units += [[piece] for piece in _fitting(part, room, count, frame)]
    as_few = _filled(units, room)
    return _balanced(units, room, len(as_few)) or as_few


def _balanced(units: Sequence[Sequence[Part]], room: int, number: int) -> list[list[Part]] | None:
    """Return so many pieces of like size; None if they do not hold all units.

    Each piece is filled up to its share of what remains, to the nearest unit.
    """
    sizes = [sum(part.size for part in unit) for unit in units]
    remaining = sum(sizes)
    pieces = list[list[Part]]()
    index = 0
    for pieces_left in range(number, 0, -1):
        share = remaining / pieces_left
        piece = list[Part]()
        filled = 0
        while index < len(units):
            size = sizes[index]
            fits = filled + size <= room and filled + size / 2 <= share
            if piece and not fits:
                break
            piece += units[index]
            filled += size
            index += 1
        if piece:
            pieces.append(piece)
        remaining -= filled
    return pieces if index == len(units) else None


def _filled(units: Sequence[Sequence[Part]], room: int) -> list[list[Part]]:
    """Return pieces, each of as many units as its room takes, and of one at least."""
    pieces = list[list[Part]]()
    left = 0
    for unit in units:
        size = sum(part.size for part in unit)
        if not pieces or size > left:
            pieces.append([])
            left = room
        pieces[-1] += unit
        left -= size
    return pieces


def _fitting(
    part: Part, room: int, count: Callable[[str], int], frame: Callable[[Message], int]
) -> list[Part]:
    if part.size <= room:
        return [part]
    around = frame(part.entry)
    texts = split_text(part.text, max(1, room - around), count)
    return [
        replace(part, text=text, size=around + count(text), label=f"{n} of {len(texts)}")
        for n, text in enumerate(texts, 1)
    ]


def split_text(text: str, room: int, count: Callable[[str], int]) -> list[str]:
    """Return a text in parts of at most `room` tokens; a single character may exceed it."""
    size = count(text)
    if size <= room or len(text) < 2:
        return [text]
    step = max(1, int(SAFE_STEP * len(text) * room / size))
    parts = list[str]()
    start = 0
    while start < len(text):
        stop = start + step
        if stop < len(text):
            stop = _good_end(text, start + step // 2, stop)
        parts += split_text(text[start:stop], room, count)
        start = min(stop, len(text))
    return parts


def _good_end(text: str, start: int, stop: int) -> int:
    """Return the position after the last line, sentence or word in a range, or its end."""
    for mark in ENDS:
        position = text.rfind(mark, start, stop)
        if position >= 0:
            return position + len(mark)
    return stop
