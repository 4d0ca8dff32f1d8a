"""Decompress answers as they come, in every coding that the endpoint reads of requests."""

from __future__ import annotations

import zlib
from typing import Any

import brotli  # type: ignore[import-untyped]
import zstandard

CODINGS = ("gzip", "x-gzip", "deflate", "zstd", "br")  # of bodies that are read
GZIP = zlib.MAX_WBITS | 16  # what zlib takes for gzip
ZSTD_WINDOW = 2**27  # maximum bytes that a reader of zstd keeps


class CodingError(Exception):
    """A body is not in the coding that its header names."""


class Decoder:
    """Decompress one body, piece by piece.

    Args:
        coding: one of `CODINGS`.
    """

    def __init__(self, coding: str) -> None:
        self.coding, self._begun = coding, False
        if coding == "br":
            self._reading: Any = brotli.Decompressor()
        elif coding == "zstd":
            reader = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
            self._reading = reader.decompressobj(read_across_frames=True)
        else:
            self._reading = zlib.decompressobj(zlib.MAX_WBITS if coding == "deflate" else GZIP)

    def decode(self, piece: bytes) -> bytes:
        """Return what a piece of the body holds. Raises CodingError."""
        try:
            return self._decoded(piece)
        except Exception as error:  # each library has errors of its own
            raise CodingError(self.coding) from error
        finally:
            self._begun |= bool(piece)

    def end(self) -> None:
        """Notice a body that breaks off. Raises CodingError."""
        if self._begun and not self._has_ended():
            raise CodingError(self.coding)

    def _decoded(self, piece: bytes) -> bytes:
        if self.coding == "br":
            return bytes(self._reading.process(piece))
        if self.coding == "zstd":
            return bytes(self._reading.decompress(piece))
        if self.coding == "deflate":
            return self._inflated(piece)
        text = b""
        while piece:
            if self._reading.eof:  # several files in one, or padding
                if piece[:1] != b"\x1f":
                    return text
                self._reading = zlib.decompressobj(GZIP)
            text += self._reading.decompress(piece)
            piece = self._reading.unused_data
        return text

    def _inflated(self, piece: bytes) -> bytes:
        """Read `deflate`, with the header of zlib or, as some servers send it, without."""
        try:
            return bytes(self._reading.decompress(piece))
        except zlib.error:
            if self._begun:
                raise
            self._reading = zlib.decompressobj(-zlib.MAX_WBITS)
            return bytes(self._reading.decompress(piece))

    def _has_ended(self) -> bool:
        if self.coding == "br":
            return bool(self._reading.is_finished())
        # Across frames zstd never ends: the next one may come.
        return self.coding == "zstd" or bool(self._reading.eof)


def decoders_of(header: str) -> list[Decoder] | None:
    """Return the decoders for a `Content-Encoding`, in the order of reading; None for others."""
    names = [name.strip() for name in header.lower().split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if not all(name in CODINGS for name in names):
        return None
    return [Decoder(name) for name in reversed(names)]


def decode_with(decoders: list[Decoder], piece: bytes) -> bytes:
    """Return what a piece holds behind all of its codings. Raises CodingError."""
    for decoder in decoders:
        piece = decoder.decode(piece)
    return piece
