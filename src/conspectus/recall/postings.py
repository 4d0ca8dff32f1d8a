"""A part of a search index: the terms of some messages, packed small, without their text.

A part never changes. It has its messages by key, their passages by number, and for each term the
passages that hold it. Packed it takes about a third of the texts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from conspectus.recall.steps import Act
from conspectus.recall.words import rules

VERSION = 5
"""Of this form and of the rules for terms; parts of another version or stems are built again."""

DIGEST = 12  # Hexadecimal digits by which ids are compared: they may hold text that JSON cannot
NUMBERS = ("lengths", "starts", "ends", "sizes")  # The columns of a part that are numbers

KINDS = tuple((kind, asks) for kind in Act for asks in (False, True))
"""The meanings of a byte of `Part.kinds`."""

BLOCK = 16_384
"""Postings in a block: opened in a millisecond, and large enough to pack well (deflate looks back
32 KB)."""

OPEN = 64  # Blocks of a part that stay open

UNREADABLE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error
"""Errors of reading a damaged value."""

MOST_COUNTED = 255  # Largest count of a term in one passage


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a message, or all of it; `start` and `end` in characters of its reading text.

    `terms` counts each term, `size` all of them. `call` is the digest of the call's id if its
    message makes several.
    """

    start: int
    end: int
    terms: Mapping[str, int]
    size: int
    call: str = ""


class Doc(NamedTuple):
    """The facts of one message in an index.

    `names` holds the digests of its id and citation, `asks` whether it ends in a question,
    `speaker` the terms of the speaker's name or role, `answers` digests of the calls whose results
    it holds.
    """

    names: str
    kind: Act
    asks: bool
    speaker: str
    answers: tuple[str, ...]


class DamagedError(ValueError):
    """A part cannot be read; it is built again from the originals."""


class Block(NamedTuple):
    """Some terms in order, and the passages that hold each.

    `terms` has one a line, `lasts` the end of each term's postings, `postings` the distances
    between passage numbers, `counts` how often each passage holds the term.
    """

    terms: bytes
    lasts: array[int]
    postings: array[int]
    counts: bytes

    @classmethod
    def of(cls, held: Sequence[tuple[bytes, Sequence[tuple[int, int]]]]) -> Block:
        """Build a block from terms in order, each with the passages that hold it."""
        lasts, postings, counts = array("I"), array("I"), bytearray()
        for _, found in held:
            before = 0
            for number, count in found:
                postings.append(number - before)
                counts.append(count if count < MOST_COUNTED else MOST_COUNTED)
                before = number
            lasts.append(len(counts))
        terms = b"\n" + b"\n".join(term for term, _ in held) + b"\n"
        return cls(terms, lasts, postings, bytes(counts))

    def holding(self, term: bytes) -> list[tuple[int, int]]:
        """Return the passages that hold a term, with their counts."""
        at = self.terms.find(b"\n" + term + b"\n")
        if at < 0:
            return []
        number = self.terms.count(b"\n", 0, at)
        return self._held(self.lasts[number - 1] if number else 0, self.lasts[number])

    def all(self) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
        """Yield each term with the passages that hold it."""
        begin = 0
        for term, end in zip(self.terms.split(b"\n")[1:], self.lasts, strict=False):
            yield term, self._held(begin, end)
            begin = end

    def _held(self, begin: int, end: int) -> list[tuple[int, int]]:
        places = accumulate(self.postings[begin:end])
        return list(zip(places, self.counts[begin:end], strict=True))

    def pack(self) -> str:
        """Return the block as text, packed small."""
        return _packed([self.terms, self.counts, _planes(self.lasts), _planes(self.postings)])

    @classmethod
    def unpack(cls, text: str) -> Block:
        """Undo `pack`, or raise `DamagedError`."""
        try:
            terms, counts, lasts, postings = _unpacked(text)
            return cls(terms, _from_planes(lasts), _from_planes(postings), counts)
        except UNREADABLE as error:
            raise DamagedError("a block of a search index is damaged") from error


@dataclass(slots=True)
class Part:
    """The terms of some messages, in columns.

    `names`, `speakers`, `kinds` (see `KINDS`), `answers` and `lengths` (in passages) are by
    message; `starts`, `ends`, `sizes` and `calls` by passage. `expires` is when the first message
    is gone, in seconds since 1970. `firsts` has the first term of each of `blocks`, which stay
    packed until they are read.
    """

    keys: list[str]
    names: list[str]
    speakers: list[str]
    kinds: bytes
    answers: dict[int, tuple[str, ...]]
    lengths: array[int]
    starts: array[int]
    ends: array[int]
    sizes: array[int]
    calls: dict[int, str]
    expires: float | None
    firsts: list[bytes] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    _open: dict[int, Block] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def of(
        cls, messages: Sequence[tuple[str, Doc, Sequence[Passage]]], expires: float | None = None
    ) -> Part:
        """Build a part from messages, each with its key and its passages."""
        docs = [doc for _, doc, _ in messages]
        passages = [passage for _, _, some in messages for passage in some]
        found: dict[bytes, list[tuple[int, int]]] = {}
        for number, passage in enumerate(passages):
            for term, count in passage.terms.items():
                found.setdefault(_bytes(term), []).append((number, count))
        whole = cls(
            [key for key, _, _ in messages],
            [doc.names for doc in docs],
            [doc.speaker for doc in docs],
            bytes(KINDS.index((doc.kind, doc.asks)) for doc in docs),
            {number: doc.answers for number, doc in enumerate(docs) if doc.answers},
            array("I", (len(some) for _, _, some in messages)),
            array("I", (one.start for one in passages)),
            array("I", (one.end for one in passages)),
            array("I", (one.size for one in passages)),
            {number: one.call for number, one in enumerate(passages) if one.call},
            expires,
        )
        whole._fill(found)
        return whole

    @classmethod
    def merged(cls, parts: Sequence[Part]) -> Part:
        """Join parts in their order; a damaged one is a `DamagedError`."""
        found: dict[bytes, list[tuple[int, int]]] = {}
        whole = cls.of([])
        for part in parts:
            message, first = len(whole.keys), len(whole.starts)
            for packed in part.blocks:
                for term, held in Block.unpack(packed).all():
                    found.setdefault(term, []).extend((first + n, c) for n, c in held)
            whole.calls.update({first + number: call for number, call in part.calls.items()})
            whole.answers.update({message + number: ids for number, ids in part.answers.items()})
            whole.kinds += part.kinds
            for name in ("keys", "names", "speakers", *NUMBERS):
                getattr(whole, name).extend(getattr(part, name))
        whole.expires = min((p.expires for p in parts if p.expires is not None), default=None)
        whole._fill(found)
        return whole

    def _fill(self, found: Mapping[bytes, Sequence[tuple[int, int]]]) -> None:
        some: list[tuple[bytes, Sequence[tuple[int, int]]]] = []
        size = 0
        for term in sorted(found):
            some.append((term, found[term]))
            size += len(found[term])
            if size >= BLOCK:
                self._add(some)
                some, size = [], 0
        if some:
            self._add(some)

    def _add(self, held: Sequence[tuple[bytes, Sequence[tuple[int, int]]]]) -> None:
        self.firsts.append(held[0][0])
        self.blocks.append(Block.of(held).pack())

    def doc(self, number: int) -> Doc:
        """Return the facts of a message, by its number in the part."""
        kind, asks = KINDS[self.kinds[number]]
        return Doc(
            self.names[number], kind, asks, self.speakers[number], self.answers.get(number, ())
        )

    def holding(self, term: str) -> list[tuple[int, int]]:
        wanted = _bytes(term)
        at = bisect_right(self.firsts, wanted) - 1
        if at < 0:
            return []
        block = self._open.get(at)
        if block is None:
            block = Block.unpack(self.blocks[at])
            if len(self._open) >= OPEN:
                self._open.clear()
            self._open[at] = block
        return block.holding(wanted)

    def pack(self, manifest: Sequence[str] = ()) -> dict[str, Any]:
        """Return the part as plain JSON data, without keys that equal `manifest`."""
        head = {
            "expires": self.expires,
            "keys": None if self.keys == list(manifest) else self.keys,
            "names": self.names,
            "speakers": self.speakers,
            "answers": list(self.answers.items()),
            "calls": list(self.calls.items()),
        }
        pieces = [json.dumps(head, separators=(",", ":")).encode(), self.kinds]
        pieces += [_planes(getattr(self, name)) for name in NUMBERS]
        firsts = [first.decode("utf-8", "surrogatepass") for first in self.firsts]
        return {
            "version": VERSION,
            "stems": rules(),
            "data": _packed(pieces),
            "firsts": firsts,
            "blocks": self.blocks,
        }

    @classmethod
    def unpack(cls, data: Any, manifest: Sequence[str] = ()) -> Part | None:
        """Return the part that `pack` wrote; None if damaged or of another version."""
        try:
            if (data["version"], data["stems"]) != (VERSION, rules()):
                return None
            raw, kinds, *planes = _unpacked(data["data"])
            head = json.loads(raw)
            numbers = dict(zip(NUMBERS, map(_from_planes, planes), strict=True))
            part = cls(
                keys=list(manifest) if head["keys"] is None else head["keys"],
                names=head["names"],
                speakers=head["speakers"],
                kinds=kinds,
                answers={number: tuple(ids) for number, ids in head["answers"]},
                calls=dict(head["calls"]),
                expires=head["expires"],
                firsts=[_bytes(first) for first in data["firsts"]],
                blocks=data["blocks"],
                **numbers,
            )
        except UNREADABLE:
            return None
        return part if len(part.keys) == len(part.names) == len(kinds) else None


def terms_in(block: str) -> list[str]:
    return [term.decode("utf-8", "surrogatepass") for term, _ in Block.unpack(block).all()]


def _packed(pieces: Sequence[bytes]) -> str:
    sizes = array("I", map(len, pieces))
    raw = bytes([len(pieces)]) + _little(sizes).tobytes() + b"".join(pieces)
    return base64.b64encode(zlib.compress(raw)).decode()


def _unpacked(text: str) -> list[bytes]:
    raw = zlib.decompress(base64.b64decode(text))
    begin = 1 + 4 * raw[0]
    sizes = array("I")
    sizes.frombytes(raw[1:begin])
    ends = accumulate(_little(sizes), initial=begin)
    return [raw[start:end] for start, end in pairwise(ends)]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")


def _planes(numbers: array[int]) -> bytes:
    """Return numbers as bytes, all lowest bytes first, after the number of bytes of each.

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
    """Return the numbers with their lowest byte first, on any machine."""
    if sys.byteorder == "little":
        return numbers
    turned = numbers[:]
    turned.byteswap()
    return turned
