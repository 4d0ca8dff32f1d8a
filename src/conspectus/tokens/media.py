"""Tokens of images, documents and recordings: a fixed rule for each provider.

Images: OpenAI's guide to images and vision, Anthropic's to vision, Google's to media resolution.
PDFs, by the page: Anthropic's guide to PDF support, OpenAI's to file inputs, Google's as above.
Recordings, by the second, which follow from their bytes: OpenAI's guide to realtime costs, Google's
to audio and video. Where no size can be read, the estimate is rather too high.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from itertools import zip_longest
from math import ceil
from typing import Any

from conspectus.messages.media import Media, media_of
from conspectus.tokens.estimate import Maker

# Tokens of an image of unknown size: at OpenAI six tiles, at the others the most that one
# takes. OpenAI fits an image into 2,048 pixels, then its shorter side into 768, and takes 170
# tokens for each tile of 512 and 85 for the whole; Anthropic takes one for 750 pixels, at most
# 1,568 a side.
PER_IMAGE: dict[Maker, int] = {"openai": 1_105, "anthropic": 1_600, "google": 1_120}
PER_PAGE: dict[Maker, int] = {"anthropic": 3000, "openai": 2005, "google": 560, "unknown": 3000}
"""Tokens of one page of a PDF."""

NAMED_PAGES = 10
"""A file that is only an id or an address counts as so many pages, also if it is a recording."""

PAGE_BYTES = 10_000
"""If the pages of a PDF cannot be counted, each so many bytes count as one page. Real pages are
larger, so the estimate is rather too high."""

PER_SECOND: dict[Maker, int] = {"openai": 10, "anthropic": 32, "google": 32, "unknown": 32}
"""Tokens of one second of sound."""

BYTES_A_TOKEN = {"text": 3, "file": 4, "sealed": 4, "video": 208}
"""Bytes for which one token is counted, by the kind of the content. A film of 62,500 bytes a second
takes 300 tokens a second."""

SOUND_BYTES_A_SECOND = 4_000
"""Bytes of one second of sound that is compressed with loss, at a low but usual bit rate."""

BYTES_A_SECOND = {
    # 24,000 samples of two bytes, the form that OpenAI takes
    **dict.fromkeys(("pcm", "pcm16", "l16"), 48_000),
    # 8,000 samples of two bytes, as on the telephone
    **dict.fromkeys(("wav", "x-wav", "wave", "flac", "x-flac", "aiff"), 16_000),
}
"""Bytes of one second of sound without loss, by the type of the file."""

MOST_UNPACKED_BYTES = 16 << 20
"""At most so many bytes are unpacked from the object streams of one PDF."""

_HEAD_BYTES = 49_152
"""The size of a picture is searched in so many of its first bytes."""

_STREAMS = re.compile(rb"\bstream\r?\n|endstream")
_LEAF = re.compile(rb"/Type\s*/Page\b")


def media_tokens(block: Mapping[str, Any], maker: Maker) -> int:
    """Estimate the tokens of a content block without text, of any provider."""
    media = media_of(block)
    if media.kind == "image":
        makers: tuple[Maker, ...] = ("openai", "anthropic") if maker == "unknown" else (maker,)
        return max(_image(media, name) for name in makers)
    if not media.data and media.kind != "sealed":
        return NAMED_PAGES * PER_PAGE[maker]
    if media.kind == "pdf":
        pages = pdf_pages(media.raw()) or ceil(media.size / PAGE_BYTES)
        return PER_PAGE[maker] * pages
    if media.kind == "audio":
        second = BYTES_A_SECOND.get(media.mime.rpartition("/")[2], SOUND_BYTES_A_SECOND)
        return ceil(media.size / second * PER_SECOND[maker])
    return ceil(media.size / BYTES_A_TOKEN[media.kind])


def _image(media: Media, maker: Maker) -> int:
    if maker == "openai" and media.detail == "low":
        return 85
    width, height = _size(media.raw(_HEAD_BYTES)) if maker != "google" else (0, 0)
    if not (width and height):
        return PER_IMAGE[maker]
    if maker == "anthropic":
        scale = min(1.0, 1_568 / max(width, height))
        return min(PER_IMAGE[maker], ceil(width * height * scale**2 / 750))
    scale = min(1.0, 2_048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return 85 + 170 * ceil(width * scale / 512) * ceil(height * scale / 512)


def _size(raw: bytes) -> tuple[int, int]:
    """Read width and height of a PNG, GIF or JPEG; 0 if they are not known."""
    for begin, form, at in ((b"\x89PNG\r\n\x1a\n", ">II", 16), (b"GIF8", "<HH", 6)):
        if raw.startswith(begin) and len(raw) > at + 8:
            return struct.unpack_from(form, raw, at)
    at = 2 if raw[:2] == b"\xff\xd8" else len(raw)
    while at + 9 < len(raw) and raw[at] == 0xFF:  # a JPEG's frame follows its metadata
        if 0xC0 <= raw[at + 1] <= 0xCF and raw[at + 1] not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        at += 2 + max(2, int.from_bytes(raw[at + 2 : at + 4], "big"))
    return 0, 0


def pdf_pages(raw: bytes) -> int | None:
    """Count the pages of a PDF, in the open and in its object streams; None if none is seen."""
    leaves = packed = 0
    parts = _STREAMS.split(raw)
    for plain, stream in zip_longest(parts[::2], parts[1::2], fillvalue=b""):
        leaves += len(_LEAF.findall(plain))
        if b"/ObjStm" in plain.rpartition(b"endobj")[2] and packed < MOST_UNPACKED_BYTES:
            try:
                text = zlib.decompressobj().decompress(stream, MOST_UNPACKED_BYTES - packed)
            except zlib.error:  # damaged, or encrypted
                continue
            packed += len(text)
            leaves += len(_LEAF.findall(text))
    return leaves or None
