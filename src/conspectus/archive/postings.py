"""A part of a search index: what some messages are found by, packed small; it holds no text.

A part never changes. It knows its messages by their keys, their passages by place, and for each
term the passages that hold it. Packed it takes about a third of what the texts take.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple

from conspectus.archive.steps import Kind

VERSION = 3
"""Of this form and of the rules for terms; a part of another version is built again."""

DIGEST = 12
"""Hexadecimal digits by which ids are compared: they may hold what JSON cannot."""

NUMBERS = ("lengths", "starts", "ends", "sizes", "lasts", "postings")
"""The columns of a part that are numbers."""

KINDS = tuple(Kind)

BLOCK = 64
"""Terms that are looked through for one, once a search by halves has found where it would stand."""

MOST_COUNTED = 255
"""How often one passage holds a term, as far as it is counted."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a message, or all of it.

    Attributes:
        start, end: where in the message's reading, in characters.
        terms: how often it holds each of its terms.
        size: how many terms it has, each time it stands there.
        call: digest of the id of the call that it is, where its message makes several.
    """

    start: int
    end: int
    terms: Mapping[str, int]
    size: int
    call: str = ""


class Doc(NamedTuple):
    """What an index knows of one message.

    Attributes:
        names: digests of its id and of how it is cited, with a space between.
        kind: what it does.
        asks: it ends in a question.
        speaker: terms of the name of who speaks, or of the role where there is no name.
        answers: digests of the ids of the calls whose results it holds.
    """

    names: str
    kind: Kind
    asks: bool
    speaker: str
    answers: tuple[str, ...]


@dataclass(slots=True)
class Part:
    """What some messages are found by, in columns.

    Attributes:
        keys: of the messages.
        docs: what is known of each.
        lengths: how many passages each has.
        starts, ends, sizes: of the passages, one after the other; see `Passage`.
        calls: by number of a passage, the call that it is.
        expires: when the first message is gone, in seconds since 1970; None for never.
        terms: in order, each on a line of its own.
        lasts: for each term, the end of its postings.
        postings: numbers of passages, each as its distance from the one before.
        counts: how often each holds the term.
        marks: where in `terms` each block of `BLOCK` begins; empty until it is needed.
    """

    keys: list[str]
    docs: list[Doc]
    lengths: array[int]
    starts: array[int]
    ends: array[int]
    sizes: array[int]
    calls: dict[int, str]
    expires: float | None
    terms: bytes
    lasts: array[int]
    postings: array[int]
    counts: bytes
    marks: array[int] = field(default_factory=lambda: array("I"), compare=False)

    @classmethod
    def of(
        cls, messages: Sequence[tuple[str, Doc, Sequence[Passage]]], expires: float | None = None
    ) -> Part:
        """Build a part from messages, each with its key and its passages."""
        passages = [passage for _, _, some in messages for passage in some]
        found: dict[str, list[tuple[int, int]]] = {}
        for number, passage in enumerate(passages):
            for term, count in passage.terms.items():
                found.setdefault(term, []).append((number, count))
        return cls(
            [key for key, _, _ in messages],
            [doc for _, doc, _ in messages],
            array("I", (len(some) for _, _, some in messages)),
            array("I", (one.start for one in passages)),
            array("I", (one.end for one in passages)),
            array("I", (one.size for one in passages)),
            {number: one.call for number, one in enumerate(passages) if one.call},
            expires,
            *_inverted({_bytes(term): held for term, held in found.items()}),
        )

    @classmethod
    def merged(cls, parts: Sequence[Part]) -> Part:
        """Several parts as one, in their order."""
        found: dict[bytes, list[tuple[int, int]]] = {}
        whole = cls.of([])
        for part in parts:
            first, begin = whole.size, 0
            for term, end in zip(part.terms.split(b"\n")[1:], part.lasts, strict=False):
                found.setdefault(term, []).extend((first + n, c) for n, c in part._held(begin, end))
                begin = end
            whole.calls.update({first + number: call for number, call in part.calls.items()})
            for name in ("keys", "docs", "lengths", "starts", "ends", "sizes"):
                getattr(whole, name).extend(getattr(part, name))
        whole.expires = min((p.expires for p in parts if p.expires is not None), default=None)
        whole.terms, whole.lasts, whole.postings, whole.counts = _inverted(found)
        return whole

    @property
    def size(self) -> int:
        """How many passages there are."""
        return len(self.starts)

    def holding(self, term: str) -> list[tuple[int, int]]:
        """The passages that hold a term, by number in the part, and how often each does."""
        wanted, marks = _bytes(term), self._marked()
        block = bisect_right(marks, wanted, key=self._term_at) - 1
        if block < 0:
            return []
        end = marks[block + 1] if block + 1 < len(marks) else len(self.terms)
        some = self.terms[marks[block] - 1 : end]
        at = some.find(b"\n" + wanted + b"\n")
        if at < 0:
            return []
        number = block * BLOCK + some.count(b"\n", 0, at)
        return self._held(self.lasts[number - 1] if number else 0, self.lasts[number])

    def _marked(self) -> array[int]:
        """Where in `terms` each first term of a block begins; found out at the first question."""
        if not self.marks:
            sizes = map(len, self.terms.split(b"\n")[1:-2])
            before = islice(accumulate(sizes, initial=1), 0, None, BLOCK)  # without line ends
            self.marks = array("I", (at + n * BLOCK for n, at in enumerate(before)))
        return self.marks

    def _term_at(self, place: int) -> bytes:
        return self.terms[place : self.terms.index(b"\n", place)]

    def _held(self, begin: int, end: int) -> list[tuple[int, int]]:
        places = accumulate(self.postings[begin:end])
        return list(zip(places, self.counts[begin:end], strict=True))

    def pack(self) -> dict[str, Any]:
        """The part as plain JSON data."""
        docs = [
            (doc.names, 2 * doc.kind + doc.asks, doc.speaker, *doc.answers) for doc in self.docs
        ]
        head = [self.expires, self.keys, docs, list(self.calls.items())]
        pieces = [json.dumps(head, separators=(",", ":")).encode(), self.terms, self.counts]
        pieces += [_planes(getattr(self, name)) for name in NUMBERS]
        packed = zlib.compress(b"".join(pieces))
        sizes = [len(piece) for piece in pieces]
        return {"version": VERSION, "sizes": sizes, "data": base64.b64encode(packed).decode()}

    @classmethod
    def unpack(cls, data: Any) -> Part | None:
        """The part that `pack` wrote; None where it is damaged or of another version."""
        try:
            if data["version"] != VERSION:
                return None
            raw = zlib.decompress(base64.b64decode(data["data"]))
            ends = list(accumulate(data["sizes"], initial=0))
            pieces = [raw[begin:end] for begin, end in pairwise(ends)]
            expires, keys, docs, calls = json.loads(pieces[0])
            kinds = [(kind, asks) for kind in KINDS for asks in (False, True)]
            numbers = dict(zip(NUMBERS, map(_from_planes, pieces[3:]), strict=True))
            return cls(
                keys=keys,
                docs=[
                    Doc(names, kinds[kind][0], kinds[kind][1], speaker, tuple(answers))
                    for names, kind, speaker, *answers in docs
                ],
                calls=dict(calls),
                expires=expires,
                terms=pieces[1],
                counts=pieces[2],
                **numbers,
            )
        except (ArithmeticError, LookupError, TypeError, ValueError, zlib.error):
            return None


def _inverted(
    found: Mapping[bytes, Sequence[tuple[int, int]]],
) -> tuple[bytes, array[int], array[int], bytes]:
    """Terms with the passages that hold each, as the columns of a part."""
    terms, lasts, postings, counts = sorted(found), array("I"), array("I"), bytearray()
    for term in terms:
        before = 0
        for number, count in found[term]:
            postings.append(number - before)
            counts.append(count if count < MOST_COUNTED else MOST_COUNTED)
            before = number
        lasts.append(len(counts))
    return b"\n" + b"\n".join(terms) + b"\n", lasts, postings, bytes(counts)


def digest(text: str) -> str:
    """What an id is compared by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")


def _planes(numbers: array[int]) -> bytes:
    """Numbers as bytes, the lowest of all of them first, behind how many bytes each has.

    Most numbers are small: they pack well so, and upper bytes that are all zero are left out.
    """
    raw = _little(numbers).tobytes()
    planes = [raw[at::4] for at in range(4)]
    while len(planes) > 1 and not planes[-1].strip(b"\0"):
        planes.pop()
    return bytes([len(planes)]) + b"".join(planes)


def _from_planes(planes: bytes) -> array[int]:
    count = (len(planes) - 1) // planes[0]
    raw = bytearray(4 * count)
    for at in range(planes[0]):
        raw[at::4] = planes[1 + at * count : 1 + (at + 1) * count]
    numbers = array("I")
    numbers.frombytes(raw)
    return _little(numbers)


def _little(numbers: array[int]) -> array[int]:
    """The numbers with their lowest byte first, whatever the machine's order."""
    if sys.byteorder == "little":
        return numbers
    turned = numbers[:]
    turned.byteswap()
    return turned
