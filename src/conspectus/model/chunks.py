"""A span divided into pieces that fit one reading: nothing left out, nothing twice, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from conspectus.core.items import Item, exchanges
from conspectus.messages import Message

# Ends of lines, sentences and words, the best first
ENDS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", "；", " ")


@dataclass(frozen=True, slots=True)
class Part:
    """A message to be read, or a part of a long one."""

    index: int  # place of the message among all
    text: str
    size: int  # in tokens, frame included
    frame: int  # tokens of the frame alone, with room for a label
    begins: bool = True  # a piece may begin here without tearing a result from its call
    label: str = ""  # `2 of 3` where the message is divided


def parts_of(entries: Sequence[Message], size: Callable[[Message], tuple[int, int]]) -> list[Part]:
    """Return whole messages; `size` tells the tokens of one, frame included, and of its frame."""
    items = [
        Item(e.key, e.role, 0, calls=tuple(c.id for c in e.calls if c.id), answers=e.answers)
        for e in entries
    ]
    legal = exchanges(items).cuts
    return [Part(n, e.reading, *size(e), begins=legal[n]) for n, e in enumerate(entries)]


def divide(parts: Sequence[Part], room: int, count: Callable[[str], int]) -> list[list[Part]]:
    """Return pieces of at most `room` tokens that together are all of the parts.

    A call and its results stay in one piece if they fit one, and so does a message; a longer one
    is divided at line or sentence ends. Only a single character in its frame may exceed the room.
    """
    groups = list[list[Part]]()
    for part in parts:
        if part.begins or not groups:
            groups.append([])
        groups[-1].append(part)
    pieces, left = list[list[Part]](), 0
    for group in groups:
        smaller = [[part] for one in group for part in _fitting(one, room, count)]
        for unit in [group] if sum(part.size for part in group) <= room else smaller:
            size = sum(part.size for part in unit)
            if not pieces or size > left:
                pieces.append([])
                left = room
            pieces[-1] += unit
            left -= size
    return pieces


def _fitting(part: Part, room: int, count: Callable[[str], int]) -> Iterator[Part]:
    fits = part.size <= room
    texts = [part.text] if fits else split_text(part.text, max(1, room - part.frame), count)
    for n, text in enumerate(texts, 1):
        size = part.size if fits else part.frame + count(text)
        label = part.label or (f"{n} of {len(texts)}" if len(texts) > 1 else "")
        yield Part(part.index, text, size, part.frame, part.begins and n == 1, label)


def split_text(text: str, room: int, count: Callable[[str], int]) -> list[str]:
    """Return a text in parts of at most `room` tokens; a single character may exceed it."""
    size = count(text)
    if size <= room or len(text) < 2:
        return [text]
    parts, start, step = list[str](), 0, max(1, len(text) * room * 9 // (size * 10))
    while start < len(text):
        middle, stop = start + step // 2, min(start + step, len(text))
        if stop < len(text):
            ends = (at + len(mark) for mark in ENDS if (at := text.rfind(mark, middle, stop)) >= 0)
            stop = next(ends, stop)
        parts += split_text(text[start:stop], room, count)
        start = stop
    return parts


def cut_short(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return the beginning of a summary in `limit` tokens, without headings that head nothing."""
    lines = split_text(text, limit, count)[0].rstrip().splitlines()
    while lines and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()
    return "\n".join(lines)
