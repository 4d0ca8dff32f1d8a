"""Count the pages of a PDF from its bytes, in linear time and bounded memory.

A dictionary of `/Type /Pages` holds the pages below it in `/Count`, and the root of the tree holds
the most. The dictionaries are in the file itself, or compressed in object streams (ISO 32000-1,
7.5.7 and 7.7.3). A file with encrypted object streams may have its count in the dictionary of its
linearization (annex F).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

UNPACKED = 16 << 20  # Most bytes that the object streams of one file are unpacked to
LEAST_PAGE = 8  # Least bytes of a page: a larger count is damage, or a trap
DEEPEST = 64  # Nested dictionaries that are followed; a page tree needs one or two

_TOKENS = re.compile(
    rb"<<|>>|\bendobj\b|/Type\s*/Pages?\b|/Count\s+(\d++)(?!\s+\d+\s+R\b)|/ObjStm\b|/FlateDecode\b"
)
_STREAM = re.compile(rb"\bstream\r?\n")
_LINEARIZED = re.compile(rb"/Linearized\b[^>]{0,200}?/N\s+(\d+)")


def pdf_pages(raw: bytes) -> int | None:
    """Count the pages of a PDF; None if its bytes do not say.

    Example:
        >>> pdf_pages(b"%PDF-1.4 1 0 obj <</Type /Pages /Kids [3 0 R 4 0 R] /Count 2>> endobj")
        2
    """
    most, single, room = 0, 0, UNPACKED
    for plain, stream in _plain_parts(raw):
        counted, alone, packed = _counts(plain)
        if packed and stream and room > 0:
            text = _unpacked(stream, room)
            room -= len(text)
            inside = _counts(text)
            counted, alone = max(counted, inside[0]), alone + inside[1]
        most, single = max(most, counted), single + alone
    if not most and (found := _LINEARIZED.search(raw[:2_048])):
        most = int(found[1][:9])
    pages = most or single
    return pages if 0 < pages <= len(raw) // LEAST_PAGE + UNPACKED - room else None


def _plain_parts(raw: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield each stretch of the file outside of streams, and the stream after it."""
    at, whole = 0, memoryview(raw)
    while found := _STREAM.search(raw, at):
        end = raw.find(b"endstream", found.end())
        end = len(raw) if end < 0 else end
        yield raw[at : found.start()], whole[found.end() : end]
        at = end + len(b"endstream")
    yield raw[at:], whole[:0]


def _counts(text: bytes) -> tuple[int, int, bool]:
    """Return the largest `/Count`, the single pages, and whether it ends packed."""
    most, single, packed = 0, 0, 0
    open_: list[list[int]] = []  # of each open dictionary: whether it is a tree, its count
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token == b"<<":
            if len(open_) < DEEPEST:
                open_.append([0, 0])
            packed = 0 if len(open_) == 1 else packed
        elif token == b"endobj":
            open_.clear()
            packed = 0
        elif token in (b"/ObjStm", b"/FlateDecode"):
            packed |= 1 if token == b"/ObjStm" else 2
        elif not open_:
            continue
        elif token == b">>":
            tree, count = open_.pop()
            most = max(most, count) if tree else most
        elif found[1] is not None:
            open_[-1][1] = int(found[1][:9])
        elif token.endswith(b"s"):
            open_[-1][0] = 1
        else:
            single += 1
    return most, single, packed == 3


def _unpacked(stream: memoryview, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream, most)
    except zlib.error:  # damaged, or encrypted
        return b""
