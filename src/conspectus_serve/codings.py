"""Decompress bodies as they arrive, in every coding that the endpoint reads.

A few bytes can expand to gigabytes. So every body has a limit, and is not decompressed beyond it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

GZIP_WINDOW = zlib.MAX_WBITS | 16
"""Zlib's number for gzip."""

RAW_DEFLATE_WINDOW = -zlib.MAX_WBITS
"""Zlib's number for deflate without a header."""

ZSTD_WINDOW = 2**27
"""The most bytes that a reader of zstd keeps."""

GZIP_SLICE = 16_384
"""Bytes that are read at once: zlib copies all bytes after each member."""

ZSTD_SLICE = 1_024
"""Bytes that are read at once: four bytes may grow to 128 KB, and zstd has no limit."""

GROWTH_ALWAYS_ALLOWED = 64_000_000
"""The most bytes of a decompressed answer, however much it has grown."""

LARGEST_GROWTH = 200
"""The largest growth of a larger answer; JSON grows 5 to 20 times."""


class CodingError(Exception):
    """A body is not in the coding that its header names. The error's text is the coding."""


class GrowthError(Exception):
    """A decompressed body is larger than it may be."""


class _Coding(Protocol):
    """Read one coding."""

    def decode(self, piece: bytes, room: int) -> bytes:
        """Decompress a piece; raise `GrowthError` if that gives more than `room` bytes."""

    def is_complete(self) -> bool:
        """Tell whether a body may end here."""


class _Gzip:
    """Gzip of one or several members; padding after them is left out."""

    def __init__(self, most_members: int | None = None) -> None:
        self._member = zlib.decompressobj(GZIP_WINDOW)
        self._members = 1
        self._most_members = most_members

    def decode(self, piece: bytes, room: int) -> bytes:
        text = bytearray()
        for slice_ in _slices(piece, GZIP_SLICE):
            unread = slice_
            while unread:
                if self._member.eof:
                    if unread[:1] != b"\x1f":  # padding
                        return bytes(text)
                    self._begin_member()
                text += self._member.decompress(unread, room + 1 - len(text))
                _check_room(text, room)
                unread = self._member.unconsumed_tail or self._member.unused_data
        return bytes(text)

    def is_complete(self) -> bool:
        return self._member.eof

    def _begin_member(self) -> None:
        self._members += 1
        if self._most_members is not None and self._members > self._most_members:
            raise ValueError("the body has too many members")
        self._member = zlib.decompressobj(GZIP_WINDOW)


class _Deflate:
    """Deflate with zlib's header, or without it, as some programs send it."""

    def __init__(self) -> None:
        self._reader = zlib.decompressobj()
        self._has_begun = False

    def decode(self, piece: bytes, room: int) -> bytes:
        try:
            text = self._reader.decompress(piece, room + 1)
        except zlib.error:
            if self._has_begun:
                raise
            self._reader = zlib.decompressobj(RAW_DEFLATE_WINDOW)
            text = self._reader.decompress(piece, room + 1)
        self._has_begun |= bool(piece)
        _check_room(text, room)
        return text

    def is_complete(self) -> bool:
        return self._reader.eof


class _Brotli:
    def __init__(self) -> None:
        self._reader: Any = brotli.Decompressor()

    def decode(self, piece: bytes, room: int) -> bytes:
        text = bytes(self._reader.process(piece, output_buffer_limit=room + 1))
        _check_room(text, room)
        return text

    def is_complete(self) -> bool:
        return bool(self._reader.is_finished())


class _Zstd:
    """Zstandard of one or several frames."""

    def __init__(self) -> None:
        self._frame = _new_zstd_frame()

    def decode(self, piece: bytes, room: int) -> bytes:
        text = bytearray()
        for slice_ in _slices(piece, ZSTD_SLICE):
            unread = slice_
            while unread:
                if self._frame.eof:
                    self._frame = _new_zstd_frame()
                text += self._frame.decompress(unread)
                _check_room(text, room)
                unread = self._frame.unused_data
        return bytes(text)

    def is_complete(self) -> bool:
        return bool(self._frame.eof)


def _new_zstd_frame() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()


def _slices(piece: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(piece), size):
        yield piece[start : start + size]


def _check_room(text: bytes | bytearray, room: int) -> None:
    if len(text) > room:
        raise GrowthError


_READERS: dict[str, Callable[[], _Coding]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "zstd": _Zstd,
    "br": _Brotli,
}

CODINGS = tuple(_READERS)
"""The codings of bodies that are read."""


def codings_in(header: str) -> list[str]:
    """Return the codings that a `Content-Encoding` names, in the order of writing."""
    names = [name.strip() for name in header.lower().split(",")]
    return [name for name in names if name not in ("", "identity")]


class Decoder:
    """Decompress one body piece by piece, through all of its codings.

    Args:
        codings: the result of `codings_in`; each of them is in `CODINGS`.
        largest: the most bytes of the decompressed body. Default: the most of an answer, by
            `GROWTH_ALWAYS_ALLOWED` and `LARGEST_GROWTH`.
        most_gzip_members: the most compressed files in one body. Default: any number.
    """

    def __init__(
        self,
        codings: Sequence[str],
        *,
        largest: int | None = None,
        most_gzip_members: int | None = None,
    ) -> None:
        self._codings = list(reversed(codings))  # in the order of reading
        self._readers = [
            _Gzip(most_gzip_members) if _READERS[coding] is _Gzip else _READERS[coding]()
            for coding in self._codings
        ]
        self._largest = largest
        self._received = 0
        self._decoded = 0

    def decode(self, piece: bytes) -> bytes:
        """Decompress a piece of the body.

        Raises:
            CodingError: the body is not in its codings.
            GrowthError: it is larger than it may be.
        """
        self._received += len(piece)
        for coding, reader in zip(self._codings, self._readers, strict=True):
            try:
                piece = reader.decode(piece, self._room())
            except GrowthError:
                raise
            except Exception as error:  # each library has errors of its own
                raise CodingError(coding) from error
        self._decoded += len(piece)
        return piece

    def end(self) -> None:
        """Raise `CodingError` if the end of the body is missing."""
        if not self._received:  # for example in an answer to HEAD
            return
        for coding, reader in zip(self._codings, self._readers, strict=True):
            if not reader.is_complete():
                raise CodingError(coding)

    def _room(self) -> int:
        largest = self._largest
        if largest is None:
            largest = max(GROWTH_ALWAYS_ALLOWED, LARGEST_GROWTH * self._received)
        return max(0, largest - self._decoded)
