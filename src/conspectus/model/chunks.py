"""Messages divided into pieces that fit one reading: each once, and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from conspectus.messages import Message

SAFE_SHARE = 0.9
"""The share of an average fragment that is cut off at once, as tokens are not spread evenly."""

ENDS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", "；", " ")
"""Ends of lines, sentences and words; the best come first."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A message to be read, or a fragment of one that is too long for a reading."""

    entry: Message
    text: str
    size: int  # in tokens, frame included
    label: str = ""  # `2 of 3` if it is not the whole message


def divide(
    fragments: Sequence[Fragment],
    room: int,
    count: Callable[[str], int],
    frame: Callable[[Message], int],
) -> list[list[Fragment]]:
    """Return pieces of at most `room` tokens that together are all of the fragments.

    They are as few as possible, and of similar size. A message stays whole if a piece holds it, and
    so does a call with the results directly after it. A longer message is divided at the ends of
    lines or sentences. Only a single character in its frame may exceed the room. `frame` returns
    the tokens of a message without its text.
    """
    groups = list[list[Fragment]]()
    for fragment in fragments:
        if fragment.entry.role != "tool" or not groups:
            groups.append([])
        groups[-1].append(fragment)
    units = list[list[Fragment]]()
    for group in groups:
        if sum(fragment.size for fragment in group) <= room:
            units.append(group)
        else:
            for fragment in group:
                units += [[piece] for piece in _divide_message(fragment, room, count, frame)]
    as_few = _fill(units, room)
    return _balance(units, room, len(as_few)) or as_few


def _balance(
    units: Sequence[Sequence[Fragment]], room: int, number: int
) -> list[list[Fragment]] | None:
    """Return `number` pieces of similar size; None if they cannot hold all units.

    What remains is divided by the pieces that remain. Each piece takes units until it comes nearest
    to that size.
    """
    sizes = [sum(fragment.size for fragment in unit) for unit in units]
    remaining = sum(sizes)
    pieces = list[list[Fragment]]()
    index = 0
    for pieces_left in range(number, 0, -1):
        fair_size = remaining / pieces_left
        piece = list[Fragment]()
        filled = 0
        while index < len(units):
            size = sizes[index]
            fits = filled + size <= room and filled + size / 2 <= fair_size
            if piece and not fits:
                break
            piece += units[index]
            filled += size
            index += 1
        if piece:
            pieces.append(piece)
        remaining -= filled
    return pieces if index == len(units) else None


def _fill(units: Sequence[Sequence[Fragment]], room: int) -> list[list[Fragment]]:
    """Return pieces, each of as many units as its room takes, and of one at least."""
    pieces = list[list[Fragment]]()
    left = 0
    for unit in units:
        size = sum(fragment.size for fragment in unit)
        if not pieces or size > left:
            pieces.append([])
            left = room
        pieces[-1] += unit
        left -= size
    return pieces


def _divide_message(
    fragment: Fragment, room: int, count: Callable[[str], int], frame: Callable[[Message], int]
) -> list[Fragment]:
    if fragment.size <= room:
        return [fragment]
    around = frame(fragment.entry)
    texts = split_text(fragment.text, max(1, room - around), count)
    return [
        replace(fragment, text=text, size=around + count(text), label=f"{n} of {len(texts)}")
        for n, text in enumerate(texts, 1)
    ]


def split_text(text: str, room: int, count: Callable[[str], int]) -> list[str]:
    """Return a text in fragments of at most `room` tokens; a single character may exceed it."""
    size = count(text)
    if size <= room or len(text) < 2:
        return [text]
    step = max(1, int(SAFE_SHARE * len(text) * room / size))
    fragments = list[str]()
    start = 0
    while start < len(text):
        stop = start + step
        if stop < len(text):
            stop = _good_end(text, start + step // 2, stop)
        fragments += split_text(text[start:stop], room, count)
        start = min(stop, len(text))
    return fragments


def _good_end(text: str, start: int, stop: int) -> int:
    """Return the position after the last line, sentence or word in a range, or its end."""
    for mark in ENDS:
        position = text.rfind(mark, start, stop)
        if position >= 0:
            return position + len(mark)
    return stop
